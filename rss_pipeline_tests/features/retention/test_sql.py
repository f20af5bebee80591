"""Retention's statements, on SQLite and D1: what is due, what a slice reads, and what prevents it.

The whole of it, with faults, is features/retention/test_clean.py.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.features.retention import sql as retention
from rss_pipeline.features.retention.sql import Slice
from rss_pipeline.storage.backends.backend import Lifecycle
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.backups import expiry
from rss_pipeline.storage.backups.expiry import BackupAges, Expire, Renew, due_backups
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.objects import ObjectInfo
from rss_pipeline.storage.sql import compact
from rss_pipeline.storage.subscriptions.chosen import Filter
from rss_pipeline.storage.subscriptions.item_states import star_items
from rss_pipeline_tests.storage.subscriptions.conftest import two
from rss_pipeline_tests.storage.subscriptions.readers import arrive, chosen, guids
from rss_pipeline_tests.storage.subscriptions.readers import subscribe as subscribed
from rss_pipeline_tests.storage.values import NOW, change, item, register, spec, visit

__all__ = ["two"]

DAY = timedelta(days=1)


def fill(
    database: Database, feed_id: str, ages: Iterable[float], *, images: int = 0, keep_days: int | None = None
) -> list[str]:
    """A feed with an item of each of these ages in days, with images that are archived; the items' ids."""
    database.query(
        """INSERT INTO feeds (id, url, host, next_fetch_at, created_at, keep_days)
        VALUES (?, ?, 'h', 'x', 'x', ?)""",
        [feed_id, feed_id, keep_days],
    )
    ids = []
    rows = []
    for place, age in enumerate(ages):
        ids.append(f"{feed_id}-{place:05}")
        rows.append([ids[-1], feed_id, f"g{place}", instant(NOW - age * DAY)])
    database.batch(
        [
            Statement(
                """INSERT INTO items (id, feed_id, guid, created_at, pub_date, guid_source, pub_date_source)
                SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
                json_extract(value, '$[3]'), 'x', 'guid', 'feed' FROM json_each(?) WHERE true""",
                [compact(rows)],
            ),
            Statement(
                """WITH RECURSIVE n(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < ? - 1)
                INSERT INTO image_tasks (id, item_id, original_url, created_at, updated_at, host, position,
                  r2_key, bytes, status)
                SELECT value || '-' || CAST(n AS INTEGER), value, 'u', 'x', 'x', 'h', n,
                  'images/' || value || '/' || CAST(n AS INTEGER), 10, 'success'
                FROM json_each(?), n WHERE ? > 0""",
                [images, compact(ids), images],
            ),
        ]
    )
    return ids


def slices(database: Database) -> list[Slice]:
    return list(retention.due_slices(database, NOW, keep_days=180))


def due(database: Database) -> list[str]:
    return [id for part in slices(database) for id in part.items]


def retire_all(database: Database) -> set[str]:
    gone: set[str] = set()
    for part in retention.due_slices(database, NOW, keep_days=180):
        gone |= set(retention.retire(database, list(part.items), part.tasks, db_now=NOW))
    return gone


def count(database: Database, table: str) -> int:
    return int(database.query(f"SELECT count(*) AS n FROM {table}").rows[0]["n"])


def test_each_feed_has_its_own_age(database: Database) -> None:
    fill(database, "a", [0, 179, 180, 180.1, 400])
    fill(database, "b", [0, 29, 31, 400], keep_days=30)
    fill(database, "c", [0, 400, 30_000], keep_days=36_500)
    gone = fill(database, "d", [181, 3])
    change(database, "UPDATE feeds SET registered = 0 WHERE id = 'd'")
    assert due(database) == ["a-00004", "a-00003", "b-00003", "b-00002", gone[0]]
    assert retention.count_due(database, NOW, keep_days=180) == 5
    assert retire_all(database) == {"a-00004", "a-00003", "b-00003", "b-00002", gone[0]}
    assert due(database) == []
    assert count(database, "items") == 9


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_slices_meet_every_due_item_once_whatever_their_size(
    database: Database, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for id in "abcdef":
        # Many at the same instant: one document's items are.
        fill(database, id, [200] * 5 + [190] * (ord(id) % 4) + [10], images=2)
    every = sorted(due(database))
    monkeypatch.setattr(retention, "SLICE_ITEMS", size)
    found = slices(database)
    assert sorted(id for part in found for id in part.items) == every
    assert max(len(part.items) for part in found) <= size
    assert all(len(part.tasks) == 2 * len(part.items) for part in found)


def test_items_with_many_images_come_in_smaller_slices_and_one_with_very_many_in_parts(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "SLICE_TASKS", 5)
    fill(database, "a", [200] * 4, images=3)
    fill(database, "b", [200], images=12)
    found = slices(database)
    assert [(len(part.items), len(part.tasks), part.is_part) for part in found] == [
        (1, 3, False), (1, 3, False), (1, 3, False), (1, 3, False),
        (1, 5, True), (1, 5, True), (1, 2, False),
    ]  # fmt: skip
    assert len({task.id for part in found for task in part.tasks}) == 24


def test_no_statement_of_a_clean_reads_a_whole_table_of_items_or_images(sqlite: SqliteDatabase) -> None:
    asked: list[Statement] = []

    class Noting:
        def query(self, sql: str, params: Any = (), *, name: str = "") -> Any:
            asked.append(Statement(sql, params, name=name))
            return sqlite.query(sql, params, name=name)

        def batch(self, statements: Any) -> Any:
            asked.extend(statements)
            return sqlite.batch(statements)

        def close(self) -> None: ...

    fill(sqlite, "a", [200] * 3, images=1)
    noting: Database = Noting()
    retention.count_due(noting, NOW, keep_days=180)
    expiry.needed_backups(noting)
    for part in retention.due_slices(noting, NOW, keep_days=180):
        retention.drop_tasks(noting, part.tasks[:1])
        retention.retire(noting, list(part.items), part.tasks[1:])
    plans = [
        row["detail"]
        for statement in asked
        for row in sqlite.query(f"EXPLAIN QUERY PLAN {statement.sql}", statement.params).rows
    ]
    assert len(asked) >= 8
    scanned = {plan.split()[1] for plan in plans if plan.startswith("SCAN")}
    assert scanned <= {"feeds", "leases", "json_each", "(subquery-3)", "(subquery-7)"}, plans


def test_an_item_stays_with_its_tasks_where_one_changed_meanwhile(database: Database) -> None:
    a, b, c, d, e = fill(database, "a", [200] * 5, images=2)
    (part,) = slices(database)
    change(
        database,
        "INSERT INTO leases (token, run_id, expires_at, feeds, hosts)"
        " VALUES ('live', 'r', '2999-01-01T00:00:00Z', '[]', '[]')",
    )
    change(database, "UPDATE image_tasks SET lease_token = 'live' WHERE id = ?", f"{a}-0")
    change(database, "UPDATE image_tasks SET lease_token = 'dead' WHERE id = ?", f"{b}-0")
    change(database, "UPDATE image_tasks SET r2_key = 'another' WHERE id = ?", f"{c}-1")
    change(
        database,
        """INSERT INTO image_tasks (id, item_id, original_url, created_at, updated_at, host, position)
        VALUES ('added', ?, 'u', 'x', 'x', 'h', 2)""",
        d,
    )
    assert retention.retire(database, list(part.items), part.tasks) == (e,)
    assert count(database, "image_tasks") == 9
    assert database.query("SELECT guid FROM expired_items").rows == [{"guid": "g4"}]
    (again,) = slices(database)
    assert {task.item_id for task in again.tasks if task.is_live} == {a}
    assert {task.item_id for task in again.tasks if task.was_interrupted} == {b}
    assert set(retention.retire(database, [a, b, c, d], again.tasks)) == {b, c, d}
    assert due(database) == [a]


def test_earlier_versions_go_with_their_item(database: Database) -> None:
    old, new = fill(database, "a", [200, 1])
    for id in (old, old, new):
        change(
            database,
            """INSERT INTO item_versions (item_id, replaced_at, pub_date, categories, enclosures, guid_source,
            pub_date_source) VALUES (?, (SELECT 't' || count(*) FROM item_versions), 'x', '[]', '[]', 'guid',
            'feed')""",
            id,
        )
    (part,) = slices(database)
    assert part.versions == {old: 2}
    retire_all(database)
    assert database.query("SELECT item_id FROM item_versions").rows == [{"item_id": new}]


def test_what_was_retired_is_not_inserted_again_and_not_counted_as_new(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    large = item("large", content_html="x" * 1_200_000)
    assert visit(database, [item("1"), item("2"), large], at=NOW - 181 * DAY) == 3
    change(database, "UPDATE items SET arrived = NULL")
    assert visit(database, [item("3")], at=NOW - DAY) is not None
    assert len(retire_all(database)) == 3
    change(database, "UPDATE feeds SET reported_count = change_count")
    assert visit(database, [item("1"), item("2"), large, item("3"), item("4")], at=NOW) == 1
    assert visit(database, [item("1"), large], id="b", at=NOW) == 2, "another feed's guid is another item"
    rows = database.query("SELECT guid FROM items WHERE feed_id = 'a' ORDER BY guid").rows
    assert [row["guid"] for row in rows] == ["3", "4"]


def test_an_item_s_age_counts_from_the_later_of_its_fetch_and_its_arrival(database: Database) -> None:
    """A slow clock fetched it, a replay brought it in late, or it is from before there were arrivals."""
    slow, late, before, old = fill(database, "a", [400, 300, 200, 200])
    for id, days in ((slow, 1), (late, 179), (old, 181)):
        change(database, "UPDATE items SET arrived = ? WHERE id = ?", arrival(NOW - days * DAY), id)
    assert due(database) == [before, old]
    assert retention.count_due(database, NOW, keep_days=180) == 2
    fast = NOW + 2 * DAY
    assert retention.count_due(database, fast, keep_days=180) == 3
    assert retention.count_due(database, fast, keep_days=1) == 4


def arrival(at: datetime) -> int:
    return int(at.timestamp()) * 1_000_000


def test_feeds_without_a_known_keep_are_left_alone(database: Database) -> None:
    fill(database, "a", [400])
    unknown = fill(database, "b", [400, 30_000])
    change(database, "UPDATE feeds SET keep_unknown = 1 WHERE id = 'b'")
    assert due(database) == ["a-00000"]
    assert retention.count_due(database, NOW, keep_days=180) == 1
    change(database, "UPDATE feeds SET keep_unknown = 0 WHERE id = 'b'")
    assert set(due(database)) == {"a-00000", *unknown}


def info(key: str, days: float) -> ObjectInfo:
    """A backup put so many days ago."""
    return ObjectInfo(key=key, size=1, modified=NOW - days * DAY)


def ages(backup_days: int = 30, rule: Lifecycle | None = None) -> BackupAges:
    return BackupAges.of(backup_days=backup_days, rule=rule)


@pytest.mark.parametrize(
    ("backup_days", "rule", "expire", "renew"),
    [
        (30, None, 30, 15),
        (90, None, 90, 45),
        (7, None, 7, 3.5),
        (30, Lifecycle(), 30, 15),
        (30, Lifecycle(days=60), 30, 15),
        (30, Lifecycle(days=30), None, 15),
        (30, Lifecycle(days=14), None, 7),
        (30, Lifecycle(days=90), 30, 15),
        (90, Lifecycle(unread="AccessDenied"), 90, 15),
    ],
)
def test_the_ages_at_which_backups_go_and_are_put_again(
    backup_days: int, rule: Lifecycle | None, expire: float | None, renew: float
) -> None:
    found = ages(backup_days, rule)
    assert found.expire == (None if expire is None else expire * DAY)
    assert found.renew == renew * DAY


FEEDS = st.sampled_from(["a", "a-b", "ab", "unknown"])
BACKUPS = st.dictionaries(st.tuples(FEEDS, st.integers(10, 99)), st.floats(0, 100), max_size=40)


@given(backups=BACKUPS, came_from=st.integers(10, 99))
def test_of_each_feed_the_newest_backup_and_its_newest_item_s_stay(
    backups: dict[tuple[str, int], float], came_from: int
) -> None:
    listed = sorted((info(f"backups/{id}/{n}.xml", days) for (id, n), days in backups.items()), key=_key)
    needed: dict[str, str | None] = {"a": f"backups/a/{came_from}.xml", "a-b": None, "ab": None}
    done = list(due_backups(iter(listed), needed, now=NOW, ages=ages()))
    expired = {one.info.key for one in done if isinstance(one, Expire)}
    renewed = {one.info.key for one in done if isinstance(one, Renew)}
    for id in ("a", "a-b", "ab", "unknown"):
        of_it = [each for each in listed if each.key.startswith(f"backups/{id}/")]
        kept = {*(each.key for each in of_it[-1:]), needed.get(id)}
        for each in of_it:
            age = NOW - each.modified
            assert (each.key in expired) == (id != "unknown" and each.key not in kept and age > 30 * DAY)
            assert (each.key in renewed) == (id != "unknown" and each.key in kept and age > 15 * DAY)


def _key(each: ObjectInfo) -> str:
    return each.key


def test_a_stranger_s_file_is_no_feed_s_newest_backup_and_stays() -> None:
    listed = [info("backups/a/2026.xml", 60), info("backups/a/notes.txt", 60), info("backups/read.me", 60)]
    assert list(due_backups(listed, {"a": None}, now=NOW, ages=ages())) == [Renew(listed[0])]


def test_a_rule_of_the_bucket_that_does_it_leaves_us_to_put_again_only() -> None:
    listed = [info(f"backups/a/{n}.xml", 60 - n) for n in range(10, 20)]
    done = list(due_backups(listed, {"a": None}, now=NOW, ages=ages(30, Lifecycle(days=30))))
    assert done == [Renew(listed[-1])]


@pytest.mark.parametrize("days_off", [14, 21, 40])
def test_newest_backups_outlive_a_daemon_that_is_off_for_weeks(days_off: int) -> None:
    """By a rule of 60 days: a clean each day, a pause that begins on any of them, and cleans again."""
    for begin in range(30, 70):
        put_at, rule = NOW, Lifecycle(days=60)
        for day in [*range(begin), *range(begin + days_off, 200)]:
            now = NOW + day * DAY
            assert now - put_at < timedelta(days=60), "the bucket has deleted it"
            listed = [ObjectInfo(key="backups/a/1.xml", size=1, modified=put_at)]
            done = due_backups(listed, {"a": None}, now=now, ages=ages(30, rule))
            if any(isinstance(one, Renew) for one in done):
                put_at = now


def test_needed_backups_names_every_feed_and_its_newest_item_s_backup(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry, "_PAGE", 2)
    register(database, *(spec(id) for id in "abc"))
    visit(database, [item("1")], at=NOW - DAY)
    visit(database, [item("2"), item("1")], at=NOW)
    assert expiry.needed_backups(database) == {
        "a": f"backups/a/{instant(NOW)}.xml", "b": None, "c": None
    }  # fmt: skip


def test_an_item_that_somebody_starred_is_not_retired(two: Database) -> None:
    subscribed(two, "ann", "a")
    arrive(two, "a", "1", "2")
    two.batch(star_items("ann", chosen(two, "a", ["1"]), at=NOW))
    change(two, "UPDATE items SET arrived = arrived - 31536000000000")
    change(two, "UPDATE item_states SET arrived = arrived - 31536000000000")
    due = {
        guid
        for slice in retention.due_slices(two, NOW + timedelta(days=400), keep_days=1)
        for id in slice.items
        for guid in [row["guid"] for row in two.query("SELECT guid FROM items WHERE id = ?", [id]).rows]
    }
    assert due == {"2"}
    ids = [row["id"] for row in two.query("SELECT id FROM items").rows]
    assert len(retention.retire(two, ids, [])) == 1, "starred after the list of due items was read"
    assert guids(two, "ann", Filter()) == ["1"]
