"""Documents that are decoded otherwise than before: what is stored keeps its guid, and nothing comes twice.

The former reading is written into the database, as a version with other rules for charsets left it.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from rss_pipeline.collector.models.item import item_id
from rss_pipeline.storage.backends.connect import connect
from rss_pipeline_tests.pipeline.visits.test_identify import Named
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer, etag_of

DAY = "1 Jan 2026"
RUSSIAN = "Правительство обсудило новый закон о бюджете"


def md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def xml(*items: str) -> str:
    return f"<rss version='2.0'><channel><title>T</title>{''.join(items)}</channel></rss>"


def item(title: str, *, guid: str = "", link: str = "") -> str:
    fields = (guid and f"<guid>{guid}</guid>") + (link and f"<link>{link}</link>")
    return f"<item>{fields}<title>{title}</title><pubDate>{DAY}</pubDate></item>"


@dataclass
class Publisher:
    """A feed of one codec, and what is stored of it."""

    pipeline: Pipeline
    server: FeedServer
    codec: str
    declares: bool = True
    id: str = "feed"
    key: str = "guid"

    def serves(self, document: str) -> None:
        body = document.encode(self.codec)
        headers = {"Content-Type": f"application/xml; charset={self.codec}"} if self.declares else {}
        answer = Answer(body=body, headers=headers, etag=etag_of(body))
        url = self.server.route("127.0.0.2", f"/{self.id}", answer)
        if self.id not in [feed["id"] for feed in self.pipeline.feeds]:
            self.pipeline.register(url, self.id, key=self.key)

    def publishes(self, document: str) -> None:
        self.serves(document)
        self.pipeline.clock.turn(hours=3)
        self.pipeline.poll(all_feeds=True)

    def was_read_by(self, former: str) -> None:
        """Leave what is stored as that codec would have read it."""

        def read(text: str | None) -> str:
            return (text or "").encode(self.codec).decode(former).strip()

        for row in self.pipeline.items(self.id):
            title, link, guid = read(row["title"]), read(row["link"]), read(row["guid"])
            if row["guid_source"] == "hash":
                guid = md5(title + DAY)
            self.pipeline.database.query(
                "UPDATE items SET id = ?, guid = ?, title = ?, link = ? WHERE id = ?",
                [item_id(self.id, guid), guid, title, link, row["id"]],
            )
        self.pipeline.database.query("UPDATE feeds SET charset = ? WHERE id = ?", [former, self.id])

    def guids(self) -> list[str]:
        return self.pipeline.guids(self.id)

    def charsets(self) -> tuple[str | None, str | None]:
        feed = self.pipeline.feed(self.id)
        return feed["charset"], feed["former_charset"]


PAGE = "http://e.example"
FEEDS: dict[str, tuple[str, Callable[[str], str]]] = {
    "by-guid": ("guid", lambda text: item(text, guid=text)),
    "by-link": ("guid", lambda text: item(text, link=f"{PAGE}/{text}")),
    "by-hash": ("guid", lambda text: item(text)),
    "by-shared-link": ("guid", lambda text: item(text, link=PAGE)),
    "by-key-link": ("link", lambda text: item(text, guid=text, link=f"{PAGE}/?{text}")),
    "by-key-title": ("title+date", lambda text: item(text, guid=text)),
}


def test_an_undeclared_document_that_new_rules_read_otherwise(place: Pipeline, server: FeedServer) -> None:
    feed = Publisher(place, server, "koi8-r", declares=False)
    feed.publishes(xml(item(RUSSIAN, guid=RUSSIAN)))
    assert feed.charsets() == ("koi8-r", None)
    feed.was_read_by("cp1251")
    before = feed.guids()
    feed.publishes(xml(item("Новый", guid="new"), item(RUSSIAN, guid=RUSSIAN)))
    assert feed.guids() == sorted([*before, "new"])
    assert feed.charsets() == ("koi8-r", "cp1251")


def test_a_document_of_ascii_alone_says_nothing_of_the_codec(pipeline: Pipeline, server: FeedServer) -> None:
    feed = Publisher(pipeline, server, "koi8-r", declares=False)
    feed.publishes(xml(item(RUSSIAN, guid=RUSSIAN)))
    feed.was_read_by("cp1251")
    before = feed.guids()
    feed.publishes(xml(item("a", guid="a")))
    assert feed.charsets() == ("cp1251", None)
    feed.publishes(xml(item(RUSSIAN, guid=RUSSIAN)))
    feed.publishes(xml(item("b", guid="b")))
    feed.publishes(xml(item(RUSSIAN, guid=RUSSIAN), item("c", guid="c")))
    assert feed.charsets() == ("koi8-r", "cp1251")
    assert feed.guids() == sorted([*before, "a", "b", "c"])


def test_an_item_that_came_alone_is_recognized_by_the_former_reading_of_its_title(
    pipeline: Pipeline, server: FeedServer
) -> None:
    feed = Publisher(pipeline, server, "koi8-r")
    feed.publishes(xml(item(RUSSIAN, link=PAGE)))
    feed.was_read_by("cp1251")
    feed.publishes(xml(item("Новый", link=PAGE), item(RUSSIAN, link=PAGE)))
    assert feed.guids() == sorted([PAGE, md5("Новый" + DAY)])


def test_an_item_that_shared_its_link_is_recognized_alone_by_its_former_hash(
    pipeline: Pipeline, server: FeedServer
) -> None:
    feed = Publisher(pipeline, server, "koi8-r")
    feed.publishes(xml(item(RUSSIAN, link=PAGE), item("Новый", link=PAGE)))
    feed.was_read_by("cp1251")
    before = feed.guids()
    feed.publishes(xml(item(RUSSIAN, link=PAGE)))
    assert feed.guids() == before


def test_what_was_a_character_reference_is_the_same_in_both_codecs(
    pipeline: Pipeline, server: FeedServer
) -> None:
    feed = Publisher(pipeline, server, "koi8-r")
    listed = [item(f"&#171;{RUSSIAN}&#187; &#8212; {n} &amp;#8212;") for n in range(2)]
    feed.publishes(xml(*listed))
    read = RUSSIAN.encode("koi8-r").decode("cp1251")
    titles = [f"«{read}» — {n} &#8212;{DAY}" for n in range(2)]
    for row, title in zip(pipeline.rows("SELECT id FROM items ORDER BY arrived"), titles, strict=True):
        pipeline.database.query(
            "UPDATE items SET id = ?, guid = ? WHERE id = ?",
            [item_id("feed", md5(title)), md5(title), row["id"]],
        )
    pipeline.database.query("UPDATE feeds SET charset = 'cp1251'")
    feed.publishes(xml(*listed, item("a", guid="a")))
    assert feed.guids() == sorted(["a", *map(md5, titles)])


def test_two_items_of_one_document_stay_two_where_one_is_the_other_s_former_reading(
    pipeline: Pipeline, server: FeedServer
) -> None:
    feed = Publisher(pipeline, server, "cp1252")
    # The character reference is read by both codecs as what the one reads for the other's letter.
    feed.publishes(xml(item("stored", guid="&#259;")))
    pipeline.database.query("UPDATE feeds SET charset = 'cp1250'")
    feed.publishes(xml(item("new", guid="ã"), item("stored", guid="&#259;")))
    assert feed.guids() == ["ã", "ă"]


def test_two_items_with_one_former_reading_stay_two(pipeline: Pipeline, server: FeedServer) -> None:
    feed = Publisher(pipeline, server, "cp850")
    feed.publishes(xml(item("a", guid="éá")))
    # Its á is a space in the other codec, and there is none around a guid.
    feed.was_read_by("cp1252")
    assert feed.guids() == ["\u201a"]
    # The newest comes first, as in most feeds: the item that is stored is the older one.
    feed.publishes(xml(item("b", guid="éáá"), item("a", guid="éá")))
    assert feed.guids() == ["éáá", "\u201a"]


def test_secrets_are_in_no_former_reading(pipeline: Pipeline, server: FeedServer) -> None:
    feed = Publisher(pipeline, server, "koi8-r")
    secret = "s3cr3t-of-the-feed"
    guid = f"{RUSSIAN}?token={secret}"
    pipeline.register(server.route("127.0.0.2", "/feed", Answer()), "feed", headers={"X-Token": secret})
    feed.publishes(xml(item("a", guid=guid)))
    feed.was_read_by("cp1251")
    feed.publishes(xml(item("a", guid=guid), item("b", guid="b")))
    read = RUSSIAN.encode("koi8-r").decode("cp1251")
    assert feed.guids() == sorted([f"{read}?token=***", "b"])


def test_only_identities_beyond_ascii_cost_a_query(pipeline: Pipeline, server: FeedServer) -> None:
    names: list[str] = []

    class Counting(Publisher):
        def looks(self, document: str) -> int:
            database = Named(connect(pipeline.settings))
            body = document.encode(self.codec)
            headers = {"Content-Type": f"application/xml; charset={self.codec}"}
            server.route("127.0.0.2", "/feed", Answer(body=body, headers=headers))
            pipeline.poll(all_feeds=True, database=lambda: database)
            names.extend(database.names)
            return database.names.count("find known identities")

    feed = Counting(pipeline, server, "koi8-r")
    feed.publishes(xml(item(RUSSIAN, guid="a")))
    pipeline.database.query("UPDATE feeds SET charset = 'cp1251', former_charset = 'cp1250'")
    assert feed.looks(xml(item(RUSSIAN, guid="b"))) == 0
    assert feed.looks(xml(item("c", guid="c"))) == 0
    assert feed.charsets() == ("koi8-r", "cp1251")
    assert feed.looks(xml(item("c", guid=RUSSIAN))) == 1
    pipeline.database.query("UPDATE feeds SET former_charset = NULL")
    assert feed.looks(xml(item("d", guid=RUSSIAN + "d"))) == 0, "without a former codec"
    assert "insert items" in names
