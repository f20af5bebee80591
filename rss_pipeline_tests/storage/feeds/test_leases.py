"""Leases: what a run holds while it lives, what lapses, and what becomes of its feeds when it ends.

`lease_now` replaces the database's clock where a lease has to lapse.
"""

from collections.abc import Callable
from datetime import timedelta

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import NextVisit
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import due, leases
from rss_pipeline.storage.feeds import feed_row as feeds
from rss_pipeline.storage.feeds.claimable import Due, Named
from rss_pipeline.storage.feeds.claims import company_of_suspects
from rss_pipeline.storage.feeds.leases import Release
from rss_pipeline_tests.storage.values import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    change,
    claim,
    claim_one,
    feed_row,
    ids,
    leases_clock,
    register,
    spec,
    unchanged,
)


def test_a_claim_counts_until_it_is_closed(database: Database) -> None:
    register(database, spec("a"))
    found = claim(database, run_id="a-run")
    row = feed_row(database)
    assert (row["lease_token"], row["unclosed_claims"]) == (found.token, 1)
    assert found.feeds[0].unfinished.claims == 1
    assert not found.feeds[0].unfinished.was_interrupted
    assert unchanged(database, found.feeds[0], found.token)
    assert (feed_row(database)["lease_token"], feed_row(database)["unclosed_claims"]) == (None, 0)


def test_two_runs_never_share_a_feed_nor_a_host(database: Database) -> None:
    register(database, spec("a1", host="a"), spec("a2", host="a"), spec("b1", host="b"), spec("b2", host="b"))
    assert ids(claim(database, limit=1)) == ["a1"]
    assert ids(claim(database, limit=1)) == ["b1"]
    assert ids(claim(database)) == []
    assert not due.is_claimable(database, Due(now=NOW))


def test_a_run_after_its_requests_releases_its_hosts_and_keeps_its_feeds(database: Database) -> None:
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
    assert (row["schedule_kind"], row["outage_pauses"]) == ("our_outage", 1)
    for seconds, blamed in ((239, set()), (241, {"a"})):
        answered = instant(NOW + timedelta(seconds=seconds))
        database.query("UPDATE feeds SET last_fetched_at = ? WHERE id = 'b'", [answered])
        assert feeds.not_our_outage(database, ["a"], answered=False) == blamed
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


def test_of_a_dead_run_only_what_it_had_begun_is_suspect(database: Database) -> None:
    known = [spec(f"f{n:02}") for n in range(40)]
    for lapses in (True, False):
        register(database, *known)
        found = claim(database, lease_now=NOW)
        assert found.unbegun == tuple(one.id for one in known)
        assert not leases.begin(database, found.token, found.unbegun[2:]), "that lease is long over"
        change(database, "UPDATE leases SET expires_at = '2999-01-01T00:00:00Z'")
        assert leases.begin(database, found.token, found.unbegun[2:])
        if lapses:
            change(database, "UPDATE leases SET expires_at = ?", instant(NOW))
        else:
            leases.end(database, found.token, forgive=False)
        later = NOW + HOUR
        assert company_of_suspects(database, Due(now=NOW), lease_now=later) == 40
        assert ids(claim(database, suspects=True, company=39, lease_now=later)) == []
        suspects = claim(database, suspects=True, company=40, limit=10, lease_now=later)
        assert ids(suspects) == ["f00", "f01"]
        others = claim(database, lease_now=later)
        assert ids(others) == [one.id for one in known[2:]]
        assert {feed.unfinished.claims for feed in others.feeds} == {1}
        assert company_of_suspects(database, Due(now=NOW), lease_now=later) is None
        for each in (suspects, others):
            leases.end(database, each.token, forgive=True)
        database.query("DELETE FROM leases")
        database.query("UPDATE feeds SET unclosed_claims = 0")


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


def test_a_turn_is_that_of_one_run_until_it_ends_or_lapses(database: Database) -> None:
    def begins(token: str, turn: str = "<turn>") -> bool:
        return leases.begin_turn(database, token, turn, run_id=token, lease_seconds=60)

    assert begins("one")
    assert not begins("two")
    assert begins("other", "<other>")
    leases.end(database, "one", forgive=True)
    assert begins("two")
    database.query("UPDATE leases SET expires_at = '2000-01-01T00:00:00Z'")
    assert begins("three"), "the run of the one before was killed"
