"""The embedded database's own errors: each is reported in a sentence with the path and what to do."""

import os
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from rss_pipeline.errors import DatabaseUnavailable, StorageRejected
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Statement
from rss_pipeline_tests.storage.conftest import nobody
from rss_pipeline_tests.support.waiting import PATIENCE, PROMPT, soon


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rss.sqlite"


@pytest.fixture
def notes(path: Path) -> Iterator[SqliteDatabase]:
    database = SqliteDatabase(path, busy_timeout=0.05)
    database.query("CREATE TABLE notes (id TEXT PRIMARY KEY, text TEXT)")
    yield database
    database.close()


def trouble(database: SqliteDatabase, sql: str = "INSERT INTO notes (id) VALUES ('1')") -> str:
    with pytest.raises(DatabaseUnavailable) as caught:
        database.query(sql)
    return str(caught.value)


def trouble_opening(path: Path) -> str:
    with pytest.raises(DatabaseUnavailable) as caught:
        SqliteDatabase(path, busy_timeout=0.05)
    return str(caught.value)


def test_readers_and_a_writer_do_not_wait_for_each_other_and_references_hold(notes: SqliteDatabase) -> None:
    assert notes.query("SELECT * FROM pragma_journal_mode").rows == [{"journal_mode": "wal"}]
    assert notes.query("SELECT * FROM pragma_foreign_keys").rows == [{"foreign_keys": 1}]
    assert notes.query("SELECT * FROM pragma_cache_size").rows == [{"cache_size": -4_000}]


def test_what_undoes_a_statement_is_in_memory_for_the_inserts_of_visits_alone(notes: SqliteDatabase) -> None:
    def is_in_memory() -> bool:
        return notes.query("SELECT * FROM pragma_temp_store").rows == [{"temp_store": 2}]

    insert = "INSERT INTO notes (id) VALUES (?)"
    notes.batch([Statement(insert, ["1"]), Statement(insert, ["2"], planned_once=True)])
    assert is_in_memory()
    notes.batch([Statement(insert, ["3"])])
    assert not is_in_memory()
    notes.batch([Statement(insert, ["4"], planned_once=True)])
    notes.compact()
    assert not is_in_memory()


def test_folders_above_the_file_are_made(tmp_path: Path) -> None:
    SqliteDatabase(tmp_path / "not" / "yet" / "rss.sqlite").close()
    assert (tmp_path / "not" / "yet" / "rss.sqlite").is_file()


def test_a_lock_held_elsewhere_is_named(notes: SqliteDatabase, path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    text = trouble(notes)
    assert notes.query("SELECT count(*) AS n FROM notes").rows == [{"n": 0}]
    other.close()
    assert str(path) in text
    assert "another process holds the write lock; end it or wait" in text
    assert notes.query("INSERT INTO notes (id) VALUES ('1')").changes == 1


@pytest.mark.parametrize("for_requests", [False, True])
def test_a_read_waits_for_no_write_of_another_thread(path: Path, for_requests: bool) -> None:
    """The write waits for the lock of another process. It ends in time all the same."""
    with (
        closing(SqliteDatabase(path, busy_timeout=PROMPT, for_requests=for_requests)) as notes,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
        ThreadPoolExecutor(2) as threads,
    ):
        notes.query("CREATE TABLE notes (id TEXT PRIMARY KEY)")
        other.execute("BEGIN IMMEDIATE")
        writes = [threads.submit(notes.query, f"INSERT INTO notes VALUES ('{n}')") for n in range(2)]
        began = time.monotonic()
        soon(lambda: any(write.running() for write in writes))
        two = [Statement("SELECT count(*) AS n FROM notes"), Statement("SELECT 1 AS n")]
        for _ in range(100):
            assert notes.query("SELECT count(*) AS n FROM notes").rows == [{"n": 0}]
            assert [one.rows for one in notes.batch(two)] == [[{"n": 0}], [{"n": 1}]]
        assert time.monotonic() - began < PROMPT
        other.execute("ROLLBACK")
        assert [write.result(PATIENCE).changes for write in writes] == [1, 1]
        assert notes.query("SELECT count(*) AS n FROM notes").rows == [{"n": 2}]


def test_a_request_waits_for_all_who_write_before_it_only_as_long_as_it_may(path: Path) -> None:
    with (
        closing(SqliteDatabase(path, busy_timeout=0.2, for_requests=True)) as notes,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
        ThreadPoolExecutor(5) as threads,
    ):
        notes.query("CREATE TABLE notes (id TEXT PRIMARY KEY)")
        other.execute("BEGIN IMMEDIATE")
        writes = [threads.submit(trouble, notes, "INSERT INTO notes VALUES ('1')") for n in range(5)]
        assert all("holds the write lock; end it or wait" in write.result(PATIENCE) for write in writes)
        other.execute("ROLLBACK")
        assert notes.query("INSERT INTO notes VALUES ('1')").changes == 1


def test_a_batch_that_reads_before_it_writes_waits_for_its_turn(notes: SqliteDatabase, path: Path) -> None:
    notes.query("INSERT INTO notes (id, text) VALUES ('sum', '0')")
    add = "UPDATE notes SET text = CAST(CAST(text AS INTEGER) + 1 AS TEXT)"

    def count(_: int) -> None:
        database = SqliteDatabase(path)
        for _ in range(20):
            database.batch([Statement("SELECT * FROM notes"), Statement(add)])
        database.close()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(count, range(4)))
    assert notes.query("SELECT text FROM notes").rows == [{"text": "80"}]


def test_a_database_locked_while_it_is_opened_is_not_blamed_on_the_disk(path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    text = trouble_opening(path)
    other.close()
    assert str(path) in text
    assert "another process holds the write lock" in text


def test_a_file_one_may_only_read_can_be_read_and_says_so_at_the_first_write(public_folder: Path) -> None:
    path = public_folder / "rss.sqlite"
    owner = SqliteDatabase(path)
    owner.query("CREATE TABLE notes (id TEXT PRIMARY KEY)")
    path.chmod(0o444)
    with nobody():
        reader = SqliteDatabase(path)
        assert reader.query("SELECT * FROM notes").rows == []
        text = trouble(reader)
        reader.close()
    owner.close()
    assert str(path) in text
    assert "make the file and its folder writable" in text


def test_a_connection_that_may_not_write_says_so(notes: SqliteDatabase, path: Path) -> None:
    notes.query("PRAGMA query_only = ON")
    text = trouble(notes)
    assert str(path) in text
    assert "make the file and its folder writable" in text


def test_a_folder_one_may_not_write_is_named(public_folder: Path) -> None:
    with nobody():
        if os.geteuid() == public_folder.stat().st_uid:
            public_folder.chmod(0o555)
        text = trouble_opening(public_folder / "rss.sqlite")
    assert str(public_folder / "rss.sqlite") in text
    assert "check the path" in text


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "var").write_text("not a folder")
    assert str(tmp_path / "var" / "rss.sqlite") in trouble_opening(tmp_path / "var" / "rss.sqlite")


def test_a_folder_in_place_of_the_file_is_named(path: Path) -> None:
    path.mkdir()
    text = trouble_opening(path)
    assert str(path) in text
    assert "check the path" in text


def test_a_file_that_is_no_database_is_left_as_it_is(path: Path) -> None:
    path.write_text("feeds:\n  - https://example.org/feed\n" * 100)
    before = path.read_bytes()
    text = trouble_opening(path)
    assert str(path) in text
    assert "not a SQLite file; check RSS_PIPELINE_HOME" in text
    assert path.read_bytes() == before


def test_a_damaged_file_leads_to_its_copy(notes: SqliteDatabase, path: Path) -> None:
    for n in range(200):
        notes.query("INSERT INTO notes (id, text) VALUES (?, ?)", [str(n), "x" * 500])
    notes.close()
    damaged = bytearray(path.read_bytes())
    damaged[4096:] = b"\x55" * (len(damaged) - 4096)
    path.write_bytes(damaged)
    again = SqliteDatabase(path)
    text = trouble(again, "SELECT * FROM notes")
    again.close()
    assert str(path) in text
    assert "the file is damaged; restore it from a copy" in text


def test_a_full_disk_rolls_back_and_says_so(notes: SqliteDatabase, path: Path) -> None:
    notes.query("PRAGMA max_page_count = 20")
    with pytest.raises(DatabaseUnavailable) as caught:
        notes.batch(
            [
                Statement("INSERT INTO notes (id) VALUES ('first')"),
                Statement("INSERT INTO notes (id, text) VALUES ('large', ?)", ["x" * 500_000]),
            ]
        )
    assert str(path) in str(caught.value)
    assert str(caught.value).startswith(f"the disk is full: make room below {path.parent} (")
    assert notes.query("SELECT * FROM notes").rows == []
    notes.query("INSERT INTO notes (id) VALUES ('small')")


def test_a_file_returns_the_room_of_what_is_deleted_an_old_one_after_it_was_written_anew(path: Path) -> None:
    with closing(sqlite3.connect(path)) as old:
        old.execute("CREATE TABLE notes (id TEXT PRIMARY KEY, text TEXT)")
    large = [Statement("INSERT INTO notes VALUES (?, ?)", [str(n), "x" * 100_000]) for n in range(20)]
    sizes = []
    with closing(SqliteDatabase(path)) as notes:
        for is_old in (True, False):
            notes.batch(large)
            notes.query("DELETE FROM notes WHERE id <> '1'")
            before = notes.room()
            assert (before.shrinks, before.free > 1_500_000) == (not is_old, True)
            assert before.needed < 500_000, "rows count, and not what is free"
            notes.shrink()
            sizes.append(path.stat().st_size)
            notes.compact()
            assert (notes.room().free, notes.room().shrinks, path.stat().st_size < 300_000) == (0, True, True)
            notes.query("DELETE FROM notes")
    assert sizes[0] > 1_500_000 > 300_000 > sizes[1]
    with closing(SqliteDatabase(path.with_name("new.sqlite"))) as new:
        new.query("CREATE TABLE notes (id TEXT PRIMARY KEY)")
        assert new.room().shrinks


def test_the_log_of_what_is_deleted_and_returned_to_the_disk_is_short(
    notes: SqliteDatabase, path: Path
) -> None:
    notes.batch([Statement("INSERT INTO notes VALUES (?, ?)", [str(n), "x" * 90_000]) for n in range(40)])
    notes.shrink()
    log = path.with_name(f"{path.name}-wal")
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT id FROM notes").fetchall()
        notes.query("DELETE FROM notes WHERE id <> '1'")
        notes.shrink()
        assert notes.room().free == 0
        assert 0 < log.stat().st_size < 3_000_000, "less than what went"


def test_a_missing_table_points_to_migrate(notes: SqliteDatabase) -> None:
    assert "run `rss-pipeline migrate`" in trouble(notes, "SELECT * FROM feeds")


def test_a_closed_database_is_unavailable(notes: SqliteDatabase) -> None:
    notes.close()
    notes.close()
    assert "closed" in trouble(notes)


def test_no_bound_value_shows_in_an_error(notes: SqliteDatabase) -> None:
    with pytest.raises(DatabaseUnavailable) as caught:
        notes.query("SELECT * FROM nothing WHERE id = ?", ["hunter2"])
    assert "hunter2" not in str(caught.value)


def test_a_function_has_at_most_the_arguments_that_d1_takes(notes: SqliteDatabase) -> None:
    """D1's documentation says 32; workerd on a desk takes more."""
    with pytest.raises(StorageRejected, match="too many arguments"):
        notes.query("SELECT max(" + ", ".join("1" * 33) + ")")


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="counts what is read, as Linux does")
def test_requests_read_an_index_of_some_megabytes_once(path: Path) -> None:
    with closing(SqliteDatabase(path, for_requests=True)) as notes:
        notes.query("CREATE TABLE notes (id TEXT PRIMARY KEY) WITHOUT ROWID")
        thousands = "WITH RECURSIVE n AS (SELECT 1 AS v UNION ALL SELECT v + 1 FROM n WHERE v < 50000)"
        notes.query(f"INSERT INTO notes {thousands} SELECT printf('%0100d', v) FROM n")
        read = []
        for _ in range(2):
            before = bytes_read()
            notes.query("SELECT max(substr(id, 2)) FROM notes")
            read.append(bytes_read() - before)
    assert read[0] > 4_000_000
    assert read[1] < 1_000_000


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files, as Linux does")
def test_as_many_reads_go_on_at_once_as_help_and_the_others_wait(path: Path) -> None:
    counted = "WITH RECURSIVE n AS (SELECT 1 AS v UNION ALL SELECT v + 1 FROM n WHERE v < 30000)"
    with closing(SqliteDatabase(path, for_requests=True)) as notes:
        read = partial(notes.query, f"{counted} SELECT max(v) AS n FROM n")
        with ThreadPoolExecutor(40) as threads:
            answers = [each.result(PATIENCE).rows for each in [threads.submit(read) for _ in range(80)]]
        assert answers == [[{"n": 30_000}]] * 80
        files = [os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()]
        assert files.count(str(path.resolve())) <= 1 + max(4, os.cpu_count() or 1)


def bytes_read() -> int:
    """Bytes that this process has read so far, from files or their copies in memory."""
    return int(Path("/proc/self/io").read_text().split()[1])
