"""A stored item with its archived images in place: what the command prints, and what an asset gets."""

from typing import Any
from urllib.request import urlopen

import pytest

from rss_pipeline.pipeline.read.terminal_text import item_html, items_html
from rss_pipeline.storage.backends.s3.objects import S3Store
from rss_pipeline.storage.images import image_tasks
from rss_pipeline.storage.items import items
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

HOST = "127.0.0.2"
PNG = b"\x89PNG\r\n\x1a\n and what follows"
CONTENT = (
    '<p>Text &nbsp; of a<img src="/1.png?a=1&amp;b=2"><img src="2.png"><img src="3.png">'
    '<img src="blank.gif" data-src="/1.png?a=1&b=2">'
)


@pytest.fixture
def stored(pipeline: Pipeline, server: FeedServer) -> Pipeline:
    store(pipeline, server)
    return pipeline


def store(pipeline: Pipeline, server: FeedServer) -> None:
    """One feed with the items a and b; of the images of a one is archived, one pending, one failed."""
    body = rss("a", "b").replace(b"<p>Text of a</p>", CONTENT.encode())
    pipeline.register(server.route(HOST, "/feed", Answer(body=body)), "news")
    pipeline.poll()
    archive(pipeline, "http://example.com/1.png?a=1&b=2", "images/news/0cc175b9/0 a語#?,%.png")
    pipeline.database.query(
        "UPDATE image_tasks SET status = 'failed', r2_key = 'images/x' WHERE original_url LIKE '%/3.png'"
    )
    assert [task["status"] for task in tasks(pipeline)] == ["success", "pending", "failed"]


def archive(pipeline: Pipeline, url: str, key: str) -> None:
    pipeline.objects.put(key, PNG, content_type="image/png")
    found = pipeline.database.query(
        "UPDATE image_tasks SET status = 'success', r2_key = ?, bytes = ? WHERE original_url = ?",
        [key, len(PNG), url],
    )
    assert found.changes == 1


def tasks(pipeline: Pipeline) -> list[dict[str, Any]]:
    return pipeline.rows("SELECT * FROM image_tasks ORDER BY position")


def item(pipeline: Pipeline, guid: str = "a") -> dict[str, Any]:
    id = next(row["id"] for row in pipeline.items("news") if row["guid"] == guid)
    found = items.item(pipeline.database, id)
    assert found is not None
    return found


def test_archived_images_are_in_place_and_pending_and_failed_ones_are_the_publishers(
    stored: Pipeline,
) -> None:
    html = item_html(stored.database, stored.objects, item(stored))
    url = stored.objects.url("images/news/0cc175b9/0 a語#?,%.png")
    assert html == (
        f'<p>Text &nbsp; of a<img src="{url}"><img src="2.png"><img src="3.png">'
        f'<img src="{url}" data-src="{url}">'
    )


def test_a_folders_url_opens_to_the_images_bytes(stored: Pipeline) -> None:
    html = item_html(stored.database, stored.objects, item(stored)) or ""
    url = html.split('<img src="')[1].split('"')[0]
    assert url.startswith("file:///")
    with urlopen(url) as file:
        assert file.read() == PNG


def test_what_is_stored_is_not_changed(stored: Pipeline) -> None:
    before = stored.rows("SELECT * FROM items"), tasks(stored)
    item_html(stored.database, stored.objects, item(stored))
    assert (stored.rows("SELECT * FROM items"), tasks(stored)) == before
    assert item(stored)["content_html"] == CONTENT


def bucket(public_url: str | None) -> S3Store:
    """A store that is only asked for URLs."""
    return S3Store(
        endpoint_url="http://127.0.0.1:9",
        bucket="b",
        access_key_id="k",
        secret_access_key="s",
        public_url=public_url,
    )


def test_without_a_public_url_the_originals_stay(stored: Pipeline) -> None:
    assert item_html(stored.database, bucket(None), item(stored)) == CONTENT


def test_a_buckets_public_url_leads_to_the_key(stored: Pipeline) -> None:
    html = item_html(stored.database, bucket("https://img.example/rss/"), item(stored)) or ""
    assert '<img src="https://img.example/rss/images/news/0cc175b9/0%20a%E8%AA%9E%23%3F%2C%25.png">' in html


def test_an_item_without_images_or_without_content_is_as_it_is(stored: Pipeline) -> None:
    assert item_html(stored.database, stored.objects, item(stored, "b")) == "<p>Text of b</p>"
    empty = {**item(stored), "content_html": None}
    assert item_html(stored.database, stored.objects, empty) is None


def test_a_picture_beside_the_content_is_above_it_with_its_archived_copy(stored: Pipeline) -> None:
    picture = '[{"url": "http://example.com/t.jpg", "type": "image/*"}]'
    row = {**item(stored, "b"), "enclosures": picture}
    above = '<p><img src="http://example.com/t.jpg" alt=""></p>'
    assert item_html(stored.database, stored.objects, row) == f"{above}<p>Text of b</p>"
    assert item_html(stored.database, stored.objects, {**row, "content_html": None}) == above
    stored.database.query(
        """UPDATE image_tasks SET item_id = ?, original_url = 'http://example.com/t.jpg'
        WHERE status = 'success'""",
        [row["id"]],
    )
    html = item_html(stored.database, bucket("https://img.example/"), row) or ""
    assert html.startswith('<p><img src="https://img.example/images/news/')


def test_an_image_that_was_archived_by_its_former_url_is_in_place(stored: Pipeline) -> None:
    archive(stored, "http://example.com/2.png", "images/news/0cc175b9/2.png")
    row = {**item(stored), "link": "http://example.com/2026/a/", "content_html": '<img src="2.png">'}
    html = item_html(stored.database, bucket("https://img.example/"), row)
    assert html == '<img src="https://img.example/images/news/0cc175b9/2.png">'


def test_many_items_cost_one_query(stored: Pipeline) -> None:
    asked: list[str] = []

    class Counting:
        def query(self, sql: str, params: Any = (), *, name: str = "") -> Any:
            asked.append(sql)
            return stored.database.query(sql, params, name=name)

    rows = [item(stored, "b"), item(stored), item(stored, "b")]
    first, second, third = items_html(Counting(), stored.objects, rows)  # type: ignore[arg-type]
    assert (first, third) == ("<p>Text of b</p>", "<p>Text of b</p>")
    assert second == item_html(stored.database, stored.objects, item(stored))
    assert len(asked) == 1


def test_archived_names_the_keys_of_items_that_have_some(stored: Pipeline) -> None:
    ids = [row["id"] for row in stored.items("news")]
    assert image_tasks.archived(stored.database, ids) == {
        item(stored)["id"]: {"http://example.com/1.png?a=1&b=2": "images/news/0cc175b9/0 a語#?,%.png"}
    }
    assert image_tasks.archived(stored.database, []) == {}
