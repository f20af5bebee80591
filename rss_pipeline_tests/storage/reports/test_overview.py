"""The rows of `status`, on both databases: health in a word, the newest item, and errors that feeds share."""

import json
from datetime import timedelta

import pytest

from rss_pipeline.collector.models.clock import instant, utc_now
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.forget import begin_forget
from rss_pipeline.storage.reports.figures import feed_figures
from rss_pipeline.storage.reports.overview import feed_health, overview, problems
from rss_pipeline_tests.storage.values import register, spec


@pytest.fixture
def known(database: Database) -> Database:
    """Feeds a to f: c to f fail, two of them alike but for their host."""
    register(database, *(spec(id) for id in "abcdef"))
    database.query("UPDATE feeds SET last_visited_at = next_fetch_at, host = id || '.example'")
    database.query(
        """UPDATE feeds SET consecutive_failures = 3, last_error_kind = 'dns',
        last_error = 'The name ' || host || ' does not resolve.' WHERE id IN ('c', 'd')"""
    )
    database.query(
        """UPDATE feeds SET consecutive_failures = 1, last_error_kind = 'gone', last_error = '410 Gone.'
        WHERE id = 'e'"""
    )
    database.query("UPDATE feeds SET warning = 'Doubtful.', warning_kinds = '[\"cut_off\"]' WHERE id = 'f'")
    return database


def test_each_feed_has_its_health_and_the_age_of_its_newest_item(known: Database) -> None:
    now = utc_now()
    soon, past, older = (instant(now + timedelta(days=days)) for days in (1, -1, -2))
    known.query("UPDATE feeds SET rhythm = ? WHERE id = 'a'", [json.dumps([soon, past, older])])
    known.query(
        """INSERT INTO items (id, feed_id, guid, pub_date, created_at, categories, enclosures, guid_source,
        pub_date_source) VALUES ('1', 'b', '1', ?1, ?1, '[]', '[]', 'guid', 'fetched')""",
        [older],
    )
    rows = feed_health(known)
    assert [row["id"] for row in rows] == ["c", "d", "e", "f", "a", "b"]
    assert {row["id"]: row["health"] for row in rows} == {
        **dict.fromkeys("ab", "ok"),
        **dict.fromkeys("cd", "failing"),
        "e": "gone",
        "f": "warning",
    }
    assert {row["id"]: (row["newest_item_at"], row["items"]) for row in rows if row["id"] in "abc"} == {
        "a": (past, 0),
        "b": (older, 1),
        "c": (None, 0),
    }
    assert {row["enabled"] for row in rows} == {True}
    assert [row["id"] for row in feed_health(known, limit=2)] == ["c", "d"]
    assert feed_health(known, feed_id="b") == [row for row in rows if row["id"] == "b"]


def test_a_feed_that_was_forgotten_half_way_is_in_no_report(known: Database) -> None:
    """Its row stays until its partition key has gone, which a killed process leaves to the next one."""
    known.query("UPDATE feeds SET registered = 0 WHERE id IN ('a', 'b')")
    begin_forget(known, "b")
    now = utc_now()
    assert {row["id"] for row in feed_health(known) if row["health"] == "unlisted"} == {"a"}
    assert feed_figures(known, now=now).by_state["unlisted"] == overview(known, now=now).unregistered == 1


def test_equal_errors_are_one_and_the_hosts_in_them_make_no_difference(known: Database) -> None:
    found, count = problems(known, limit=10, feeds=1)
    assert count == 3
    assert [(each.kind, each.sentence, each.count, list(each.feeds)) for each in found] == [
        ("dns", "The name <host> does not resolve.", 2, [("c", None, 3)]),
        ("gone", "410 Gone.", 1, [("e", None, 1)]),
        ("warning", "Doubtful.", 1, [("f", None, 0)]),
    ]
    known.query("UPDATE feeds SET registered = 0 WHERE id = 'd'")
    alone, _ = problems(known, limit=1, feeds=5)
    assert [(each.sentence, each.count) for each in alone] == [("The name c.example does not resolve.", 1)]
    known.query("UPDATE feeds SET enabled = 0")
    assert problems(known, limit=10, feeds=5) == ([], 0)
