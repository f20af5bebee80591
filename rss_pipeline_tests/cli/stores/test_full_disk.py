"""A full disk, as the commands say it: first, where, and how much is free.

/proc is a file system without any room, /dev/full a file that takes nothing, and a file system in memory is
full to its last byte.
"""

import contextlib
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from rss_pipeline.cli.main import main
from rss_pipeline.errors import DatabaseFull
from rss_pipeline.reserve import keep_reserve
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Statement
from rss_pipeline.storage.schema import migrate
from rss_pipeline_tests.cli.program import PROGRAM, environment
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.waiting import PATIENCE

GONE = 40


@pytest.fixture
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    disk = tmp_path_factory.mktemp("disk")
    mounted = ["mount", "-t", "tmpfs", "-o", "size=16m,mode=0700", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mounted, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a file system")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(disk: Path) -> None:
    with (disk / "other").open("ab", buffering=0) as file:
        for size in (100_000, 100, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)
    assert shutil.disk_usage(disk).free == 0


def leave(disk: Path, free: int) -> None:
    (disk / "other").write_bytes(b"x" * (shutil.disk_usage(disk).free - free))


@pytest.mark.parametrize("command", ["poll", "up"])
def test_no_run_is_started_on_a_full_disk(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(
        main, [command], env={"RSS_PIPELINE_HOME": "/proc/nowhere", "RSS_PORT": "3979"}
    )
    assert (result.exit_code, result.stderr.strip()) == (
        1,
        "the disk is full: make room below /proc/nowhere (0 bytes are free)",
    )


def test_a_full_disk_with_the_history_alone_is_one_sentence_of_each_command(
    collected: Pipeline, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = collected.settings.home
    history = home / "dagster"
    history.symlink_to(small_disk)
    monkeypatch.chdir(home)

    def said(*command: str) -> tuple[int, str]:
        done = subprocess.run(
            [PROGRAM, *command], env=environment(home), cwd=home, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout if command == ("doctor",) else done.stderr.strip()

    assert said("purge") == (0, "")
    fill(small_disk)
    full = f"the disk is full: make room below {history} (0 bytes are free)"
    assert said("poll", "--all") == (1, full)
    code, sentence = said("purge")
    assert (code, sentence.startswith(f"{full}. Cause: OperationalError: "), "\n" in sentence) == (
        1,
        True,
        False,
    )
    assert f"failure dagster           {full}" in said("doctor")[1]


def test_an_export_to_a_full_disk_says_so_first(collected: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = collected.settings.home
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(main, ["export", "-o", "/dev/full"], env=environment(folder))
    assert (result.exit_code, result.stderr.startswith("the disk is full: make room below /dev (")) == (
        1,
        True,
    )


def test_an_output_that_takes_nothing_is_one_sentence(collected: Pipeline) -> None:
    folder = collected.settings.home
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [PROGRAM, "items", "news"],
            env=environment(folder),
            cwd=folder,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=PATIENCE,
        )
    assert done.returncode == 1
    assert done.stderr.decode().startswith("the disk is full. Cause: OSError: ")
    assert b"Traceback" not in done.stderr


def fill_by_log(pipeline: Pipeline, server: FeedServer, disk: Path, prepare: Callable[[], None]) -> Path:
    """Leave no room on the disk, as after a kill while an export read: all that is large is in the log, and
    in the file's way. Return the log. `prepare` changes the items before that."""
    old = [f"old-{n}" for n in range(GONE)]
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss(*old, "new"))), "news")
    pipeline.register(server.route("127.0.0.3", "/feed", Answer(body=rss("other"))), "other")
    pipeline.poll()
    prepare()
    pipeline.database.close()
    database = pipeline.settings.database_path
    with closing(sqlite3.connect(database, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT id FROM items").fetchall()
        with closing(sqlite3.connect(database)) as writer, writer:
            writer.execute("UPDATE items SET summary = ? WHERE guid LIKE 'old%'", ["x" * 160_000])
        shutil.copytree(pipeline.settings.home, disk, dirs_exist_ok=True)
    log = disk / f"{database.name}-wal"
    assert log.stat().st_size > 6_000_000
    keep_reserve(disk)
    fill(disk)
    (disk / "feeds.yaml").write_text("feeds: []\n", "utf-8")
    return log


def has_room_again(disk: Path, log: Path) -> None:
    assert not log.exists()
    assert shutil.disk_usage(disk).free > 4_000_000
    assert (disk / "reserve").stat().st_size > 3_000_000


def test_a_log_that_the_file_has_no_room_for_keeps_no_feed_from_being_forgotten(
    pipeline: Pipeline, server: FeedServer, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = fill_by_log(pipeline, server, small_disk, lambda: None)
    monkeypatch.chdir(small_disk)
    result = CliRunner().invoke(main, ["forget", "news", "--yes"], env=environment(small_disk))
    assert result.exit_code == 0, result.output
    assert f"news: {GONE + 1} items" in result.output
    has_room_again(small_disk, log)


def test_without_room_for_two_copies_a_file_is_not_written_anew_and_nothing_is_lost(small_disk: Path) -> None:
    path = small_disk / "rss.sqlite"

    def compact() -> str:
        result = CliRunner().invoke(main, ["migrate", "--compact", "--yes"], env=environment(small_disk))
        assert result.exit_code == 1
        return result.output

    with closing(sqlite3.connect(path)) as old, old:
        old.execute("CREATE TABLE notes (text TEXT)")
    with closing(SqliteDatabase(path)) as database:
        migrate(database)
        database.batch([Statement("INSERT INTO notes VALUES (?)", ["x" * 90_000]) for _ in range(40)])
        size = database.room().bytes
    leave(small_disk, size + 2_000_000)
    assert "there is too little room below" in compact()
    assert shutil.disk_usage(small_disk).free > size + 1_900_000
    # Where others take the room after it was counted.
    with closing(SqliteDatabase(path)) as database:
        with pytest.raises(DatabaseFull):
            database.compact()
        assert shutil.disk_usage(small_disk).free > size + 1_800_000, "what it had taken is free again"
        assert database.query("SELECT count(*) AS n FROM notes WHERE length(text) = 90000").rows == [
            {"n": 40}
        ]
        database.query("INSERT INTO notes VALUES ('one more')")
    with (small_disk / "other").open("r+b") as other:
        other.truncate(0)
    with closing(SqliteDatabase(path)) as database:
        database.compact()
        assert database.room().shrinks
