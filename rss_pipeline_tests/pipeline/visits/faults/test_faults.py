"""Infrastructure faults: the run fails with a sentence, no feed pays for it, and the next poll completes it.

The faults are real ones, made at a chosen place of a real poll: a lock held by another connection, a
connection that may only read, a database without a page to spare, a folder that is none. Where no such fault
can be made at that place, an ObjectStore in between raises. A network that refuses is in
test_network_faults.py. A fault of one feed's data, which is none of the infrastructure, is at the end.
"""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.errors import DatabaseUnavailable, ObjectStoreUnavailable, StorageRejected
from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Database, Result, Statement, Value
from rss_pipeline.storage.installation import poll_trouble
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline_tests.support.pipeline import Pipeline, ends, rss
from rss_pipeline_tests.support.server import Answer, FeedServer, Request
from rss_pipeline_tests.support.waiting import soon

FEEDS = {
    "one": [f"a{n}" for n in range(3)],
    "two": ["b1", "b2"],
    "big": [f"{n:04}-{'x' * 900}" for n in range(500)],
}
"""The last one's items take several batches of a megabyte."""


class Trapped:
    """A Database that lets `spring` bring a fault about just before a statement that `at` knows."""

    def __init__(
        self, database: SqliteDatabase, at: Callable[[Statement], bool], spring: Callable[[Database], None]
    ) -> None:
        self._database = database
        self._at = at
        self._spring = spring
        self._sprung = False

    def query(self, sql: str, params: Sequence[Value] = (), *, name: str = "") -> Result:
        return self.batch([Statement(sql, params, name=name)])[0]

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        if not self._sprung and any(map(self._at, statements)):
            self._sprung = True
            self._spring(self._database)
        return self._database.batch(statements)

    def close(self) -> None:
        self._database.close()


def trap(
    pipeline: Pipeline, at: Callable[[Statement], bool], spring: Callable[[Database], None]
) -> Callable[[], Database]:
    """Opens the run's database with a trap in it, and little patience for locks."""
    return lambda: Trapped(SqliteDatabase(pipeline.settings.database_path, busy_timeout=0.05), at, spring)


def statement(name: str, *, of: str = "") -> Callable[[Statement], bool]:
    """Knows a statement by its name and, where one is given, by the feed in its parameters."""
    return lambda found: found.name == name and (not of or any(of in str(param) for param in found.params))


PLACES = {
    "claim": statement("choose feeds"),
    "fetched": statement("free hosts"),
    "store": statement("insert items", of="one"),
    "close": statement("close visit", of='"id":"big"'),
}
BEFORE_CLOSE = list(PLACES)
PLACES |= {
    "images": statement("mark images extracted"),
    "lease end": statement("end lease"),
}


class Fault:
    """A fault of the database, made by `make` and over at the end of the block."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._blocker: sqlite3.Connection | None = None

    def __enter__(self) -> "Fault":
        return self

    def __exit__(self, *error: object) -> None:
        if self._blocker is not None:
            self._blocker.rollback()
            self._blocker.close()

    def locked(self, database: Database) -> None:
        self._blocker = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        self._blocker.execute("BEGIN IMMEDIATE")

    def read_only(self, database: Database) -> None:
        database.query("PRAGMA query_only=ON")

    def full(self, database: Database) -> None:
        pages = int(database.query("PRAGMA page_count").rows[0]["page_count"])
        database.query(f"PRAGMA max_page_count={pages}")


SENTENCES = {
    "locked": "database is locked (SQLITE_BUSY): another process holds the write lock; end it or wait",
    "read_only": "attempt to write a readonly database (SQLITE_READONLY): make the file and its folder",
    "full": "the disk is full: make room below",
}


@pytest.fixture
def feeds(pipeline: Pipeline, server: FeedServer) -> Pipeline:
    serve(pipeline, server)
    return pipeline


def serve(pipeline: Pipeline, server: FeedServer) -> None:
    """Three feeds that are due, each on a host of its own."""
    for number, (id, guids) in enumerate(FEEDS.items(), start=2):
        answer = Answer(body=rss(*guids, image=f"http://images.example/{id}"), etag=f'"{id}"')
        pipeline.register(server.route(f"127.0.0.{number}", "/feed", answer), id)
    pipeline.sync()


def assert_nothing_lost_yet(pipeline: Pipeline) -> None:
    """Promises that hold at any instant: no failure is counted, and no validator is stored before its
    items."""
    for id, guids in FEEDS.items():
        feed = pipeline.feed(id)
        assert feed["consecutive_failures"] == 0
        assert feed["last_error_kind"] is None
        if feed["last_etag"] is None:
            assert feed["content_hash"] is None
            assert feed["last_fetched_at"] is None
            assert feed["next_fetch_at"] <= instant(pipeline.clock())
        else:
            assert len(pipeline.items(id)) == len(guids)


def assert_complete(pipeline: Pipeline) -> None:
    """All as if nothing had happened: nothing missing, nothing twice."""
    for id, guids in FEEDS.items():
        assert pipeline.guids(id) == guids
        assert len(pipeline.backups(id)) == 1
        assert [report["items_new"] for report in pipeline.reports(id)] == [len(guids)]
        feed = pipeline.feed(id)
        assert (feed["last_etag"], feed["consecutive_failures"]) == (f'"{id}"', 0)
        assert (feed["lease_token"], feed["unclosed_claims"]) == (None, 0)
    assert len(pipeline.tasks()) == sum(map(len, FEEDS.values()))
    assert pipeline.rows("SELECT id FROM items WHERE images_extracted_at IS NULL") == []
    assert pipeline.rows("SELECT token FROM leases") == []


CASES = [
    *(("locked", place) for place in PLACES),
    *(("read_only", place) for place in ("claim", "store", "close", "images")),
    ("full", "store"),
    ("full", "close"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "place"), CASES, ids=[f"{fault} at {place}" for fault, place in CASES])
def test_a_database_that_fails_at_any_place_fails_the_run_and_no_feed(
    fault: str, place: str, feeds: Pipeline, server: FeedServer
) -> None:
    with Fault(feeds.settings.database_path) as faults:
        database = trap(feeds, PLACES[place], getattr(faults, fault))
        (round_,) = feeds.try_poll(all_feeds=True, database=database)
    assert round_.error is not None
    assert SENTENCES[fault] in round_.error
    if place == "claim":
        assert server.requests == [], "nobody is asked where nothing can be stored"
        assert not any(feed["lease_token"] for feed in feeds.rows("SELECT lease_token FROM feeds"))
    if place in ("claim", "fetched"):
        assert not any(feeds.backups(id) for id in FEEDS)
    assert_nothing_lost_yet(feeds)

    feeds.lapse_leases()
    feeds.clock.turn(minutes=10)
    feeds.poll(all_feeds=True)
    assert_complete(feeds)


@pytest.mark.slow
@pytest.mark.parametrize("place", BEFORE_CLOSE)
def test_feeds_are_due_at_once_where_the_fault_left_their_claim_to_be_given_back(
    place: str, feeds: Pipeline
) -> None:
    """The fault is over when the run ends: no lease has to lapse, and no claim counts against a feed."""

    def once(database: Database) -> None:
        raise DatabaseUnavailable("the connection broke")

    (round_,) = feeds.try_poll(database=trap(feeds, PLACES[place], once))
    assert round_.error is not None
    assert "the connection broke" in round_.error
    assert feeds.rows("SELECT token FROM leases") == []
    assert {feed["unclosed_claims"] for feed in feeds.rows("SELECT unclosed_claims FROM feeds")} == {0}
    assert_nothing_lost_yet(feeds)
    feeds.poll()
    assert sum(len(feeds.items(id)) for id in FEEDS) == sum(map(len, FEEDS.values()))
    feeds.clock.turn(hours=3)
    feeds.poll()
    assert_complete(feeds)  # Images of what was closed before the fault wait for that feed's next visit.


class FailingStore:
    """An ObjectStore with a disk that is full from the `number`th put on; `late` reports it after the put."""

    def __init__(self, store: ObjectStore, number: int, *, late: bool = False) -> None:
        self._store = store
        self._left = number
        self._late = late

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put(self, *args: Any, **kwargs: Any) -> bool:
        self._left -= 1
        # Other threads put at the same time.
        fails = self._left <= 0
        if fails and not self._late:
            raise ObjectStoreUnavailable("object folder: [Errno 28] No space left on device; make room")
        done = self._store.put(*args, **kwargs)
        if fails:
            raise ObjectStoreUnavailable("the answer of the store got lost")
        return done


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True], ids=["disk full", "answer lost"])
@pytest.mark.parametrize("number", [1, 3])
def test_an_object_store_that_fails_in_the_middle_of_a_poll_leaves_one_backup_each_in_the_end(
    number: int, late: bool, feeds: Pipeline
) -> None:
    store = FailingStore(feeds.objects, number, late=late)
    (round_,) = feeds.try_poll(objects=cast("ObjectStore", store))
    assert round_.error is not None
    assert ("the answer of the store got lost" if late else "No space left on device") in round_.error
    assert feeds.rows("SELECT id FROM items") == [], "nothing is parsed before all is backed up"
    assert_nothing_lost_yet(feeds)
    feeds.clock.turn(minutes=10)
    feeds.poll()
    assert_complete(feeds)


@contextmanager
def not_a_folder(path: Path) -> Iterator[None]:
    """A file is where the folder was: no rights help against it, so this also holds for root."""
    aside = path.with_name(path.name + "-aside")
    path.rename(aside)
    path.write_bytes(b"")
    yield
    path.unlink()
    aside.rename(path)


@pytest.mark.slow
@pytest.mark.parametrize("folder", [".", ".incoming"])
def test_no_publisher_is_requested_where_the_object_folder_cannot_be_written(
    folder: str, feeds: Pipeline, server: FeedServer
) -> None:
    with not_a_folder(feeds.settings.objects_path / folder):
        (round_,) = feeds.try_poll()
    assert round_.error is not None
    assert "check that" in round_.error
    assert "is writable and the disk has room" in round_.error
    assert server.requests == []
    assert feeds.rows("SELECT token FROM leases") == []
    assert_nothing_lost_yet(feeds)
    feeds.poll()
    assert_complete(feeds)


def test_no_publisher_is_requested_where_the_object_folder_goes_just_before_the_claim(
    feeds: Pipeline, server: FeedServer
) -> None:
    """At the run's begin it was there: only a probe can show it."""
    going = not_a_folder(feeds.settings.objects_path / ".incoming")
    database = trap(feeds, statement("read registry"), lambda _: going.__enter__())
    (round_,) = feeds.try_poll(database=database)
    going.__exit__(None, None, None)
    assert round_.error is not None
    assert round_.error.startswith("claim: object folder:")
    assert server.requests == []
    assert feeds.rows("SELECT token FROM leases") == []
    noted = feeds.database.batch([poll_trouble()])[0].values
    assert [json.loads(value)[0] for (value,) in noted] == ["objects"]
    feeds.poll()
    assert feeds.database.batch([poll_trouble()])[0].values == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_no_publisher_is_requested_where_the_object_folder_is_read_only(
    feeds: Pipeline, server: FeedServer
) -> None:
    feeds.settings.objects_path.chmod(0o555)
    try:
        (round_,) = feeds.try_poll()
    finally:
        feeds.settings.objects_path.chmod(0o755)
    assert round_.error is not None
    assert "is writable" in round_.error
    assert server.requests == []


@pytest.mark.slow
def test_an_object_folder_that_goes_while_publishers_answer_costs_no_document(
    feeds: Pipeline, server: FeedServer
) -> None:
    going = not_a_folder(feeds.settings.objects_path / ".incoming")

    def answer(request: Request) -> Answer:
        going.__enter__()
        return Answer(body=rss(*FEEDS["two"], image="http://images.example/two"), etag='"two"')

    server.route("127.0.0.3", "/feed", answer)
    (round_,) = feeds.try_poll()
    going.__exit__(None, None, None)
    server.route(
        "127.0.0.3", "/feed", Answer(body=rss(*FEEDS["two"], image="http://images.example/two"), etag='"two"')
    )
    assert round_.error is not None
    assert round_.error.startswith("backup: object folder:")
    assert_nothing_lost_yet(feeds)
    feeds.poll()
    assert_complete(feeds)


@pytest.mark.slow
def test_leaving_a_run_with_a_database_that_is_gone_still_ends_its_workers_and_its_spool(
    feeds: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    assert feeds.parser_pool is not None
    feeds.parser_pool.end()
    feeds.parser_pool = None
    with Fault(feeds.settings.database_path) as faults:
        feeds.try_poll(database=trap(feeds, PLACES["store"], faults.read_only))
    assert "a lease could not be ended and will lapse" in caplog.text
    assert list(feeds.settings.spool_path.iterdir()) == []
    soon(lambda: not any(server.children() for server in _fork_servers(psutil.Process())))


def _fork_servers(process: psutil.Process) -> list[psutil.Process]:
    found = []
    for child in process.children():
        with suppress(psutil.NoSuchProcess):
            if "forkserver" in " ".join(child.cmdline()):
                found.append(child)
    return found


def _is_gone(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.slow
def test_no_worker_outlives_a_process_that_was_killed_not_even_one_at_a_hostile_document() -> None:
    """The parent, which would end a parse after its time, is gone."""
    code = """
from rss_pipeline.pipeline.session.parser_pool import ParserPool
list(ParserPool(processes=2, timeout=2).map(sum, [range(10**13)]))
"""
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[4])
    process = psutil.Process(parent.pid)

    def is_busy() -> bool:
        with suppress(psutil.NoSuchProcess):
            return any(
                worker.cpu_times().user > 0.3
                for server in _fork_servers(process)
                for worker in server.children()
            )
        return False

    soon(is_busy)
    children = process.children(recursive=True)
    parent.kill()
    parent.wait()
    soon(lambda: all(map(_is_gone, children)))


class RefusingDatabase(Trapped):
    """A Database that refuses a value wherever a statement `at` knows comes, for as long as it lives."""

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        if any(map(self._at, statements)):
            raise StorageRejected("the database refused a value: CHECK constraint failed")
        return self._database.batch(statements)


def refusing(pipeline: Pipeline, at: Callable[[Statement], bool]) -> Callable[[], Database]:
    return lambda: RefusingDatabase(SqliteDatabase(pipeline.settings.database_path), at, lambda _: None)


REFUSED = {
    "its items": statement("insert items", of="one"),
    "its closing": statement("close visit", of='"id":"one"'),
}


@pytest.mark.parametrize("at", REFUSED.values(), ids=REFUSED)
@pytest.mark.slow
def test_a_feed_with_values_that_the_database_refuses_fails_alone_and_its_bytes_are_not_tried_again(
    at: Callable[[Statement], bool], feeds: Pipeline, server: FeedServer
) -> None:
    database = refusing(feeds, at)
    rounds = feeds.poll(database=database)
    assert sorted(ends(rounds, lambda visit: type(visit.outcome).__name__)) == ["Failure", "Stored", "Stored"]
    for count in (1, 2, 3):
        feed = feeds.feed("one")
        assert (feed["last_error_kind"], feed["consecutive_failures"]) == ("storage_rejected", count)
        assert "CHECK constraint failed" in feed["last_error"]
        assert (feed["last_etag"], feed["content_hash"], feed["lease_token"]) == (None, None, None)
        assert len(feeds.backups("one")) == 1
        feeds.poll(all_feeds=True, database=database)
    assert feeds.guids("two") == FEEDS["two"]
    assert all("if-none-match" not in request.headers for request in server.asked("127.0.0.2"))

    server.route("127.0.0.2", "/feed", Answer(body=rss("mended"), etag='"mended"'))
    feeds.poll(all_feeds=True)
    assert "mended" in feeds.guids("one")
    assert feeds.feed("one")["consecutive_failures"] == 0


@pytest.mark.slow
def test_a_304_with_values_that_the_database_refuses_fails_alone(feeds: Pipeline) -> None:
    feeds.poll()
    at = statement("close unchanged visits", of='"id":"one","token"')
    rounds = feeds.poll(all_feeds=True, database=refusing(feeds, at))
    assert len(ends(rounds, lambda visit: visit)) == 3
    assert feeds.feed("one")["last_error_kind"] == "storage_rejected"
    assert [feeds.feed(id)["consecutive_failures"] for id in ("two", "big")] == [0, 0]


def test_a_run_gives_back_what_it_claimed_also_where_its_workers_cannot_be_ended(feeds: Pipeline) -> None:
    class Stubborn:
        def close(self) -> None:
            raise OSError("no such process")

    session = Session(
        RunContext(
            settings=feeds.settings,
            database=feeds.database,
            objects=FolderStore(feeds.settings.objects_path),
            run_id="run",
            clock=feeds.clock,
        )
    )
    session.parser_pool = Stubborn()  # type: ignore[assignment]
    from rss_pipeline.storage.feeds.claimable import Due

    with pytest.raises(OSError, match="no such process"), session:
        assert session.leases.claim(Due(now=feeds.clock()), limit=10).feeds
    assert feeds.rows("SELECT token FROM leases") == []
