"""The index follows the database, whatever happens to either."""

import random
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from rss_pipeline.features.search import index_build as build
from rss_pipeline.features.search import index_file, sql, writing
from rss_pipeline.features.search.index_build import IndexWork, bring_up_to_date, is_behind
from rss_pipeline.features.search.index_file import (
    SLOTS,
    IndexBroken,
    SearchUnavailable,
    open_to_read,
    open_to_write,
)
from rss_pipeline.storage.feeds.forget import begin_forget, end_forget
from rss_pipeline.storage.items import items
from rss_pipeline_tests.features.search.conftest import Library, new_library
from rss_pipeline_tests.storage.values import NOW, change, item, retire
from rss_pipeline_tests.support.databases import migrated


def repair(library: Library, feed: str, guid: str, content: str, *, minutes: int = 1) -> None:
    """Rewrite an item, as `replay --repair` does."""
    replay = pytest.importorskip("rss_pipeline.features.replay.sql")
    [row] = library.database.query("SELECT backup_key FROM items WHERE guid = ?", [guid]).rows
    known = items.known_rows(items.item_rows(feed, [item(guid, content_html=content)], fetched_at=NOW))
    at = NOW + timedelta(minutes=minutes)
    assert replay.repair(library.database, known.values(), feed_id=feed, backup_key=row["backup_key"], now=at)


def documents_of(library: Library) -> int:
    return sum(writing.count(library.file, each) for each in writing.generations(library.file))


def test_what_came_in_is_found_after_the_next_look(library: Library) -> None:
    library.arrive("news", "1", "early")
    assert is_behind(library.file, library.database)
    assert library.index() == IndexWork(added=1, rebuilt=True)
    assert not is_behind(library.file, library.database)
    library.arrive("news", "2", "late")
    assert is_behind(library.file, library.database)
    assert library.index() == IndexWork(added=1)
    assert library.index() == IndexWork()
    assert (library.found("early"), library.found("late")) == (["1"], ["2"])


def test_an_index_that_is_current_reads_two_rows_and_writes_nothing(library: Library) -> None:
    library.arrive("news", "1", "word")
    library.index()
    before = library.file.path.with_name("search.sqlite-wal").stat()
    library.index()
    assert library.file.path.with_name("search.sqlite-wal").stat().st_mtime_ns == before.st_mtime_ns


def test_items_are_found_also_where_some_come_in_while_it_is_built(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "PAGE_ITEMS", 2)
    monkeypatch.setattr(build, "TRANSACTION_BYTES", 1)
    for guid in map(str, range(7)):
        library.arrive("news", guid, "word")
    looks = iter([False, False, False, True])
    done = bring_up_to_date(library.file, library.database, now=NOW, is_over=lambda: next(looks, True))
    assert 0 < done.added < 7
    page = library.search("word")
    assert len(page.found) == done.added
    assert page.left_out == ("The index is being built: the newest items are not in it yet.",)
    library.arrive("news", "7", "word")
    library.index()
    assert library.found("word") == list("76543210")


def test_the_new_text_of_an_item_replaces_the_old_one(library: Library) -> None:
    for guid in "123":
        library.arrive("news", guid, f"old{guid} common")
    library.index()
    repair(library, "news", "2", "new2 common")
    assert is_behind(library.file, library.database)
    assert library.index() == IndexWork(replaced=1)
    assert library.found("old2") == []
    assert library.found("new2") == ["2"]
    assert library.found("common") == ["3", "2", "1"]
    assert library.index() == IndexWork()


def test_an_item_may_have_more_versions_than_slots(library: Library) -> None:
    library.arrive("news", "1", "text common")
    library.arrive("news", "2", "other common")
    library.index()
    for n in range(SLOTS + 2):
        repair(library, "news", "1", f"version{n} common", minutes=n)
        library.index()
    library.index()
    assert library.found(f"version{SLOTS + 1}") == ["1"]
    assert library.found("version3") == []
    assert library.found("common") == ["2", "1"]
    assert len(writing.generations(library.file)) == 1


def test_a_version_is_seen_also_after_the_last_ones_went_with_their_items(library: Library) -> None:
    library.arrive("news", "1", "first")
    library.arrive("blog", "2", "second")
    library.index()
    repair(library, "blog", "2", "rewritten")
    library.index()
    # The row number of this version is given again.
    change(library.database, "DELETE FROM item_versions")
    change(library.database, "DELETE FROM items WHERE guid = '2'")
    repair(library, "news", "1", "changed", minutes=2)
    library.index()
    assert library.found("changed") == ["1"]
    assert library.found("first") == []


def test_what_retention_removed_is_not_shown_and_leaves_the_index(library: Library) -> None:
    for guid in "123":
        library.arrive("news", guid, "word")
    library.index()
    [row] = library.database.query("SELECT id FROM items WHERE guid = '2'").rows
    retire(library.database, row["id"])
    assert library.found("word") == ["3", "1"]
    assert documents_of(library) == 3
    assert bring_up_to_date(library.file, library.database, now=NOW + timedelta(days=2)).dropped == 1
    assert documents_of(library) == 2
    assert library.found("word", limit=1) == ["3", "1"]


def test_a_page_is_filled_although_items_of_it_are_gone(library: Library) -> None:
    for guid in map(str, range(8)):
        library.arrive("news", guid, "word")
    library.index()
    change(library.database, "DELETE FROM items WHERE guid IN ('7', '6')")
    assert [each.item.title for each in library.search("word", limit=3).found] == [
        "Title of 5",
        "Title of 4",
        "Title of 3",
    ]


def test_a_forgotten_feed_leaves_the_index(library: Library) -> None:
    library.arrive("news", "1", "word")
    library.arrive("blog", "2", "word")
    library.index()
    change(library.database, "DELETE FROM subscriptions WHERE feed_id = 'blog'")
    begin_forget(library.database, "blog")
    end_forget(library.database, "blog")
    assert library.found("word") == ["1"]
    bring_up_to_date(library.file, library.database, now=NOW + timedelta(days=2))
    assert documents_of(library) == 1


def test_items_that_a_replay_brings_in_are_found(library: Library) -> None:
    replay = pytest.importorskip("rss_pipeline.features.replay.sql")
    library.arrive("news", "1", "word")
    library.index()
    chunks = list(
        items.item_rows("news", [item("0", content_html="word")], fetched_at=NOW - timedelta(days=9))
    )
    replay.insert(
        library.database, chunks, feed_id="news", fetched_at=NOW - timedelta(days=9), backup_key="backups/x"
    )
    library.index()
    assert library.found("word") == ["0", "1"]


def test_restored_items_are_found_once(library: Library) -> None:
    library.arrive("news", "1", "word")
    library.arrive("news", "2", "word")
    library.index()
    # A restore gives new numbers.
    change(library.database, "UPDATE items SET arrived = arrived + 1000000")
    change(library.database, "UPDATE sequences SET value = value + 1000000")
    library.index()
    assert library.found("word") == ["2", "1"]
    bring_up_to_date(library.file, library.database, now=NOW + timedelta(days=2))
    assert documents_of(library) == 2


def test_too_many_dead_slots_begin_a_rebuild(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_FEW_DEAD", 0)
    for guid in map(str, range(10)):
        library.arrive("news", guid, "word")
    library.index()
    change(library.database, "DELETE FROM items WHERE guid < '5'")
    later = NOW + timedelta(days=2)
    bring_up_to_date(library.file, library.database, now=later)
    assert len(writing.generations(library.file)) == 2
    assert is_behind(library.file, library.database)
    assert bring_up_to_date(library.file, library.database, now=later).rebuilt
    [generation] = writing.generations(library.file)
    assert (generation.dead, writing.count(library.file, generation)) == (0, 5)
    assert library.found("word") == list("98765")


def test_the_old_index_serves_and_follows_until_the_new_one_is_built(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "PAGE_ITEMS", 1)
    monkeypatch.setattr(build, "TRANSACTION_BYTES", 1)
    for guid in "123":
        library.arrive("news", guid, "word")
    library.index()
    writing.rebuild(library.file)
    library.arrive("news", "4", "word")
    # The four of the old generation, and two of the new one.
    looks = iter([False] * 6)
    bring_up_to_date(library.file, library.database, now=NOW, is_over=lambda: next(looks, True))
    assert len(writing.generations(library.file)) == 2
    assert library.found("word") == list("4321")
    assert library.search("word").left_out == ()
    assert library.index().rebuilt
    assert len(writing.generations(library.file)) == 1
    assert library.found("word") == list("4321")
    assert library.file.rows("SELECT name FROM sqlite_master WHERE name IN ('words_1', 'documents_1')") == []


def test_an_index_that_is_missing_an_item_is_built_anew(library: Library) -> None:
    library.arrive("news", "1", "word")
    library.arrive("news", "2", "word")
    library.index()
    with library.file.writing() as connection:
        connection.execute("DELETE FROM documents_1 WHERE slot = 0")
    assert library.found("word") == ["2"]
    bring_up_to_date(library.file, library.database, now=NOW + timedelta(days=2))
    library.index()
    assert library.found("word") == ["2", "1"]


def test_the_index_of_another_database_is_thrown_away(library: Library, tmp_path: Path) -> None:
    library.arrive("news", "1", "word")
    library.index()
    other = migrated(tmp_path / "other.sqlite")
    change(other, "UPDATE schema_migrations SET applied_at = '2020-01-01T00:00:00Z'")
    there = new_library(other, library.file)
    there.arrive("news", "elsewhere", "thing")
    there.index()
    assert there.found("thing") == ["elsewhere"]
    assert there.found("word") == []
    assert documents_of(there) == 1
    other.close()


@pytest.mark.parametrize("damage", [b"this is no database", b"", None])
def test_a_damaged_file_is_built_again(library: Library, damage: bytes | None) -> None:
    library.arrive("news", "1", "word")
    library.index()
    path = library.file.path
    library.file.close()
    if damage is None:
        index_file.throw_away(path)
    else:
        path.with_name("search.sqlite-wal").unlink(missing_ok=True)
        path.write_bytes(damage * 300)
    # The error keeps what the function had.
    with pytest.raises(SearchUnavailable) as _refused:
        open_to_read(path)
    assert str(path) not in {each.path for each in psutil.Process().open_files()}
    with open_to_write(path) as file:
        again = Library(library.database, file)
        again.index()
        assert again.found("word") == ["1"]


def test_changed_bytes_that_no_search_comes_across_are_noticed_at_the_next_start(
    library: Library, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(300):
        library.arrive("news", str(number), f"word number{number} " * 20)
    library.index()
    path = library.file.path
    library.file.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    library.file.close()
    with open_to_write(path):
        pass
    body, chance = bytearray(path.read_bytes()), random.Random(3)
    for _ in range(40):
        body[chance.randrange(len(body) // 2, len(body))] ^= 0xFF
    path.write_bytes(body)
    monkeypatch.setattr(index_file, "_START", "the next one")
    with open_to_write(path) as file:
        again = Library(library.database, file)
        assert again.index().added == 300
        assert again.found("number7") == ["7"]
    [line] = caplog.messages
    assert "the search index is damaged" in line


def test_one_that_shows_its_damage_in_use_is_deleted_and_built_at_the_next_look(library: Library) -> None:
    library.index()
    path = library.file.path
    with pytest.raises(IndexBroken), open_to_write(path):
        raise IndexBroken("the search index is damaged")
    with open_to_write(path) as file:
        assert Library(library.database, file).found("word") == []


def test_a_file_of_another_version_is_built_again(library: Library) -> None:
    library.arrive("news", "1", "word")
    library.index()
    writing.set_state(library.file, "format", "0")
    with open_to_write(library.file.path) as file:
        again = Library(library.database, file)
        assert again.index().added == 1


def test_a_file_that_was_deleted_is_noticed(library: Library) -> None:
    library.index()
    file = open_to_read(library.file.path)
    assert file.is_current()
    index_file.throw_away(library.file.path)
    assert not file.is_current()
    file.close()


def test_without_fts5_a_sentence_says_what_to_do(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_file, "has_fts5", lambda: False)
    for opened in (open_to_read, lambda path: open_to_write(path).__enter__()):
        with pytest.raises(SearchUnavailable, match="FTS5"):
            opened(library.file.path)


def test_two_processes_at_once_write_each_item_once(library: Library) -> None:
    for guid in "12":
        library.arrive("news", guid, "word")
    ends = sql.ends(library.database)
    [generation] = writing.generations(library.file)
    found = sql.behind(library.database, 0, up_to=ends.arrived)
    ready = [build._document(each) for each in found]
    with open_to_write(library.file.path) as other:
        assert writing.add(other, generation, ready, arrived=ends.arrived)
    assert not writing.add(library.file, generation, ready, arrived=ends.arrived)
    assert documents_of(library) == 2


_KILLED = """
import os
import signal
import sys
from pathlib import Path
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.features.search import index_build as build
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.features.search import index_file, sql
sql.PAGE_ITEMS = 20
build.TRANSACTION_BYTES = 4_000
left = int(sys.argv[3])

def die():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return 0

with index_file.open_to_write(Path(sys.argv[2])) as file:
    file._connection.set_progress_handler(die, 100)
    build.bring_up_to_date(file, SqliteDatabase(Path(sys.argv[1])), now=utc_now())
"""


@pytest.mark.slow
def test_a_build_that_is_killed_again_and_again_goes_on(library: Library) -> None:
    database, file = library.database, library.file
    wanted = 3_000
    library.arrive("news", "first", "word")
    database.query(
        f"""WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {wanted - 1})
        INSERT INTO items (id, feed_id, guid, title, pub_date, content_html, created_at, guid_source,
          pub_date_source, arrived)
        SELECT printf('%032x', n), 'news', n, 'Item ' || n, pub_date, 'word number' || n, created_at,
          guid_source, pub_date_source, arrived + n FROM n, items WHERE items.guid = 'first'"""
    )
    change(database, f"UPDATE sequences SET value = value + {wanted - 1}")

    def indexed() -> int:
        return sum(writing.count(file, each) for each in writing.generations(file))

    # After so many hundreds of steps of SQLite; all of the build takes some 1,200.
    for hundreds in ("120", "170", "210", "260"):
        command = [sys.executable, "-c", _KILLED, str(database.path), str(file.path), hundreds]  # type: ignore[attr-defined]
        killed = subprocess.run(command, check=False)
        assert killed.returncode == -signal.SIGKILL
    assert 0 < indexed() < wanted
    library.index()
    assert indexed() == wanted
    assert len(library.found("word")) == wanted
    assert library.found("number7") == library.found('"item 7"')
