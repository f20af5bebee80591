"""Backups read again: what is missing comes in as it would have come, and nothing else is touched."""

import json
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.outcome import Parsed
from rss_pipeline.errors import ObjectStoreUnavailable, RssPipelineError
from rss_pipeline.pipeline.replay import open_backups, steps
from rss_pipeline.pipeline.replay.replay import backup_visits, one_feed
from rss_pipeline.pipeline.session import session
from rss_pipeline.pipeline.session.parser_pool import ParserPool, WorkerFailure
from rss_pipeline.pipeline.session.parser_tasks import ParseTask, parse_document, read_chunks
from rss_pipeline.storage.items.items import COLUMNS, chunked_rows
from rss_pipeline.storage.items.replay import READ, known_rows
from rss_pipeline.storage.objects import ObjectInfo, ObjectStore
from rss_pipeline_tests.pipeline.replay.replays import (
    all_rows,
    collected,
    drop_database,
    replayed,
    replays_of,
)
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.places import EVERYWHERE
from rss_pipeline_tests.support.server import Answer, FeedServer, etag_of

COLUMN = {name: number for number, name in enumerate(COLUMNS)}


def serve(pipeline: Pipeline, server: FeedServer, id: str, *bodies: bytes, **options: Any) -> None:
    """A feed with these documents, one after the other."""
    number = 10 + len(pipeline.feeds)
    answers = [Answer(body=body, etag=etag_of(body)) for body in bodies]
    pipeline.register(server.route(f"127.0.0.{number}", "/feed", *answers), id, **options)


def poll_over_time(pipeline: Pipeline, times: int) -> None:
    for _ in range(times):
        pipeline.poll(all_feeds=True)
        pipeline.clock.turn(hours=3)


# The parser of yesterday: drops items, reads a title and a date wrongly.


def _worse(task: ParseTask) -> Parsed:
    parsed = parse_document(task)
    rows = []
    for row in known_rows(read_chunks(parsed.path)).values():
        if row[COLUMN["guid"]] in {"missed", "missed-too"}:
            continue
        if row[COLUMN["guid"]].startswith("garbled"):
            row[COLUMN["title"]] = row[COLUMN["title"]].encode().decode("latin-1")
            row[COLUMN["content_html"]] = "<p>garbled</p>"
        if row[COLUMN["guid"]] == "dateless":
            at = instant(task.document.response.fetched_at)
            row[COLUMN["pub_date"]], row[COLUMN["pub_date_source"]] = at, "fetched"
        rows.append(row)
    if b"ghost" in task.document.path.read_bytes():
        rows.append(_ghost(task, rows[0]))
    with parsed.path.open("wb") as file:
        for chunk in chunked_rows(rows):
            pickle.dump(chunk, file)
    return replace(parsed, items_seen=len(rows))


def _ghost(task: ParseTask, like: list[Any]) -> list[Any]:
    ghost = list(like)
    ghost[COLUMN["guid"]], ghost[COLUMN["id"]] = "ghost", f"{len(task.feed.id):032}"
    return ghost


class _Yesterday(ParserPool):
    """Worker processes with yesterday's parser in them."""

    def map(
        self, function: Callable[[Any], Any], tasks: Iterable[Any], *, timeout: float | None = None
    ) -> Iterator[tuple[Any, Any]]:
        return super().map(_worse if function is parse_document else function, tasks, timeout=timeout)


@pytest.fixture
def with_worse_parser(place: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    poll_with_worse_parser(place, server, monkeypatch)
    return place


def poll_with_worse_parser(place: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two feeds, polled in two versions while the parser was worse than it is now."""
    serve(
        place,
        server,
        "one",
        rss("fine", "missed", "garbled-ü", image="http://i.example"),
        rss("fine", "missed", "missed-too", "late", "garbled-ö", "dateless", image="http://i.example"),
    )
    serve(place, server, "two", rss("fine", "x"), rss("x").replace(b"A feed", b"ghost"))
    kept, place.parser_pool = place.parser_pool, None
    with monkeypatch.context() as yesterday:
        yesterday.setattr(session, "ParserPool", _Yesterday)
        poll_over_time(place, 2)
    place.parser_pool = kept


@pytest.mark.slow
def test_a_mended_parser_brings_in_what_was_missed_as_of_when_it_was_published(
    with_worse_parser: Pipeline,
) -> None:
    place = with_worse_parser
    assert place.guids("one") == ["dateless", "fine", "garbled-ö", "garbled-ü", "late"]
    before = {row["id"]: row for row in place.items("one")}
    feed = place.feed("one")

    [one] = replayed(place, "one")

    assert (one.items_new, one.items_repaired) == (2, 0)
    now = {row["guid"]: row for row in place.items("one")}
    first, second = place.backups("one")
    assert (now["missed"]["created_at"], now["missed"]["backup_key"]) == (first[12:32], first)
    assert (now["missed-too"]["created_at"], now["missed-too"]["backup_key"]) == (second[12:32], second)
    assert {id: row for row in now.values() if (id := row["id"]) in before} == before
    assert place.feed("one") == feed
    assert "http://i.example/missed.png" in place.tasks()
    assert place.rows("SELECT id FROM items WHERE images_extracted_at IS NULL") == []


@pytest.mark.slow
def test_repair_mends_what_was_read_wrongly_and_keeps_what_it_was(with_worse_parser: Pipeline) -> None:
    place = with_worse_parser
    before = {row["guid"]: row for row in place.items("one")}
    feed = place.feed("one")

    [one] = replayed(place, "one", repair=True)

    assert (one.items_new, one.items_differ, one.items_repaired) == (2, 3, 3)
    now = {row["guid"]: row for row in place.items("one")}
    assert now["garbled-ü"]["title"] == "Title of garbled-ü"
    assert "Text of garbled-ü" in now["garbled-ü"]["content_html"]
    assert (now["dateless"]["pub_date"], now["dateless"]["pub_date_source"]) == (
        "2026-03-02T08:00:00Z",
        "feed",
    )
    for guid in before:
        for name in ("id", "guid", "created_at", "backup_key"):
            assert now[guid][name] == before[guid][name]
    versions = place.rows("SELECT * FROM item_versions")
    assert len(versions) == 3
    old = {row["id"]: row for row in before.values()}
    for version in versions:
        assert {name: version[name] for name in READ} == {
            name: old[version["item_id"]][name] for name in READ
        }
    assert place.feed("one") == feed
    assert "http://i.example/garbled-ü.png" in place.tasks(), "images of the mended text are looked for"
    rows = all_rows(place)
    [again] = replayed(place, "one", repair=True)
    assert (again.items_new, again.items_differ, again.items_repaired) == (0, 0, 0)
    assert all_rows(place) == rows


def test_repair_adds_all_authors_to_items_from_before_there_were_several(
    place: Pipeline, server: FeedServer
) -> None:
    authors = b"<author><name>Ada</name><title>Analyst</title></author><author>Bo</author></item>"
    serve(place, server, "one", rss("a", "b").replace(b"</item>", authors, 1))
    poll_over_time(place, 1)
    today = place.items("one")
    assert [(row["author"], row["authors"]) for row in today] == [("Ada", '["Ada","Bo"]'), (None, "[]")]
    place.database.query("UPDATE items SET authors = NULL, author = replace(author, 'Ada', 'AdaAnalyst')")
    [planned] = replayed(place, "one", repair=True, dry_run=True)
    assert [(each.title, each.fields) for each in planned.findings] == [("Title of a", ("author", "authors"))]
    [done] = replayed(place, "one", repair=True)
    assert (done.items_differ, done.items_repaired) == (1, 1)
    mended = {row["guid"]: (row["author"], row["authors"]) for row in place.items("one")}
    assert mended == {"a": ("Ada", '["Ada","Bo"]'), "b": (None, None)}


@pytest.mark.slow
@EVERYWHERE
def test_a_repaired_table_is_what_todays_parser_would_have_collected(with_worse_parser: Pipeline) -> None:
    place = with_worse_parser
    replayed(place, "one", repair=True)
    mended = [row for row in collected(place)["items"] if row["feed_id"] == "one"]
    drop_database(place)
    place.sync()
    replayed(place, "one")
    assert [row for row in collected(place)["items"] if row["feed_id"] == "one"] == mended


@pytest.mark.slow
def test_a_dry_run_writes_nothing_and_said_all_of_it(with_worse_parser: Pipeline) -> None:
    place = with_worse_parser
    rows = all_rows(place)
    objects = [(info.key, info.size, info.modified) for info in place.objects.list("")]
    one, two = replayed(place, dry_run=True, repair=True)
    assert all_rows(place) == rows
    assert [(info.key, info.size, info.modified) for info in place.objects.list("")] == objects

    told = {(finding.what, finding.title): finding.fields for finding in one.findings}
    assert told == {
        ("new", "Title of missed"): (),
        ("new", "Title of missed-too"): (),
        ("differs", "Title of garbled-Ã¼"): ("title", "content_html"),
        ("differs", "Title of garbled-Ã¶"): ("title", "content_html"),
        ("differs", "Title of dateless"): ("pub_date", "pub_date_source"),
    }
    assert (one.items_new, one.items_differ, one.items_gone) == (2, 3, 0)
    assert [(finding.what, finding.item_id) for finding in two.findings] == [("gone", f"{3:032}")]
    done = {finding.item_id for each in replayed(place, repair=True) for finding in each.findings}
    assert done == {finding.item_id for finding in (*one.findings, *two.findings)}
    assert place.guids("two") == ["fine", "ghost", "x"], "what is no longer found is never deleted"


@pytest.mark.slow
def test_replay_of_a_full_table_changes_nothing(place: Pipeline, server: FeedServer) -> None:
    serve(place, server, "one", rss("a", "b", image="http://i.example"), rss("b", "c"), rss("d"))
    serve(place, server, "two", b"<rss><channel><title>T</title><item><guid>1</guid></item></channel></rss>")
    serve(place, server, "page", b"<html>no feed</html>")
    poll_over_time(place, 3)
    rows = all_rows(place)
    for dry_run, repair in ((False, False), (True, False), (False, True)):
        done = replayed(place, dry_run=dry_run, repair=repair)
        assert {each.feed.id: (each.backups, each.items_new, each.findings_in_all) for each in done} == {
            "one": (3, 0, 0),
            "two": (1, 0, 0),
            "page": (1, 0, 0),
        }
        assert all_rows(place) == rows


def test_an_emptied_table_is_filled_in_time_order(place: Pipeline, server: FeedServer) -> None:
    serve(place, server, "one", rss("a", "b", image="http://i.example"), rss("c", "b"), rss("a", "d"))
    poll_over_time(place, 3)
    before, feed = collected(place), place.feed("one")
    for table in ("image_tasks", "items"):
        place.database.query(f"DELETE FROM {table}")
    [one] = replayed(place)
    assert (one.items_new, one.backups, one.replayed) == (4, 3, 3)
    assert collected(place) == before
    assert place.feed("one") == feed


def test_what_retention_removed_stays_away(pipeline: Pipeline, server: FeedServer) -> None:
    serve(pipeline, server, "one", rss("a", "b"))
    poll_over_time(pipeline, 1)
    pipeline.database.query("DELETE FROM items WHERE guid = 'a'")
    pipeline.database.query(
        "INSERT INTO expired_items (feed_id, guid, expired_at) VALUES ('one', 'a', '2026-03-02T12:00:00Z')"
    )
    for dry_run in (True, False):
        [one] = replayed(pipeline, dry_run=dry_run)
        assert one.items_new == 0
    assert pipeline.guids("one") == ["b"]


def test_old_backups_are_read_with_the_item_key_of_their_time(pipeline: Pipeline, server: FeedServer) -> None:
    serve(pipeline, server, "one", rss("a"), rss("a", "b"))
    pipeline.poll(all_feeds=True)
    pipeline.feeds[0]["key"] = "link"
    pipeline.write_registry()
    pipeline.clock.turn(hours=3)
    pipeline.poll(all_feeds=True)
    before = pipeline.items("one")
    assert [row["guid"] for row in before] == ["a", "http://example.com/a", "http://example.com/b"]
    replayed(pipeline)
    assert pipeline.items("one") == before
    pipeline.database.query("DELETE FROM items")
    replayed(pipeline)
    again = {"images_extracted_at": "", "arrived": 0}
    assert [{**row, **again} for row in pipeline.items("one")] == [{**row, **again} for row in before]


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
def test_a_document_that_gave_items_once_and_none_now_is_the_parser_s_fault_and_told(
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


def test_a_backup_that_vanishes_meanwhile_is_told_and_stops_no_other(
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


def test_a_document_that_kills_its_worker_is_told_and_stops_no_other(
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


@pytest.mark.slow
def test_many_backups_of_one_feed_cost_one_insert_an_item_and_little_room(
    pipeline: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_backups, "SLICE_BACKUPS", 5)
    serve(pipeline, server, "one", *(rss(*map(str, range(n, n + 5))) for n in range(12)))
    serve(pipeline, server, "two", rss("z"))
    poll_over_time(pipeline, 12)
    before = collected(pipeline)
    pipeline.database.query("DELETE FROM items")
    sent: list[int] = []
    batch = pipeline.database.batch

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(pipeline.database, name)

        def batch(self, statements: Any) -> Any:
            sent.extend(
                len(json.loads(param))
                for statement in statements
                for param in statement.params
                if statement.sql.startswith("INSERT INTO items") and str(param).startswith("[[")
            )
            return batch(statements)

    most = 0

    class Looking:
        """Looks into the spool whenever a visit is done with a step."""

        def begin(self, step: str, total: int) -> None: ...

        def advance(self, step: str, by: int = 1) -> None:
            nonlocal most
            most = max(most, len(list(pipeline.settings.spool_path.glob("*/*"))))

    with pipeline.session(database=Counting(), progress=Looking()) as opened:
        done = list(replays_of(opened, ["one", "two"]))
    assert [each.items_new for each in done] == [16, 1]
    assert sum(sent) == 17
    assert 0 < most <= 2 * 5
    assert collected(pipeline) == before


def test_a_feed_that_is_not_there_is_told_with_what_to_do(pipeline: Pipeline) -> None:
    with pytest.raises(RssPipelineError, match="rss-pipeline restore"):
        one_feed(pipeline.database, "unknown")


def test_a_feed_that_is_being_polled_is_replayed_beside(pipeline: Pipeline, server: FeedServer) -> None:
    serve(pipeline, server, "one", rss("a", "b"))
    poll_over_time(pipeline, 1)
    claim = pipeline.hold("one")
    pipeline.database.query("DELETE FROM items WHERE guid = 'b'")
    feed = pipeline.feed("one")
    replayed(pipeline, "one")
    assert pipeline.guids("one") == ["a", "b"]
    assert pipeline.feed("one") == feed
    assert feed["lease_token"] == claim.token


def test_a_replay_that_fails_closes_nothing(pipeline: Pipeline, server: FeedServer) -> None:
    serve(pipeline, server, "one", b"<html>down</html>")
    poll_over_time(pipeline, 1)
    before = pipeline.feed("one")
    with pipeline.session() as opened:
        visits = backup_visits(one_feed(opened.run.database, "one"), opened.run.objects)
        [parsed] = steps.parse(visits, run=opened.run, pool=opened.parser_pool, spool=opened.spool)
    assert isinstance(parsed.outcome, Failure)
    assert pipeline.feed("one") == before


# Crashes


def test_items_whose_images_a_crash_left_are_looked_at_by_the_next_replay_or_poll(
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
    assert pipeline.tasks() == ["http://old.example/relative.png"]

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


# The job


# The command


# A law: replay after any history gives what the history gave, and a second replay nothing.

GUIDS = st.lists(st.sampled_from("abcdef"), min_size=0, max_size=5, unique=True)


@pytest.mark.slow
@given(documents=st.lists(GUIDS, min_size=1, max_size=5), kept=st.sets(st.sampled_from("abcdef")))
@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    derandomize=True,
)
def test_a_replay_gives_back_whatever_was_lost(
    documents: list[list[str]],
    kept: set[str],
    tmp_path_factory: pytest.TempPathFactory,
    server: FeedServer,
) -> None:
    pipeline = Pipeline(tmp_path_factory.mktemp("law"))
    serve(pipeline, server, "one", *(rss(*guids, image="http://i.example") for guids in documents))
    poll_over_time(pipeline, len(documents))
    before = collected(pipeline)
    for row in pipeline.rows("SELECT id, guid FROM items"):
        if row["guid"] not in kept:
            pipeline.database.query("DELETE FROM image_tasks WHERE item_id = ?", [row["id"]])
            pipeline.database.query("DELETE FROM items WHERE id = ?", [row["id"]])
    replayed(pipeline)
    assert collected(pipeline) == before
    rows = all_rows(pipeline)
    replayed(pipeline)
    assert all_rows(pipeline) == rows
    pipeline.close()
