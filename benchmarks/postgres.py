"""Claims and visits on Postgres: `python -m benchmarks.postgres [claims] [visits] [--json FILE]`.

Claims: 16 processes claim 500 of a million feeds on 100,000 hosts, all of them due, as often as they can and
once a second each. Visits: a poll of loopback feeds on SQLite and on Postgres, by CPU time of this process
and of the server's. Postgres is one of our own, without a disk that syncs, on the same machine as the
claimers: where they have all of its cores, a claim waits for them.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from benchmarks.documents import made_up_feeds
from benchmarks.server import Running, serving
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.settings import PostgresSettings
from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
from rss_pipeline.storage.database import Result, Statement
from rss_pipeline.storage.feeds import claims, due, leases
from rss_pipeline.storage.feeds.claimable import Due, NotVisitedSince
from rss_pipeline.storage.schema import migrate
from rss_pipeline_tests.support.postgres import Postgres, local_postgres

CLAIMERS = 16
CLAIMED = 500
HOSTS = 100_000
_SERVER = {"shared_buffers": "1GB", "max_wal_size": "4GB"}
_PAUSES = {"without a pause": 0.0, "one a second each": 1.0}
_ROUNDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Something measured, and the most that it may be; None where no goal was set."""

    name: str
    value: float
    unit: str
    goal: float | None = None

    @property
    def line(self) -> str:
        verdict = "" if self.goal is None else f"   goal {self.goal:g}: {'met' if self.is_met else 'MISSED'}"
        return f"  {self.name:<62} {self.value:10.2f} {self.unit}{verdict}"

    @property
    def is_met(self) -> bool:
        return self.goal is None or self.value <= self.goal


class _Timed(PostgresDatabase):
    """It adds up the seconds that the caller waits for the database."""

    waited = 0.0

    def _tried(self, statements: Sequence[Statement], begin: Sequence[str]) -> list[Result]:
        began = time.perf_counter()
        try:
            return super()._tried(statements, begin)
        finally:
            self.waited += time.perf_counter() - began


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """One claim: the seconds it took in the database, and its hosts from when to when."""

    seconds: float
    feeds: int
    hosts: tuple[str, ...]
    since: float
    until: float


def claim_figures(postgres: Postgres, feeds: int, times: int) -> Iterator[Figure]:
    """Fill a table and measure claims of it."""
    postgres.create("claims")
    url, now = postgres.url("claims"), datetime.now(UTC)
    with contextlib.closing(PostgresDatabase(url, where="claims")) as database:
        migrate(database)
        _fill(postgres, feeds, now)
        seconds = _median_seconds(lambda: due.due_summary(database, now))
        yield Figure(name=f"due_summary among {feeds:,}, median", value=1e3 * seconds, unit="ms")
        seconds = _median_seconds(lambda: due.is_claimable(database, Due(now=now)))
        yield Figure(name=f"is_claimable among {feeds:,}, median", value=1e3 * seconds, unit="ms")
        for name, pause in _PAUSES.items():
            before, spent = _deadlocks(database), _server_cpu(postgres)
            each = max(1, (times if pause == 0 else times // 10) // CLAIMERS)
            spawn = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(
                CLAIMERS, spawn, initializer=_begin, initargs=(spawn.Barrier(CLAIMERS),)
            ) as claimers:
                work = partial(_claim_often, url=url, now=now, times=each, pause=pause)
                found = [held for some in claimers.map(work, range(CLAIMERS)) for held in some]
                cpu = (_server_cpu(postgres) - spent) / len(found)
            waits = sorted(held.seconds for held in found)
            of = f"{CLAIMERS} claimers of {CLAIMED} among {feeds:,}, {name}"
            yield Figure(name=f"{of}: claims", value=len(found), unit="")
            yield Figure(name=f"{of}: median", value=1e3 * statistics.median(waits), unit="ms")
            yield Figure(name=f"{of}: p95", value=1e3 * waits[int(0.95 * len(waits))], unit="ms", goal=100)
            yield Figure(name=f"{of}: server's CPU, claim and release", value=1e3 * cpu, unit="ms")
            empty = sum(held.feeds == 0 for held in found)
            yield Figure(name=f"{of}: claims of nothing", value=empty, unit="", goal=0)
            yield Figure(name=f"{of}: hosts held by two", value=_shared(found), unit="", goal=0)
            time.sleep(1.5)  # The server counts with a delay.
            deadlocks = _deadlocks(database) - before
            yield Figure(name=f"{of}: deadlocks", value=deadlocks, unit="", goal=0)


def _fill(postgres: Postgres, feeds: int, now: datetime) -> None:
    """Feeds as after some days of polls. The order of due times is not that of the rows."""
    host, at = f"'host-' || n % {HOSTS} || '.example'", f"'{instant(now)}'"
    due = f"timestamp '{now:%Y-%m-%d %H:%M:%S}' - (n::bigint * 7919 % 7200) * interval '1 second'"
    postgres.execute(
        "claims",
        f"""INSERT INTO feeds (id, url, host, next_fetch_at, created_at, title, link, last_etag,
          last_modified, validators_url, content_hash, last_fetched_at, last_visited_at, last_success_at,
          last_body_at, schedule_reason, schedule_kind, last_change, visit_days, change_count, bucket)
        SELECT 'feed-' || n, 'https://' || {host} || '/' || n, {host},
          to_char({due}, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), {at}, 'The title of feed ' || n,
          'https://' || {host} || '/', md5(n::text), 'Thu, 01 Jan 2026 00:00:00 GMT',
          'https://' || {host} || '/' || n, md5(n::text) || md5('a' || n), {at}, {at}, {at}, {at},
          'half the median gap between its items', 'rhythm', '{{"items_new":3,"entries":30,"format":"rss"}}',
          '{{"22":["2026-11-22",4,30,0]}}', 10, n % 1024
        FROM generate_series(1, {feeds}) AS n;
VACUUM ANALYZE feeds""",
    )


_at_once: list[Barrier] = []


def _begin(barrier: Barrier) -> None:
    _at_once.append(barrier)


def _claim_often(number: int, *, url: str, now: datetime, times: int, pause: float) -> list[_Held]:
    held = []
    with contextlib.closing(_Timed(url, where="claims")) as database:
        _once(database, now, f"run-{number}")
        _at_once[0].wait(300)
        for _ in range(times):
            held.append(_once(database, now, f"run-{number}"))
            time.sleep(pause * (0.5 + os.urandom(1)[0] / 255))
    return held


def _once(database: _Timed, now: datetime, run_id: str) -> _Held:
    waited = database.waited
    found = claims.claim(database, Due(now=now), run_id=run_id, lease_seconds=180, limit=CLAIMED)
    waited, since = database.waited - waited, time.monotonic()
    hosts = {feed.address.host for feed in found.feeds}
    until = time.monotonic()
    leases.end(database, found.token, forgive=True)
    return _Held(seconds=waited, feeds=len(found.feeds), hosts=tuple(hosts), since=since, until=until)


def _shared(found: Sequence[_Held]) -> int:
    """Times that a host was held by two claims at one moment."""
    last: dict[str, float] = {}
    shared = 0
    for held in sorted(found, key=lambda held: held.since):
        for host in held.hosts:
            shared += last.get(host, 0.0) > held.since
            last[host] = max(last.get(host, 0.0), held.until)
    return shared


def _deadlocks(database: PostgresDatabase) -> int:
    [row] = database.query("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").rows
    return int(row["deadlocks"])


def _median_seconds(call: Callable[[], object]) -> float:
    times = []
    for _ in range(2 * _ROUNDS + 1):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def _server_cpu(postgres: Postgres) -> float:
    """Seconds of CPU of all processes of the server, also of those that have ended."""
    spent = 0.0
    for process in _family(int((postgres.folder / "data" / "postmaster.pid").read_text().split()[0])):
        spent += sum(process)
    return spent


def _family(pid: int) -> Iterator[tuple[float, ...]]:
    tick = os.sysconf("SC_CLK_TCK")
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(stat.parent.name) == pid:
                yield tuple(int(field) / tick for field in fields[11:15])
            elif int(fields[1]) == pid:
                yield tuple(int(field) / tick for field in fields[11:13])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Poll:
    """Milliseconds of CPU for each feed."""

    client: float
    server: float

    @property
    def whole(self) -> float:
        return self.client + self.server


def visit_figures(postgres: Postgres, feeds: int) -> Iterator[Figure]:
    """Polls of the same feeds on both stores, in turns: each time all documents first, then nothing new."""
    found: dict[tuple[str, str], list[_Poll]] = {}
    with serving(partial(made_up_feeds, feeds)) as server:
        for number in range(_ROUNDS):
            for store in ("SQLite", "Postgres"):
                for what, poll in _polls(store, server, postgres, f"visits{number}"):
                    found.setdefault((store, what), []).append(poll)
    for what, goals in (("unchanged", (1.2, None)), ("of 30 new items", (None, None))):
        sqlite, ours = (
            sorted(found[store, what], key=lambda poll: poll.whole)[_ROUNDS // 2]
            for store in ("SQLite", "Postgres")
        )
        a_visit = f"a visit {what}"
        yield Figure(name=f"{a_visit}, CPU on SQLite", value=sqlite.client, unit="ms")
        yield Figure(name=f"{a_visit}, CPU on Postgres, ours", value=ours.client, unit="ms")
        yield Figure(name=f"{a_visit}, CPU on Postgres, the server's", value=ours.server, unit="ms")
        ratios = (ours.client / sqlite.client, ours.whole / sqlite.client)
        for who, ratio, goal in zip(("ours", "ours and the server's"), ratios, goals, strict=True):
            yield Figure(
                name=f"{a_visit}, {who} on Postgres, of SQLite's", value=ratio, unit="times", goal=goal
            )


def _polls(store: str, server: Running, postgres: Postgres, name: str) -> Iterator[tuple[str, _Poll]]:
    # Each claimer is a process that imports this module: it needs none of these.
    from rss_pipeline.pipeline.visits.poll import poll_round
    from rss_pipeline_tests.support.pipeline import Pipeline

    stores: dict[str, Any] = {}
    if store == "Postgres":
        postgres.create(name)
        stores["postgres"] = PostgresSettings(url=postgres.url(name))
    with tempfile.TemporaryDirectory(prefix="rss-bench-") as home:
        pipeline = Pipeline(Path(home), fetch_concurrency=10, **stores)
        pipeline.clock.now = datetime.now(UTC)
        for number, feed in enumerate(server.feeds):
            pipeline.feeds.append({"url": feed.url, "id": f"f{number}", "allow_private": ["127.0.0.0/8"]})
        pipeline.write_registry()
        pipeline.sync()
        with contextlib.closing(pipeline.database):
            for what in ("of 30 new items", "unchanged"):
                since = pipeline.clock()
                pipeline.clock.turn(hours=3)
                spent, began = _server_cpu(postgres), time.process_time()
                visited = 0
                with pipeline.session() as session:
                    wanted = NotVisitedSince(since=since + timedelta(seconds=1), now=pipeline.clock())
                    while visits := poll_round(session, wanted, {}):
                        visited += len(visits)
                client, used = time.process_time() - began, _server_cpu(postgres) - spent
                assert visited == len(server.feeds), f"{visited} of {len(server.feeds)} feeds visited"
                yield what, _Poll(client=1e3 * client / visited, server=1e3 * used / visited)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time claims and visits on Postgres.")
    parser.add_argument("what", nargs="*", choices=["claims", "visits"], help="all, unless named")
    parser.add_argument("--feeds", type=int, default=1_000_000, help="of the claims' table")
    parser.add_argument("--claims", type=int, default=10_000)
    parser.add_argument("--polled", type=int, default=500, help="feeds of a poll")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    arguments = parser.parse_args()
    what = arguments.what or ["claims", "visits"]
    figures = []
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f} before", flush=True)
    with local_postgres(**_SERVER) as postgres:
        measured = []
        if "visits" in what:
            measured.append(visit_figures(postgres, arguments.polled))
        if "claims" in what:
            measured.append(claim_figures(postgres, arguments.feeds, arguments.claims))
        for some in measured:
            for figure in some:
                print(figure.line, flush=True)
                figures.append(figure)
    if arguments.json is not None:
        rows = [{**asdict(figure), "met": figure.is_met} for figure in figures]
        arguments.json.write_text(json.dumps(rows, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
