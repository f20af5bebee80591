"""The HTML of items is kept by the run that stores them: of new ones only, by the search for their images."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from rss_pipeline.pipeline.session import parser_tasks
from rss_pipeline.pipeline.session.renew_html import renew
from rss_pipeline.reader.bodies import Bodies
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Result, Statement
from rss_pipeline.storage.items import body_parts as stored_bodies
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.places import ELSEWHERE, EVERYWHERE
from rss_pipeline_tests.support.server import Answer, FeedServer

HOST = "127.0.0.2"


def kept(pipeline: Pipeline) -> list[str]:
    """The guids of the items with HTML, with its version."""
    rows = pipeline.rows(
        "SELECT guid FROM items WHERE arrived IN (SELECT arrived FROM item_html) ORDER BY guid"
    )
    return [row["guid"] for row in rows]


def shown(pipeline: Pipeline, *guids: str) -> list[str]:
    """The HTML of these items, by a reader that has none in memory."""
    ids = {row["guid"]: row["id"] for row in pipeline.rows("SELECT guid, id FROM items")}
    wanted = [ids[guid] for guid in guids]
    keys = stored_bodies.keys_of(pipeline.database.batch([stored_bodies.versions(wanted)])[0])
    found = Bodies(pipeline.objects, seconds=lambda: 0.0).all_of(pipeline.database, keys.values())
    return [found[id].html for id in wanted]


def poll(pipeline: Pipeline, server: FeedServer, body: bytes, **options: Any) -> None:
    url = server.route(HOST, "/feed", Answer(body=body))
    if not pipeline.feeds:
        pipeline.register(url, "feed", **options)
    pipeline.clock.turn(hours=1)
    pipeline.poll(all_feeds=True)


@EVERYWHERE
def test_new_items_have_html_and_are_shown_by_it(place: Pipeline, server: FeedServer) -> None:
    poll(place, server, rss("a", "b", image="http://images.example"))
    expected = [f'<p>Text of {guid}</p><img src="http://images.example/{guid}.png">' for guid in "ab"]
    assert shown(place, "a", "b") == expected
    if place.settings.pays_by_row:
        assert kept(place) == [], "D1 takes no bytes"
        return
    assert kept(place) == ["a", "b"]
    place.database.query("UPDATE items SET content_html = 'another text'")
    assert shown(place, "a", "b") == expected


def test_of_a_document_with_one_new_item_one_is_sanitized(pipeline: Pipeline, server: FeedServer) -> None:
    poll(pipeline, server, rss("a", "b"))
    pipeline.database.query("DELETE FROM item_html")
    poll(pipeline, server, rss("c", "a", "b"))
    assert kept(pipeline) == ["c"]


class _Watched(SqliteDatabase):
    """The database, with the names of its statements."""

    names: list[str]

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        self.names += [statement.name for statement in statements]
        return super().batch(statements)


def test_long_html_does_not_make_more_writes_of_tasks(pipeline: Pipeline, server: FeedServer) -> None:
    chance = random.Random(1)
    texts = [chance.randbytes(40_000).hex() for _ in range(15)]
    guids = [f"g{number}" for number in range(len(texts))]
    body = rss(*guids, image="http://images.example").decode()
    for guid, text in zip(guids, texts, strict=True):
        body = body.replace(f"Text of {guid}<", f"{text}<")
    pipeline.register(server.route(HOST, "/feed", Answer(body=body.encode())), "feed")
    database = _Watched(pipeline.settings.database_path)
    database.names = []
    pipeline.poll(all_feeds=True, database=lambda: database)
    assert database.names.count("insert image tasks") == 1
    assert len(kept(pipeline)) == len(pipeline.tasks()) == 15


@pytest.mark.parametrize("image", [None, "http://images.example"])
@pytest.mark.parametrize("images", [True, False])
def test_items_of_feeds_without_images_have_html_too(
    pipeline: Pipeline, server: FeedServer, image: str | None, images: bool
) -> None:
    poll(pipeline, server, rss("a", image=image), images=images)
    assert kept(pipeline) == ["a"]
    assert len(pipeline.tasks()) == int(images and image is not None)


def test_a_run_that_ended_before_it_kept_html_loses_none(pipeline: Pipeline, server: FeedServer) -> None:
    poll(pipeline, server, rss("a", image="http://images.example"))
    # As a run leaves it that was killed after it stored its items.
    pipeline.database.query("DELETE FROM item_html")
    pipeline.database.query("DELETE FROM image_tasks")
    pipeline.database.query("UPDATE items SET images_extracted_at = NULL")
    pipeline.database.query("UPDATE feeds SET images_pending = 1")
    assert shown(pipeline, "a") == ['<p>Text of a</p><img src="http://images.example/a.png">']
    poll(pipeline, server, rss("b", "a", image="http://images.example"))
    assert kept(pipeline) == ["a", "b"]
    assert len(pipeline.tasks()) == 2


def test_a_search_that_was_not_begun_early_is_made_then(
    pipeline: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Workers cannot: as where each of them is killed meanwhile.
    monkeypatch.setattr(parser_tasks, "_early", lambda path: path / "no folder")
    poll(pipeline, server, rss("a", "b", image="http://images.example"))
    assert kept(pipeline) == ["a", "b"]
    assert len(pipeline.tasks()) == 2


@ELSEWHERE
def test_nothing_of_d1_is_written_for_html(place: Pipeline, server: FeedServer) -> None:
    poll(place, server, rss("a"))
    assert place.rows("SELECT count(*) AS n FROM item_html") == [{"n": int(not place.settings.pays_by_row)}]
    assert renew(place.database, is_over=lambda: False) == 0
