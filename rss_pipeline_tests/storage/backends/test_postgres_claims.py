"""Claims on Postgres, where they run beside each other and beside batches that write."""

import contextlib
import itertools
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from rss_pipeline.collector.models.shard import Shard
from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
from rss_pipeline.storage.backends.postgres.dialect import translate
from rss_pipeline.storage.backends.postgres.skip_locked import Beside
from rss_pipeline.storage.database import Result, Statement
from rss_pipeline.storage.feeds import claims, due, leases
from rss_pipeline.storage.feeds.claimable import Due, Named
from rss_pipeline_tests.storage.values import HOUR, NOW, claim, feed_row, ids, register, spec
from rss_pipeline_tests.support.services.postgres import Postgres
from rss_pipeline_tests.support.services.postgres_database import batch_that_writes
from rss_pipeline_tests.support.waiting import soon

CLAIMERS = 16
CLAIMS = 120


@pytest.fixture
def elsewhere(running_postgres: Postgres, migrated_postgres: PostgresDatabase) -> Iterator[PostgresDatabase]:
    """The same database, as another machine has it."""
    database = PostgresDatabase(running_postgres.url("shared"), where="elsewhere")
    with contextlib.closing(database):
        yield database


def test_claims_and_counts_do_not_wait_for_a_batch_that_writes(
    migrated_postgres: PostgresDatabase, elsewhere: PostgresDatabase
) -> None:
    register(migrated_postgres, spec("a1", host="a"), spec("a2", host="a"), spec("b"))
    assert due.due_summary(migrated_postgres, NOW).due == 3, "the time is noted"
    with batch_that_writes(elsewhere, migrated_postgres, "UPDATE feeds SET title = 'b' WHERE id <> 'a2'"):
        assert due.due_summary(migrated_postgres, NOW).due == 3
        assert due.is_claimable(migrated_postgres, Due(now=NOW))
        assert ids(claim(migrated_postgres)) == ["a2"], "what the batch has locked is left to the next claim"
    assert ids(claim(migrated_postgres)) == [], "the first claim has the hosts of all"


def test_a_feed_that_is_locked_is_claimed_once_it_is_free(
    migrated_postgres: PostgresDatabase, elsewhere: PostgresDatabase
) -> None:
    register(migrated_postgres, spec("a"))
    claim(migrated_postgres, now=NOW - HOUR)
    with ThreadPoolExecutor(1) as thread:
        with batch_that_writes(elsewhere, migrated_postgres, "UPDATE feeds SET title = 'b'"):
            waiting = thread.submit(claim, migrated_postgres)
            soon(lambda: _waits(migrated_postgres))
        assert ids(waiting.result(20)) == ["a"]


def _waits(database: PostgresDatabase) -> bool:
    [row] = database.query("SELECT count(*) AS n FROM pg_locks WHERE NOT granted").rows
    return row["n"] > 0


@pytest.mark.slow
def test_sixteen_claimers_never_share_a_feed_or_a_host_and_none_is_left_empty(
    running_postgres: Postgres, migrated_postgres: PostgresDatabase
) -> None:
    """While others write: they end leases, renew them, and change all feeds in an order of their own."""
    register(migrated_postgres, *(spec(f"f{n:03}", host=f"host-{n % 250}") for n in range(750)))
    held: dict[str, set[str]] = {}
    guard, counted = threading.Lock(), itertools.count()
    is_over = threading.Event()

    def claimer(number: int) -> None:
        with contextlib.closing(PostgresDatabase(running_postgres.url("shared"), where="x")) as database:
            while next(counted) < CLAIMS:
                found = claims.claim(database, Due(now=NOW), run_id=f"r{number}", lease_seconds=60, limit=12)
                hosts = {feed.address.host for feed in found.feeds}
                with guard:
                    assert found.feeds, "feeds are due"
                    assert all(hosts.isdisjoint(theirs) for theirs in held.values())
                    held[found.token] = hosts
                assert leases.renew(database, [found.token], lease_seconds=60) == 1
                with guard:
                    del held[found.token]
                leases.end(database, found.token, forgive=True)

    def writer() -> None:
        while not is_over.is_set():
            migrated_postgres.query(
                """UPDATE feeds SET title = 'new' WHERE id IN (
                  SELECT id FROM feeds ORDER BY id DESC LIMIT 100 OFFSET 300)"""
            )

    before = _deadlocks(migrated_postgres)
    with ThreadPoolExecutor(CLAIMERS + 1) as threads:
        writing = threads.submit(writer)
        claiming = [threads.submit(claimer, number) for number in range(CLAIMERS)]
        errors = [error for each in claiming if (error := each.exception())]
        is_over.set()
        writing.result(20)
    assert not errors
    assert _deadlocks(migrated_postgres) == before
    assert migrated_postgres.query("SELECT token FROM leases").rows == []


def _deadlocks(database: PostgresDatabase) -> int:
    [row] = database.query("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").rows
    return int(row["deadlocks"])


def test_a_feed_that_changes_between_choice_and_claim_is_left_out(
    running_postgres: Postgres, migrated_postgres: PostgresDatabase, elsewhere: PostgresDatabase
) -> None:
    """Its visit by a run with a lapsed lease may be closed at that moment, or feeds.yaml disable it."""

    class Interfered(PostgresDatabase):
        def batch_beside(self, statements: Sequence[Statement], beside: Beside) -> list[Result]:
            if beside == "take":
                elsewhere.query("UPDATE feeds SET enabled = 0 WHERE id = 'off'")
                elsewhere.query("UPDATE feeds SET next_fetch_at = '2999' WHERE id = 'closed'")
            return super().batch_beside(statements, beside)

    register(migrated_postgres, spec("a"), spec("off"), spec("closed"))
    with contextlib.closing(Interfered(running_postgres.url("shared"), where="x")) as database:
        assert ids(claim(database)) == ["a"]
        register(migrated_postgres, spec("off"), now=NOW)
        assert ids(claim(database, Named(ids=["off"], now=NOW))) == []
    assert feed_row(migrated_postgres, "closed")["lease_token"] is None


def test_more_feeds_are_looked_at_until_there_are_enough_hosts(migrated_postgres: PostgresDatabase) -> None:
    """The feeds of a crowded host are older than all others, and more than are looked at first."""
    crowd = [spec(f"crowd{n:03}", host="crowd") for n in range(200)]
    register(migrated_postgres, *crowd, now=NOW - HOUR)
    others = [spec(f"other{n:02}") for n in range(60)]
    register(migrated_postgres, *crowd, *others)
    found = ids(claim(migrated_postgres, limit=100))
    assert found == [one.id for one in (*crowd[:40], *others)]


def test_a_feed_that_was_released_is_claimed_before_younger_ones(
    migrated_postgres: PostgresDatabase,
) -> None:
    for hours in range(9, 0, -1):
        known = [spec(f"f{n}") for n in range(9, hours - 1, -1)]
        register(migrated_postgres, *known, now=NOW - hours * HOUR)
    first, second = claim(migrated_postgres, limit=3), claim(migrated_postgres, limit=3)
    assert (ids(first), ids(second)) == (["f9", "f8", "f7"], ["f6", "f5", "f4"])
    leases.release(migrated_postgres, [leases.Release(feed_id="f8", token=first.token)])
    migrated_postgres.batch([leases.free_hosts([first.token], ["f8.example"])])
    assert ids(claim(migrated_postgres, limit=2)) == ["f8", "f3"]
    leases.end(migrated_postgres, second.token, forgive=True)
    assert ids(claim(migrated_postgres, limit=4)) == ["f6", "f5", "f4", "f2"]


@pytest.mark.parametrize("count", [8, 64])
def test_a_shard_s_claim_takes_its_oldest_and_reads_rows_by_its_batch_not_by_the_number_of_shards(
    running_postgres: Postgres, migrated_postgres: PostgresDatabase, count: int
) -> None:
    class Explaining(PostgresDatabase):
        read = 0

        def batch_beside(self, statements: Sequence[Statement], beside: Beside) -> list[Result]:
            if beside == "choose":
                with psycopg.connect(
                    running_postgres.url("shared"), cursor_factory=psycopg.RawCursor
                ) as there:
                    choose = f"EXPLAIN (ANALYZE, FORMAT JSON) {translate(statements[0].sql)}"
                    [(plan,)] = there.execute(choose, list(statements[0].params)).fetchall()
                    self.read += sum(_rows_of_feeds(plan[0]["Plan"]))
                    there.rollback()
            return super().batch_beside(statements, beside)

    register(migrated_postgres, spec("like"))
    running_postgres.execute(
        "shared",
        """INSERT INTO feeds (id, url, host, bucket, next_fetch_at, created_at)
        SELECT 'f' || n, 'http://h' || n || '/', 'h' || n, n * 7 % 1024,
          to_char(timestamp '2026-01-01' + (n * 7919 % 9973) * interval '1 second',
            'YYYY-MM-DD"T"HH24:MI:SS"Z"'), '2026-01-01T00:00:00Z'
        FROM generate_series(1, 9000) AS n;
ANALYZE feeds""",
    )
    shard, limit = Shard(number=3, of=count), 100
    oldest = migrated_postgres.query(
        f"SELECT id FROM feeds WHERE bucket IN ({', '.join(map(str, shard.buckets))})"
        " ORDER BY next_fetch_at, id"
    ).rows
    with contextlib.closing(Explaining(running_postgres.url("shared"), where="x")) as database:
        found = ids(claim(database, Due(now=NOW, shard=shard), limit=limit))
        assert found == [row["id"] for row in oldest][:limit]
        assert limit < database.read < 6 * limit


def _rows_of_feeds(plan: dict[str, Any]) -> Iterator[int]:
    """Rows that each part of a plan has read of the table."""
    if plan.get("Relation Name") == "feeds":
        yield plan["Actual Loops"] * (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0))
    for part in plan.get("Plans", ()):
        yield from _rows_of_feeds(part)


@pytest.mark.parametrize("wanted", [Due(now=NOW), Due(now=NOW, ids=["a"]), Named(ids=["a"], now=NOW)])
def test_where_nothing_can_be_claimed_one_statement_runs_and_no_lease_is_left(
    running_postgres: Postgres, migrated_postgres: PostgresDatabase, wanted: Due | Named
) -> None:
    class Counting(PostgresDatabase):
        chosen = 0

        def batch_beside(self, statements: Sequence[Statement], beside: Beside) -> list[Result]:
            self.chosen += beside == "choose"
            return super().batch_beside(statements, beside)

    register(migrated_postgres, spec("a"))
    held = claim(migrated_postgres)
    with contextlib.closing(Counting(running_postgres.url("shared"), where="x")) as database:
        assert ids(claim(database, wanted)) == []
        assert database.chosen == 1
    assert migrated_postgres.query("SELECT token FROM leases").rows == [{"token": held.token}]


@pytest.mark.parametrize("suspects", [False, True])
def test_feeds_that_are_named_are_looked_up_by_their_ids(
    running_postgres: Postgres, migrated_postgres: PostgresDatabase, *, suspects: bool
) -> None:
    """A claim of one of a million feeds that are due reads one."""
    register(migrated_postgres, *(spec(f"f{n:04}") for n in range(3_000)))
    running_postgres.execute("shared", "VACUUM ANALYZE feeds")
    if suspects:
        migrated_postgres.query("UPDATE feeds SET last_error_kind = 'crashed' WHERE id = 'f2999'")
    with contextlib.closing(PostgresDatabase(running_postgres.url("shared"), where="x")) as database:
        before = _rows_read(database)
        for wanted in (Due(now=NOW, ids=["f2999"]), Named(ids=["f2999"], now=NOW)):
            found = claim(database, wanted, suspects=suspects)
            assert ids(found) == ["f2999"]
            leases.end(database, found.token, forgive=True)
        assert _rows_read(database) - before < 100


def _rows_read(database: PostgresDatabase) -> int:
    """Rows of feeds that this connection and its listeners have read; it is set before."""
    database.query("SELECT pg_stat_force_next_flush()")
    [row] = database.query(
        "SELECT seq_tup_read + idx_tup_fetch AS n FROM pg_stat_user_tables WHERE relname = 'feeds'"
    ).rows
    return int(row["n"])
