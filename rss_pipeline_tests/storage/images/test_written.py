"""The statement of docs/storage.md puts archived images into an item's HTML, in each database."""

import re
from pathlib import Path

import psycopg
import pytest

from rss_pipeline.collector.images.find import find_images
from rss_pipeline.collector.images.written import written_references
from rss_pipeline.collector.models.item import item_id
from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.images import image_tasks
from rss_pipeline.storage.images.image_tasks import ItemImages
from rss_pipeline_tests.storage.values import NOW, item, register, spec, visit

DOCS = Path(__file__).parents[3] / "docs" / "storage.md"
BASE = "https://example.com/news/"
ARCHIVED = "https://images.example/"
CASES = {
    "relative": ('<p><a href="x/a.jpg">a.jpg</a> <img src="a.jpg"></p>', "a.jpg"),
    "escaped": ('<img src="/r?u=1&amp;v=2"><img src=/r>', "/r?u=1&amp;v=2"),
    "set": ('<img srcset="s.jpg 1x, a.jpg?w=2&amp;h=3 2x" alt="a.jpg?w=2">', "a.jpg?w=2&amp;h=3"),
    "last": ("<picture><source srcset='s.jpg 1x,b.jpg 2x'><img></picture>", "b.jpg"),
}
"""Names of items: their HTML, and the image of theirs that is archived."""
SHOWN = {
    "relative": f'<p><a href="x/a.jpg">a.jpg</a> <img src="{ARCHIVED}relative"></p>',
    "escaped": f'<img src="{ARCHIVED}escaped"><img src=/r>',
    "set": f'<img srcset="s.jpg 1x, {ARCHIVED}set 2x" alt="a.jpg?w=2">',
    "last": f"<picture><source srcset='s.jpg 1x,{ARCHIVED}last 2x'><img></picture>",
    "none": "<p>none</p>",
}


@pytest.fixture
def known(database: Database) -> Database:
    """A feed. Each of its items has an archived image, except one."""
    register(database, spec("a"))
    htmls = {name: html for name, (html, _) in CASES.items()} | {"none": "<p>none</p>"}
    visit(database, [item(name, content_html=html) for name, html in htmls.items()])
    found = []
    for name, html in htmls.items():
        urls = find_images(html, bases=[BASE])
        written = written_references(html, urls, bases=[BASE])
        found.append(ItemImages(item_id=item_id("a", name), urls=urls, written=written))
    for batch in image_tasks.record_statements(found, feeds=[], rules="", now=NOW):
        database.batch(batch)
    for name, (_, written_there) in CASES.items():
        database.query(
            "UPDATE image_tasks SET status = 'success', r2_key = ? WHERE item_id = ? AND written = ?",
            [name, item_id("a", name), written_there],
        )
    return database


def test_archived_images_are_put_into_the_html_by_the_statement_of_the_docs(known: Database) -> None:
    [sql] = re.findall(r"```sql\n(WITH RECURSIVE.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    sql = sql.replace("'FEED'", "'a'")
    if isinstance(known, PostgresDatabase):
        # As a person types it, without our dialect.
        with psycopg.connect(known._url) as connection:
            shown = dict(connection.execute(sql.encode()).fetchall())
    else:
        shown = {row["id"]: row["html"] for row in known.query(sql).rows}
    assert shown == {item_id("a", name): html for name, html in SHOWN.items()}


def test_a_reference_is_noted_once_more_where_the_text_is_another_one(known: Database) -> None:
    id, url = item_id("a", "relative"), f"{BASE}a.jpg"
    known.query("UPDATE image_tasks SET written = NULL")
    image_tasks.write_references(known, {(id, url): "not-in-its-text.jpg"})
    assert _written(known, id) == [None]
    image_tasks.write_references(known, {(id, url): "a.jpg"})
    assert _written(known, id) == ["a.jpg"]
    found = ItemImages(item_id=id, urls=(url,), written={url: "./a.jpg"})
    for again, text in ((False, "a.jpg"), (True, "./a.jpg")):
        for batch in image_tasks.record_statements([found], feeds=[], rules="", now=NOW, again=again):
            known.batch(batch)
        assert _written(known, id) == [text]


def _written(database: Database, id: str) -> list[str | None]:
    rows = database.query("SELECT written FROM image_tasks WHERE item_id = ?", [id]).rows
    return [row["written"] for row in rows]
