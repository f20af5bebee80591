"""Visits that a user requests of many feeds at once, and the list of such tasks."""

from datetime import timedelta

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.refresh.refresh_requests import MOST_OF_USER, RefreshRequest, request_statements
from rss_pipeline.storage.subscriptions.chosen import ALL, Scope
from rss_pipeline.storage.subscriptions.refreshes import (
    Requested,
    list_tasks,
    named_tasks,
    request_many,
    requested_of,
)
from rss_pipeline_tests.storage.subscriptions.readers import add_user, subscribe
from rss_pipeline_tests.storage.values import NOW, change, register, spec


@pytest.fixture(autouse=True)
def ann(database: Database) -> None:
    """Ann reads a, b and c, of which a and b are in a folder; ben reads b and d."""
    register(database, *map(spec, "abcd"))
    add_user(database, "ann")
    add_user(database, "ben")
    subscribe(database, "ann", "a", "b", folder="News")
    subscribe(database, "ann", "c")
    subscribe(database, "ben", "b", "d")


def ask(database: Database, user: str = "ann", scope: Scope = ALL) -> Requested:
    return requested_of(database.batch(request_many(user, scope, now=NOW))[-1])


def asked(database: Database) -> dict[str, str]:
    rows = database.query("SELECT feed_id, user_id FROM refresh_requests").rows
    return {row["feed_id"]: row["user_id"] for row in rows}


def names(database: Database, user: str, *, ago: timedelta = timedelta()) -> list[str]:
    [found] = database.batch([list_tasks(user, since=NOW - ago, now=NOW, limit=9)])
    return [str(task.row["feed_id"]) for task in named_tasks(found)]


def test_all_feeds_of_a_user_or_of_a_folder_are_requested_and_no_one_else_s(database: Database) -> None:
    assert ask(database, scope=Scope(folder="News")) == Requested(feeds=2, requested=2, held=0, off=0)
    assert asked(database) == {"a": "ann", "b": "ann"}
    assert ask(database).requested == 3
    assert asked(database) == {"a": "ann", "b": "ann", "c": "ann"}
    rows = database.query("SELECT id FROM refresh_requests").rows
    assert len({row["id"] for row in rows}) == 3
    assert {len(row["id"]) for row in rows} == {32}


def test_the_second_who_requests_joins_the_request_and_sees_its_task(database: Database) -> None:
    ask(database)
    assert ask(database, "ben") == Requested(feeds=2, requested=2, held=0, off=0)
    assert asked(database) == {"a": "ann", "b": "ann", "c": "ann", "d": "ben"}
    assert sorted(names(database, "ben")) == ["b", "d"]
    assert sorted(names(database, "ann")) == ["a", "b", "c"]


def test_held_hosts_and_feeds_that_are_off_are_not_requested_but_counted(database: Database) -> None:
    database.query(
        "INSERT INTO hosts (host, hold_until, reason) VALUES ('a.example', ?, '429')",
        [instant(NOW + timedelta(minutes=5))],
    )
    change(database, "UPDATE feeds SET enabled = 0 WHERE id = 'b'")
    assert ask(database) == Requested(feeds=3, requested=1, held=1, off=1)
    assert asked(database) == {"c": "ann"}


def test_one_user_requests_a_thousand_visits_an_hour_at_most(database: Database) -> None:
    change(
        database,
        f"""INSERT INTO refresh_requests (id, kind, user_id, feed_id, requested_at, requested_ms, state)
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {MOST_OF_USER - 2})
        SELECT 'r' || i, 'refresh', 'ann', 'x', ?, 0, 'done' FROM n""",
        instant(NOW),
    )
    change(database, "UPDATE feeds SET last_visited_at = '2026-01-01' WHERE id = 'b'")
    assert ask(database) == Requested(feeds=3, requested=2, held=0, off=0)
    assert {"a", "c"} < set(asked(database)), "the feed that was visited last waits"


def test_tasks_that_are_done_are_listed_last_and_no_longer_than_wished(database: Database) -> None:
    database.batch(
        request_statements(RefreshRequest(id="t", user_id="ann", feed_id="a", now=NOW - timedelta(minutes=9)))
    )
    change(database, "UPDATE refresh_requests SET state = 'done'")
    ask(database, scope=Scope(folder="News"))
    assert names(database, "ann") == ["a", "b"]
    assert names(database, "ann", ago=timedelta(hours=1)) == ["a", "b", "a"]
