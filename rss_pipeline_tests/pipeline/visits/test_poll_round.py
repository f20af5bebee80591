"""A poll round without Dagster: the same visits, rows and leases as a run of the job."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.outcome import NotModified
from rss_pipeline.collector.models.shard import Shard, bucket_of, shard_of
from rss_pipeline.errors import DatabaseUnavailable, ObjectStoreUnavailable, StorageRejected
from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.pipeline.visits.fetch import STORED_TOGETHER
from rss_pipeline.pipeline.visits.poll import ROUND_SECONDS, poll_round
from rss_pipeline.pipeline.visits.visit import Refused, Stored, Visit
from rss_pipeline.storage.backends.connect import connect
from rss_pipeline.storage.database import Database, Result, Statement
from rss_pipeline.storage.feeds.claimable import Due, Named, NotVisitedSince
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.waiting import soon


@pytest.fixture
def session(pipeline: Pipeline, server: FeedServer) -> Iterator[Session]:
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a", "b"), etag='"1"')), "good")
    pipeline.register(server.route("127.0.0.3", "/feed", Answer(status=404)), "bad")
    pipeline.sync()
    with Session(
        RunContext(
            settings=pipeline.settings,
            database=pipeline.database,
            objects=pipeline.objects,
            run_id="round",
            clock=pipeline.clock,
        )
    ) as session:
        yield session


def _by_feed(visits: list[Visit]) -> dict[str, object]:
    return {visit.feed.id: visit.outcome for visit in visits}


def test_a_round_visits_what_is_due_and_ends_its_leases(pipeline: Pipeline, session: Session) -> None:
    ends = _by_feed(poll_round(session, Due(now=pipeline.clock()), {}))
    assert isinstance(ends["good"], Stored)
    assert isinstance(ends["bad"], Failure)
    assert pipeline.guids("good") == ["a", "b"]
    assert pipeline.rows("SELECT token FROM leases") == []
    assert poll_round(session, Due(now=pipeline.clock()), {}) == [], "nothing is due now"


def test_a_round_of_all_feeds_and_one_of_named_feeds_request_them_due_or_not(
    pipeline: Pipeline, session: Session
) -> None:
    poll_round(session, Due(now=pipeline.clock()), {})
    pipeline.clock.turn(seconds=1)
    now = pipeline.clock()
    everything = _by_feed(poll_round(session, NotVisitedSince(since=now, now=now), {}))
    assert isinstance(everything["good"], NotModified)
    assert isinstance(everything["bad"], Failure)
    pipeline.clock.turn(minutes=1)
    named = Named(ids=["good", "no-such-feed"], now=pipeline.clock())
    ends = _by_feed(poll_round(session, named, {}, round_seconds=None))
    assert isinstance(ends["good"], NotModified)
    assert isinstance(ends["no-such-feed"], Refused)


def test_documents_are_stored_while_others_are_requested(pipeline: Pipeline, server: FeedServer) -> None:
    answered = threading.Event()
    for n in range(STORED_TOGETHER + 3):
        body = rss(f"{n}", image="http://images.example")
        answer = Answer(body=body, wait_for=answered if n == 0 else None)
        host = "127.0.0.2" if n == 0 else "127.0.0.3"
        pipeline.register(server.route(host, f"/feed-{n}", answer), f"feed-{n}")
    pipeline.sync()

    def stored() -> int:
        return len(pipeline.rows("SELECT id FROM items"))

    def images() -> int:
        return len(pipeline.rows("SELECT id FROM image_tasks"))

    with ThreadPoolExecutor(1) as run:
        polling = run.submit(pipeline.poll)
        try:
            soon(lambda: stored() == images() == STORED_TOGETHER)
            assert not polling.done()
            assert len(list(pipeline.objects.list("backups/"))) == STORED_TOGETHER, "backed up first"
        finally:
            answered.set()
        [ended] = polling.result()
        assert len(ended.visits) == stored() == images() == STORED_TOGETHER + 3
        assert all(isinstance(visit.outcome, Stored) for visit in ended.visits)


class Watched:
    """A database with a call before each batch that has a statement of this name."""

    writes_in_turn = True

    def __init__(self, real: Database, name: str, before: Callable[[Sequence[Statement]], object]) -> None:
        self._real = real
        self._name = name
        self._before = before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        if any(statement.name == self._name for statement in statements):
            self._before(statements)
        return self._real.batch(statements)


def serve_many(server: FeedServer, bodies: Iterable[bytes]) -> list[str]:
    return [
        server.route(f"127.0.0.{3 + n % 5}", f"/feed-{n}", Answer(body=body)) for n, body in enumerate(bodies)
    ]


def register_many(pipeline: Pipeline, server: FeedServer, count: int) -> None:
    bodies = (rss(f"{n}", image="http://images.example") for n in range(count))
    for n, url in enumerate(serve_many(server, bodies)):
        pipeline.register(url, f"feed-{n}")
    pipeline.sync()


def test_documents_are_read_while_those_before_them_are_stored(
    pipeline: Pipeline, server: FeedServer
) -> None:
    register_many(pipeline, server, 4 * STORED_TOGETHER)
    may_store = threading.Event()

    def database() -> Any:
        return Watched(connect(pipeline.settings), "insert items", lambda _: may_store.wait(60))

    with ThreadPoolExecutor(1) as run:
        polling = run.submit(pipeline.poll, database=database)
        try:
            soon(lambda: len(list(pipeline.settings.spool_path.rglob("*.rows"))) == 2 * STORED_TOGETHER)
            assert pipeline.rows("SELECT id FROM items") == []
            assert len(list(pipeline.objects.list("backups/"))) <= 3 * STORED_TOGETHER, "three lots at most"
        finally:
            may_store.set()
        [ended] = polling.result()
    assert len(pipeline.rows("SELECT id FROM items")) == len(ended.visits) == 4 * STORED_TOGETHER


@pytest.mark.parametrize("statement", ["insert items", "insert image tasks"])
def test_what_a_failing_store_left_is_stored_at_the_end_and_not_read_again(
    statement: str, pipeline: Pipeline, server: FeedServer
) -> None:
    count = 2 * STORED_TOGETHER + 3
    register_many(pipeline, server, count)
    faults = iter([DatabaseUnavailable("down")])

    def fail_once(_: object) -> None:
        for fault in faults:
            raise fault

    def database() -> Any:
        return Watched(connect(pipeline.settings), statement, fail_once)

    [ended] = pipeline.poll(database=database)
    assert all(isinstance(visit.outcome, Stored) for visit in ended.visits)
    assert len(ended.visits) == len(list(pipeline.objects.list("backups/"))) == count
    assert len(pipeline.rows("SELECT id FROM items")) == count
    if statement == "insert image tasks":
        assert len(pipeline.rows("SELECT id FROM image_tasks")) == count
        assert pipeline.rows("SELECT id FROM feeds WHERE images_pending = 1") == []


def test_small_documents_are_stored_in_one_transaction_and_a_refused_one_fails_alone(
    pipeline: Pipeline, server: FeedServer
) -> None:
    register_many(pipeline, server, STORED_TOGETHER)
    batches: list[Sequence[Statement]] = []

    def seen(batch: Sequence[Statement]) -> None:
        batches.append(batch)
        if refused and any(refused in each.params for each in batch):
            raise StorageRejected("the database refused a value")

    def database() -> Any:
        return Watched(connect(pipeline.settings), "insert items", seen)

    refused = ""
    pipeline.poll(database=database)
    assert len(batches) == 1
    before = pipeline.feed("feed-7")["last_success_at"]

    refused = "feed-7"
    serve_many(
        server, (rss(f"{n}", f"{n} later", image="http://images.example") for n in range(STORED_TOGETHER))
    )
    pipeline.clock.turn(minutes=1)
    [ended] = pipeline.poll(all_feeds=True, database=database)
    failed = [visit for visit in ended.visits if not isinstance(visit.outcome, Stored)]
    assert [(visit.feed.id, visit.outcome.kind) for visit in failed] == [("feed-7", "storage_rejected")]
    assert pipeline.guids("feed-7") == ["7"]
    assert pipeline.feed("feed-7")["last_success_at"] == before
    assert len(pipeline.rows("SELECT id FROM items")) == 2 * STORED_TOGETHER - 1
    assert sum(visit.outcome.items_new for visit in ended.visits if isinstance(visit.outcome, Stored)) == 24


def test_a_refused_warning_of_one_document_among_many_harms_no_other(
    pipeline: Pipeline, server: FeedServer
) -> None:
    def bodies(number: int, day: str, before: str) -> Iterator[bytes]:
        """Feed 7 has other guids, links and dates each time, of known titles: its guids are unstable."""
        for n in range(STORED_TOGETHER):
            body = rss(*(f"{n}-{each}" for each in range(number))).decode()
            if n == 7:
                body = body.replace("'>7-", f"'>{before}7-").replace(
                    "example.com/7-", f"example.com/{before}7-"
                )
                body = body.replace("02 Mar", day)
            yield body.encode()

    for n, url in enumerate(serve_many(server, bodies(10, "02 Mar", "one-"))):
        pipeline.register(url, f"feed-{n}")
    pipeline.poll()
    pipeline.database.query(
        "CREATE TRIGGER refuse BEFORE UPDATE OF warning ON feeds WHEN new.id = 'feed-7' AND new.warning LIKE"
        " 'unstable%' BEGIN SELECT raise(ABORT, 'refused'); END"
    )
    serve_many(server, bodies(11, "03 Mar", "two-"))
    pipeline.clock.turn(minutes=1)
    [ended] = pipeline.poll(all_feeds=True)
    failed = [visit.feed.id for visit in ended.visits if not isinstance(visit.outcome, Stored)]
    assert failed == ["feed-7"]
    assert len(ended.visits) == STORED_TOGETHER
    assert len(pipeline.guids("feed-24")) == 11


def test_rewritten_guids_of_a_document_among_many_name_the_items_that_are_stored(
    pipeline: Pipeline, server: FeedServer
) -> None:
    def bodies(number: int, before: str) -> Iterator[bytes]:
        for n in range(STORED_TOGETHER):
            body = rss(*(f"{n}-{each}" for each in range(number)))
            yield body.replace(b"'>7-", f"'>{before}7-".encode())

    for n, url in enumerate(serve_many(server, bodies(4, ""))):
        pipeline.register(url, f"feed-{n}")
    pipeline.poll()
    serve_many(server, bodies(5, "new-"))
    pipeline.clock.turn(minutes=1)
    pipeline.poll(all_feeds=True)
    assert pipeline.guids("feed-7") == ["7-0", "7-1", "7-2", "7-3", "new-7-4"]


def test_documents_too_large_for_one_transaction_are_stored_in_several(
    pipeline: Pipeline, server: FeedServer
) -> None:
    large = rss(*(f"{n:04}-{'x' * 900}" for n in range(500)))
    for n in range(STORED_TOGETHER):
        body = large if n == 3 else rss(*(f"{n}-{each}-{'x' * 900}" for each in range(60)))
        pipeline.register(server.route("127.0.0.3", f"/feed-{n}", Answer(body=body)), f"feed-{n}")
    pipeline.sync()
    sizes: list[int] = []

    def seen(batch: Sequence[Statement]) -> None:
        sizes.append(sum(len(value) for each in batch for value in each.params if isinstance(value, str)))

    def database() -> Any:
        return Watched(connect(pipeline.settings), "insert items", seen)

    [ended] = pipeline.poll(database=database)
    assert all(isinstance(visit.outcome, Stored) for visit in ended.visits)
    assert len(pipeline.rows("SELECT id FROM items")) == 500 + 60 * (STORED_TOGETHER - 1)
    together = [size for size in sizes if size < 600_000]
    assert 4 < len(together) < STORED_TOGETHER - 1, "others may write in between"
    assert len(sizes) > len(together), "the large one is stored alone"


class WithoutBackups:
    """An object store that takes no backup."""

    def __init__(self, real: ObjectStore) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def put(self, key: str, *_: Any, **__: Any) -> bool:
        assert key.startswith("backups/")
        raise ObjectStoreUnavailable("the object store is down")


def test_feeds_without_a_document_are_closed_although_no_other_can_be_stored(
    pipeline: Pipeline, server: FeedServer
) -> None:
    failed = threading.Event()
    ids = [f"feed-{n}" for n in range(STORED_TOGETHER + 3)]
    for id in ids:
        pipeline.register(server.route("127.0.0.3", f"/{id}", Answer(body=rss(id))), id)
    gone = server.route("127.0.0.2", "/gone", Answer(status=410, wait_for=failed))
    pipeline.register(gone, "gone")
    pipeline.sync()
    objects: Any = WithoutBackups(pipeline.objects)
    with ThreadPoolExecutor(1) as run:
        polling = run.submit(pipeline.poll, objects=objects)
        try:
            soon(lambda: len(server.requests) == len(ids) + 1)
        finally:
            failed.set()
        with pytest.raises(ObjectStoreUnavailable, match="is down"):
            polling.result()
    assert pipeline.feed("gone")["last_error_kind"] == "gone"
    assert pipeline.guids(ids[0]) == []
    [ended] = pipeline.poll()
    assert sorted(visit.feed.id for visit in ended.visits) == sorted(ids)
    assert all(isinstance(visit.outcome, Stored) for visit in ended.visits)


HOSTS = [f"127.0.0.{n}" for n in range(10, 30)]


def test_a_round_of_a_shard_claims_again_while_claims_are_full(
    pipeline: Pipeline, server: FeedServer
) -> None:
    shard = Shard(number=1, of=2)
    ours = {f"f{host[-2:]}" for host in HOSTS if shard_of(bucket_of(host), shard.of) == shard.number}
    with a_session_of_many(pipeline, server, batch=3) as session:
        visits = poll_round(session, Due(now=pipeline.clock(), shard=shard), {})
        assert {visit.feed.id for visit in visits} == ours
        assert len(visits) == len(server.requests) == len(ours) > 3
        assert pipeline.rows("SELECT token FROM leases") == []


def test_a_round_of_a_shard_does_not_claim_again_once_its_time_is_over(
    pipeline: Pipeline, server: FeedServer
) -> None:
    its_time_is_over = count(step=ROUND_SECONDS).__next__
    with a_session_of_many(pipeline, server, batch=3, monotonic=its_time_is_over) as session:
        assert len(poll_round(session, Due(now=pipeline.clock(), shard=Shard(number=1, of=2)), {})) == 3


def test_a_round_of_all_shards_or_of_all_feeds_claims_once(pipeline: Pipeline, server: FeedServer) -> None:
    with a_session_of_many(pipeline, server, batch=3) as session:
        assert len(poll_round(session, Due(now=pipeline.clock()), {})) == 3
        now = pipeline.clock()
        wanted = NotVisitedSince(since=now, now=now, shard=Shard(number=1, of=2))
        assert len(poll_round(session, wanted, {})) == 3


@contextmanager
def a_session_of_many(
    pipeline: Pipeline, server: FeedServer, *, batch: int, monotonic: Callable[[], float] = time.monotonic
) -> Iterator[Session]:
    """One over a new feed on each of HOSTS."""
    for host in HOSTS:
        pipeline.register(server.route(host, "/feed", Answer(body=rss(host))), f"f{host[-2:]}")
    pipeline.sync()
    with Session(
        RunContext(
            settings=replace(pipeline.settings, batch_size=batch),
            database=pipeline.database,
            objects=pipeline.objects,
            run_id="round",
            clock=pipeline.clock,
        ),
        monotonic=monotonic,
    ) as session:
        yield session
