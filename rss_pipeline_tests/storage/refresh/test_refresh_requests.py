"""Requests of users for visits: made, joined, claimed, settled, answered and read, by table."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.collector.models.feed import Wishes
from rss_pipeline.storage.database import Database, Row, Statement
from rss_pipeline.storage.refresh import open_requests
from rss_pipeline.storage.refresh.open_requests import OpenRequest, RequestResult
from rss_pipeline.storage.refresh.refresh_requests import (
    MOST_OF_FEED,
    RefreshRequest,
    SearchRequest,
    request_statements,
    search_request_statements,
    task_statement,
)

NOW = datetime(2026, 3, 2, 12, 0, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=2)


@pytest.fixture
def feeds(database: Database) -> Database:
    """The feeds a, b and c of as many hosts; ann subscribes all of them, ben the first."""
    users = [
        Statement(
            "INSERT INTO users (id, name, password_hash, created_at) VALUES (?, ?, 'x', ?)",
            [name, name, instant(NOW)],
        )
        for name in ("ann", "ben")
    ]
    rows = [
        Statement(
            """INSERT INTO feeds (id, url, host, created_at, next_fetch_at, registered, enabled)
            VALUES (?, ?, ?, ?, '2026-03-03T00:00:00Z', 1, 1)""",
            [id, f"https://{id}.example/feed", f"{id}.example", instant(NOW)],
        )
        for id in ("a", "b", "c")
    ]
    subscriptions = [
        Statement(
            "INSERT INTO subscriptions (user_id, feed_id, read_up_to, added_at) VALUES (?, ?, 0, ?)",
            [user, id, instant(NOW)],
        )
        for user, id in [("ann", "a"), ("ann", "b"), ("ann", "c"), ("ben", "a")]
    ]
    database.batch([*users, *rows, *subscriptions])
    return database


def ask(
    database: Database, id: str, user: str = "ann", feed: str = "a", *, now: datetime = NOW
) -> Row | None:
    """The row of the answer."""
    request = RefreshRequest(id=id, user_id=user, feed_id=feed, now=now)
    rows = database.batch(request_statements(request))[-1].rows
    return rows[0] if rows else None


def claim(
    database: Database, token: str = "t", *, now: datetime = NOW, limit: int = 9
) -> Sequence[OpenRequest]:
    return open_requests.claim_requests(
        database, run_id="run", token=token, lease_seconds=60, limit=limit, now=now, lease_now=now
    )


def task(database: Database, user: str, id: str, *, now: datetime = NOW) -> Row | None:
    rows = database.batch([task_statement(user, id, now=now)])[0].rows
    return rows[0] if rows else None


def test_a_second_request_for_a_feed_joins_the_open_one_whoever_makes_it(feeds: Database) -> None:
    for id, user in [("1", "ann"), ("2", "ann"), ("3", "ben"), ("4", "ben")]:
        row = ask(feeds, id, user)
        assert row is not None
        assert (row["task_id"], row["state"]) == ("1", "queued")
    assert [request.id for request in claim(feeds)] == ["1"]
    row = ask(feeds, "5", "ben")
    assert row is not None
    assert (row["task_id"], row["state"]) == ("1", "running")


def test_a_task_is_read_by_those_who_requested_it_and_by_no_one_else(feeds: Database) -> None:
    ask(feeds, "1", "ann", "b")
    ask(feeds, "2", "ann", "a")
    ask(feeds, "3", "ben", "a")
    assert task(feeds, "ann", "1") is not None
    assert task(feeds, "ben", "2") is not None, "it joined"
    assert task(feeds, "ben", "1") is None
    assert task(feeds, "ben", "%") is None


def test_a_feed_that_the_user_does_not_subscribe_is_not_requested(feeds: Database) -> None:
    ask(feeds, "1", "ann", "b")
    assert ask(feeds, "2", "ben", "b") is None
    assert ask(feeds, "3", "ben", "unknown") is None
    assert task(feeds, "ben", "1") is None, "the attempt has not joined it either"
    assert [request.id for request in claim(feeds)] == ["1"]


@pytest.mark.parametrize("table", ["hosts", "feed_holds"])
def test_a_feed_on_hold_is_not_requested_and_the_row_says_until_when(feeds: Database, table: str) -> None:
    key = "host" if table == "hosts" else "feed_id, host"
    values = "'a.example'" if table == "hosts" else "'a', 'a.example'"
    feeds.query(
        f"INSERT INTO {table} ({key}, hold_until, reason) VALUES ({values}, ?, '429')", [instant(LATER)]
    )
    row = ask(feeds, "1")
    assert row is not None
    assert (row["task_id"], row["hold_until"], row["hold_host"]) == (None, instant(LATER), "a.example")
    assert not claim(feeds)
    after = ask(feeds, "2", now=LATER)
    assert after is not None
    assert after["task_id"] == "2"


@pytest.mark.parametrize("column", ["registered", "enabled"])
def test_a_feed_that_is_not_polled_is_not_requested(feeds: Database, column: str) -> None:
    feeds.query(f"UPDATE feeds SET {column} = 0 WHERE id = 'a'")
    row = ask(feeds, "1")
    assert row is not None
    assert (row["task_id"], row["is_polled"]) == (None, 0)


def test_one_feed_is_requested_sixty_times_in_ten_minutes_and_then_again(feeds: Database) -> None:
    for number in range(MOST_OF_FEED):
        ask(feeds, f"n{number}")
        claim(feeds, f"t{number}")
        open_requests.answer_requests(feeds, f"t{number}", [_unchanged(f"n{number}")], now=NOW)
    row = ask(feeds, "over")
    assert row is not None
    assert (row["task_id"], row["of_feed"]) == (None, MOST_OF_FEED)
    after = ask(feeds, "after", now=NOW + timedelta(minutes=10))
    assert after is not None
    assert after["task_id"] == "after"


def test_of_a_user_s_searches_sixty_an_hour_have_their_turn_and_each_is_made_once(feeds: Database) -> None:
    feeds.query("UPDATE users SET created_at = '2020-01-01T00:00:00Z' WHERE id = 'ben'")

    def search(id: str, address: str, user: str = "ann") -> tuple[str, timedelta]:
        statements = search_request_statements(
            SearchRequest(id=id, user_id=user, address=address, now=NOW, wishes=Wishes())
        )
        [row] = feeds.batch(statements)[-1].rows
        begins = from_instant(row["begins_at"])
        return row["task_id"], timedelta() if begins is None else begins - NOW

    def claimed(token: str, now: datetime) -> set[str]:
        return {each.id for each in claim(feeds, token, now=now, limit=1_000)}

    hour = timedelta(hours=1)
    assert search("1", "x.example") == ("1", timedelta())
    assert search("2", "x.example") == ("1", timedelta())
    for number in range(2, 131):
        assert search(f"{number}", f"{number}.example") == (f"{number}", (number - 1) // 60 * hour)
    # The owner of the installation, who was first.
    for number in range(62):
        assert search(f"of-ben-{number}", f"{number}.example", "ben")[1] == timedelta()
    assert open_requests.waiting(feeds, now=NOW, lease_now=NOW).count == 60 + 62
    first = claimed("now", NOW)
    assert len(first) == 60 + 62
    assert {f"{number}" for number in range(1, 61)} < first
    # The lease is over each time, so that the same ones are open again.
    assert claimed("again", NOW + timedelta(minutes=59)) == first
    assert claimed("later", NOW + hour) - first == {f"{number}" for number in range(61, 121)}


def test_a_visit_by_another_run_answers_the_requests_that_waited_for_it(feeds: Database) -> None:
    ask(feeds, "1")
    ask(feeds, "2", feed="b")
    ask(feeds, "3", feed="c")
    assert open_requests.waiting(feeds, now=NOW, lease_now=NOW).can_begin == 3
    feeds.query("UPDATE feeds SET last_visited_at = ? WHERE id = 'a'", [instant(LATER)])
    feeds.query(
        """UPDATE feeds SET last_visited_at = ?, consecutive_failures = 2, last_error_kind = 'timeout',
        last_error = 'It took too long.' WHERE id = 'b'""",
        [instant(LATER)],
    )
    found = open_requests.waiting(feeds, now=LATER, lease_now=LATER)
    assert (found.count, found.can_begin) == (1, 1)
    assert _result(feeds, "1") == '{"outcome":"unchanged","items_new":0,"milliseconds":120000,' + (
        '"error_kind":null,"error":null}'
    )
    assert '"outcome":"failed"' in _result(feeds, "2")
    assert '"It took too long."' in _result(feeds, "2")
    assert [request.id for request in claim(feeds, now=LATER)] == ["3"]


@pytest.mark.parametrize(
    ("kind", "held", "hosts", "can_begin"),
    [
        ("refresh", ["a", "b"], ["a.example", "b.example"], 1),
        ("refresh", ["a", "b"], ["b.example"], 0),
        ("refresh", ["a"], ["a.example"], 0),
        ("first", ["a", "b"], ["a.example", "b.example"], 0),
    ],
    ids=["one of several", "its visit is nearly over", "the only one", "the poll brings it"],
)
def test_a_feed_to_which_a_poll_may_not_have_come_is_something_to_begin_with(
    feeds: Database, kind: str, held: list[str], hosts: list[str], can_begin: int
) -> None:
    ask(feeds, "1")
    feeds.query("UPDATE refresh_requests SET kind = ?", [kind])
    feeds.query("UPDATE feeds SET lease_token = 'p', host = 'a.example' WHERE id = 'a'")
    feeds.query(
        """INSERT INTO leases (token, run_id, expires_at, seconds, feeds, hosts)
        VALUES ('p', 'poll', ?, 60, ?, ?)""",
        [instant(LATER), json.dumps(held), json.dumps(hosts)],
    )
    found = open_requests.waiting(feeds, now=NOW, lease_now=NOW)
    assert (found.count, found.can_begin) == (1, can_begin)


def test_a_feed_that_another_run_visits_gives_no_run_anything_to_begin(feeds: Database) -> None:
    ask(feeds, "1")
    feeds.query(
        """INSERT INTO leases (token, run_id, expires_at, seconds, feeds, hosts)
        VALUES ('p', 'poll', ?, 60, '["a"]', '[]')""",
        [instant(LATER)],
    )
    feeds.query("UPDATE feeds SET lease_token = 'p' WHERE id = 'a'")
    found = open_requests.waiting(feeds, now=NOW, lease_now=NOW)
    assert (found.count, found.can_begin) == (1, 0)
    [holding] = open_requests.holding_leases(feeds, lease_now=NOW)
    assert (holding.token, holding.run_id) == ("p", "poll")
    assert open_requests.waiting(feeds, now=LATER, lease_now=LATER).can_begin == 1


def test_requests_of_a_run_that_died_are_open_again_when_its_lease_is_over(feeds: Database) -> None:
    ask(feeds, "1")
    [first] = claim(feeds)
    assert first.attempts == 1
    assert not claim(feeds, "u", now=NOW + timedelta(seconds=59))
    [second] = claim(feeds, "u", now=NOW + timedelta(seconds=61))
    assert (second.id, second.attempts) == ("1", 2)
    open_requests.answer_requests(feeds, "t", [_unchanged("1")], now=LATER)
    row = task(feeds, "ann", "1")
    assert row is not None
    assert row["state"] == "running", "the dead run's answer came too late"


def test_requests_that_were_put_back_have_lost_no_attempt(feeds: Database) -> None:
    ask(feeds, "1")
    claim(feeds)
    open_requests.release_requests(feeds, "t")
    [again] = claim(feeds, "u")
    assert again.attempts == 1


def test_the_oldest_requests_are_claimed_first(feeds: Database) -> None:
    ask(feeds, "2", feed="b", now=NOW + timedelta(milliseconds=20))
    ask(feeds, "1", feed="a", now=NOW + timedelta(milliseconds=10))
    assert [request.id for request in claim(feeds, limit=1)] == ["1"]
    assert [request.id for request in claim(feeds, "u")] == ["2"]


def test_a_task_is_kept_for_a_day_after_its_end(feeds: Database) -> None:
    ask(feeds, "1")
    claim(feeds)
    open_requests.answer_requests(feeds, "t", [_unchanged("1")], now=NOW)
    day = timedelta(hours=24)
    assert task(feeds, "ann", "1", now=NOW + day - timedelta(seconds=1)) is not None
    assert task(feeds, "ann", "1", now=NOW + day) is None
    ask(feeds, "2", feed="b", now=NOW + day)
    assert feeds.query("SELECT id FROM refresh_requests").rows == [{"id": "2"}]


def _unchanged(id: str) -> RequestResult:
    return RequestResult(id=id, result={"outcome": "unchanged", "items_new": 0, "milliseconds": 1})


def _result(database: Database, id: str) -> str:
    row = task(database, "ann", id, now=LATER)
    assert row is not None
    assert row["state"] == "done"
    return str(row["result"])
