"""Rows as released code wrote them, after the migrations that came later: decisions stay as they were.

That migrations run once, and never onto a database ahead of the code, is in test_schema.py.
"""

import json

import pytest

from rss_pipeline.storage import schema
from rss_pipeline.storage.accounts import users
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import feeds
from rss_pipeline.storage.images.claims import claim_images
from rss_pipeline.storage.reports import health
from rss_pipeline_tests.storage.values import HOUR, NOW, claim_one, feed_row, unchanged

OLD_ROWS = (
    """INSERT INTO feeds (id, url, host, next_fetch_at, created_at, last_fetched_at, schedule_reason) VALUES
      ('postponed', 'https://a.example/', 'a.example', '2026-02-18T08:00:00Z', '2026-01-01T00:00:00Z',
        '2026-02-18T07:00:00Z', 'our network was down: 5 min'),
      ('failing', 'https://b.example/', 'b.example', '2026-02-18T08:00:00Z', '2026-01-01T00:00:00Z',
        '2026-02-18T07:00:00Z', 'failure 1 in a row (timeout): 30 min'),
      ('new', 'https://c.example/', 'c.example', '2026-02-18T08:00:00Z', '2026-01-01T00:00:00Z',
        NULL, NULL)""",
    """INSERT INTO items (id, feed_id, guid, pub_date, created_at, guid_source, pub_date_source) VALUES
      ('i', 'postponed', 'g', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z', 'guid', 'feed')""",
    """INSERT INTO image_tasks
      (id, item_id, original_url, status, attempts, last_error, created_at, updated_at, host, position) VALUES
      ('1', 'i', 'https://x.example/1', 'pending', 0, 'our own network was down: no route',
        '2026-01-01T00:00:00Z', '2026-02-18T08:00:00Z', 'x.example', 0),
      ('2', 'i', 'https://x.example/2', 'pending', 1, 'status 503: our own network was down',
        '2026-01-01T00:00:00Z', '2026-02-18T08:00:00Z', 'x.example', 1),
      ('3', 'i', 'https://x.example/3', 'pending', 0, NULL,
        '2026-01-01T00:00:00Z', '2026-02-18T08:00:00Z', 'x.example', 2),
      ('4', 'i', 'https://x.example/4', 'failed', 3, 'status 404',
        '2026-01-01T00:00:00Z', '2026-02-18T08:00:00Z', 'x.example', 3)""",
)


@pytest.fixture
def migrated(empty_database: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A database that was at schema 8 when these rows were written, brought up to this code's."""
    with monkeypatch.context() as patched:
        released = [migration for migration in schema.migrations() if migration.version <= 8]
        patched.setattr(schema, "migrations", lambda: released)
        schema.migrate(empty_database)
    for rows in OLD_ROWS:
        empty_database.query(rows)
    empty_database.query("UPDATE feeds SET warning = 'unstable guids: 9 of 9' WHERE id = 'failing'")
    for id, age in (("postponed", 7200), ("failing", 10**9)):
        empty_database.query(
            "UPDATE feeds SET last_success_at = last_fetched_at, max_age = ? WHERE id = ?", [age, id]
        )
    applied = schema.migrate(empty_database)
    assert applied[0] == "0009_kinds.sql"
    return empty_database


def test_a_feed_that_an_outage_postponed_before_the_migration_is_known_as_such(migrated: Database) -> None:
    kinds = {id: feed_row(migrated, id)["schedule_kind"] for id in ("postponed", "failing", "new")}
    assert kinds == {"postponed": "our_outage", "failing": None, "new": None}
    assert feeds.not_our_outage(migrated, list(kinds), answered=True) == {"postponed"}
    assert feeds.not_our_outage(migrated, list(kinds), answered=False) == frozenset()


def test_what_the_publisher_wanted_before_the_migration_holds_after_it(migrated: Database) -> None:
    found = {id: feed_row(migrated, id)["not_before"] for id in ("postponed", "failing", "new")}
    assert found == {"postponed": "2026-02-18T09:00:00Z", "failing": "2026-02-19T07:00:00Z", "new": None}


def test_a_warning_from_before_the_migration_is_of_the_only_kind_there_was(migrated: Database) -> None:
    assert [row["feed"] for row in health.unstable(migrated).rows] == ["failing"]
    assert feed_row(migrated, "new")["warning_kinds"] is None


def test_an_image_that_an_outage_postponed_before_the_migration_is_known_as_such(migrated: Database) -> None:
    tasks = claim_images(migrated, now=NOW, run_id="r", lease_seconds=180, limit=10).tasks
    postponed = {task.id: task.postponed_at is not None for task in tasks}
    assert postponed == {"1": True, "2": False, "3": False}


def test_the_first_document_of_a_feed_from_before_the_migration_is_that_of_its_oldest_item(
    migrated: Database,
) -> None:
    first = {id: feed_row(migrated, id)["first_stored_at"] for id in ("postponed", "new")}
    assert first == {"postponed": "2026-01-01T00:00:00Z", "new": None}


def test_an_item_that_goes_leaves_its_streams(migrated: Database) -> None:
    migrated.query("INSERT INTO item_streams (feed_id, stream, item_id) VALUES ('postponed', 'one', 'i')")
    migrated.query("DELETE FROM image_tasks")
    migrated.query("DELETE FROM items")
    assert migrated.query("SELECT * FROM item_streams").rows == []


def test_the_next_visit_that_goes_well_ends_an_outage(migrated: Database) -> None:
    feed, token = claim_one(migrated, "postponed", now=NOW + HOUR)
    assert unchanged(migrated, feed, token)
    assert feed_row(migrated, "postponed")["schedule_kind"] == "interval"
    assert feeds.not_our_outage(migrated, ["postponed"], answered=True) == frozenset()


def test_who_is_there_before_a_second_order_of_items_keeps_the_first(
    empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        released = [migration for migration in schema.migrations() if migration.version < 35]
        patched.setattr(schema, "migrations", lambda: released)
        schema.migrate(empty_database)
    for name, preferences in (("ann", "{}"), ("bob", '{"order":"oldest","theme":"dark"}')):
        empty_database.query(
            "INSERT INTO users (id, name, password_hash, preferences, created_at) VALUES (?, ?, 'x', ?, ?)",
            [name, name, preferences, "2026-01-01T00:00:00Z"],
        )
    schema.migrate(empty_database)
    users.insert(empty_database, id="cyd", name="cyd", password_hash="x", now=NOW)
    rows = empty_database.query("SELECT id, preferences FROM users ORDER BY id").rows
    found = {row["id"]: json.loads(row["preferences"]) for row in rows}
    assert found == {
        "ann": {"order": "newest"},
        "bob": {"order": "oldest", "theme": "dark"},
        "cyd": {"order": "published"},
    }
