"""Publishers that rewrite all guids at once: what is stored keeps its guid, and nothing comes twice."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from rss_pipeline.collector.models.item import item_id
from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.storage.backends.connect import connect
from rss_pipeline.storage.database import Database, Result, Statement, Value
from rss_pipeline_tests.storage import values
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer, etag_of

SITE = "https://e.example"


@dataclass(frozen=True)
class Entry:
    """An item as its publisher lists it."""

    guid: str | None
    link: str | None
    title: str
    day: int | None = 1

    def rss(self) -> str:
        guid = f"<guid isPermaLink='false'>{self.guid}</guid>" if self.guid else ""
        link = f"<link>{self.link}</link>" if self.link else ""
        date = f"<pubDate>{self.day:02} Jan 2026 08:00:00 GMT</pubDate>" if self.day else ""
        return f"<item>{guid}{link}<title>{self.title}</title>{date}</item>"


def entries(*numbers: int, guids: str = "old", **fields: Any) -> list[Entry]:
    """Items with these numbers, all guids of one kind."""
    return [replace(Entry(f"{guids}-{n}", f"{SITE}/{n}", f"Title {n}", n), **fields) for n in numbers]


def rss(items: Sequence[Entry]) -> bytes:
    listed = "".join(item.rss() for item in items)
    return f"<rss version='2.0'><channel><title>T</title>{listed}</channel></rss>".encode()


class Publisher:
    """A feed and its publisher: each document is served, and the feed visited."""

    def __init__(self, pipeline: Pipeline, server: FeedServer, id: str = "feed", **options: Any) -> None:
        self.pipeline, self.server, self.id = pipeline, server, id
        pipeline.register(self._serve(b""), id, **options)

    def _serve(self, body: bytes) -> str:
        return self.server.route("127.0.0.2", f"/{self.id}", Answer(body=body, etag=etag_of(body)))

    def serves(self, items: Sequence[Entry]) -> None:
        self._serve(rss(items))
        self.pipeline.clock.turn(hours=3)

    def then(self, items: Sequence[Entry], **parts: Any) -> list[str]:
        """The stored guids after a visit that found these."""
        self.serves(items)
        self.pipeline.poll(all_feeds=True, **parts)
        return self.guids()

    def guids(self) -> list[str]:
        return self.pipeline.guids(self.id)

    def warning_kinds(self) -> str:
        return str(self.pipeline.feed(self.id)["warning_kinds"] or "")


@pytest.fixture
def feed(pipeline: Pipeline, server: FeedServer) -> Publisher:
    return Publisher(pipeline, server)


def retire(pipeline: Pipeline, guid: str) -> None:
    values.retire(pipeline.database, item_id("feed", guid), at=pipeline.clock())


def test_later_documents_may_go_back_or_rewrite_again(feed: Publisher) -> None:
    before = feed.then(entries(1, 2, 3, 4))
    for guids in ("b", "old", "c", "b", "d", "old"):
        assert feed.then(entries(1, 2, 3, 4, guids=guids)) == before
    mixed = [*entries(1, guids="b"), *entries(2, guids="c"), *entries(3), *entries(9, guids="d")]
    assert feed.then(mixed) == sorted([*before, "d-9"])


ATOM = "<feed xmlns='http://www.w3.org/2005/Atom'><title>T</title><id>f</id>{}</feed>"
RDF = (
    "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'>"
    "<channel rdf:about='f'><title>T</title></channel>{}</rdf:RDF>"
)
FORMATS = {
    "atom": (
        ATOM,
        "<entry><id>{guid}</id><title>{title}</title><link href='{link}'/>"
        "<updated>2026-01-0{day}T08:00:00Z</updated></entry>",
    ),
    "rdf": (RDF, "<item rdf:about='{guid}'><title>{title}</title><link>{link}</link></item>"),
    "json": (
        '{{"version": "https://jsonfeed.org/version/1.1", "title": "T", "items": [{}]}}',
        '{{"id": "{guid}", "url": "{link}", "title": "{title}", "content_text": "x"}}',
    ),
    "ill-formed": (
        "<rss version='2.0'><channel><title>T & <b>co</title>{}</channel></rss>",
        "<item><guid isPermaLink='false'>{guid}</guid><title>{title} <i></title><link>{link}</link></item>",
    ),
}


@pytest.mark.parametrize("format", FORMATS)
def test_formats_are_alike(format: str, feed: Publisher) -> None:
    document, entry = FORMATS[format]

    def then(guids: str) -> list[str]:
        items = [entry.format(**vars(item)) for item in entries(1, 2, 3, 4, guids=guids)]
        feed._serve(document.format((", " if format == "json" else "").join(items)).encode())
        feed.pipeline.clock.turn(hours=3)
        feed.pipeline.poll(all_feeds=True)
        return feed.guids()

    before = then("old")
    assert len(before) == 4
    assert then("new") == before


def test_guids_that_appear_or_go_are_rewritten_too(feed: Publisher) -> None:
    links = [f"{SITE}/{n}" for n in range(1, 5)]
    without = [replace(item, guid=None) for item in entries(1, 2, 3, 4)]
    assert feed.then(without) == links
    assert feed.then(entries(1, 2, 3, 4)) == links
    assert feed.then(without) == links
    other = Publisher(feed.pipeline, feed.server, "other")
    before = other.then(entries(1, 2, 3, 4))
    assert other.then(without) == before
    shared = [replace(without[0], title="Another", day=9), *without]
    assert len(other.then(shared)) == 5, "an item that came to share its link is recognized by title and date"


@pytest.mark.parametrize("key", ["link", "title+date"])
def test_a_feed_with_another_key_from_now_on_brings_nothing_twice(key: str, feed: Publisher) -> None:
    before = feed.then(entries(1, 2, 3, 4))
    feed.pipeline.feeds[0]["key"] = key
    feed.pipeline.write_registry()
    assert len(feed.then(entries(1, 2, 3, 4, 5))) == 5
    assert set(before) < set(feed.guids())


def test_items_of_a_site_that_moved_with_its_guids_come_once(feed: Publisher) -> None:
    def at(site: str) -> list[Entry]:
        return [Entry(f"{site}/{n}", f"{site}/{n}?a=b", f"Title {n}", n) for n in range(1, 5)]

    before = feed.then(at("http://e.example"))
    assert feed.then(at("https://e.example")) == before
    assert feed.then(at("https://www.moved.example/blog"))[4:] != [], "another path is another page"
    other = Publisher(feed.pipeline, feed.server, "other")
    before = other.then(at("http://e.example"))
    assert other.then(at("https://www.moved.example")) == before
    changed = [replace(item, title=f"{item.title}, another") for item in at("https://third.example")]
    assert len(other.then(changed)) == 8, "the path alone is not enough on another host"


def test_what_is_ambiguous_is_new(feed: Publisher) -> None:
    twice = replace(entries(7)[0], link=f"{SITE}/4", title="Twice")
    before = feed.then([*entries(1, 2, 3, 4, 5), twice])
    listed = [*entries(1, 2, 3, 4, 5, guids="new"), Entry("new-x", f"{SITE}/5", "Another", 3)]
    assert feed.then(listed) == sorted([*before, "new-4", "new-5", "new-x"])


@pytest.mark.parametrize("link", [None, f"{SITE}/column"])
def test_a_daily_column_with_one_title_comes_every_day(link: str | None, feed: Publisher) -> None:
    """All its guids are new each day, and so are the dates."""
    stored = 0
    for week in range(3):
        days = range(1 + 5 * week, 6 + 5 * week)
        stored = len(feed.then([Entry(f"{week}-{day}", link, "The column", day) for day in days]))
    assert stored == 15
    undated = [Entry(f"undated-{n}", link, "The column", None) for n in range(5)]
    assert len(feed.then(undated)) == 20


def test_items_without_links_are_known_by_title_and_date(feed: Publisher) -> None:
    def plain(guids: str, *numbers: int) -> list[Entry]:
        return entries(*numbers, guids=guids, link=None)

    before = feed.then(plain("old", 1, 2, 3, 4))
    assert feed.then(plain("new", 1, 2, 3, 4, 5)) == sorted([*before, "new-5"])
    same = [replace(item, title="Title", day=1) for item in plain("more", 1, 2, 3, 4)]
    assert len(feed.then(same)) == 9


class Dying(Database):
    """A database that is gone from its n-th batch on."""

    def __init__(self, real: Database, batches: int) -> None:
        self.real, self.left = real, batches

    def query(self, sql: str, params: Sequence[Value] = (), *, name: str = "") -> Result:
        return self.real.query(sql, params, name=name)

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        if any("INSERT INTO item" in statement.sql for statement in statements):
            self.left -= 1
        if self.left < 0:
            raise DatabaseUnavailable("gone, as the test wants it")
        return self.real.batch(statements)

    def close(self) -> None:
        self.real.close()


@pytest.mark.parametrize("batches", range(5))
def test_a_run_that_dies_between_two_batches_neither_loses_nor_doubles(batches: int, feed: Publisher) -> None:
    """Half of the items are new, and so long that they need batches of their own."""
    long = "x" * 200_000
    before = feed.then(entries(*range(1, 11)))
    listed = [
        *entries(*range(1, 11), guids="new"),
        *(replace(item, title=f"{item.title} {long}") for item in entries(*range(11, 21), guids="new")),
    ]
    feed.serves(listed)
    feed.pipeline.try_poll(all_feeds=True, database=lambda: Dying(connect(feed.pipeline.settings), batches))
    feed.pipeline.lapse_leases()
    expected = sorted([*before, *(f"new-{n}" for n in range(11, 21))])
    assert feed.then(listed) == expected
    assert feed.then([*listed, *entries(21, guids="new")]) == sorted([*expected, "new-21"])


# Guids that are addresses, of which some are spelled otherwise in each document.

STARTS = ("http://e.example", "https://e.example", "https://www.e.example", "http://www.e.example")


def spelled(*numbers: int, turn: int, kind: str = "{0}{1}?p=1", **fields: Any) -> list[Entry]:
    """Items with guids in the spelling of a turn, each another one."""
    found = []
    for n in numbers:
        path = kind.format(n, "/" * ((n + turn) // 4 % 2))
        entry = Entry(f"{STARTS[(n + turn) % 4]}/{path}", f"{STARTS[turn % 4]}/post-{n}", f"Title {n}", n)
        found.append(replace(entry, **fields))
    return found


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("{0}{1}?p=1", {}),
        ("a/{0}{1}", {"day": None}),
        ("a/{0}{1}", {"link": None}),
        ("a/{0}{1}", {"link": None, "day": None}),
    ],
)
def test_an_item_keeps_its_guid_in_each_spelling_of_it(
    feed: Publisher, kind: str, fields: dict[str, Any]
) -> None:
    def listed(*numbers: int, turn: int) -> list[Entry]:
        return spelled(*numbers, turn=turn, kind=kind, **fields)

    first = feed.then(listed(1, 2, 3, 4, 5, turn=0))
    for turn in range(1, 9):
        assert feed.then([*listed(1, turn=turn), *listed(2, 3, 4, 5, turn=0)]) == first
    assert feed.then(listed(1, 2, 3, 4, 5, turn=3)) == first
    assert len(feed.then(listed(4, 5, 6, turn=2))) == 6
    assert "unstable" not in feed.warning_kinds()


def test_a_link_in_the_place_of_a_guid_is_one_item_in_each_spelling(feed: Publisher) -> None:
    assert len(feed.then(spelled(1, 2, 3, turn=0, guid=None))) == 3
    assert len(feed.then(spelled(1, 2, turn=1, guid=None))) == 3


def test_two_guids_of_one_document_are_two_items_in_any_spelling(feed: Publisher) -> None:
    [http, https] = (Entry(f"{start}/1", f"{SITE}/1", "Title", 1) for start in STARTS[:2])
    [www] = [replace(http, guid="https://www.e.example/1/")]
    assert feed.then([http, https]) == sorted([http.guid or "", https.guid or ""])
    assert len(feed.then([https, http])) == 2
    assert len(feed.then([www])) == 2
    assert len(feed.then([http, https, www])) == 3
    assert len(feed.then([www, https, http])) == 3


def test_a_guid_in_another_spelling_with_another_link_and_title_is_another_item(feed: Publisher) -> None:
    [old, new] = (
        Entry(f"{start}/1", f"{SITE}/{n}", f"Title {n}", n) for n, start in enumerate(STARTS[:2], 1)
    )
    feed.then([old])
    assert len(feed.then([new])) == 2
