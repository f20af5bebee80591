"""Topics from rows to objects: what is due, what is put, and what a publication leaves behind."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from rss_pipeline.features.topics import sql
from rss_pipeline.features.topics.document_entry import HtmlCache
from rss_pipeline.features.topics.publish import Publication, PublicationStores, Target, publish
from rss_pipeline.features.topics.sql import due
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.sql import compact
from rss_pipeline.storage.stale import mark_items_stale
from rss_pipeline_tests.features.topics.candidates import candidate
from rss_pipeline_tests.features.topics.stored import set_topics, topic
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.stored import add_feeds, add_items, item


class Served(FolderStore):
    """A folder with an address for everybody, that keeps the keys which were put."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.puts: list[str] = []

    def put(self, key: str, *args: Any, **kwargs: Any) -> bool:
        self.puts.append(key)
        return super().put(key, *args, **kwargs)

    def url(self, key: str) -> str | None:
        return f"https://topics.example/{key}"


def stores(pipeline: Pipeline, served: FolderStore | None = None) -> PublicationStores:
    usual = PublicationStores.of(pipeline.settings, pipeline.database, pipeline.objects)
    if served is None:
        return usual
    return PublicationStores(
        database=pipeline.database,
        archive=served,
        target=Target(served, usual.target.name),
        settings=pipeline.settings,
    )


def published(pipeline: Pipeline, *only: str, served: FolderStore | None = None) -> dict[str, Publication]:
    done = publish(stores(pipeline, served), clock=pipeline.clock, only=only or None)
    return {each.topic_id: each for each in done}


def body(pipeline: Pipeline, name: str) -> Any:
    found = pipeline.objects.get(f"topics/{name}")
    assert found is not None
    return json.loads(found[0]) if name.endswith(".json") else found[0]


def day(number: int) -> str:
    return f"2026-02-{number:02}T00:00:00Z"


def titles(pipeline: Pipeline, topic_id: str) -> list[str]:
    return [each["title"] for each in body(pipeline, f"{topic_id}.json")["items"]]


def stored(pipeline: Pipeline, *items: Row) -> None:
    add_feeds(pipeline.database, "a", "b")
    add_items(pipeline.database, items or [item("a", "1", day(1)), item("b", "1", day(2))])


def test_nothing_is_put_and_nothing_written_while_nothing_is_new(pipeline: Pipeline) -> None:
    stored(pipeline)
    set_topics(pipeline.database, topic("t", "a", "b"), topic("u", "b"))
    assert due(pipeline.database, now=pipeline.clock()) == ["index", "t", "u"]
    served = Served(pipeline.settings.objects_path)
    first = published(pipeline, served=served)
    assert first["t"].changed == ("topics/t.json", "topics/t.atom")
    assert (first["t"].entries, first["t"].feeds, first["t"].error) == (2, 2, None)
    assert sorted(served.puts) == [
        *("topics/index.json", "topics/index.opml"),
        *("topics/t.atom", "topics/t.json", "topics/u.atom", "topics/u.json"),
    ]
    served.puts.clear()
    changes = pipeline.rows("SELECT total_changes() AS n")
    pipeline.clock.turn(days=1)
    assert published(pipeline, served=served) == {}
    assert served.puts == []
    assert pipeline.rows("SELECT total_changes() AS n") == changes


def test_a_topic_with_the_same_bytes_is_not_put(pipeline: Pipeline) -> None:
    stored(pipeline)
    set_topics(pipeline.database, topic("t", "a"))
    served = Served(pipeline.settings.objects_path)
    first = published(pipeline, served=served)["t"]
    served.puts.clear()
    set_topics(pipeline.database, topic("t", "a", every=timedelta(hours=1)))
    pipeline.clock.turn(hours=2)
    again = published(pipeline, served=served)["t"]
    assert (again.changed, again.hash, again.bytes) == ((), first.hash, first.bytes)
    assert served.puts == [], "nor the list: it does not show `every`"
    assert due(pipeline.database, now=pipeline.clock()) == []


def test_a_topic_waits_for_its_every_since_it_changed_and_by_hand_it_does_not(pipeline: Pipeline) -> None:
    stored(pipeline)
    set_topics(pipeline.database, topic("t", "a", every=timedelta(hours=1)))
    published(pipeline)
    add_items(pipeline.database, [item("a", "2", day(3))])
    pipeline.clock.turn(minutes=59)
    assert published(pipeline) == {}
    assert published(pipeline, "t")["t"].entries == 2
    add_items(pipeline.database, [item("a", "3", day(4))])
    pipeline.clock.turn(minutes=59)
    assert due(pipeline.database, now=pipeline.clock()) == []
    pipeline.clock.turn(minutes=1)
    assert published(pipeline)["t"].entries == 3


def test_a_clock_that_was_put_back_does_not_stop_publications(pipeline: Pipeline) -> None:
    stored(pipeline)
    set_topics(pipeline.database, topic("t", "a"))
    published(pipeline)
    add_items(pipeline.database, [item("a", "2", day(3))])
    pipeline.clock.turn(days=-400)
    assert published(pipeline)["t"].error is None


def test_a_removed_topic_is_published_once_more_and_leaves_the_list(pipeline: Pipeline) -> None:
    stored(pipeline)
    set_topics(pipeline.database, topic("t", "a"), topic("u", "b"))
    published(pipeline)
    set_topics(pipeline.database, topic("u", "b"))
    assert published(pipeline)["t"].changed == ("topics/t.json",), "Atom has no sign for it"
    last = body(pipeline, "t.json")
    assert (last["expired"], [each["title"] for each in last["items"]]) == (True, ["Item 1 of a"])
    assert [each["id"] for each in body(pipeline, "index.json")["topics"]] == ["u"]
    assert b"t.atom" not in body(pipeline, "index.opml")
    add_items(pipeline.database, [item("a", "2", day(3))])
    assert due(pipeline.database, now=pipeline.clock()) == []
    set_topics(pipeline.database, topic("t", "a"), topic("u", "b"))
    pipeline.clock.turn(hours=1)
    published(pipeline)
    assert "expired" not in body(pipeline, "t.json")
    assert [each["id"] for each in body(pipeline, "index.json")["topics"]] == ["t", "u"]


def test_the_list_is_put_when_it_changes_and_not_with_news(pipeline: Pipeline) -> None:
    stored(pipeline)
    set_topics(pipeline.database, topic("t", "a"))
    served = Served(pipeline.settings.objects_path)
    published(pipeline, served=served)
    add_items(pipeline.database, [item("a", "2", day(3))])
    served.puts.clear()
    pipeline.clock.turn(hours=1)
    published(pipeline, served=served)
    assert served.puts == ["topics/t.json", "topics/t.atom"]
    set_topics(pipeline.database, topic("t", "a", title="New"))
    served.puts.clear()
    pipeline.clock.turn(hours=1)
    published(pipeline, served=served)
    assert sorted(served.puts) == [
        *("topics/index.json", "topics/index.opml"),
        *("topics/t.atom", "topics/t.json"),
    ]
    [listed] = body(pipeline, "index.json")["topics"]
    assert listed["title"] == "New"


def test_a_change_of_the_list_while_it_is_put_is_published_next(pipeline: Pipeline) -> None:
    stored(pipeline)
    set_topics(pipeline.database, topic("t", "a"))
    changed: list[int] = []

    class Meanwhile(FolderStore):
        def put(self, key: str, *args: Any, **kwargs: Any) -> bool:
            if key == "topics/index.json" and not changed:
                changed.append(1)
                set_topics(pipeline.database, topic("t", "a", title="New"))
            return super().put(key, *args, **kwargs)

    published(pipeline, served=Meanwhile(pipeline.settings.objects_path))
    assert due(pipeline.database, now=pipeline.clock()) == ["index"]
    published(pipeline)
    [listed] = body(pipeline, "index.json")["topics"]
    assert listed["title"] == "New"


def test_documents_have_their_public_addresses_and_archived_images(pipeline: Pipeline) -> None:
    html = '<img src="https://a.example/1.png"><img src="https://a.example/2.png">'
    stored(pipeline, item("a", "1", day(1), content_html=html), item("b", "1", day(2), content_html=html))
    for id, key in ((0, "images/a/1.png"), (1, "images/b/1.png")):
        pipeline.database.query(
            "INSERT INTO image_tasks"
            " (id, item_id, original_url, r2_key, status, created_at, updated_at, host, position)"
            " SELECT ?, id, 'https://a.example/1.png', ?, 'success', '', '', '', 0"
            " FROM items WHERE feed_id = ?",
            [str(id), key, key[7]],
        )
    set_topics(pipeline.database, topic("t", "a", "b"))
    published(pipeline, served=Served(pipeline.settings.objects_path))
    shown = body(pipeline, "t.json")
    assert shown["feed_url"] == "https://topics.example/topics/t.json"
    assert b'rel="self"' in body(pipeline, "t.atom")
    # Each item has its own copy, since the other one goes with its item.
    assert [each["content_html"] for each in shown["items"]] == [
        f'<img src="https://topics.example/images/{id}/1.png"><img src="https://a.example/2.png">'
        for id in "ba"
    ]
    pipeline.clock.turn(hours=1)
    [listed] = body(pipeline, "index.json")["topics"]
    assert listed["atom"] == "https://topics.example/topics/t.atom"
    published(pipeline, "t")
    assert "feed_url" not in body(pipeline, "t.json"), "a folder has no address for others"
    assert "https://a.example/1.png" in body(pipeline, "t.json")["items"][0]["content_html"]


def test_by_hand_a_document_that_was_deleted_is_put_again(pipeline: Pipeline) -> None:
    stored(pipeline)
    set_topics(pipeline.database, topic("t", "a"))
    published(pipeline)
    pipeline.objects.delete_many(["topics/t.atom", "topics/index.opml"])
    assert published(pipeline, "t")["t"].changed == ("topics/t.atom",)
    assert body(pipeline, "index.opml")
    assert published(pipeline, "t")["t"].changed == ()


def test_a_new_database_continues_with_the_ids_of_the_published_topics(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    stored(pipeline)
    set_topics(pipeline.database, topic("t", "a"))
    published(pipeline)
    before = body(pipeline, "t.json")["_rss_pipeline"]["id"]
    for table in ("installation", "published_files"):
        pipeline.database.query(f"DELETE FROM {table}")
    published(pipeline, "t")
    assert body(pipeline, "t.json")["_rss_pipeline"]["id"] == before
    # Another installation has topics of its own.
    other = Pipeline(tmp_path / "other")
    stored(other)
    set_topics(other.database, topic("t", "a"))
    published(other)
    assert body(other, "t.json")["_rss_pipeline"]["id"] != before
    assert sql.set_installation(other.database, UUID(int=1)) != UUID(int=1)
    other.close()


def test_what_a_stream_brings_is_published_and_the_rest_of_its_feed_is_not(pipeline: Pipeline) -> None:
    add_feeds(pipeline.database, "a")
    add_items(pipeline.database, [item("a", "1", day(1)), item("a", "2", day(2))])
    add_items(pipeline.database, [item("a", "3", day(3)), item("a", "4", day(4))], streams=["s"])
    set_topics(
        pipeline.database, topic("t", "a/s"), topic("latest", "a/s", "a", each=1), topic("none", "a/x")
    )
    published(pipeline)
    assert titles(pipeline, "t") == ["Item 4 of a", "Item 3 of a"]
    assert titles(pipeline, "latest") == ["Item 4 of a"]
    assert titles(pipeline, "none") == []


def test_an_item_of_several_topics_is_cleaned_once() -> None:
    looked_up: list[str] = []

    def image(_: str, url: str) -> str | None:
        looked_up.append(url)
        return None

    def cleans(cache: HtmlCache, number: int, html: str) -> bool:
        looked_up.clear()
        assert cache(html, candidate(number), image) is not None
        return bool(looked_up)

    cache = HtmlCache()
    some = "<img src='/1.png'>"
    assert [cleans(cache, 1, some), cleans(cache, 1, some), cleans(cache, 2, some)] == [True, False, True]
    assert cleans(cache, 1, "<img src='/new.png'>"), "it was repaired meanwhile"
    small = HtmlCache(most_characters=150)
    assert [cleans(small, number, some) for number in (1, 2, 1, 3)] == [True, True, False, True]
    assert [cleans(small, number, some) for number in (1, 2)] == [False, True], "the oldest makes room"


def test_topics_of_a_folder_name_their_own_addresses_once_its_own_is_set(pipeline: Pipeline) -> None:
    stored(pipeline)
    set_topics(pipeline.database, topic("t", "a"))
    published(pipeline)
    assert "feed_url" not in body(pipeline, "t.json")
    address = "https://rss.example/archive/"
    settings = replace(pipeline.settings, objects_public_url=address)
    told = PublicationStores.of(settings, pipeline.database)
    publish(told, clock=pipeline.clock, only=("t",))
    assert body(pipeline, "t.json")["feed_url"] == "https://rss.example/archive/topics/t.json"
    own = rb'<link [^>]*href="https://rss\.example/archive/topics/t\.atom"'
    assert re.search(own, body(pipeline, "t.atom"))
    assert b"rss.example" in told.archive.get("topics/index.opml")[0]  # type: ignore[index]
    key = "images/a/0a1b2c3d/0.png"
    assert told.archive.url(key) == f"https://rss.example/archive/{key}"


def test_a_topic_with_stories_has_one_entry_of_each(pipeline: Pipeline) -> None:
    rows = [item("a", "1", day(3)), item("b", "2", day(2)), item("b", "3", day(1))]
    stored(pipeline, *rows)
    plain, once = topic("plain", "b", "a"), topic("once", "b", "a", stories=True)
    set_topics(pipeline.database, plain, once)
    published(pipeline)
    assert (
        titles(pipeline, "once") == titles(pipeline, "plain") == ["Item 1 of a", "Item 2 of b", "Item 3 of b"]
    )
    place_in_story(pipeline, rows[:2], [[], [[rows[0]["id"], "event"]]])
    pipeline.database.batch(mark_items_stale([str(rows[1]["id"])]))
    pipeline.clock.turn(hours=1)
    done = published(pipeline)
    assert (done["plain"].changed, done["plain"].entries) == ((), 3)
    # The entry is that of the member that is named first.
    assert titles(pipeline, "once") == ["Item 2 of b", "Item 3 of b"]
    assert published(pipeline, "once")["once"].changed == ()


def place_in_story(pipeline: Pipeline, rows: list[dict[str, Any]], joins: list[list[list[str]]]) -> None:
    for row, some in zip(rows, joins, strict=True):
        pipeline.database.query(
            """INSERT INTO story_members
              (item_id, story_id, feed_id, arrived, article, lead, decided_at, version, joins, ordinal)
            SELECT id, ?, feed_id, 1, id, 1, created_at, 1, ?, 1 FROM items WHERE id = ?""",
            [rows[0]["id"], compact(some), row["id"]],
        )


def test_no_other_feed_takes_an_item_out_of_a_topic(pipeline: Pipeline) -> None:
    """The item of h ties those of a and b, which share nothing."""
    rows = [item("a", "1", day(1)), item("h", "2", day(2)), item("b", "3", day(3)), item("c", "4", day(4))]
    add_feeds(pipeline.database, *"abch")
    add_items(pipeline.database, rows)
    first, tie, *_ = (row["id"] for row in rows)
    joins = [[], [[first, "text"]], [[tie, "text"]], [["", "event", first, tie]]]
    place_in_story(pipeline, rows, joins)
    topics = {
        "without": topic("without", "a", "b", stories=True),
        "with": topic("with", "a", "b", "h", stories=True),
        "led": topic("led", "h", "a", "b", stories=True),
        "joint": topic("joint", "a", "c", stories=True),
        "both": topic("both", "a", "c", "h", stories=True),
    }
    set_topics(pipeline.database, *topics.values())
    published(pipeline)
    assert {name: titles(pipeline, name) for name in topics} == {
        "without": ["Item 3 of b", "Item 1 of a"],
        "with": ["Item 3 of b", "Item 1 of a"],
        "led": ["Item 2 of h"],
        "joint": ["Item 4 of c", "Item 1 of a"],
        "both": ["Item 1 of a"],
    }
