"""The users with a state that is backed up, and when; that a kill, a removal or a clean at any moment does no
harm."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rss_pipeline.reader.user_backups import (
    back_up_all,
    back_up_user,
    back_up_users,
)
from rss_pipeline.storage.accounts import user_rows as users
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.backups.user_states import (
    KeptMarks,
    KeptStars,
    parts_of,
    put_state,
    user_key,
)
from rss_pipeline.storage.subscriptions.chosen import EVERYTHING, Chosen, Scope, Shown
from rss_pipeline.storage.subscriptions.item_states import mark_items, mark_shown, star_items
from rss_pipeline.storage.subscriptions.kept_states import read_state
from rss_pipeline_tests.storage.subscriptions import readers
from rss_pipeline_tests.storage.values import NOW, register, spec
from rss_pipeline_tests.support.databases import migrated

USERS = ("ann", "bob")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    """Two users of one feed, with changes."""
    database = migrated(tmp_path / "rss.sqlite")
    register(database, spec("a"))
    for user in USERS:
        readers.add_user(database, user)
        readers.subscribe(database, user, "a")
    yield database
    database.close()


@pytest.fixture
def objects(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "objects")


def keys(objects: FolderStore) -> list[str]:
    return [info.key for info in objects.list("")]


def touch(database: SqliteDatabase, user: str) -> None:
    database.query("UPDATE users SET state_version = state_version + 1 WHERE id = ?", [user])


def never() -> bool:
    return False


def test_only_users_with_changes_are_backed_up_and_once(
    database: SqliteDatabase, objects: FolderStore
) -> None:
    changed = users.to_back_up(database)
    assert sorted(changed) == list(USERS)
    assert back_up_users(database, objects, changed, now=NOW, is_over=never).written == 2
    assert keys(objects) == [user_key(user) for user in USERS]
    assert users.to_back_up(database) == []
    touch(database, "bob")
    assert users.to_back_up(database) == ["bob"]


def test_what_is_not_reached_in_time_is_left_for_the_next_call(
    database: SqliteDatabase, objects: FolderStore
) -> None:
    done = back_up_users(database, objects, USERS, now=NOW, is_over=iter([False, True]).__next__)
    assert (done.written, done.left) == (1, 1)
    assert users.to_back_up(database) == ["bob"]


def test_a_backup_that_was_killed_before_its_mark_is_written_again_with_the_same_bytes(
    database: SqliteDatabase, objects: FolderStore
) -> None:
    found = read_state(database, "ann", now=NOW)
    assert found is not None
    put_state(objects, "ann", [found[0], *found[1]])
    before = objects.get(user_key("ann"))
    assert "ann" in users.to_back_up(database)
    assert back_up_user(database, objects, "ann", now=NOW)
    after = objects.get(user_key("ann"))
    assert before is not None
    assert after is not None
    assert before[0] == after[0]


def test_a_change_during_a_backup_is_backed_up_by_the_next(database: SqliteDatabase, tmp_path: Path) -> None:
    class Changing(FolderStore):
        def put(self, *args, **options) -> bool:  # type: ignore[no-untyped-def]
            touch(database, "ann")
            return super().put(*args, **options)

    store = Changing(tmp_path / "objects")
    assert back_up_user(database, store, "ann", now=NOW)
    assert "ann" in users.to_back_up(database)


def test_a_user_who_is_removed_during_a_backup_leaves_none(
    database: SqliteDatabase, objects: FolderStore, tmp_path: Path
) -> None:
    class Removing(FolderStore):
        def put(self, *args, **options) -> bool:  # type: ignore[no-untyped-def]
            database.batch([users.remove("ann")])
            return super().put(*args, **options)

    assert not back_up_user(database, Removing(tmp_path / "objects"), "ann", now=NOW)
    assert keys(objects) == []


def test_a_user_with_an_unfinished_restore_does_not_replace_the_backup(
    database: SqliteDatabase, objects: FolderStore
) -> None:
    database.query("UPDATE users SET backed_up_version = -1 WHERE id = 'ann'")
    assert back_up_all(database, objects, now=NOW, is_over=never).written == 1
    assert not back_up_user(database, objects, "ann", now=NOW)
    assert keys(objects) == [user_key("bob")]


@pytest.mark.slow
def test_many_items_are_named_in_lines_of_some_thousand_each_once(
    database: SqliteDatabase, objects: FolderStore
) -> None:
    readers.arrive(database, "a", "first")
    columns = [row["name"] for row in database.query("SELECT name FROM pragma_table_info('items')").rows]
    made = {"id": "printf('%032x', n)", "guid": "'g' || n", "arrived": "arrived + n"}
    database.query(
        f"""INSERT INTO items ({", ".join(columns)})
        WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 23999)
        SELECT {", ".join(made.get(name, name) for name in columns)} FROM items, c WHERE guid = 'first'"""
    )
    ids = [row["id"] for row in database.query("SELECT id FROM items ORDER BY arrived").rows]
    # Ann has read the older half; Bob every second one, and the last 100.
    number = database.query("SELECT arrived FROM items WHERE id = ?", [ids[11_999]]).rows[0]["arrived"]
    database.batch(mark_shown("ann", Shown(up_to=int(number))))
    database.batch(star_items("ann", Chosen.by_ids(ids[:6_000]), at=NOW))
    database.batch(mark_items("bob", Chosen.by_ids(ids[::2]), is_read=True))
    database.batch(mark_items("bob", Chosen.by_ids(ids[-100:]), is_read=True))
    database.batch(mark_shown("bob", Shown(scope=Scope(feed_id="none"), up_to=EVERYTHING)))

    for user, is_read, expected in (("ann", False, set(ids[12_000:])), ("bob", False, set(ids[1:-100:2]))):
        assert back_up_user(database, objects, user, now=NOW)
        found = objects.get(user_key(user))
        assert found is not None
        parts = list(parts_of(user_key(user), found[0]))
        marks = [part for part in parts if isinstance(part, KeptMarks)]
        named = [id for part in marks if part.is_read is is_read for id in part.ids]
        assert len(named) == len(set(named))
        assert set(named) == expected
        assert max(len(part.ids) for part in marks) <= 5_000
        stars = [star for part in parts if isinstance(part, KeptStars) for star in part.stars]
        assert len(stars) == (6_000 if user == "ann" else 0)
