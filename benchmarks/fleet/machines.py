"""A real fleet on this machine: Postgres, Redis, `rss-pipeline up --fleet`, workers, and the publishers.

Workers have homes of their own, each in a network namespace where that is wanted. What is measured of it is
run.py's and throughput.py's.
"""

import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.fleet.namespaces import HERE, namespaces
from benchmarks.fleet.processor import Process, Processor
from benchmarks.fleet.publishers import Asked, Plan, Publishers, publishing
from rss_pipeline_tests.soak.machines import Fleet, fleet
from rss_pipeline_tests.support.services.postgres import Postgres, local_postgres
from rss_pipeline_tests.support.services.redis_server import RedisServer, local_redis
from rss_pipeline_tests.support.waiting import soon

START_SECONDS = 240.0
DUE = "2000-01-01T00:00:00Z"
_LOOK_SECONDS = 2.0
WORKERS, PARSERS, POSTGRES, REDIS, MAIN, SERVER, BENCHMARK = (
    "workers' runs",
    "workers' parsers",
    "Postgres",
    "Redis",
    "main machine",
    "publishers",
    "this benchmark",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How the fleet is set up."""

    workers: int
    runs: int
    shards: int
    concurrency: int
    batch_size: int
    host_delay: float
    in_namespaces: bool
    reader: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """All feeds, visited once."""

    name: str
    feeds: int
    seconds: float
    """From the first request to the last answer."""
    cpu: Counter[str]

    @property
    def rate(self) -> float:
        """Feeds a second."""
        return self.feeds / self.seconds if self.seconds else 0.0

    def line(self) -> str:
        """A row: name, seconds, feeds a second, and milliseconds of the processor for a feed, by group."""
        each = {group: 1000 * seconds / self.feeds for group, seconds in self.cpu.items()}
        spent = ", ".join(f"{group} {ms:.1f}" for group, ms in sorted(each.items(), key=lambda it: -it[1]))
        ours = sum(ms for group, ms in each.items() if group not in (SERVER, BENCHMARK))
        said = f"{self.name:<10} {self.seconds:7.1f} s {self.rate:7.1f} feeds/s"
        return f"{said} {ours:6.1f} ms of CPU a feed: {spent}"


class Running:
    """A fleet at work, with the publishers whose feeds it collects."""

    def __init__(self, machines: Fleet, publishers: Publishers, processor: Processor) -> None:
        self.machines = machines
        self.publishers = publishers
        self.processor = processor
        self.seen = 0
        """Entries of the publishers' log that belong to phases that are over."""

    def phase(self, name: str, *, seconds: float) -> Phase:
        """Wait until each feed was visited once more and nothing is claimed any more.

        Raises:
            TimeoutError: it took longer than so many seconds.
        """
        feeds = self.publishers.plan.feeds
        began = self.processor.seconds()
        until = time.monotonic() + seconds
        visited: set[int] = set()
        asked: list[Asked] = []
        while len(visited) < feeds or self._claimed():
            self.no_feed_failed()
            if time.monotonic() > until:
                raise TimeoutError(f"{name}: {len(visited)} of {feeds} feeds after {seconds:g} s")
            time.sleep(_LOOK_SECONDS)
            some = self.publishers.asked(self.seen + len(asked))
            asked += some
            visited |= {each.feed for each in some}
        self.seen += len(asked)
        taken = self.processor.seconds()
        taken.subtract(began)
        first, last = min(each.began for each in asked), max(each.ended for each in asked)
        return Phase(name=name, feeds=feeds, seconds=last - first, cpu=taken)

    def all_due(self) -> None:
        """Make each feed due."""
        self.machines.rows(f"UPDATE feeds SET next_fetch_at = '{DUE}' RETURNING 1")

    def no_feed_failed(self) -> None:
        """End it where something is wrong with this machine, not with the fleet."""
        if found := self.machines.rows("SELECT last_error FROM feeds WHERE last_error IS NOT NULL LIMIT 1"):
            raise SystemExit(f"feeds fail: {found[0][0]}")

    def _claimed(self) -> bool:
        return bool(self.machines.rows("SELECT 1 FROM feeds WHERE lease_token IS NOT NULL LIMIT 1"))


@contextmanager
def running(setting: Setting, plan: Plan) -> Iterator[Running]:
    """A fleet of which each machine has joined. It begins to collect by itself."""
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="rss-fleet-")))
        # Another user's Postgres looks at no file in it, but machines share it.
        folder.chmod(0o755)
        inside = ends.enter_context(namespaces(setting.workers)) if setting.in_namespaces else []
        postgres = ends.enter_context(local_postgres(**_postgres_settings(setting)))
        redis = ends.enter_context(local_redis())
        publishers = ends.enter_context(publishing(plan))
        publishers.register(folder / "feeds.yaml")
        machines = ends.enter_context(
            fleet(
                folder,
                postgres,
                redis.url(),
                RSS_SHARDS=str(setting.shards),
                RSS_WORKER_RUNS=str(setting.runs),
                RSS_FETCH_CONCURRENCY=str(setting.concurrency),
                RSS_BATCH_SIZE=str(setting.batch_size),
                RSS_HOST_DELAY_SECONDS=str(setting.host_delay),
                RSS_READER="on" if setting.reader else "off",
            )
        )
        if setting.in_namespaces:
            _let_in(postgres, redis)
        up = machines.start_main()
        soon(up.answers, seconds=START_SECONDS)
        for number in range(setting.workers):
            name = f"worker{number}"
            at = HERE if setting.in_namespaces else "127.0.0.1"
            machines.of_machine[name] = {
                "RSS_FEEDS_FILE": str(folder / "none.yaml"),
                "DATABASE_URL": postgres.tcp_url(machines.database).replace("@127.0.0.1:", f"@{at}:"),
                "RSS_BROKER_URL": redis.url().replace("@127.0.0.1:", f"@{at}:"),
            }
            if inside:
                machines.inside[name] = inside[number]
            machines.start_worker(name)
        processor = ends.enter_context(Processor(_groups(machines, publishers, postgres, redis)))
        soon(lambda: _joined(machines) == setting.workers, seconds=START_SECONDS)
        yield Running(machines, publishers, processor)


def _postgres_settings(setting: Setting) -> dict[str, str]:
    addresses = f"127.0.0.1,{HERE}" if setting.in_namespaces else "127.0.0.1"
    return {"listen_addresses": addresses, "shared_buffers": "128MB", "max_wal_size": "1GB"}


def _let_in(postgres: Postgres, redis: RedisServer) -> None:
    """Let both servers take connections from namespaces."""
    with (postgres.folder / "data" / "pg_hba.conf").open("a") as file:
        file.write(f"host all all {HERE}/24 scram-sha-256\n")
    postgres.execute("postgres", "SELECT pg_reload_conf()")
    with redis.client() as client:
        client.config_set("bind", f"127.0.0.1 {HERE}")


def _joined(machines: Fleet) -> int:
    for worker in machines.workers.values():
        if worker.process.poll() is not None:
            raise SystemExit(f"{worker.name} ended: {worker.path.read_text('utf-8')}")
    return int(machines.rows("SELECT count(*) FROM workers WHERE role = 'worker'")[0][0])


def _groups(machines: Fleet, publishers: Publishers, postgres: Postgres, redis: RedisServer) -> Any:
    postmaster = int((postgres.folder / "data" / "postmaster.pid").read_text().split()[0])
    with redis.client() as client:
        broker = int(client.info("server")["process_id"])

    def group(process: Process) -> str | None:
        if postmaster in (process.pid, process.parent):
            return POSTGRES
        if process.pid == os.getpid():
            return BENCHMARK
        if process.pid in (broker, publishers.pid):
            return REDIS if process.pid == broker else SERVER
        if process.session in {worker.process.pid for worker in machines.workers.values()}:
            return PARSERS if "forkserver" in process.command else WORKERS
        return MAIN if process.session in {up.process.pid for up in machines.mains} else None

    return group
