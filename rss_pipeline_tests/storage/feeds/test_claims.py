"""Claims: which feeds a run gets and which it does not, and that the questions before a claim agree with it.

`lease_now` replaces the database's clock where a lease has to lapse.
"""

import contextlib
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.hold import HostGap
from rss_pipeline.pipeline.triggers.runs import Wait
from rss_pipeline.pipeline.triggers.starts import decide
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Database, Result, Statement
from rss_pipeline.storage.feeds import claims, due, leases
from rss_pipeline.storage.feeds.claimable import Due, Named, NotVisitedSince
from rss_pipeline.storage.feeds.registered import registry_rows
from rss_pipeline.storage.feeds.stored_holds import keep_holds
from rss_pipeline.storage.schema import migrate
from rss_pipeline.storage.sql import compact
from rss_pipeline_tests.storage.values import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    change,
    claim,
    claim_one,
    failed,
    feed_row,
    ids,
    leases_clock,
    register,
    spec,
    unchanged,
)
from rss_pipeline_tests.support.examples import examples
from rss_pipeline_tests.support.readers import subscribe


def due_at(database: Database, id: str, at: datetime) -> None:
    change(database, "UPDATE feeds SET next_fetch_at = ? WHERE id = ?", instant(at), id)


def hold(database: Database, host: str, until: datetime) -> None:
    change(database, "INSERT INTO hosts VALUES (?, ?, '429', 1)", host, instant(until))


def test_what_is_due_is_claimed_oldest_first(database: Database) -> None:
    register(database, *(spec(id) for id in "abcd"))
    for id, minutes in (("a", -1), ("b", -3), ("c", 0), ("d", 1)):
        due_at(database, id, NOW + minutes * MINUTE)
    assert ids(claim(database)) == ["b", "a", "c"]
    assert feed_row(database, "d")["lease_token"] is None


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


def test_users_and_hosts_share_a_claim(database: Database) -> None:
    """Feeds of ann's, and of one host, have been due for longer than those of all others."""
    anns = [spec(f"ann{n:02}", host=f"slow{n % 3}" if n < 30 else f"ann{n}") for n in range(40)]
    bens = [spec("ben0", host="slow0"), spec("ben1"), spec("both")]
    listed = [spec(f"own{n}") for n in range(4)]
    register(database, *anns, now=NOW - HOUR)
    register(database, *anns, *bens, *listed)
    subscribe(database, "ann", *(each.id for each in anns), "both", "own0")
    subscribe(database, "ben", *(each.id for each in bens))
    brought = compact([each.id for each in (*anns, *bens)])
    change(database, "UPDATE feeds SET listed = 0 WHERE id IN (SELECT value FROM json_each(?))", brought)

    taken = claim(database, limit=12)
    # Of ann's, of ben's, of both and of feeds.yaml in turn; where one has no more, the others have the rest.
    assert sorted(ids(taken)) == [
        *(f"ann{n:02}" for n in range(5)),
        *("ben0", "ben1", "both"),
        *("own0", "own1", "own2", "own3"),
    ]
    assert [feed.brought_by for feed in taken.feeds if feed.id in ("ann00", "ben0", "both", "own0")] == [
        '["ann"]',
        '["ben"]',
        '["ann","ben"]',
        "",
    ]
    leases.end(database, taken.token, forgive=True)
    # Of three slow hosts eight each, then hosts that have not been due for so long.
    found = ids(claim(database, limit=41))
    assert sum(id < "ann30" for id in found) == 24
    assert {f"ann{n}" for n in range(30, 40)} < set(found)


class _Keeping(SqliteDatabase):
    """It keeps the statements of its last batch."""

    kept: Sequence[Statement] = ()

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        self.kept = statements
        return super().batch(statements)


def test_a_crowd_of_one_host_is_passed_over_and_the_rest_is_not_ranked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim behind a crowd takes little more work than one without a crowd, however many are due."""
    monkeypatch.setattr(claims, "RANKED_FIRST", 200)
    path = tmp_path / "rss.sqlite"
    steps = []

    def work(statements: Sequence[Statement]) -> int:
        """Thousands of the engine's steps, for all statements of the claim once more."""
        found = 0

        def step() -> None:
            nonlocal found
            found += 1

        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as again:
            again.set_progress_handler(step, 1000)
            again.execute("BEGIN")
            for each in statements:
                again.execute(each.sql, each.params).fetchall()
            again.execute("ROLLBACK")
        return found

    with contextlib.closing(_Keeping(path)) as database:
        migrate(database)
        register(database, *(spec(f"f{n:04}") for n in range(3_000)))
        for crowd, of_crowd, others in ((0, 0, 80), (300, 8, 72), (3_000, 60, 0)):
            change(database, "UPDATE feeds SET host = id || '.example', next_fetch_at = ?", instant(NOW))
            if crowd:
                come_first = "UPDATE feeds SET host = 'crowd', next_fetch_at = ? WHERE rowid <= ?"
                change(database, come_first, instant(NOW - HOUR), crowd)
            taken, kept = claim(database, limit=80), database.kept
            assert sum(feed.address.host == "crowd" for feed in taken.feeds) == of_crowd
            assert len(taken.feeds) == of_crowd + others
            leases.end(database, taken.token, forgive=True)
            steps.append(work(kept))
    alone, behind, _ = steps
    assert behind < 6 * alone, steps


def test_named_feeds_are_claimed_all_however_many_of_a_host(database: Database) -> None:
    names = [f"f{n:03}" for n in range(100)]
    register(database, *(spec(id, host="big.example") for id in names), now=NOW + HOUR)
    assert ids(claim(database, Named(ids=names, now=NOW), limit=100)) == names


def test_a_held_host_is_left_alone_until_its_pause_is_over(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    hold(database, "a.example", NOW + HOUR)
    assert not due.is_claimable(database, Named(ids=["a"], now=NOW))
    assert ids(claim(database, Named(ids=["a"], now=NOW))) == []
    assert ids(claim(database)) == ["b"]
    assert due.is_claimable(database, Named(ids=["a"], now=NOW + HOUR))
    assert ids(claim(database, now=NOW + HOUR)) == ["a"]


def test_feeds_of_a_host_that_lets_no_visit_begin_within_a_round_start_no_run(database: Database) -> None:
    """Each run would claim them, begin nothing, and leave them due for the next one."""
    register(database, *(spec(id, host=host) for id, host in (("a", "slow"), ("b", "x.slow.org"))))
    one, domain = (
        HostGap(host=host, gap=10 * MINUTE, since=NOW, asked_at=NOW) for host in ("slow", ".slow.org")
    )
    keep_holds(database, "hosts", gaps=[one, domain], now=NOW)
    every = NotVisitedSince(since=NOW, now=NOW + MINUTE)
    assert not due.is_claimable(database, every, to_begin=True)
    assert due.claimable_shards(database, every, count=2) == set()
    # Nor does the sensor stop looking until something else is due: nothing reports the end of a gap to it.
    summaries = due.due_by_shard(database, NOW + MINUTE, count=2).values()
    for counts in (due.due_summary(database, NOW + MINUTE), *summaries):
        assert (counts.due, counts.waits_for_turn) == (0, True)
        assert decide(counts, (), now=NOW + MINUTE) == Wait(reason="No feed is due.", is_idle=False)
    # A poll that a person starts says of them that their turn did not come.
    assert due.is_claimable(database, every)
    # Another host is free, and in the last two minutes a round can wait.
    register(database, *(spec(id, host=host) for id, host in (("b", "x.slow.org"), ("c", "notslow.org"))))
    assert due.due_summary(database, NOW + 2 * MINUTE).due == 1
    assert ids(claim(database, Named(ids=["c"], now=NOW), limit=1)) == ["c"]
    later = due.due_summary(database, NOW + 8 * MINUTE)
    assert (later.due, later.waits_for_turn) == (1, False)
    # What a clock that was put back since has noted is no reason to wait.
    change(database, "UPDATE host_gaps SET asked_at = ?", instant(NOW + DAY))
    assert due.due_summary(database, NOW + 2 * MINUTE).due == 1


def test_feeds_with_a_claim_that_was_never_closed_are_claimed_apart(database: Database) -> None:
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


def test_a_feed_with_a_document_that_crashed_us_stays_apart_until_it_ends_well(database: Database) -> None:
    register(database, spec("a"))
    assert failed(database, *claim_one(database), kind="crashed", message="2 runs died")
    assert ids(claim(database, now=NOW + HOUR)) == []
    alone = claim(database, now=NOW + HOUR, suspects=True)
    assert unchanged(database, alone.feeds[0], alone.token, now=NOW + HOUR)
    leases.end(database, alone.token, forgive=True)
    assert ids(claim(database, now=NOW + 2 * HOUR)) == ["a"]


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


def test_why_a_feed_cannot_be_had_is_reported(database: Database) -> None:
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


def test_the_sensor_gets_what_is_due_how_long_and_which_runs_are_alive(database: Database) -> None:
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
