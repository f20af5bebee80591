"""Replays with a bad backup, a parser that fails or a crash: it is reported, and everything else comes in."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import pytest

from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.outcome import Parsed
from rss_pipeline.errors import ObjectStoreUnavailable
from rss_pipeline.features.replay import steps
from rss_pipeline.features.replay.service import backup_visits, one_feed
from rss_pipeline.pipeline.session import session
from rss_pipeline.pipeline.session.parser_pool import ParserPool, WorkerFailure
from rss_pipeline.pipeline.session.parser_tasks import ParseTask
from rss_pipeline.storage.objects import ObjectInfo, ObjectStore
from rss_pipeline_tests.features.replay.replays import (
    all_rows,
    collected,
    poll_over_time,
    replayed,
    replays_of,
    serve,
)
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import FeedServer


def test_a_bad_backup_is_a_row_of_the_report_and_stops_no_other(place: Pipeline, server: FeedServer) -> None:
    serve(place, server, "one", rss("a"), b"<html>down</html>", rss("b"))
    poll_over_time(place, 3)
    before = collected(place)
    place.objects.put("backups/one/0.xml", b"?", content_type="text/xml")
    place.database.query("DELETE FROM items")
    [one] = replayed(place)
    assert [(problem.backup_key, problem.kind) for problem in one.problems] == [
        ("backups/one/0.xml", "unreadable"),
        (place.backups("one")[2], "html"),
    ]
    assert [trouble.kind for trouble in one.unread] == ["unreadable"]
    assert (one.replayed, one.backups) == (2, 4)
    assert collected(place)["items"] == before["items"]


class _Stricter(ParserPool):
    """A parser that takes a document for a web page which yesterday's read."""

    def map(
        self, function: Callable[[Any], Any], tasks: Iterable[Any], *, timeout: float | None = None
    ) -> Iterator[tuple[Any, Any]]:
        for task, result in super().map(function, tasks, timeout=timeout):
            refused = isinstance(task, ParseTask) and isinstance(result, Parsed) and result.items_seen == 2
            yield task, WorkerFailure("html", "a web page") if refused else result


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_document_that_gave_items_once_and_none_now_is_reported_as_the_parser_s_fault(
    dry_run: bool, pipeline: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(pipeline, server, "one", rss("a", "b"), rss("b", "c", "d"))
    poll_over_time(pipeline, 2)
    rows = all_rows(pipeline)
    pipeline.parser_pool = None
    monkeypatch.setattr(session, "ParserPool", _Stricter)
    [one] = replayed(pipeline, dry_run=dry_run)
    assert [trouble.kind for trouble in one.unread] == ["no_longer_read"]
    assert (one.items_gone, sorted((each.what, each.title) for each in one.findings)) == (
        2,
        [("gone", "Title of a"), ("gone", "Title of b")],
    )
    assert all_rows(pipeline) == rows


class _Vanishing:
    """A store in which one object goes between list and get."""

    def __init__(self, store: Any, key: str) -> None:
        self._store = store
        self._key = key

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def get(self, key: str) -> tuple[bytes, ObjectInfo] | None:
        if key == self._key:
            self._store.delete_many([key])
        found: tuple[bytes, ObjectInfo] | None = self._store.get(key)
        return found


def test_a_backup_that_vanishes_meanwhile_is_reported_and_stops_no_other(
    pipeline: Pipeline, server: FeedServer
) -> None:
    serve(pipeline, server, "one", rss("a"), rss("b"), rss("c"))
    poll_over_time(pipeline, 3)
    pipeline.database.query("DELETE FROM items")
    middle = pipeline.backups("one")[1]
    with pipeline.session(objects=cast("ObjectStore", _Vanishing(pipeline.objects, middle))) as opened:
        [one] = replays_of(opened, ["one"])
    [problem] = one.unread
    assert (problem.backup_key, "is gone" in problem.message) == (middle, True)
    assert pipeline.guids("one") == ["a", "c"]


class _Deadly(ParserPool):
    """One document kills its worker."""

    def map(
        self, function: Callable[[Any], Any], tasks: Iterable[Any], *, timeout: float | None = None
    ) -> Iterator[tuple[Any, Any]]:
        for task, result in super().map(function, tasks, timeout=timeout):
            document = getattr(task, "document", None)
            deadly = document is not None and b"DEADLY" in document.path.read_bytes()
            yield task, WorkerFailure("crashed", "the parser process died") if deadly else result


def test_a_document_that_kills_its_worker_is_reported_and_stops_no_other(
    pipeline: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(pipeline, server, "one", rss("a"), rss("DEADLY"), rss("c"))
    poll_over_time(pipeline, 3)
    pipeline.database.query("DELETE FROM items")
    pipeline.parser_pool = None
    monkeypatch.setattr(session, "ParserPool", _Deadly)
    [one] = replayed(pipeline)
    assert [trouble.kind for trouble in one.unread] == ["crashed"]
    assert pipeline.guids("one") == ["a", "c"]


def test_a_replay_that_fails_closes_nothing(pipeline: Pipeline, server: FeedServer) -> None:
    serve(pipeline, server, "one", b"<html>down</html>")
    poll_over_time(pipeline, 1)
    before = pipeline.feed("one")
    with pipeline.session() as opened:
        visits = backup_visits(one_feed(opened.run.database, "one"), opened.run.objects)
        [parsed] = steps.parse(visits, run=opened.run, pool=opened.parser_pool, spool=opened.spool)
    assert isinstance(parsed.outcome, Failure)
    assert pipeline.feed("one") == before


def test_items_left_without_images_by_a_crash_are_looked_at_by_the_next_replay_or_poll(
    pipeline: Pipeline, server: FeedServer
) -> None:
    relative = rss("r").replace(b"<p>Text of r</p>", b"<img src='/relative.png'>")
    serve(
        pipeline,
        server,
        "one",
        relative.replace(b"http://example.com/</link>", b"http://old.example/</link>"),
        relative,
    )
    poll_over_time(pipeline, 2)
    before = collected(pipeline)
    assert pipeline.tasks() == ["http://example.com/relative.png"]

    class Dies:
        def begin(self, step: str, total: int) -> None:
            if step == "extract_images":
                raise ObjectStoreUnavailable("died here")

        def advance(self, step: str, by: int = 1) -> None: ...

    def again() -> None:
        replayed(pipeline)

    def next_poll() -> None:
        pipeline.poll(all_feeds=True)

    for heal in (again, next_poll):
        for table in ("image_tasks", "items"):
            pipeline.database.query(f"DELETE FROM {table}")
        with (
            pytest.raises(ObjectStoreUnavailable),
            pipeline.session(progress=Dies()) as opened,
        ):
            list(replays_of(opened, ["one"]))
        assert pipeline.tasks() == []
        assert pipeline.feed("one")["images_pending"] == 1
        heal()
        assert len(pipeline.tasks()) == 1
        assert pipeline.feed("one")["images_pending"] == 0
        if heal is again:
            assert collected(pipeline) == before, "resolved against the link of the document it came in"
