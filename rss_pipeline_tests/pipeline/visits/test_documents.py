"""Losses between a document and its items are seen and made good: cut, doubled, too long, condemned."""

import logging
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from multiprocessing import forkserver
from resource import RLIM_INFINITY, RLIMIT_FSIZE, prlimit
from typing import Any

import psutil
import pytest

from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.parse.document import parse_feed
from rss_pipeline.pipeline.session.parser_pool import WorkerFailure
from rss_pipeline.pipeline.session.parser_tasks import find_item_images
from rss_pipeline.pipeline.visits.visit import Stored
from rss_pipeline.storage.backups.backups import describe_backup
from rss_pipeline.storage.reports.overview import overview
from rss_pipeline_tests.support.checked import checked
from rss_pipeline_tests.support.kept_parsers import KeptParsers
from rss_pipeline_tests.support.pipeline import NOON, Pipeline, ends, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

HOST = "127.0.0.2"
CUT = "the document was cut off"


def cut(body: bytes, *, items: int) -> bytes:
    """The document up to the middle of the item after so many."""
    return body[: body.index(b"<title>", body.index(b"<item>")) if not items else nth(body, items) + 60]


def nth(body: bytes, items: int) -> int:
    place = -1
    for _ in range(items + 1):
        place = body.index(b"<item>", place + 1)
    return place


def serve(server: FeedServer, body: bytes, etag: str, **fields: Any) -> str:
    return server.route(HOST, "/feed", Answer(body=body, etag=etag, **fields))


LOOSE = b"<description>a <b>bold & <i>word</b></description>"


def broken(body: bytes) -> bytes:
    """A document that only the tolerant parser reads."""
    return body.replace(b"<item>", b"<item>" + LOOSE, 1)


@pytest.mark.parametrize("how", [lambda body: body, broken], ids=["strictly", "loosely"])
def test_a_cut_document_is_stored_as_far_as_it_goes_and_no_304_hides_the_rest(
    how: Any, place: Pipeline, server: FeedServer
) -> None:
    id = place.register(serve(server, rss("a"), '"1"', last_modified="Mon, 02 Mar 2026 10:00:00 GMT"), "feed")
    place.poll()
    before = place.feed(id)
    whole = how(rss("d", "c", "b", "a"))
    serve(server, cut(whole, items=2), '"2"')
    place.poll(all_feeds=True)
    feed = place.feed(id)
    assert place.guids(id) == ["a", "c", "d"]
    assert CUT in feed["warning"]
    for column in ("last_etag", "last_modified", "validators_url", "content_hash", "items_listed"):
        assert feed[column] == before[column], column
    assert feed["consecutive_failures"] == 0

    serve(server, whole, '"2"')
    place.poll(all_feeds=True)
    assert server.requests[-1].headers["if-none-match"] == '"1"'
    assert place.guids(id) == ["a", "b", "c", "d"]
    feed = place.feed(id)
    assert (feed["warning"], feed["warning_kinds"], feed["cut_hash"]) == (None, None, None)
    assert feed["last_etag"] == '"2"'
    assert [report["items_new"] for report in place.reports(id)] == [1, 2, 1]


def test_a_publisher_who_always_cuts_costs_one_backup_and_keeps_the_warning(
    pipeline: Pipeline, server: FeedServer
) -> None:
    id = pipeline.register(
        serve(server, cut(rss("a", "b", "c", image="http://i.example"), items=2), '"2"'), "feed"
    )
    for _ in range(3):
        pipeline.poll(all_feeds=True)
        assert CUT in pipeline.feed(id)["warning"]
        assert len(pipeline.backups(id)) == 1
        assert pipeline.feed(id)["last_etag"] is None
        assert pipeline.feed(id)["images_pending"] == 0
    assert pipeline.guids(id) == ["a", "b"]
    assert all("if-none-match" not in request.headers for request in server.requests)
    serve(server, cut(rss("a", "b", "c", "d"), items=3), '"3"')
    pipeline.poll(all_feeds=True)
    assert pipeline.guids(id) == ["a", "b", "c"], "another cut one is read"
    serve(server, rss("a", "b", "c", "d"), '"3"')
    pipeline.poll(all_feeds=True)
    assert pipeline.guids(id) == ["a", "b", "c", "d"]


def test_a_document_that_always_comes_cut_is_requested_less_and_less_from_the_third_time_on(
    pipeline: Pipeline, server: FeedServer
) -> None:
    id = pipeline.register(serve(server, cut(rss("a", "b"), items=1), '"1"'), "feed", interval="15m")

    def waits(visits: int) -> list[int]:
        """Minutes until the next visit, after each of so many."""
        found = []
        for number in range(visits):
            if number == 4:
                # Other bytes that are cut, too, and those of before.
                serve(server, cut(rss("c", "a", "b"), items=1), '"2"')
            pipeline.poll()
            feed = pipeline.feed(id)
            at = datetime.fromisoformat(feed["next_fetch_at"])
            found.append(round((at - pipeline.clock()).total_seconds() / 60))
            pipeline.clock.now = at
        return found

    def near(wanted: int, minutes: int) -> bool:
        return abs(minutes - wanted) <= 0.04 * wanted

    assert all(map(near, [15, 15, 30, 60, 120, 240, 480, 960, 1440, 1440], waits(10)))
    assert "cut off 10 times in a row" in pipeline.feed(id)["schedule_reason"]
    serve(server, rss("c", "a", "b"), '"3"')
    assert near(15, waits(1)[0]), "a whole one ends it"
    serve(server, cut(rss("d", "c", "a", "b"), items=1), '"4"')
    assert all(map(near, [15, 15, 30], waits(3)))
    server.route(HOST, "/feed", Answer(status=304))
    assert near(15, waits(1)[0]), "and so does a 304 to the whole one's ETag"


@pytest.mark.parametrize("answer", [Answer(status=304), Answer(body=rss("a"), headers={"ETag": '"1"'})])
def test_a_publisher_who_takes_the_cut_document_back_ends_the_warning(
    answer: Answer, pipeline: Pipeline, server: FeedServer
) -> None:
    id = pipeline.register(serve(server, rss("a"), '"1"'), "feed")
    pipeline.poll()
    serve(server, cut(rss("b", "a"), items=1), '"2"')
    pipeline.poll(all_feeds=True)
    assert CUT in pipeline.feed(id)["warning"]
    server.route(HOST, "/feed", answer)
    pipeline.poll(all_feeds=True)
    feed = pipeline.feed(id)
    assert (feed["warning"], feed["warning_kinds"], feed["last_etag"]) == (None, None, '"1"')
    serve(server, cut(rss("b", "a"), items=1), '"2"')
    pipeline.poll(all_feeds=True)
    assert CUT in pipeline.feed(id)["warning"], "it came again"


@pytest.mark.parametrize(
    "part", [{"cut_after": 300}, {"cut_after": 150, "gzip": True}, {"cut_after": 300, "chunked": True}]
)
def test_a_connection_that_ends_early_is_a_failure_that_keeps_the_validators(
    part: dict[str, Any], pipeline: Pipeline, server: FeedServer
) -> None:
    id = pipeline.register(serve(server, rss("a"), '"1"'), "feed")
    pipeline.poll()
    serve(server, rss("b", "a"), '"2"', **part)
    pipeline.poll(all_feeds=True)
    feed = pipeline.feed(id)
    assert (feed["last_error_kind"], feed["last_etag"], feed["failed_hash"]) == ("truncated", '"1"', None)
    serve(server, rss("b", "a"), '"2"')
    pipeline.poll(all_feeds=True)
    assert pipeline.guids(id) == ["a", "b"]


def test_a_cut_document_says_nothing_of_a_gap_nor_of_obsolete_tombstones(
    pipeline: Pipeline, server: FeedServer
) -> None:
    id = pipeline.register(serve(server, rss("b", "a"), '"1"'), "feed")
    pipeline.poll()
    pipeline.database.query("UPDATE feeds SET created_at = '2020-01-01T00:00:00Z'")
    pipeline.database.query(
        "INSERT INTO expired_items (feed_id, guid, expired_at) VALUES ('feed', 'old', '2020-01-01T00:00:00Z')"
    )
    pipeline.clock.now += timedelta(days=1)
    pipeline.database.query("UPDATE feeds SET planned_at = '2026-03-03T12:00:00Z'")
    serve(server, cut(rss("d", "c", "b"), items=2), '"2"')
    pipeline.poll(all_feeds=True)
    assert pipeline.guids(id) == ["a", "b", "c", "d"]
    assert pipeline.feed(id)["gaps"] == 0
    assert pipeline.rows("SELECT guid, unlisted_since FROM expired_items") == [
        {"guid": "old", "unlisted_since": None}
    ]


class _At:
    """A Progress that does something as a step begins, once."""

    def __init__(self, step: str, act: Any) -> None:
        self.step, self.act = step, act

    def begin(self, step: str, total: int) -> None:
        if step == self.step and self.act is not None:
            act, self.act = self.act, None
            act()

    def advance(self, step: str, by: int = 1) -> None: ...


@pytest.mark.slow
def test_a_parser_that_the_kernel_killed_condemns_no_document(pipeline: Pipeline, server: FeedServer) -> None:
    """SIGKILL from outside, while it reads."""
    many = broken(rss(*map(str, range(3_000))))
    id = pipeline.register(serve(server, many, '"1"', gzip=True), "feed")
    killed: list[int] = []

    def kill_first_that_reads() -> None:
        def at_work() -> list[psutil.Process]:
            # Not their server, which may have no worker yet.
            return [
                worker
                for server in psutil.Process().children()
                if "forkserver" in " ".join(server.cmdline())
                for worker in server.children()
            ]

        def kill() -> None:
            while not killed:
                with suppress(psutil.NoSuchProcess):
                    for each in at_work():
                        if sum(each.cpu_times()[:2]) > 0.2:
                            each.send_signal(signal.SIGKILL)
                            killed.append(each.pid)

        threading.Thread(target=kill, daemon=True).start()

    rounds = pipeline.poll(progress=_At("parse", kill_first_that_reads))
    assert len(killed) == 1
    assert ends(rounds, lambda visit: type(visit.outcome)) == [Stored]
    assert pipeline.feed(id)["failed_hash"] is None
    assert len(pipeline.items(id)) == 3_000


@pytest.mark.slow
def test_a_full_disk_in_a_worker_fails_the_run_and_counts_against_no_feed(
    pipeline: Pipeline, server: FeedServer
) -> None:
    id = pipeline.register(serve(server, rss(*map(str, range(10))), '"1"'), "feed")
    pipeline.parser_pool = None
    forkserver.ensure_running()
    workers_parent = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    prlimit(workers_parent, RLIMIT_FSIZE, (1_000, RLIM_INFINITY))
    try:
        [failed] = pipeline.try_poll()
    finally:
        prlimit(workers_parent, RLIMIT_FSIZE, (RLIM_INFINITY, RLIM_INFINITY))
    assert failed.error is not None
    assert "disk" in failed.error
    feed = pipeline.feed(id)
    assert (feed["consecutive_failures"], feed["failed_hash"], feed["unclosed_claims"]) == (0, None, 0)
    pipeline.poll()
    assert len(pipeline.items(id)) == 10
    assert len(pipeline.backups(id)) == 1


JUNK = b"this is no feed"


def test_a_condemned_document_is_read_again_by_other_parsers(pipeline: Pipeline, server: FeedServer) -> None:
    id = pipeline.register(serve(server, JUNK, '"1"'), "feed")
    pipeline.poll()
    version = pipeline.feed(id)["failed_version"]
    assert version
    pipeline.poll(all_feeds=True)
    pipeline.database.query("UPDATE feeds SET failed_version = 'older'")
    rounds = pipeline.poll(all_feeds=True)
    assert [failure.backup_key for failure in ends(rounds, lambda visit: visit.outcome)] == pipeline.backups(
        id
    )
    assert pipeline.feed(id)["failed_version"] == version, "read again, once"
    assert pipeline.feed(id)["consecutive_failures"] == 3


def test_a_sound_document_that_was_condemned_comes_in_with_the_next_version(
    pipeline: Pipeline, server: FeedServer
) -> None:
    id = pipeline.register(serve(server, rss("a"), '"1"'), "feed")
    pipeline.poll()
    condemned(pipeline, id)
    [failure] = ends(pipeline.poll(all_feeds=True), lambda visit: visit.outcome)
    assert isinstance(failure, Failure)
    assert pipeline.guids(id) == []
    pipeline.database.query("UPDATE feeds SET failed_version = 'older'")
    pipeline.poll(all_feeds=True)
    assert pipeline.guids(id) == ["a"]
    assert len(pipeline.backups(id)) == 1, "its bytes were backed up when they came first"
    assert pipeline.feed(id)["last_etag"] == '"1"'


def test_a_document_with_parsers_that_were_killed_is_read_again_at_the_next_visit(
    pipeline: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel of a machine without memory kills them, or a person: three times, and it proves nothing."""
    id = pipeline.register(serve(server, rss("a"), '"1"'), "feed")
    killed = WorkerFailure("crashed", "the parser process was killed", may_pass=True)
    with monkeypatch.context() as patched:
        patched.setattr(KeptParsers, "map", lambda _, _function, tasks: ((task, killed) for task in tasks))
        pipeline.poll()
    assert pipeline.feed(id)["last_error_kind"] == "crashed"
    assert pipeline.guids(id) == []
    pipeline.poll(all_feeds=True)
    assert pipeline.guids(id) == ["a"]
    assert len(pipeline.backups(id)) == 1
    assert pipeline.feed(id)["failed_hash"] is None


def test_items_with_parsers_that_were_killed_are_searched_for_images_at_the_next_visit(
    pipeline: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = rss("a").replace(b"<p>Text of a</p>", b'<p>Text</p><img src="https://pictures.example/a.jpg">')
    id = pipeline.register(serve(server, body, '"1"'), "feed")
    killed = WorkerFailure("crashed", "the parser process was killed", may_pass=True)
    maps = KeptParsers.map

    def only_documents(
        pool: KeptParsers, function: Any, tasks: Iterable[Any], **limits: Any
    ) -> Iterator[Any]:
        if function is find_item_images:
            return ((task, killed) for task in tasks)
        return maps(pool, function, tasks, **limits)

    with monkeypatch.context() as patched:
        patched.setattr(KeptParsers, "map", only_documents)
        patched.setattr(KeptParsers, "attempt", lambda *_: None)
        # As for a document that is too large to be searched while it is read.
        patched.setattr("rss_pipeline.pipeline.visits.parse.LARGE_BYTES", 1)
        pipeline.poll()
    assert pipeline.guids(id) == ["a"]
    assert pipeline.rows("SELECT original_url FROM image_tasks") == []
    pipeline.poll(all_feeds=True)
    assert pipeline.rows("SELECT original_url FROM image_tasks") == [
        {"original_url": "https://pictures.example/a.jpg"}
    ]


def condemned(pipeline: Pipeline, id: str) -> None:
    """As if the parsers had crashed on the feed's first document."""
    pipeline.database.query("DELETE FROM items")
    pipeline.database.query(
        """UPDATE feeds SET failed_hash = content_hash, content_hash = NULL, last_etag = NULL,
        last_error_kind = 'crashed', last_error = 'the parser process died', consecutive_failures = 1"""
    )
    from rss_pipeline.collector.parse.parser_version import parser_version

    pipeline.database.query("UPDATE feeds SET failed_version = ?", [parser_version()])


def test_items_that_share_a_link_are_counted_and_warned_of(
    pipeline: Pipeline, server: FeedServer, caplog: pytest.LogCaptureFixture
) -> None:
    items = "".join(
        f"<item><title>News</title><link>http://example.com/news</link><pubDate>{n + 1} Mar 2026</pubDate>"
        f"<description>Text {n}</description></item>"
        for n in range(3)
    )
    body = f'<rss version="2.0"><channel><title>T</title>{items}</channel></rss>'.encode()
    id = pipeline.register(serve(server, body, '"1"'), "feed")
    with caplog.at_level(logging.WARNING, "rss_pipeline"):
        pipeline.poll()
    feed = pipeline.feed(id)
    assert "2 of 3 items were left out" in feed["warning"]
    assert "key: title+date" in feed["warning"]
    assert "2 of 3 items were left out" in caplog.text
    assert pipeline.reports(id)[0]["duplicate_guids"] == 2
    assert overview(pipeline.database, now=pipeline.clock()).sharing == 1
    [check] = checked({"guids_stable"}, pipeline.database, now=NOON)
    assert check.state == "warning"
    assert [row["feed"] for row in check.rows] == [id]
    pipeline.feeds[0]["key"] = "title+date"
    pipeline.write_registry()
    serve(server, body + b" ", '"2"')
    pipeline.poll(all_feeds=True)
    assert len(pipeline.items(id)) == 4
    assert pipeline.feed(id)["warning"] is None
    [found] = checked({"guids_stable"}, pipeline.database, now=NOON)
    assert found.state == "ok"


def one_item(day: int) -> bytes:
    return (
        "<rss version='2.0'><channel><title>T</title>"
        f"<item><guid>today</guid><title>News of day {day}</title><link>http://example.com/{day}</link>"
        f"<pubDate>{day:02} Feb 2026 08:00:00 GMT</pubDate></item></channel></rss>"
    ).encode()


def test_a_guid_that_never_changes_is_warned_of(pipeline: Pipeline, server: FeedServer) -> None:
    id = pipeline.register(serve(server, one_item(16), '"1"'), "feed")
    pipeline.poll()
    serve(server, one_item(16).replace(b"News", b"Great news"), '"2"')
    pipeline.poll(all_feeds=True)
    assert pipeline.feed(id)["warning"] is None, "an item that was edited is the same item"
    serve(server, one_item(17), '"3"')
    pipeline.poll(all_feeds=True)
    assert '"News of day 17" has the guid of a stored item' in pipeline.feed(id)["warning"]
    [check] = checked({"guids_stable"}, pipeline.database, now=NOON)
    assert (check.state, [row["feed"] for row in check.rows]) == ("warning", [id])
    assert len(pipeline.items(id)) == 1


def test_an_item_that_is_listed_twice_is_no_loss(pipeline: Pipeline, server: FeedServer) -> None:
    id = pipeline.register(serve(server, rss("a", "b", "a"), '"1"'), "feed")
    pipeline.poll()
    assert pipeline.feed(id)["warning"] is None
    assert pipeline.reports(id)[0]["duplicate_guids"] == 1


def test_other_warnings_are_not_about_guids(pipeline: Pipeline, server: FeedServer) -> None:
    pipeline.register(serve(server, cut(rss("a", "b"), items=1), '"1"'), "feed")
    pipeline.poll()
    [found] = checked({"guids_stable"}, pipeline.database, now=NOON)
    assert found.state == "ok"


def dated(numbers: range, date: Any) -> bytes:
    items = "".join(
        f"<item><guid>{n:05}</guid>{'' if date is None else f'<pubDate>{date(n)}</pubDate>'}</item>"
        for n in numbers
    )
    return f'<rss version="2.0"><channel><title>T</title>{items}</channel></rss>'.encode()


@pytest.mark.slow
def test_a_feed_of_6000_items_oldest_first_gives_its_new_ones(pipeline: Pipeline, server: FeedServer) -> None:
    def day(n: int) -> str:
        return f"{2000 + n // 360}-{n % 360 // 30 + 1:02}-{n % 30 % 28 + 1:02}T00:00:00Z"

    id = pipeline.register(serve(server, dated(range(6_000), day), '"1"', gzip=True), "feed")
    pipeline.poll()
    guids = pipeline.guids(id)
    assert (len(guids), guids[-1]) == (5_000, "05999")
    assert "1,000 items were left out" in pipeline.feed(id)["warning"]
    serve(server, dated(range(6_001), day), '"2"', gzip=True)
    pipeline.poll(all_feeds=True)
    assert pipeline.guids(id)[-1] == "06000"


@pytest.mark.parametrize(
    "headers",
    [
        {"ETag": '"' + "e" * 9_000 + '"', "Last-Modified": "Mon, 02 Mar 2026 10:00:00 GMT"},
        {"ETag": '"' + "e" * 5_000 + '"', "Last-Modified": "Mon, 02 Mar 2026 10:00:00 GMT"},
        {"Last-Modified": "x" * 90_000},
        {"Content-Type": "text/xml; charset=utf-8; x=" + "y" * 6_000},
    ],
)
def test_a_long_header_keeps_no_feed_out(
    headers: dict[str, str], place: Pipeline, server: FeedServer
) -> None:
    id = place.register(server.route(HOST, "/feed", Answer(body=rss("a"), headers=headers)), "feed")
    place.poll()
    assert place.guids(id) == ["a"]
    info = place.objects.head(place.backups(id)[0])
    assert info is not None
    backup = describe_backup(info)
    assert backup.url == backup.requested_url == server.url(HOST, "/feed")
    if "ETag" in headers:
        assert (backup.etag, backup.last_modified) == (None, headers["Last-Modified"])
        # One that is kept is sent back; of 9,000 characters, with the request it would be refused.
        kept = headers["ETag"] if len(headers["ETag"]) < 8_000 else None
        assert place.feed(id)["last_etag"] == kept


def test_a_long_redirect_keeps_no_feed_out(place: Pipeline, server: FeedServer) -> None:
    target = "/long?" + "q" * 5_000
    server.route(HOST, target, Answer(body=rss("a"), etag='"1"'))
    id = place.register(server.route(HOST, "/feed", Answer(status=302, headers={"Location": target})), "feed")
    place.poll()
    assert place.guids(id) == ["a"]


def test_no_item_comes_twice_because_its_document_is_ill_formed_for_a_day(
    pipeline: Pipeline, server: FeedServer
) -> None:
    items = "".join(
        f"<item><title>News {n}</title><link>http://example.com/{n}</link>"
        f"<atom:link href='http://example.com/amp/{n}'/></item>"
        for n in range(3)
    )
    body = (
        '<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>T</title>'
        f"{items}</channel></rss>"
    ).encode()
    id = pipeline.register(serve(server, body, '"1"'), "feed")
    pipeline.poll()
    before = pipeline.guids(id)
    serve(server, broken(body), '"2"')
    pipeline.poll(all_feeds=True)
    assert any("tolerant" in repair for repair in parse_feed(broken(body)).header.repairs)
    assert pipeline.feed(id)["last_etag"] == '"2"'
    assert pipeline.guids(id) == before
    assert len(before) == 3


def test_an_item_stored_without_its_guid_by_an_earlier_version_does_not_come_twice(
    pipeline: Pipeline, server: FeedServer
) -> None:
    """It found none where tags of the document did not match, and stored the item under its link or hash."""
    titled, linked = "<title>One</title>", "<title>Two</title><link>http://example.com/2</link>"
    id = pipeline.register(
        serve(server, channel(f"<item>{titled}</item><item>{linked}</item>"), '"1"'), "feed"
    )
    pipeline.poll()
    before = pipeline.guids(id)
    guids = f"<item>{titled}<guid>1</guid></item><item>{linked}<guid>2</guid></item>"
    serve(server, broken(channel(guids)), '"2"')
    pipeline.poll(all_feeds=True)
    assert pipeline.guids(id) == before
    assert len(before) == 2


def channel(items: str) -> bytes:
    return f'<rss version="2.0"><channel><title>T</title>{items}</channel></rss>'.encode()


def test_items_of_one_document_arrive_oldest_first_and_those_without_a_date_as_the_newest(
    pipeline: Pipeline, server: FeedServer
) -> None:
    dates = {"new": "<pubDate>02 Mar 2026</pubDate>", "old": "<pubDate>01 Mar 2026</pubDate>", "undated": ""}
    items = "".join(f"<item><guid>{guid}</guid>{date}</item>" for guid, date in dates.items())
    body = f'<rss version="2.0"><channel>{items}</channel></rss>'.encode()
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=body)), "feed")
    pipeline.poll()
    rows = pipeline.rows("SELECT guid FROM items ORDER BY arrived")
    assert [row["guid"] for row in rows] == ["old", "new", "undated"]
