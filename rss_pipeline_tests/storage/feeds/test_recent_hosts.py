"""Hosts that a run takes besides those of its claim, and those that it made requests to just now."""

from collections.abc import Sequence

from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import leases
from rss_pipeline.storage.feeds.leases import LeaseKind, RecentHosts
from rss_pipeline.storage.feeds.stored_holds import KnownHolds, known_holds, known_statement
from rss_pipeline_tests.storage.values import NOW, change, claim, ids, register, spec

LONG_AGO = "2000-01-01T00:00:00Z"


def take(
    database: Database,
    token: str,
    host: str,
    *,
    kind: LeaseKind = "feeds",
    ours: Sequence[str] = (),
    is_due: bool = True,
) -> tuple[bool, bool]:
    return leases.take_host(database, token, host, kind=kind, ours=[token, *ours], is_due=is_due)


def known(database: Database) -> KnownHolds:
    return known_holds(database.batch([known_statement(NOW)])[0])


def test_a_lease_without_feeds_takes_hosts_and_has_polls_make_way(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    poll = claim(database, limit=1)
    leases.begin_without_feeds(database, "search", run_id="search", lease_seconds=60)
    assert take(database, "search", "b.example", is_due=False) == (True, False)
    assert take(database, "search", "a.example", is_due=False) == (False, False)
    leases.await_host(database, "search", "a.example")
    [awaited] = database.batch([leases.awaited_statement([poll.token])])
    assert [row["host"] for row in awaited.rows] == ["a.example"]
    assert ids(claim(database)) == [], "the search has the other host"
    leases.end(database, "search", forgive=True)
    assert ids(claim(database)) == ["b"]


def test_a_host_that_a_redirect_leads_to_is_one_runs_alone(database: Database) -> None:
    register(database, spec("a"), spec("b"), spec("y"))
    first, second = claim(database, limit=1), claim(database, limit=1)
    assert ids(first) + ids(second) == ["a", "b"]
    assert take(database, first.token, "y.example") == (True, False)
    assert take(database, second.token, "y.example") == (False, False)
    assert take(database, second.token, "y.example", ours=[first.token]) == (True, False)
    assert take(database, second.token, "a.example") == (False, False), "it is of the other run's claim"
    assert ids(claim(database)) == [], "a claim leaves it alone, too"
    database.batch([leases.free_hosts([first.token, second.token])])
    assert ids(claim(database)) == ["y"]


def test_a_lapsed_lease_holds_no_host_and_takes_none(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    first, second = claim(database, limit=1), claim(database, limit=1)
    change(database, "UPDATE leases SET expires_at = ? WHERE token = ?", LONG_AGO, first.token)
    assert take(database, first.token, "y.example") == (False, False)
    assert take(database, second.token, "a.example") == (True, False)


def test_a_run_for_what_is_due_leaves_a_host_to_the_refresh_that_waits_for_it(database: Database) -> None:
    register(database, spec("a"), spec("y"))
    token = claim(database, limit=1).token
    waiting = leases.await_hosts(database, ["y"], run_id="refresh", lease_seconds=60)
    assert take(database, token, "y.example") == (False, False)
    assert take(database, token, "y.example", is_due=False) == (True, False)
    leases.end(database, waiting, forgive=True)


def test_hosts_for_images_are_apart_from_those_for_feeds(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    first, second = claim(database, limit=1), claim(database, limit=1)
    assert take(database, first.token, "y.example") == (True, False)
    assert take(database, first.token, "z.example", kind="images") == (True, False)
    assert take(database, second.token, "y.example", kind="images") == (True, False)
    assert take(database, second.token, "z.example", kind="images") == (False, False)


def test_the_next_run_knows_which_hosts_are_recent(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    token = claim(database, limit=1).token
    recent = RecentHosts(run_id="r", seconds=30, hosts=["a.example"], image_hosts=["i.example"])
    leases.end(database, token, forgive=True, recent_hosts=recent)
    found = claim(database)
    assert ids(found) == ["a", "b"], "nothing is held by it"
    assert (found.holds.recent_hosts, found.holds.recent_image_hosts) == (("a.example",), ("i.example",))
    assert take(database, found.token, "i.example") == (True, False)
    assert take(database, found.token, "a.example", ours=[token])[1]
    assert take(database, found.token, "i.example", kind="images") == (True, True)


def test_recent_hosts_are_forgotten_after_their_pace(database: Database) -> None:
    for host in ("a.example", "b.example"):
        change(database, "UPDATE leases SET expires_at = ?", LONG_AGO) if host > "b" else None
        database.batch(RecentHosts(run_id="r", seconds=0.2, hosts=[host]).statements())
    assert known(database).recent_hosts == ("b.example",)
    [row] = database.query("SELECT count(*) AS n, max(seconds) AS seconds FROM leases").rows
    assert (row["n"], row["seconds"]) == (1, 2), "whole seconds, and no row is left of what is over"
    assert RecentHosts(run_id="r", seconds=1).statements() == []
