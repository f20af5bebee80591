"""A real fleet on this machine, measured: `python -m benchmarks.fleet.run`, some 20 minutes.

Postgres, Redis, `rss-pipeline up --fleet` and workers with homes of their own, each in a network namespace
where this machine allows that, collect feeds of many hosts: first all new, then once more, when all answer
304. The publishers' log decides how politely they were asked; the items that they published are compared
with the rows. `--refreshes 30` measures instead how soon a person's refresh is at the publisher while all
feeds are due. It exits with 1 where a promise is broken. Linux only.
"""

import argparse
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.fleet.namespaces import HERE, PUBLISHERS, are_allowed, namespaces
from benchmarks.fleet.processor import Process, Processor
from benchmarks.fleet.publishers import Asked, Plan, Publishers, feed_id, manners, publishing
from rss_pipeline_tests.soak.machines import Fleet, fleet
from rss_pipeline_tests.support.postgres import Postgres, local_postgres
from rss_pipeline_tests.support.redis_server import RedisServer, local_redis
from rss_pipeline_tests.support.up import PROGRAM
from rss_pipeline_tests.support.waiting import soon

START_SECONDS = 240.0
_LOOK_SECONDS = 2.0
DUE = "2000-01-01T00:00:00Z"
_PASSWORD = "a password of the benchmark"
_FIRST_BYTE_GOAL = 10.0
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


def broken_promises(run: Running, host_delay: float) -> list[str]:
    """A sentence for each promise that was broken; prints what the log says."""
    asked = run.publishers.asked()
    polite = manners(asked)
    print(
        f"{polite.requests} requests by {', '.join(polite.by)}; of a feed at once {polite.feeds_at_once},"
        f" of a host at once {polite.hosts_at_once}, shortest gap at a host {polite.shortest_gap:.3f} s"
    )
    published: dict[int, set[int]] = defaultdict(set)
    for each in asked:
        if each.version:
            published[each.feed].add(each.version)
    expected = {
        (feed_id(feed), guid)
        for feed, versions in published.items()
        for version in versions
        for guid in run.publishers.guids(feed, version)
    }
    rows = [(str(id), str(guid)) for id, guid in run.machines.rows("SELECT feed_id, guid FROM items")]
    missing, foreign, twice = len(expected - set(rows)), len(set(rows) - expected), len(rows) - len(set(rows))
    print(f"{len(expected)} items published, {len(rows)} rows; missing {missing}, twice {twice}")
    failed = run.machines.rows("SELECT count(*) FROM feeds WHERE last_error IS NOT NULL")[0][0]
    found = {
        "a feed was visited twice at once": polite.feeds_at_once,
        "a host was asked by two at once": polite.hosts_at_once,
        "a host was asked faster than its pace": polite.shortest_gap < host_delay,
        "items are missing": missing,
        "items are there that nobody published": foreign,
        "items are there twice": twice,
        "feeds failed": failed,
    }
    return [sentence for sentence, is_broken in found.items() if is_broken]


def collect(run: Running, *, seconds: float) -> Iterator[Phase]:
    """All feeds, new; then once more, answered 304."""
    yield run.phase("new", seconds=seconds)
    run.all_due()
    yield run.phase("unchanged", seconds=seconds)


def refreshes(run: Running, count: int, *, seconds: float) -> list[float]:
    """Seconds from so many requests of a person to the first byte at the publisher, with all feeds due."""
    feeds = run.publishers.plan.feeds
    run.phase("new", seconds=seconds)
    api = _Reader(run.machines)
    run.all_due()
    before = run.seen
    soon(lambda: len(run.publishers.asked(before)) > 20, seconds=START_SECONDS)
    dice = random.Random(1)
    found: list[float] = []
    until = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < until:
        due = run.machines.rows(f"SELECT count(*) FROM feeds WHERE next_fetch_at <= '{DUE}'")[0][0]
        if due < 0.9 * feeds:
            run.all_due()
        feed, began = dice.randrange(feeds), time.monotonic()
        task = api.refresh(feed_id(feed))
        soon(lambda task=task: api.is_done(task))
        begins = [each.began for each in run.publishers.asked(before) if each.feed == feed]
        # A visit that was under way serves the request: its first byte came before it.
        found.append(min((began_at - began for began_at in begins if began_at > began), default=0.0))
        busy = run.machines.rows("SELECT count(*) FROM worker_runs")[0][0]
        print(f"  {found[-1]:5.2f} s, {busy} polls at work, {due} feeds due", flush=True)
        time.sleep(dice.uniform(0, 4))
    return found


class _Reader:
    """A user of the reader's API who subscribes all feeds."""

    def __init__(self, machines: Fleet) -> None:
        [up] = machines.mains
        self._base = f"http://127.0.0.1:{up.reader_port}/api"
        subprocess.run(
            [PROGRAM, "user", "add", "ada", "--password-stdin", "--subscribe"],
            env=up.environment,
            input=_PASSWORD.encode(),
            check=True,
            stdout=subprocess.DEVNULL,
        )
        self._token = ""
        self._token = self._ask("/auth/login", {"name": "ada", "password": _PASSWORD})["token"]

    def refresh(self, id: str) -> str:
        """Request a visit; return the task's id."""
        return str(self._ask(f"/feeds/{id}/refresh", {})["task_id"])

    def is_done(self, task: str) -> bool:
        return bool(self._ask(f"/tasks/{task}")["state"] == "done")

    def _ask(self, path: str, body: dict[str, str] | None = None) -> Any:
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._base + path, data, headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{path}: {error.code} {error.read().decode()}") from error


def _refresh_verdict(found: Sequence[float]) -> list[str]:
    ordered = sorted(found)
    at = ordered[max(0, -(-95 * len(ordered) // 100) - 1)]
    print(
        f"{len(ordered)} refreshes, {ordered.count(0.0)} of feeds that were being visited: first byte after"
        f" {ordered[len(ordered) // 2]:.2f} s at the median, {at:.2f} s at p95 (goal {_FIRST_BYTE_GOAL:g}),"
        f" {ordered[-1]:.2f} s at most"
    )
    return [] if at <= _FIRST_BYTE_GOAL else ["a refresh came too late"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that this benchmark has in common with fleet_throughput.py."""
    parser.add_argument("--concurrency", type=int, default=5, help="RSS_FETCH_CONCURRENCY")
    parser.add_argument("--batch-size", type=int, default=500, help="RSS_BATCH_SIZE")
    parser.add_argument("--host-delay", type=float, default=1.0, help="RSS_HOST_DELAY_SECONDS")
    parser.add_argument("--sigma", type=float, default=1.0, help="of the logarithm of the response")
    parser.add_argument("--no-namespaces", action="store_true", help="plain processes and loopback only")
    parser.add_argument("--minutes", type=float, default=20.0, help="a phase may take so long")


def begin(given: argparse.Namespace) -> bool:
    """Say what this is measured on, end in order when terminated, and return True for namespaces."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    in_namespaces = not given.no_namespaces and are_allowed()
    print(
        f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, Python {platform.python_version()};"
        f" workers in {'network namespaces' if in_namespaces else 'plain processes'}",
        flush=True,
    )
    return in_namespaces


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--feeds", type=int, default=10_000)
    parser.add_argument("--hosts", type=int, default=500)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--runs", type=int, default=1, help="at once on each worker")
    parser.add_argument("--shards", type=int, default=6)
    parser.add_argument("--response", type=float, default=0.35, help="median seconds of a response")
    parser.add_argument("--refreshes", type=int, default=0, help="so many of a person, while all are due")
    add_options(parser)
    given = parser.parse_args()
    in_namespaces = begin(given)
    plan = Plan(
        feeds=given.feeds,
        hosts=given.hosts,
        response=given.response,
        sigma=given.sigma,
        network=PUBLISHERS if in_namespaces else "127",
    )
    setting = Setting(
        workers=given.workers,
        runs=given.runs,
        shards=given.shards,
        concurrency=given.concurrency,
        batch_size=given.batch_size,
        host_delay=given.host_delay,
        in_namespaces=in_namespaces,
        reader=given.refreshes > 0,
    )
    print(f"{plan}\n{setting}", flush=True)
    with running(setting, plan) as run:
        if given.refreshes:
            broken = _refresh_verdict(refreshes(run, given.refreshes, seconds=60 * given.minutes))
        else:
            for phase in collect(run, seconds=60 * given.minutes):
                print(phase.line(), flush=True)
            broken = []
        broken += broken_promises(run, given.host_delay)
    for sentence in broken:
        print(f"BROKEN: {sentence}")
    if broken:
        sys.exit(1)
    print("All promises are kept.")


if __name__ == "__main__":
    main()
