"""A full disk: the run fails and says so first, no feed is blamed, and nothing is half-written."""

import errno
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from rss_pipeline.errors import InfrastructureError, disk_is_full, file_error
from rss_pipeline.pipeline.visits.poll import poll_round
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.feeds.claimable import Due
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

HOST = "127.0.0.2"


class FullAt:
    """A Progress that finds the disk full when a step begins, as Dagster's event log and a run's log do."""

    def __init__(self, step: str, error: Callable[[], Exception]) -> None:
        self._step = step
        self._error = error

    def begin(self, step: str, total: int) -> None:
        if step == self._step:
            raise self._error()

    def advance(self, step: str, by: int = 1) -> None: ...


def no_space() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def quota() -> OSError:
    return OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))


def wrapped() -> Exception:
    """As SQLAlchemy raises it: another exception, from a real SQLite with a file that may not grow."""
    database = sqlite3.connect(":memory:")
    try:
        database.execute("CREATE TABLE t (x)")
        database.execute("PRAGMA max_page_count = 2")
        database.execute("INSERT INTO t VALUES (zeroblob(100000))")
    except sqlite3.OperationalError as error:
        try:
            raise RuntimeError("could not write the event") from error
        except RuntimeError as outer:
            return outer
    finally:
        database.close()
    raise AssertionError


def is_untouched(pipeline: Pipeline) -> None:
    """No failure is counted, no claim is unclosed, no lease and no file is left; and all is due again."""
    feed = pipeline.feed("a")
    assert (feed["consecutive_failures"], feed["last_error"], feed["unclosed_claims"]) == (0, None, 0)
    assert (feed["last_etag"], pipeline.items("a")) == (None, [])
    assert pipeline.rows("SELECT * FROM leases") == []
    spool = pipeline.settings.spool_path
    assert not spool.is_dir() or list(spool.iterdir()) == []


@pytest.mark.parametrize(
    ("step", "error"), [("fetch", no_space), ("backup", quota), ("parse", wrapped), ("store", no_space)]
)
def test_a_disk_that_is_full_in_any_step_counts_against_no_feed(
    pipeline: Pipeline, server: FeedServer, step: str, error: Callable[[], Exception]
) -> None:
    pipeline.register(server.route(HOST, "/feed", Answer(body=rss("1"), etag='"1"')), "a")
    for _ in range(3):
        [round_] = pipeline.try_poll(progress=FullAt(step, error))
        assert round_.error is not None
        assert round_.error.startswith(f"{step}: the disk is full: make room below {pipeline.settings.home}")
        is_untouched(pipeline)
    pipeline.poll()
    assert pipeline.guids("a") == ["1"]


def test_a_spool_that_cannot_be_made_counts_against_no_feed(pipeline: Pipeline, server: FeedServer) -> None:
    pipeline.register(server.route(HOST, "/feed", Answer(body=rss("1"), etag='"1"')), "a")
    pipeline.settings.spool_path.write_text("no folder")
    [round_] = pipeline.try_poll()
    assert "the spool folder" in str(round_.error)
    is_untouched(pipeline)
    pipeline.settings.spool_path.unlink()
    pipeline.poll()
    assert pipeline.guids("a") == ["1"]


def test_a_body_that_the_spool_has_no_room_for_is_no_failure_of_its_feed(
    pipeline: Pipeline, server: FeedServer
) -> None:
    """The spool's files lead to the system's own device that is always full."""
    pipeline.register(server.route(HOST, "/feed", Answer(body=rss("1"), etag='"1"')), "a")

    with pipeline.session() as session:
        folder = session.spool.folder
        (folder / "a").symlink_to("/dev/full")
        synced = pipeline.sync()
        with (
            pytest.raises(
                InfrastructureError, match=r"^the disk is full: make room below .*cannot be written"
            ),
            session.step(),
        ):
            poll_round(session, Due(now=pipeline.clock()), synced.accesses)
    is_untouched(pipeline)


@pytest.mark.slow
def test_a_database_without_room_counts_against_no_feed(pipeline: Pipeline, server: FeedServer) -> None:
    pipeline.register(server.route(HOST, "/feed", Answer(body=rss("1", "x" * 400_000), etag='"1"')), "a")
    pipeline.sync()

    def small() -> SqliteDatabase:
        database = SqliteDatabase(pipeline.settings.database_path)
        pages = int(database.query("PRAGMA page_count").rows[0]["page_count"])
        database.query(f"PRAGMA max_page_count = {pages + 3}")
        return database

    for _ in range(4):
        [round_] = pipeline.try_poll(database=small)
        assert "the disk is full: make room below" in str(round_.error)
        feed = pipeline.feed("a")
        assert (feed["consecutive_failures"], feed["unclosed_claims"], pipeline.items("a")) == (0, 0, [])
    pipeline.poll()
    assert len(pipeline.items("a")) == 2


def test_other_errors_are_not_taken_for_a_full_disk(tmp_path: Path) -> None:
    assert disk_is_full(no_space())
    assert disk_is_full(wrapped())
    assert not disk_is_full(OSError(errno.EACCES, "no"))
    assert not disk_is_full(ValueError("the disk is full"))


def test_an_io_error_of_sqlite_is_a_full_disk_only_where_there_is_no_room(tmp_path: Path) -> None:
    """As SQLite reports it where it may not extend a file beside the database; /proc has no room at all."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR | 19 << 8
    assert disk_is_full(error, at=Path("/proc/nowhere"))
    assert not disk_is_full(error, at=tmp_path)
    assert not disk_is_full(error)


def test_the_first_words_say_where_to_make_room_and_how_much_is_free(tmp_path: Path) -> None:
    assert file_error("x cannot be written", no_space(), Path("/proc")) == (
        "the disk is full: make room below /proc (0 bytes are free). x cannot be written"
    )
    assert "bytes are free; a quota may be used up). x" in file_error("x", quota(), tmp_path)
    assert file_error("x", OSError(errno.EACCES, "no right"), tmp_path) == "x: no right"
