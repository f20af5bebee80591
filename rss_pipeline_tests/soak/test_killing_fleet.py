"""Whatever of a fleet is killed, and when: no feed is stuck, nothing is lost, and nothing is visited twice.

Three workers with homes of their own, and a main machine. SIGKILL of whole workers, of their consumers, runs
and parsers, of the daemon, of Redis with all its messages, and of Postgres' processes, while polls run; lines
of workers to both are cut. The publishers' server sees two visitors at once.
"""

import os
import random
import signal
import time
import urllib.error
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.pipeline.triggers.starts import POLL_PATIENCE
from rss_pipeline_tests.soak.line import Line
from rss_pipeline_tests.soak.machines import Fleet, fleet
from rss_pipeline_tests.soak.test_killing import FEEDS, Publishers, parsers
from rss_pipeline_tests.support.server import FeedServer
from rss_pipeline_tests.support.services.postgres import Postgres, local_postgres
from rss_pipeline_tests.support.services.redis_server import RedisServer, local_redis
from rss_pipeline_tests.support.up import LAUNCH_RUN, Up, free_port, is_part, location, members
from rss_pipeline_tests.support.waiting import soon

KILLS = int(os.environ.get("RSS_SOAK_KILLS") or 100)
LEASE_SECONDS = 20
WORKERS = ("one", "two", "three")
IN_FLIGHT = "'QUEUED', 'NOT_STARTED', 'STARTING', 'STARTED', 'CANCELING'"
START_SECONDS = 900
REST_SECONDS = 600
"""From the last fault until lag is normal. A run that was sent to a Redis that died with it is ended by
Dagster's start time-out, of 180 s."""
NORMAL_LAG = POLL_PATIENCE.total_seconds() + 120
"""A due feed waits so long for others; then the next tick of the sensor starts a poll."""


class Broker:
    """A Redis that can be killed with all that it has, and started again where it was."""

    def __init__(self) -> None:
        self.port = free_port()
        self._running: AbstractContextManager[RedisServer] | None = None

    def start(self) -> str:
        self._running = local_redis(self.port)
        return self._running.__enter__().url(0)

    def url(self, port: int) -> str:
        """The address of the same server, by another port."""
        return RedisServer(port=port).url(0)

    def kill(self) -> None:
        if self._running is not None:
            self._running.__exit__(None, None, None)
        self._running = None


class Struck:
    """A fleet under way, and what can be done to it."""

    def __init__(self, machines: Fleet, up: Up, broker: Broker, chance: random.Random) -> None:
        self.machines = machines
        self.up = up
        self.broker = broker
        self.chance = chance
        self.done: Counter[str] = Counter()
        self.seconds: dict[str, float] = defaultdict(float)
        """The seconds that the strikes of each kind took."""
        self._left: list[str] = []
        self.lines: dict[str, tuple[Line, Line]] = {}
        """The connections of each worker to Postgres and to Redis."""
        self.strikes: dict[str, Callable[[], bool]] = {
            "worker": self.worker,
            "stopped worker": self.stopped_worker,
            "consumer": self.consumer,
            "run": self.run,
            "parser": self.parser,
            "daemon": self.daemon,
            "redis": self.redis,
            "postgres": self.postgres,
            "cut line": self.cut_line,
        }

    def strike(self) -> None:
        """Kill something that there is. Each kind comes once before any comes again."""

        def struck() -> bool:
            self.start_again()
            self.press()
            if not self._left:
                self._left = self.chance.sample(list(self.strikes), len(self.strikes))
            kind = self._left.pop()
            began = time.monotonic()
            found = self.strikes[kind]()
            self.done[kind] += found
            self.seconds[kind] += time.monotonic() - began
            if not found:
                self._left.insert(0, kind)
            return found

        soon(struck)

    def start_again(self) -> None:
        """Start the workers that have ended by themselves, as a service manager does: one that joins while
        Postgres recovers says so and ends."""
        for name in WORKERS:
            if self.machines.workers[name].process.poll() is not None:
                self.machines.start_worker(name)

    def press(self) -> None:
        """Request visits of all feeds, where not enough waits."""
        with suppress(
            urllib.error.URLError, ConnectionError, TimeoutError, IndexError, KeyError, psycopg.Error
        ):
            if self.rows(f"SELECT count(*) FROM dagster.runs WHERE status IN ({IN_FLIGHT})")[0][0] > 2:
                return
            selector = {
                "repositoryName": "__repository__",
                "repositoryLocationName": location(self.up),
                "pipelineName": "poll_feeds",
            }
            config = {"ops": {"claim": {"config": {"not_visited_since": utc_now().isoformat()}}}}
            tags = [{"key": "dagster/priority", "value": self.chance.choice(("-1", "0"))}]
            params = {"mode": "default", "runConfigData": config, "selector": selector}
            self.up.ask(LAUNCH_RUN, params={**params, "executionMetadata": {"tags": tags}})

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        return self.machines.rows(sql)

    def worker(self) -> bool:
        name = self.chance.choice(WORKERS)
        self.machines.workers[name].kill()
        self.machines.start_worker(name)
        return True

    def stopped_worker(self) -> bool:
        name = self.chance.choice(WORKERS)
        self.machines.workers[name].stop()
        self.machines.start_worker(name)
        return True

    def consumer(self) -> bool:
        worker = self.machines.workers[self.chance.choice(WORKERS)].process
        return self._kill([each for each in members(worker.pid) if _parent(each) == worker.pid])

    def run(self) -> bool:
        return self._kill(self._runs())

    def parser(self) -> bool:
        return self._kill([parser for run in self._runs() for parser in parsers(run)])

    def daemon(self) -> bool:
        return self._kill([each for each in members(self.up.process.pid) if is_part(each, "daemon")])

    def redis(self) -> bool:
        self.broker.kill()
        time.sleep(self.chance.uniform(0, 5))
        self.broker.start()
        return True

    def postgres(self) -> bool:
        """Its crash: when one of its processes is killed, it ends all others and recovers."""
        with suppress(psycopg.Error), psycopg.connect(self.machines.url) as connection:
            os.kill(connection.info.backend_pid, signal.SIGKILL)
        return True

    def cut_line(self) -> bool:
        """Between a worker and Postgres, or Redis, for up to twice its leases."""
        self.chance.choice(self.lines[self.chance.choice(WORKERS)]).cut(
            self.chance.uniform(0, 2 * LEASE_SECONDS)
        )
        return True

    def _runs(self) -> list[psutil.Process]:
        found = []
        with suppress(psycopg.Error):
            for (pid,) in self.rows("SELECT pid FROM worker_runs"):
                with suppress(psutil.NoSuchProcess):
                    found.append(psutil.Process(int(str(pid))))
        return found

    def _kill(self, found: list[psutil.Process]) -> bool:
        if not found:
            return False
        with suppress(psutil.NoSuchProcess):
            self.chance.choice(found).kill()
        return True


def _parent(process: psutil.Process) -> int:
    with suppress(psutil.NoSuchProcess):
        return process.ppid()
    return 0


@contextmanager
def struck_fleet(folder: Path, postgres: Postgres, chance: random.Random) -> Iterator[Struck]:
    broker = Broker()
    try:
        with (
            ExitStack() as lines,
            fleet(
                folder,
                postgres,
                broker.start(),
                RSS_PIPELINE_LEASE_SECONDS=str(LEASE_SECONDS),
                RSS_HOST_DELAY_SECONDS="0",
                RSS_SHARDS="3",
                RSS_WORKER_RUNS="1",
                RSS_READER="off",
            ) as machines,
        ):
            up = machines.start_main()
            struck = Struck(machines, up, broker, chance)
            for name in WORKERS:
                struck.lines[name] = line_to_postgres, line_to_redis = (
                    lines.enter_context(Line(postgres.port)),
                    lines.enter_context(Line(broker.port)),
                )
                machines.of_machine[name] = {
                    "DATABASE_URL": postgres.tcp_url(machines.database, port=line_to_postgres.port),
                    "RSS_BROKER_URL": broker.url(line_to_redis.port),
                }
                machines.start_worker(name)
            soon(up.answers, seconds=START_SECONDS)
            soon(
                lambda: not machines.rows("SELECT 1 FROM feeds WHERE last_success_at IS NULL"),
                seconds=START_SECONDS,
            )
            yield struck
    finally:
        broker.kill()


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
def test_a_fleet_that_is_killed_at_random_loses_nothing_and_visits_nothing_twice(
    tmp_path: Path, server: FeedServer
) -> None:
    chance = random.Random(KILLS)
    publishers = Publishers(server, chance)
    publishers.register(tmp_path / "feeds.yaml")
    tmp_path.chmod(0o755)
    with local_postgres() as postgres, struck_fleet(tmp_path, postgres, chance) as struck:
        began = time.monotonic()
        while struck.done.total() < KILLS:
            time.sleep(chance.uniform(0, 10))
            struck.strike()
        struck_for, began = time.monotonic() - began, time.monotonic()
        publishers.has_news = False
        soon(lambda: is_at_rest(struck), seconds=REST_SECONDS)
        rested = time.monotonic() - began
        # Killed three times while it was visited, a feed is a failure once, without a request.
        for _ in range(2):
            last = struck.machines.command("poll", "--all", "--json")
        assert last.returncode == 0, last.stdout + last.stderr
        assert publishers.overlaps == []
        stored = sorted(struck.rows("SELECT feed_id, guid FROM items"))
        assert stored == sorted((id, guid) for id, guids in publishers.guids.items() for guid in guids)
        bad = "lease_token IS NOT NULL OR unclosed_claims > 0 OR last_error IS NOT NULL"
        assert struck.rows(f"SELECT id FROM feeds WHERE {bad}") == []
        assert len(struck.rows("SELECT 1 FROM feeds WHERE change_count = reported_count")) == len(FEEDS)
        figures = (
            f"{struck.done.total()} faults in {struck_for:.0f} s, {len(stored)} items,"
            f" {len(server.requests)} requests, at rest in {rested:.0f} s"
        )
        slow = {kind: round(seconds) for kind, seconds in struck.seconds.items()}
        print(dict(struck.done), slow, figures)  # noqa: T201 - the figures of the test, with -s


def is_at_rest(struck: Struck) -> bool:
    """All machines are there, no run and no lease is left, and no feed waits for longer than usual."""
    struck.start_again()
    [(runs, places, workers, leases, late)] = struck.rows(
        f"""SELECT (SELECT count(*) FROM dagster.runs WHERE status IN ({IN_FLIGHT})),
          (SELECT count(*) FROM worker_runs),
          (SELECT count(*) FROM workers WHERE role = 'worker'),
          (SELECT count(*) FROM feeds WHERE lease_token IS NOT NULL),
          (SELECT count(*) FROM feeds
            WHERE next_fetch_at::timestamptz < clock_timestamp() - interval '{NORMAL_LAG} seconds')"""
    )
    return (runs, places, workers, leases, late) == (0, 0, len(WORKERS), 0, 0)
