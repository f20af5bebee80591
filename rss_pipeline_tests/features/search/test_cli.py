"""`rss-pipeline search-index`, and the process of it that keeps the index current beside the reader."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from click.testing import CliRunner, Result

from rss_pipeline.cli.main import main
from rss_pipeline.features.search import finding, writing
from rss_pipeline.features.search.finding import Match
from rss_pipeline.features.search.index_file import open_to_read
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline_tests.storage.values import item, register, spec, visit
from rss_pipeline_tests.support.databases import migrated
from rss_pipeline_tests.support.up import PROGRAM, free_port
from rss_pipeline_tests.support.waiting import PATIENCE, soon

LOOK = """
import os, sys
from pathlib import Path
from rss_pipeline.features.search import cli
from rss_pipeline.settings import Settings

cli._MANY = int(sys.argv[1])
sys.exit(cli.index_process(Settings.from_environ(os.environ, cwd=Path.cwd())).look(True))
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RSS_PIPELINE_HOME", str(home))
    return home


@pytest.fixture
def database(home: Path) -> Iterator[SqliteDatabase]:
    database = migrated(home / "rss.sqlite")
    register(database, spec("a"))
    yield database
    database.close()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["search-index", *arguments])


def indexed(home: Path) -> int:
    """Items in the index; 0 for none that serves."""
    path = home / "search.sqlite"
    if not path.exists():
        return 0
    try:
        file = open_to_read(path)
    except Exception:  # noqa: BLE001 (it is being made)
        return 0
    try:
        generation = writing.generations(file)[0]
        match = Match(expression=finding.every(), feed_ids=["a"])
        return len(finding.newest(file, generation, match, limit=100))
    finally:
        file.close()


def test_the_state_is_shown_and_the_index_brought_up_to_date(home: Path, database: SqliteDatabase) -> None:
    visit(database, [item("1"), item("2")], id="a")
    assert "there is none yet" in run().output
    done = run("--update")
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert lines[0] == "2 items added, 0 rewritten, 0 removed."
    assert "2 of 2 items" in lines[1]
    assert lines[2] == "It is up to date."
    visit(database, [item("3")], id="a")
    assert "1 items are not in it yet" in run().output
    database.query("DELETE FROM items WHERE guid = '1'")
    assert run("--update").output.startswith("1 items added, 0 rewritten, 1 removed.")
    assert indexed(home) == 2


def test_a_rebuild_leaves_one_index_with_everything(home: Path, database: SqliteDatabase) -> None:
    visit(database, [item("1"), item("2")], id="a")
    run("--update")
    assert run("--rebuild").output.startswith("2 items added")
    file = open_to_read(home / "search.sqlite")
    [generation] = writing.generations(file)
    file.close()
    assert (generation.number, generation.is_complete) == (2, True)
    assert indexed(home) == 2


def test_two_wishes_at_once_are_refused(home: Path) -> None:
    assert run("--update", "--rebuild").exit_code == 2


@pytest.mark.slow
def test_it_follows_the_database_until_it_is_stopped(home: Path, database: SqliteDatabase) -> None:
    visit(database, [item("1")], id="a")
    # Where the tests themselves run under nohup, it would be ignored.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with subprocess.Popen([PROGRAM, "search-index", "--follow"], stderr=subprocess.PIPE) as process:
        signal.signal(signal.SIGHUP, before)
        soon(lambda: indexed(home) == 1)
        visit(database, [item("2")], id="a")
        soon(lambda: indexed(home) == 2)
        for name in ("search.sqlite", "search.sqlite-wal", "search.sqlite-shm"):
            (home / name).unlink(missing_ok=True)
        soon(lambda: indexed(home) == 2)
        # A terminal that closes ends each command as the others do.
        process.send_signal(signal.SIGHUP)
        assert process.wait(PATIENCE) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.slow
def test_the_reader_has_one_beside_it_which_is_started_again_and_ends_with_it(
    home: Path, database: SqliteDatabase
) -> None:
    """With a killed one, too; the ends by other signals are in test_reader.py."""
    visit(database, [item("1")], id="a")
    port = free_port()
    environment = {**os.environ, "RSS_READER_PORT": str(port)}
    with subprocess.Popen([PROGRAM, "reader"], env=environment, stdout=subprocess.PIPE) as process:
        soon(lambda: indexed(home) == 1)
        assert process.stdout is not None
        process.stdout.readline()
        assert httpx.get(f"http://127.0.0.1:{port}/api/about", timeout=PATIENCE).status_code == 200
        [index] = psutil.Process(process.pid).children(recursive=True)
        assert "--follow" in index.cmdline()
        index.kill()
        index = soon(lambda: next(iter(psutil.Process(process.pid).children(recursive=True)), None))
        visit(database, [item("2")], id="a")
        soon(lambda: indexed(home) == 2)
        process.kill()
        process.wait(PATIENCE)
        soon(lambda: not index.is_running() or index.status() == psutil.STATUS_ZOMBIE)


@pytest.mark.slow
@pytest.mark.parametrize("many", [1, 0], ids=["a few", "many"])
def test_a_look_of_up_adds_what_came_and_starts_a_program_for_many_items(
    home: Path, database: SqliteDatabase, many: int
) -> None:
    visit(database, [item("1")], id="a")
    look = [sys.executable, "-c", LOOK, str(many)]
    done = subprocess.run(look, check=True, capture_output=True, timeout=PATIENCE)
    assert (done.stdout, done.stderr) == (b"", b"")
    assert indexed(home) == 1
    (home / "search.sqlite").rename(home / "old")
    (home / "search.sqlite").symlink_to(home / "no such folder" / "search.sqlite")
    done = subprocess.run(look, check=False, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 1
    assert done.stderr.startswith(b"the search index is not current: ")
