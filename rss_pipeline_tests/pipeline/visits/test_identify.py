"""Items without guid: all that share a link are stored, and what is stored keeps its guid and comes once."""

import hashlib
import json
import re
from collections.abc import Sequence

from rss_pipeline.collector.models.item import item_id
from rss_pipeline.storage.backends.connect import connect
from rss_pipeline.storage.backups.backups import METADATA_NAME
from rss_pipeline.storage.database import Database, Result, Statement, Value
from rss_pipeline_tests.storage import values
from rss_pipeline_tests.support.checked import checked
from rss_pipeline_tests.support.pipeline import NOON, Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer, etag_of

PAGE = "http://e.example/news"
RDF = (
    'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"'
    ' xmlns:dc="http://purl.org/dc/elements/1.1/"'
)
FIRST, SECOND, THIRD = "1 Jan 2026", "2 Jan 2026", "3 Jan 2026"


def document(*items: tuple[str, str | None], link: str = PAGE) -> bytes:
    """A document with these items (title and date), none of which has a guid, all with one link."""
    rows = "".join(
        f"<item><title>{title}</title><link>{link}</link>"
        + (f"<pubDate>{date}</pubDate>" if date else "")
        + f"<description>{title}&lt;img src='http://images.example/{title}.png'&gt;</description></item>"
        for title, date in items
    )
    return f"<rss version='2.0'><channel><title>T</title>{rows}</channel></rss>".encode()


class Serves:
    """A feed and its publisher: each document is served, and the feed visited."""

    def __init__(self, pipeline: Pipeline, server: FeedServer, body: bytes, **options: str) -> None:
        self.pipeline, self.server = pipeline, server
        self.id = pipeline.register(self._serve(body), "feed", **options)
        pipeline.poll()

    def _serve(self, body: bytes) -> str:
        return self.server.route("127.0.0.2", "/feed", Answer(body=body, etag=etag_of(body)))

    def then(self, *items: tuple[str, str | None], **fields: str) -> dict[str, str]:
        """The stored items after a visit that found these."""
        return self.then_body(document(*items, **fields))

    def then_body(self, body: bytes) -> dict[str, str]:
        self._serve(body)
        self.pipeline.clock.turn(hours=3)
        self.pipeline.poll(all_feeds=True)
        return self.stored()

    def stored(self) -> dict[str, str]:
        """Title and guid of each item."""
        rows = self.pipeline.rows("SELECT title, guid FROM items ORDER BY title, guid")
        found = {row["title"]: row["guid"] for row in rows}
        assert len(found) == len(rows), "an item came twice"
        return found


def md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def retire(pipeline: Pipeline, guid: str) -> None:
    """Let this item be retired now, by the pipeline's clock."""
    id = item_id("feed", guid)
    pipeline.database.query("DELETE FROM image_tasks WHERE item_id = ?", [id])
    values.retire(pipeline.database, id, at=pipeline.clock())


def as_by_an_earlier_version(pipeline: Pipeline, unknown: str = "shared_links", source: str = "link") -> str:
    """Leave the feed as the code before left it: the oldest item alone, under its link; return its title."""
    [body] = [pipeline.objects.get(key) for key in pipeline.backups("feed")]
    assert body is not None
    text, info = body
    known = json.loads(info.metadata[METADATA_NAME])
    assert known.pop(unknown)
    path = pipeline.settings.home / "backup"
    path.write_bytes(text)
    pipeline.objects.delete_many([info.key])
    pipeline.objects.put(
        info.key, path, content_type="application/xml", metadata={METADATA_NAME: json.dumps(known)}
    )
    first, *others = pipeline.rows("SELECT id, guid, title FROM items ORDER BY arrived")
    for item in (first, *others):
        pipeline.database.query("DELETE FROM image_tasks WHERE item_id = ?", [item["id"]])
    for item in others:
        pipeline.database.query("DELETE FROM items WHERE id = ?", [item["id"]])
    pipeline.database.query(
        "UPDATE items SET id = ?, guid = ?, guid_source = ? WHERE id = ?",
        [item_id("feed", PAGE), PAGE, source, first["id"]],
    )
    return str(first["title"])


NEWS = [(f"News {n:02}", f"{n} Jan 2026") for n in range(1, 21)]


def test_items_that_share_a_link_are_all_stored_and_come_once(place: Pipeline, server: FeedServer) -> None:
    feed = Serves(place, server, document(*NEWS))
    before = feed.stored()
    assert before == {title: md5(title + date) for title, date in NEWS}
    assert {row["guid_source"] for row in place.items("feed")} == {"hash"}
    assert len(place.tasks()) == 20, "one image each"
    assert feed.then(("News 21", "21 Jan 2026"), *NEWS) == before | {"News 21": md5("News 2121 Jan 2026")}
    assert feed.then(NEWS[3]) == feed.stored(), "also alone it is the item that it was"
    assert place.feed("feed")["warning"] is None
    [found] = checked({"guids_stable"}, place.database, now=NOON)
    assert found.state == "ok"


def test_an_item_that_came_alone_keeps_its_link_as_guid(pipeline: Pipeline, server: FeedServer) -> None:
    feed = Serves(pipeline, server, document(("a", FIRST)))
    assert feed.stored() == {"a": PAGE}
    found = feed.then(("b", SECOND), ("a", FIRST))
    assert found == {"a": PAGE, "b": md5("b" + SECOND)}
    assert feed.then(("b", SECOND)) == found
    assert feed.then(("c", THIRD), ("b", SECOND)) == found | {"c": md5("c" + THIRD)}
    assert feed.then(("a", FIRST), ("c", THIRD)) == feed.stored()
    assert len(feed.stored()) == 3


def test_items_that_share_a_link_are_the_same_ones_after_their_site_has_moved(
    pipeline: Pipeline, server: FeedServer
) -> None:
    feed = Serves(pipeline, server, document(("b", SECOND), ("a", FIRST)))
    before = feed.stored()
    assert feed.then(("b", SECOND), ("a", FIRST), link="https://www.moved.example/news") == before
    other = feed.then_body(
        document(("b", SECOND), ("c", FIRST), link="http://e.example/another").replace(
            b"<title>b", b"<title>B"
        )
    )
    assert sorted(other) == ["B", "a", "b", "c"]


def test_an_edited_title_is_no_new_item_while_its_link_is_not_shared(
    pipeline: Pipeline, server: FeedServer
) -> None:
    feed = Serves(pipeline, server, document(("a", FIRST)))
    assert feed.then(("a, corrected", FIRST)) == {"a": PAGE}


def of_rdf(*items: tuple[str, str | None], link: str = PAGE) -> bytes:
    """RSS 1.0 with these items, each with its link as rdf:about."""
    body = document(*items, link=link).decode()
    body = re.sub(
        r"<item><title>(.*?)</title><link>", rf'<item rdf:about="{link}"><title>\1</title><link>', body
    )
    body = body.replace("<rss version='2.0'>", f"<rdf:RDF {RDF}>").replace("</rss>", "</rdf:RDF>")
    return body.replace("pubDate", "dc:date").encode()


def test_an_item_that_was_stored_under_an_rdf_about_of_several_is_found_by_its_link(
    pipeline: Pipeline, server: FeedServer
) -> None:
    def body(*names: str) -> bytes:
        rows = "".join(
            f"<item rdf:about='{PAGE}'><title>{name}</title><link>https://e.example/{name}</link></item>"
            for name in names
        )
        return f"<rdf:RDF {RDF}><channel><title>T</title></channel>{rows}</rdf:RDF>".encode()

    feed = Serves(pipeline, server, body("a", "z"))
    pipeline.database.query(
        "UPDATE items SET id = ?, guid = ? WHERE title = 'a'", [item_id("feed", PAGE), PAGE]
    )
    pipeline.database.query("DELETE FROM items WHERE title = 'z'")
    before = {"a": PAGE, "b": "https://e.example/b"}
    assert feed.then_body(body("b", "a")) == before
    assert feed.then_body(body("c", "b")) == before | {"c": "https://e.example/c"}


def test_a_title_that_was_stored_as_published_is_recognized_as_plain_text(
    pipeline: Pipeline, server: FeedServer
) -> None:
    feed = Serves(pipeline, server, document(("Tom &amp;amp; Jerry", FIRST), ("b", FIRST)))
    as_by_an_earlier_version(pipeline)
    pipeline.database.query("UPDATE items SET title = 'Tom &amp; Jerry'")
    found = feed.then(("c", SECOND), ("Tom &amp;amp; Jerry", FIRST), ("b", FIRST))
    assert found == {"Tom &amp; Jerry": PAGE, "b": md5("b" + FIRST), "c": md5("c" + SECOND)}


def test_an_item_that_was_stored_by_the_date_of_its_update_is_recognized(
    pipeline: Pipeline, server: FeedServer
) -> None:
    dated = "<dcterms:created>2026-01-01</dcterms:created><dcterms:modified>2026-02-02</dcterms:modified>"
    terms = b"<rss xmlns:dcterms='http://purl.org/dc/terms/'"
    one = document(("a", None)).replace(b"<description>", f"{dated}<description>".encode(), 1)
    feed = Serves(pipeline, server, one.replace(b"<rss", terms))
    assert feed.stored() == {"a": PAGE}
    # An earlier version took the update for the publication.
    pipeline.database.query("UPDATE items SET pub_date = '2026-02-02T00:00:00Z', pub_date_raw = '2026-02-02'")
    two = document(("a", None), ("b", FIRST)).replace(b"<description>", f"{dated}<description>".encode(), 1)
    assert feed.then_body(two.replace(b"<rss", terms)) == {"a": PAGE, "b": md5("b" + FIRST)}


def test_items_without_a_date_wait_with_a_warning_where_one_of_their_link_was_retired(
    pipeline: Pipeline, server: FeedServer
) -> None:
    feed = Serves(pipeline, server, document(("a", None)))
    retire(pipeline, PAGE)
    assert feed.then(("b", None), ("a", None)) == {}
    assert "2 of 2 items were left out" in pipeline.feed("feed")["warning"]
    [check] = checked({"guids_stable"}, pipeline.database, now=NOON)
    assert [row["feed"] for row in check.rows] == ["feed"]


def test_a_key_of_the_feed_is_not_looked_behind(pipeline: Pipeline, server: FeedServer) -> None:
    feed = Serves(pipeline, server, document(("a", FIRST)))
    pipeline.feeds[0]["key"] = "title+date"
    pipeline.write_registry()
    feed.server.route("127.0.0.2", "/feed", Answer(body=document(("a", FIRST), ("b", FIRST))))
    pipeline.poll(all_feeds=True)
    assert pipeline.guids("feed") == sorted([PAGE, md5("a" + FIRST), md5("b" + FIRST)])


def test_secrets_are_in_no_identity(pipeline: Pipeline, server: FeedServer) -> None:
    secret = "s3cr3t-of-the-feed"
    link = f"{PAGE}?token={secret}"
    url = server.route("127.0.0.2", "/feed", Answer(body=document(("a", FIRST), link=link)))
    pipeline.register(url, "feed", headers={"X-Token": secret})
    pipeline.poll()
    server.route("127.0.0.2", "/feed", Answer(body=document(("b", SECOND), ("a", FIRST), link=link)))
    pipeline.poll(all_feeds=True)
    assert pipeline.guids("feed") == sorted([md5("b" + SECOND), f"{PAGE}?token=***"])


class Named(Database):
    """The names of the statements that a run sends to the database."""

    def __init__(self, real: Database) -> None:
        self.real = real
        self.names: list[str] = []

    def query(self, sql: str, params: Sequence[Value] = (), *, name: str = "") -> Result:
        self.names.append(name)
        return self.real.query(sql, params, name=name)

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        self.names += [statement.name for statement in statements]
        return self.real.batch(statements)

    def close(self) -> None:
        self.real.close()


def test_only_a_new_document_with_items_without_guid_reads_what_is_stored(
    pipeline: Pipeline, server: FeedServer
) -> None:
    def looks() -> int:
        database = Named(connect(pipeline.settings))
        pipeline.poll(all_feeds=True, database=lambda: database)
        return database.names.count("find known identities")

    body = rss("a", "b")
    url = server.route("127.0.0.2", "/feed", Answer(body=body, etag=etag_of(body)))
    pipeline.register(url, "feed")
    assert looks() == 0
    body = document(("a", FIRST))
    server.route("127.0.0.2", "/feed", Answer(body=body, etag=etag_of(body)))
    # Once more for other spellings of its new guids.
    assert looks() == 2
    assert looks() == 0, "not modified"
