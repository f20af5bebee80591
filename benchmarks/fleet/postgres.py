"""Claims and visits on Postgres: `python -m benchmarks.fleet.postgres [claims] [visits] [--json FILE]`.

Claims: 16 processes claim 500 of a million feeds on 100,000 hosts, all of them due. A claimer is a run: it
holds its feeds while it visits them, and claims again when it has given them back. So each of the 16 claims
once in ten seconds, and once a second, from moments that are spread; and without a pause, which no run does,
for deadlocks. Before that one claims alone beside 15 leases, and updates as many rows without a claim: what
16 at once can take is at least that. Visits: a poll of loopback feeds on SQLite and on Postgres, by CPU time
of this process and of the server's. Postgres is one of our own, without a disk that syncs, on the same
machine as the claimers: where they have all of its cores, a claim waits for them.
"""

import argparse
import contextlib
import json
import math
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
from rss_pipeline.storage.backends.postgres.backend import PostgresBackend
from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
from rss_pipeline.storage.database import Result, Statement
from rss_pipeline.storage.feeds import claims, due, leases
from rss_pipeline.storage.feeds.claimable import Due, NotVisitedSince
from rss_pipeline.storage.feeds.feed_row import FEED_COLUMNS
from rss_pipeline.storage.schema import migrate
from rss_pipeline.storage.sql import compact
from rss_pipeline_tests.support.services.postgres import Postgres, local_postgres

CLAIMERS = 16
CLAIMED = 500
HOSTS = 100_000
_SERVER = {"shared_buffers": "1GB", "max_wal_size": "4GB"}
_WARM = 6
"""Claims of a process before it is measured: a connection plans its statements at the first ones."""
_ROUNDS = 3
_REPEATS = 7


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
        return f"  {self.name:<72} {self.value:10.2f} {self.unit}{verdict}"

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
        yield from _alone(database, postgres, now)
        for pace in _paces(times):
            yield from _at_once_figures(database, postgres, now, pace)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pace:
    """How often each of the claimers claims."""

    name: str
    period: float
    """Seconds from one claim to the next one; until then it holds its feeds. 0: it holds them for no time."""
    each: int


def _paces(times: int) -> Iterator[_Pace]:
    """All in all about so many claims."""
    rare, often = max(1, min(times // 40, 240) // CLAIMERS), max(1, min(times // 20, 480) // CLAIMERS)
    yield _Pace(name="one in ten seconds each", period=10, each=rare)
    yield _Pace(name="one a second each", period=1, each=often)
    left = math.ceil(times / CLAIMERS) - rare - often
    yield _Pace(name="without a pause", period=0, each=max(1, left))


def _alone(database: PostgresDatabase, postgres: Postgres, now: datetime) -> Iterator[Figure]:
    held = [_claimed(database, now, f"held-{number}") for number in range(CLAIMERS - 1)]
    with contextlib.closing(_Timed(postgres.url("claims"), where="claims")) as timed:
        for _ in range(_WARM):
            _once(timed, now, "alone")
        spent = _server_cpu(postgres)
        waits = [_once(timed, now, "alone").seconds for _ in range(10 * _ROUNDS)]
        cpu = (_server_cpu(postgres) - spent) / len(waits)
    of = f"one claimer of {CLAIMED} beside {len(held)} leases"
    yield Figure(name=f"{of}: median", value=1e3 * statistics.median(waits), unit="ms")
    yield Figure(name=f"{of}: server's CPU, claim and release", value=1e3 * cpu, unit="ms")
    ids = compact([feed.id for feed in held[0].feeds])
    update = f"""UPDATE feeds SET unclosed_claims = unclosed_claims
      WHERE id IN (SELECT value FROM json_each(?)) RETURNING {FEED_COLUMNS}"""
    for _ in range(_WARM):
        database.query(update, [ids])
    spent = _server_cpu(postgres)
    seconds = _median_seconds(lambda: database.query(update, [ids]))
    cpu = (_server_cpu(postgres) - spent) / _REPEATS
    yield Figure(name=f"an update of {CLAIMED} rows that is no claim: median", value=1e3 * seconds, unit="ms")
    yield Figure(
        name=f"an update of {CLAIMED} rows that is no claim: server's CPU", value=1e3 * cpu, unit="ms"
    )
    for claim in held:
        leases.end(database, claim.token, forgive=True)


def _at_once_figures(
    database: PostgresDatabase, postgres: Postgres, now: datetime, pace: _Pace
) -> Iterator[Figure]:
    before, url = _deadlocks(database), postgres.url("claims")
    spawn = multiprocessing.get_context("spawn")
    begin = spawn.Barrier(CLAIMERS + 1)
    with ProcessPoolExecutor(CLAIMERS, spawn, initializer=_begin, initargs=(begin,)) as claimers:
        work = partial(_claim_often, url=url, now=now, pace=pace)
        working = [claimers.submit(work, number) for number in range(CLAIMERS)]
        begin.wait(300)
        spent, began = _server_cpu(postgres), time.monotonic()
        found = [held for some in working for held in some.result()]
        cpu, lasted = _server_cpu(postgres) - spent, time.monotonic() - began
    waits = sorted(held.seconds for held in found)
    of = f"{CLAIMERS} claimers of {CLAIMED}, {pace.name}"
    yield Figure(name=f"{of}: claims", value=len(found), unit="")
    yield Figure(name=f"{of}: claims a second", value=len(found) / lasted, unit="")
    yield Figure(name=f"{of}: median", value=1e3 * statistics.median(waits), unit="ms")
    yield Figure(name=f"{of}: p95", value=1e3 * waits[int(0.95 * len(waits))], unit="ms", goal=100)
    yield Figure(name=f"{of}: slowest", value=1e3 * waits[-1], unit="ms")
    yield Figure(name=f"{of}: server's CPU, claim and release", value=1e3 * cpu / len(found), unit="ms")
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


def _claim_often(number: int, *, url: str, now: datetime, pace: _Pace) -> list[_Held]:
    held = []
    with contextlib.closing(_Timed(url, where="claims")) as database:
        for _ in range(_WARM):
            _once(database, now, f"run-{number}")
        _at_once[0].wait(300)
        next_at = time.monotonic() + pace.period * number / CLAIMERS
        for _ in range(pace.each):
            time.sleep(max(0.0, next_at - time.monotonic()))
            # Who is late claims when its next turn comes.
            next_at = max(next_at, time.monotonic()) + pace.period
            held.append(_once(database, now, f"run-{number}", until=next_at - _GIVEN_BACK * pace.period))
    return held


_GIVEN_BACK = 0.05
"""The part of a period that is left after a run has given its feeds back."""


def _once(database: _Timed, now: datetime, run_id: str, *, until: float = 0.0) -> _Held:
    """Claim, then release."""
    waited = database.waited
    found = _claimed(database, now, run_id)
    waited, since = database.waited - waited, time.monotonic()
    hosts = {feed.address.host for feed in found.feeds}
    time.sleep(max(0.0, until - time.monotonic()))
    until = time.monotonic()
    leases.end(database, found.token, forgive=True)
    return _Held(seconds=waited, feeds=len(found.feeds), hosts=tuple(hosts), since=since, until=until)


def _claimed(database: PostgresDatabase, now: datetime, run_id: str) -> claims.Claim:
    return claims.claim(database, Due(now=now), run_id=run_id, lease_seconds=180, limit=CLAIMED)


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
    for _ in range(_REPEATS):
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
        stores["postgres"] = PostgresBackend(url=postgres.url(name))
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
    parser.add_argument("--claims", type=int, default=10_000, help="in all, about")
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
