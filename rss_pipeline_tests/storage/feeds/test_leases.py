"""Claims: which feeds a run gets, which it does not, and what becomes of them when it ends.

`lease_now` stands in for the database's clock where a lease has to lapse.
"""

import contextlib
import itertools
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import NextVisit
from rss_pipeline.storage.backends.sqlite import SqliteDatabase
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.feeds import due, leases
from rss_pipeline.storage.feeds.claimable import Due, Named, NotVisitedSince
from rss_pipeline.storage.feeds.leases import Release
from rss_pipeline.storage.feeds.registered import registry_rows
from rss_pipeline.storage.sql import compact
from rss_pipeline_tests.storage.values import (
    DAY,
    HOUR,
    NOW,
    change,
    claim,
    claim_one,
    failed,
    feed_row,
    ids,
    register,
    spec,
    unchanged,
)
from rss_pipeline_tests.support.examples import examples

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)


def due_at(database: Database, id: str, at: datetime) -> None:
    change(database, "UPDATE feeds SET next_fetch_at = ? WHERE id = ?", instant(at), id)


def hold(database: Database, host: str, until: datetime) -> None:
    change(database, "INSERT INTO hosts VALUES (?, ?, '429', 1)", host, instant(until))


def fill(database: Database, feeds: int, *, due: int, per_host: int = 4) -> None:
    """So many registered feeds, the first `due` of them due, in one statement."""
    database.query(
        """WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < CAST(? AS INTEGER) - 1)
        INSERT INTO feeds (id, url, host, next_fetch_at, created_at)
        SELECT 'a-feed-of-usual-length-' || (1000000000 + i), 'https://host-' || (i / CAST(? AS INTEGER))
          || '.example/' || i, 'host-' || (i / CAST(? AS INTEGER)) || '.example',
          strftime('%Y-%m-%dT%H:%M:%SZ', ?, CASE WHEN i < ? THEN '-' ELSE '+' END || (60 + i % 3600)
            || ' seconds'), ? FROM n""",
        [feeds, per_host, per_host, instant(NOW), due, instant(NOW)],
    )


def test_what_is_due_is_claimed_oldest_first(database: Database) -> None:
    register(database, *(spec(id) for id in "abcd"))
    for id, minutes in (("a", -1), ("b", -3), ("c", 0), ("d", 1)):
        due_at(database, id, NOW + minutes * MINUTE)
    assert ids(claim(database)) == ["b", "a", "c"]
    assert feed_row(database, "d")["lease_token"] is None


def test_a_claim_counts_until_it_is_closed(database: Database) -> None:
    register(database, spec("a"))
    found = claim(database, run_id="a-run")
    row = feed_row(database)
    assert (row["lease_token"], row["unclosed_claims"]) == (found.token, 1)
    assert found.feeds[0].unfinished.claims == 1
    assert not found.feeds[0].unfinished.was_interrupted
    assert unchanged(database, found.feeds[0], found.token)
    assert (feed_row(database)["lease_token"], feed_row(database)["unclosed_claims"]) == (None, 0)


def test_what_is_not_registered_or_not_enabled_is_not_claimed(database: Database) -> None:
    register(database, spec("gone"))
    register(database, spec("a"), spec("off", enabled=False))
    assert ids(claim(database, Named(ids=["gone", "off", "a", "unknown"], now=NOW))) == ["a"]


def test_a_claim_of_nothing_leaves_no_lease(database: Database) -> None:
    register(database, spec("a"))
    for nothing in (
        claim(database, now=NOW - HOUR),
        claim(database, limit=0),
        claim(database, Named(ids=[], now=NOW)),
        claim(database, Named(ids=[], now=NOW), limit=0),
    ):
        assert nothing.feeds == ()
    assert database.query("SELECT * FROM leases").rows == []


def test_no_more_than_the_limit_is_claimed(database: Database) -> None:
    register(database, *(spec(f"f{n}") for n in range(7)))
    assert [len(claim(database, limit=3).feeds) for _ in range(4)] == [3, 3, 1, 0]


def test_of_one_host_at_most_sixty_are_claimed(database: Database) -> None:
    register(database, *(spec(f"f{n:03}", host="big.example") for n in range(70)))
    assert ids(claim(database)) == [f"f{n:03}" for n in range(60)]


def test_named_feeds_are_claimed_all_however_many_of_a_host(database: Database) -> None:
    names = [f"f{n:03}" for n in range(100)]
    register(database, *(spec(id, host="big.example") for id in names), now=NOW + HOUR)
    assert ids(claim(database, Named(ids=names, now=NOW), limit=100)) == names


def test_ten_thousand_older_feeds_of_one_host_do_not_starve_the_others(database: Database) -> None:
    fill(database, 10_000, due=10_000, per_host=10_000)
    small = [spec(f"small-{n}") for n in range(20)]
    for one in small:
        database.query(
            "INSERT INTO feeds (id, url, host, next_fetch_at, created_at) VALUES (?, ?, ?, ?, ?)",
            [one.id, one.url, one.host, instant(NOW), instant(NOW)],
        )
    found = claim(database)
    hosts = [feed.address.host for feed in found.feeds]
    assert hosts.count("host-0.example") == 60
    assert {one.host for one in small} <= set(hosts)


def test_two_runs_never_share_a_feed_nor_a_host(database: Database) -> None:
    register(database, spec("a1", host="a"), spec("a2", host="a"), spec("b1", host="b"), spec("b2", host="b"))
    assert ids(claim(database, limit=1)) == ["a1"]
    assert ids(claim(database, limit=1)) == ["b1"]
    assert ids(claim(database)) == []
    assert not due.is_claimable(database, Due(now=NOW))


def test_a_run_that_has_asked_gives_its_hosts_free_and_keeps_its_feeds(database: Database) -> None:
    register(database, spec("a1", host="a"), spec("a2", host="a"))
    first = claim(database, limit=1)
    database.batch([leases.free_hosts([first.token])])
    assert ids(claim(database)) == ["a2"]
    assert feed_row(database, "a1")["lease_token"] == first.token


def test_a_lapsed_lease_holds_nothing(database: Database) -> None:
    register(database, spec("a1", host="a"), spec("a2", host="a"))
    first = claim(database, limit=1, lease_seconds=180, lease_now=NOW)
    early = NOW + 179 * SECOND
    assert ids(claim(database, lease_now=early)) == []
    assert ids(claim(database, suspects=True, lease_now=early)) == []
    late = NOW + 180 * SECOND
    assert ids(claim(database, suspects=True, limit=1, lease_now=late)) == ["a1"]
    assert leases.renew(database, [first.token], lease_seconds=180, lease_now=late) == 0


def test_a_renewed_lease_lives_on_and_a_lapsed_one_stays_lapsed(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    first = claim(database, Named(ids=["a"], now=NOW), lease_now=NOW)
    second = claim(database, Named(ids=["b"], now=NOW), lease_now=NOW)
    both = [first.token, second.token]
    at = NOW + 120 * SECOND
    assert leases.renew(database, [first.token], lease_seconds=180, lease_now=at) == 1
    at = NOW + 200 * SECOND
    assert leases.renew(database, both, lease_seconds=180, lease_now=at) == 1
    assert due.due_summary(database, NOW, lease_now=at).live_run_ids == ("run",)
    assert ids(claim(database, suspects=True, lease_now=at)) == ["b"]
    assert leases.renew(database, [], lease_seconds=180) == 0


def test_a_held_host_is_left_alone_until_its_pause_is_over(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    hold(database, "a.example", NOW + HOUR)
    assert not due.is_claimable(database, Named(ids=["a"], now=NOW))
    assert ids(claim(database, Named(ids=["a"], now=NOW))) == []
    assert ids(claim(database)) == ["b"]
    assert due.is_claimable(database, Named(ids=["a"], now=NOW + HOUR))
    assert ids(claim(database, now=NOW + HOUR)) == ["a"]


def test_feeds_whose_claim_was_never_closed_are_claimed_apart(database: Database) -> None:
    register(database, *(spec(id) for id in "abc"))
    lost = claim(database, Named(ids=["a"], now=NOW), lease_now=NOW)
    leases.end(database, lost.token, forgive=False)
    assert ids(claim(database, Named(ids=["a", "b"], now=NOW), lease_now=NOW)) == ["b"]
    alone = claim(database, suspects=True, lease_now=NOW)
    assert ids(alone) == ["a"]
    assert alone.feeds[0].unfinished.claims == 2
    assert alone.feeds[0].unfinished.was_interrupted


def test_suspects_are_known_but_for_those_that_a_run_visits_and_are_claimed_by_their_ids(
    database: Database,
) -> None:
    register(database, *(spec(id) for id in "abcd"))
    leases.end(database, claim(database, limit=2).token, forgive=False)
    visited = claim(database, limit=1)
    assert [ids(visited), free_suspects(database)] == [["c"], ["a", "b"]]
    assert ids(claim(database, Due(now=NOW, ids=["b", "c", "d"]), suspects=True)) == ["b"]
    assert free_suspects(database) == ["a"]
    assert ids(claim(database, Due(now=NOW - HOUR, ids=["a"]), suspects=True)) == [], "it is not due"
    assert ids(claim(database, Due(now=NOW, ids=["a", "c"]))) == []
    leases.end(database, visited.token, forgive=False)
    assert free_suspects(database) == ["a", "c"]


def free_suspects(database: Database) -> list[str]:
    return sorted(row["id"] for row in registry_rows(database) if row["free_suspect"])


def test_a_feed_whose_document_crashed_us_stays_apart_until_it_ends_well(database: Database) -> None:
    register(database, spec("a"))
    assert failed(database, *claim_one(database), kind="crashed", message="2 runs died")
    assert ids(claim(database, now=NOW + HOUR)) == []
    alone = claim(database, now=NOW + HOUR, suspects=True)
    assert unchanged(database, alone.feeds[0], alone.token, now=NOW + HOUR)
    leases.end(database, alone.token, forgive=True)
    assert ids(claim(database, now=NOW + 2 * HOUR)) == ["a"]


def test_a_released_feed_is_due_as_if_never_claimed(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    before = feed_row(database)
    found = claim(database)
    leases.release(database, [Release(feed_id="a", token=found.token)])
    assert feed_row(database) == before
    assert feed_row(database, "b")["lease_token"] == found.token
    leases.release(database, [Release(feed_id="b", token="another token")])
    assert feed_row(database, "b")["lease_token"] == found.token


def test_a_feed_released_until_later_is_due_then_and_has_no_failure(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    found = claim(database)
    ours = NextVisit(at=NOW + 5 * MINUTE, reason="our network", kind="our_outage")
    not_ours = NextVisit(at=NOW + DAY, reason="of another lease")
    leases.release(
        database,
        [
            Release(feed_id="a", token=found.token, next=ours),
            Release(feed_id="b", token="another token", next=not_ours),
        ],
    )
    row = feed_row(database)
    assert (row["lease_token"], row["unclosed_claims"], row["consecutive_failures"]) == (None, 0, 0)
    assert (row["next_fetch_at"], row["schedule_reason"]) == (instant(NOW + 5 * MINUTE), "our network")
    assert row["schedule_kind"] == "our_outage"
    assert feed_row(database, "b")["next_fetch_at"] == instant(NOW)
    assert row["last_visited_at"] is None


@pytest.mark.parametrize(("forgive", "unclosed"), [(True, 0), (False, 1)])
def test_a_lease_that_ends_releases_what_it_still_holds(
    database: Database, forgive: bool, unclosed: int
) -> None:
    register(database, spec("a"), spec("b"))
    found = claim(database)
    closed, still_held = found.feeds
    assert unchanged(database, closed, found.token)
    leases.end(database, found.token, forgive=forgive)
    assert database.query("SELECT * FROM leases").rows == []
    released, untouched = feed_row(database, still_held.id), feed_row(database, closed.id)
    assert (released["lease_token"], released["unclosed_claims"]) == (None, unclosed)
    assert released["next_fetch_at"] == instant(NOW)
    assert (released["backup_unsure"], untouched["backup_unsure"]) == (1, 0)
    again, _ = claim_one(database, still_held.id)
    assert again.unfinished.was_interrupted


def test_a_run_that_ends_late_does_not_release_what_another_took_over(database: Database) -> None:
    register(database, spec("a"))
    first = claim(database, lease_now=NOW)
    second = claim(database, suspects=True, lease_now=NOW + HOUR)
    before = feed_row(database)
    attempts: tuple[Callable[[], object], ...] = (
        lambda: leases.end(database, first.token, forgive=True),
        lambda: leases.release(database, [Release(feed_id="a", token=first.token)]),
        lambda: leases.release(
            database,
            [Release(feed_id="a", token=first.token, next=NextVisit(at=NOW + DAY, reason="late"))],
        ),
    )
    for late in attempts:
        late()
        assert feed_row(database) == before
    assert before["lease_token"] == second.token


def test_a_wrong_clock_heals(database: Database) -> None:
    """A machine that woke up in 2040 visited, held a host, died; then its clock was set right."""
    register(database, spec("a"), spec("soon"), spec("held"), spec("tomorrow"))
    wrong = NOW + 5000 * DAY
    due_at(database, "a", wrong)
    due_at(database, "tomorrow", NOW + 24 * HOUR)
    hold(database, "soon.example", wrong)
    claim(database, Named(ids=["held"], now=NOW), run_id="dead", lease_now=NOW + 5000 * DAY)
    summary = due.due_summary(database, NOW, lease_now=NOW)
    assert (summary.due, summary.live_run_ids) == (3, ())
    assert feed_row(database)["next_fetch_at"] == instant(NOW)
    assert ids(claim(database, lease_now=NOW)) == ["a", "soon"]
    assert ids(claim(database, suspects=True, lease_now=NOW)) == ["held"]


def test_a_claim_finds_what_a_wrong_clock_put_far_away_and_so_does_its_question(
    database: Database,
) -> None:
    register(database, spec("a"))
    due_at(database, "a", NOW + 25 * HOUR)
    assert not due.is_claimable(database, Due(now=NOW))
    due_at(database, "a", NOW + 25 * HOUR + SECOND)
    assert due.is_claimable(database, Due(now=NOW))
    assert ids(claim(database)) == ["a"]


def test_all_that_was_not_visited_since_is_claimed_due_or_not_in_backoff_or_not(
    database: Database,
) -> None:
    register(database, *(spec(id) for id in "abc"))
    assert unchanged(database, *claim_one(database, "a"), now=NOW - SECOND)
    assert failed(database, *claim_one(database, "b"), now=NOW)
    due_at(database, "c", NOW + HOUR)
    assert ids(claim(database, NotVisitedSince(since=NOW, now=NOW))) == ["a", "c"]


def test_of_named_feeds_those_not_visited_since_are_claimed(database: Database) -> None:
    register(database, *(spec(id) for id in "abc"), now=NOW + HOUR)
    wanted = NotVisitedSince(since=NOW, now=NOW, ids=["a", "b"])
    found = claim(database, wanted)
    assert ids(found) == ["a", "b"]
    for feed in found.feeds:
        assert unchanged(database, feed, found.token)
    assert not due.is_claimable(database, wanted)
    assert due.is_claimable(database, NotVisitedSince(since=NOW, now=NOW))
    assert ids(claim(database, NotVisitedSince(since=NOW, now=NOW, ids=[]))) == []


def test_why_a_feed_cannot_be_had_is_told(database: Database) -> None:
    register(database, spec("gone"))
    register(
        database, spec("a", host="x"), spec("b", host="x"), spec("off", enabled=False), spec("c", host="y")
    )
    hold(database, "y", NOW + HOUR)
    found = claim(database, Named(ids=["a"], now=NOW))
    rows = due.availability(database, ["a", "b", "c", "off", "gone", "unknown"], now=NOW)
    assert "unknown" not in rows
    assert (rows["a"]["held_token"], rows["b"]["held_token"]) == (found.token, None)
    assert (rows["a"]["host_held"], rows["b"]["host_held"], rows["c"]["host_held"]) == (1, 1, 0)
    assert (rows["c"]["hold_until"], rows["b"]["hold_until"]) == (instant(NOW + HOUR), None)
    assert (rows["off"]["enabled"], rows["gone"]["registered"]) == (0, 0)


def test_the_sensor_hears_what_is_due_how_long_and_who_is_at_it(database: Database) -> None:
    register(database, *(spec(f"f{n:03}") for n in range(150)))
    assert failed(database, *claim_one(database, "f001"), now=NOW - 2 * HOUR)
    due_at(database, "f000", NOW - 10 * MINUTE)
    first = due.due_summary(database, NOW)
    assert first.due == 100
    assert first.never_fetched == 100 - 1
    assert first.oldest_due_at == instant(NOW - HOUR)
    claim(database, limit=60, run_id="one")
    claim(database, limit=60, run_id="two")
    second = due.due_summary(database, NOW)
    assert second.due == 30
    assert sorted(second.live_run_ids) == ["one", "run", "two"]
    assert ids(claim(database, suspects=True)) == []
    claim(database, limit=60, run_id="three")
    last = due.due_summary(database, NOW)
    assert (last.due, last.never_fetched, last.oldest_due_at) == (0, 0, None)


def claim_some(database: Database) -> list[tuple[str, str]]:
    """Claim until nothing is left; feeds and hosts."""
    taken = []
    while found := claim(database, limit=7).feeds:
        taken += [(feed.id, feed.address.host) for feed in found]
    return taken


def claim_some_there(path: Path) -> list[tuple[str, str]]:
    """The same over a connection of one's own, as another process does it."""
    with contextlib.closing(SqliteDatabase(path)) as database:
        return claim_some(database)


def check_shared_nothing(database: Database, taken: list[list[tuple[str, str]]]) -> None:
    everything = list(itertools.chain.from_iterable(taken))
    assert len({id for id, _ in everything}) == len(everything)
    rows = database.query(
        """SELECT count(DISTINCT token) AS n FROM leases, json_each(hosts) AS j GROUP BY j.value
        ORDER BY n DESC LIMIT 1"""
    ).rows
    assert rows == [{"n": 1}]


@pytest.mark.slow
def test_processes_that_claim_at_once_share_neither_feed_nor_host(sqlite: SqliteDatabase) -> None:
    fill(sqlite, 300, due=300)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn) as processes:
        taken = list(processes.map(claim_some_there, [sqlite.path] * 2))
    check_shared_nothing(sqlite, taken)
    assert len(taken[0]) + len(taken[1]) > 200


def test_threads_that_claim_at_once_share_neither_feed_nor_host(database: Database) -> None:
    fill(database, 300, due=300)
    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(claim_some, [database] * 8))
    check_shared_nothing(database, taken)


feeds_of_a_table = st.lists(
    st.fixed_dictionaries(
        {
            "due": st.sampled_from([-300, -60, 0, 60, 86_400, 90_001]),
            "host": st.sampled_from(["x", "y", "z"]),
            "registered": st.sampled_from([1, 1, 1, 0]),
            "enabled": st.sampled_from([1, 1, 1, 0]),
            "unclosed": st.sampled_from([0, 0, 0, 1]),
            "kind": st.sampled_from([None, None, "timeout", "crashed"]),
            "visited": st.sampled_from([None, -7200, -10]),
            "token": st.sampled_from([None, None, "live", "lapsed"]),
        }
    ),
    max_size=12,
)


# D1 has SQLite's engine, and runs the same statements in other tests.
@pytest.mark.parametrize("database", ["sqlite", "postgres"], indirect=True)
@settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(feeds=feeds_of_a_table, held=st.sets(st.sampled_from("xyz")), kept=st.sets(st.sampled_from("xyz")))
def test_claim_summary_and_question_agree(
    database: Database, feeds: list[dict[str, int | str | None]], held: set[str], kept: set[str]
) -> None:
    """The same predicate three times, and once more in Python."""
    rows = []
    for n, feed in enumerate(feeds):
        visited = None if feed["visited"] is None else instant(NOW + int(feed["visited"]) * SECOND)
        rows.append(
            Statement(
                "INSERT INTO feeds (id, url, host, registered, enabled, next_fetch_at, created_at,"
                " lease_token, unclosed_claims, last_error_kind, last_visited_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    *(f"f{n:02}", f"https://{n}", feed["host"], feed["registered"], feed["enabled"]),
                    *(instant(NOW + int(feed["due"] or 0) * SECOND), instant(NOW), feed["token"]),
                    *(feed["unclosed"], feed["kind"], visited),
                ],
            )
        )
    emptied = [Statement(f"DELETE FROM {table}") for table in ("feeds", "hosts", "leases")]
    pauses = [
        Statement("INSERT INTO hosts VALUES (?, ?, '429', 1)", [host, instant(NOW + HOUR)]) for host in held
    ]
    database.batch([*emptied, *rows, *pauses])
    clock = leases_clock(database)
    database.query(
        "INSERT INTO leases (token, run_id, expires_at, feeds, hosts)"
        """ VALUES ('live', 'r', ?, '[]', ?), ('lapsed', 'r', ?, '[]', '["x","y"]')""",
        [instant(clock + HOUR), compact(sorted(kept)), instant(clock - HOUR)],
    )
    expected = sorted(
        (max(-(10**9), int(feed["due"] or 0)) if feed["due"] != 90_001 else 0, f"f{n:02}")
        for n, feed in enumerate(feeds)
        if (int(feed["due"] or 0) <= 0 or feed["due"] == 90_001)
        and (feed["registered"], feed["enabled"]) == (1, 1)
        and feed["token"] != "live"
        and feed["host"] not in held | kept
    )
    suspects = [
        id for _, id in expected if feeds[int(id[1:])]["unclosed"] or feeds[int(id[1:])]["kind"] == "crashed"
    ]
    summary = due.due_summary(database, NOW)
    assert summary.due == len(expected)
    assert summary.never_fetched == sum(feeds[int(id[1:])]["visited"] is None for _, id in expected)
    assert due.is_claimable(database, Due(now=NOW)) == bool(expected)
    assert ids(claim(database, suspects=True, limit=100)) == suspects
    if suspects:
        # Their lease keeps their hosts.
        taken = {feeds[int(id[1:])]["host"] for id in suspects}
        expected = [one for one in expected if feeds[int(one[1][1:])]["host"] not in taken]
    assert ids(claim(database, limit=100)) == [id for _, id in expected if id not in suspects]
    assert due.due_summary(database, NOW).due == 0
    assert not due.is_claimable(database, Due(now=NOW))


def leases_clock(database: Database) -> datetime:
    row = database.query("SELECT strftime('%Y-%m-%dT%H:%M:%SZ', 'now') AS now").rows[0]
    return datetime.fromisoformat(row["now"])


@pytest.mark.slow
def test_a_claim_among_a_hundred_thousand_feeds_is_quick(sqlite: SqliteDatabase) -> None:
    """Where 500 of them are due, where all are, and where all are due and on five hosts."""
    fill(sqlite, 100_000, due=500)
    check_claim_is_quick(sqlite, claimed=500, most=0.4)
    change(
        sqlite,
        """UPDATE feeds SET next_fetch_at = strftime('%Y-%m-%dT%H:%M:%SZ', ?,
          '-' || (60 + CAST(substr(id, -10) AS INTEGER) % 3600) || ' seconds')""",
        instant(NOW),
    )
    check_claim_is_quick(sqlite, claimed=500, most=1.0)
    change(
        sqlite, "UPDATE feeds SET host = 'host-' || (CAST(substr(id, -10) AS INTEGER) / 20000) || '.example'"
    )
    check_claim_is_quick(sqlite, claimed=300, most=3.5)


def check_claim_is_quick(sqlite: SqliteDatabase, *, claimed: int, most: float) -> None:
    """Beside a count of a million numbers at the same moment: the machine that tests may be slow or busy."""
    took: list[float] = []
    counted: list[float] = []
    while len(took) < 5 and not (took and min(took) < most * min(counted)):
        began = time.process_time()
        found = claim(sqlite, limit=500)
        took.append(time.process_time() - began)
        assert len(found.feeds) == claimed
        leases.end(sqlite, found.token, forgive=True)
        began = time.process_time()
        sqlite.query(A_MILLION)
        counted.append(time.process_time() - began)
    print(f"claim: {min(took) * 1000:.0f} ms, a million: {min(counted) * 1000:.0f} ms")  # noqa: T201
    assert min(took) < most * min(counted)


A_MILLION = "WITH n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000000) SELECT sum(x) FROM n"


def test_a_host_that_a_refresh_by_hand_waits_for_is_claimed_for_nothing_that_is_merely_due(
    database: Database,
) -> None:
    register(database, spec("a", host="x"), spec("b", host="x"), spec("c", host="y"))
    poll = claim(database, lease_now=leases_clock(database))
    assert ids(poll) == ["a", "b", "c"]
    waiting = leases.await_hosts(database, ["b"], run_id="by hand", lease_seconds=180)
    assert awaited(database, poll.token) == ["x"]
    for token, host, id in ((poll.token, "x", "b"), ("another token", "y", "c")):
        leases.release(
            database, [Release(feed_id=id, token=token)], others=[leases.free_hosts([token], [host])]
        )
    assert awaited(database, poll.token) == []
    assert [feed_row(database, id)["lease_token"] for id in "abc"] == [poll.token, None, poll.token]
    assert feed_row(database, "b")["unclosed_claims"] == 0
    assert due.due_summary(database, NOW).due == 0
    assert ids(claim(database)) == []
    by_hand = claim(database, Named(ids=["b"], now=NOW))
    assert ids(by_hand) == ["b"]
    for token in (by_hand.token, waiting):
        leases.end(database, token, forgive=True)
    assert ids(claim(database)) == ["b"]


def awaited(database: Database, token: str) -> list[str]:
    (found,) = database.batch([leases.awaited_statement([token])])
    return [row["host"] for row in found.rows]
