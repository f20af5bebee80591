"""Versions of bodies, and what they are made of."""

import pytest

from rss_pipeline.collector.models.item import ImageSize, item_id
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.items import body_parts as bodies
from rss_pipeline.storage.sql import compact
from rss_pipeline_tests.support.stored import FIRST, add_feeds, add_items, item

A, B = item_id("news", "a"), item_id("news", "b")


@pytest.fixture(autouse=True)
def stored(database: Database) -> None:
    add_feeds(database, "news")
    add_items(
        database,
        [
            item("news", "a", FIRST, arrived=1, summary="s"),
            item("news", "b", FIRST, arrived=2, content_html=" \n ", summary="<p>short"),
        ],
    )


def version(database: Database, id: str = A) -> str:
    [row] = database.batch([bodies.versions([id])])[0].rows
    return str(row["version"])


def add_image(database: Database, id: str, *, status: str = "success", item: str = A) -> None:
    database.query(
        """INSERT INTO image_tasks
          (id, item_id, original_url, r2_key, status, attempts, created_at, updated_at, host, position)
          VALUES (?, ?, ?, ?, ?, 0, ?, ?, 'h', 0)""",
        [id, item, f"https://x.example/{id}", f"images/news/1/{id}.png", status, FIRST, FIRST],
    )


def test_a_version_changes_with_all_that_a_body_is_made_of(database: Database) -> None:
    seen = [version(database)]
    add_image(database, "1")
    seen.append(version(database))
    add_image(database, "2", status="pending")
    assert version(database) == seen[-1]
    database.query("UPDATE image_tasks SET status = 'success' WHERE id = '2'")
    seen.append(version(database))
    database.query("DELETE FROM image_tasks WHERE id = '1'")
    add_image(database, "3")
    seen.append(version(database))
    database.query(
        """INSERT INTO item_versions (item_id, replaced_at, pub_date, categories, enclosures, guid_source,
          pub_date_source) VALUES (?, '2026-02-01T00:00:00Z', '', '[]', '[]', 'guid', 'feed')""",
        [A],
    )
    seen.append(version(database))
    database.query("UPDATE feeds SET link = 'https://other.example/'")
    seen.append(version(database))
    database.query("UPDATE items SET arrived = 3 WHERE id = ?", [A])
    seen.append(version(database))
    assert len(set(seen)) == len(seen)
    assert version(database) == seen[-1]


def test_sources_come_with_their_versions_and_images_in_the_order_of_the_request(database: Database) -> None:
    add_image(database, "1")
    add_image(database, "2", status="failed")
    ids = [B, "gone", A]
    found, images = database.batch([bodies.sources(ids, most_characters=9), bodies.images(ids)])
    assert [row["id"] for row in found.rows] == [B, A]
    assert [row["html"] for row in found.rows] == ["<p>short", "<p>Text o"]
    assert [row["version"] for row in found.rows] == [version(database, B), version(database)]
    assert found.rows[1]["feed_link"] == "https://news.example/"
    unknown = bodies.ArchivedImage("images/news/1/1.png")
    assert bodies.images_by_item(images) == {A: {"https://x.example/1": unknown}}
    database.query("UPDATE image_tasks SET width = 6, height = 4")
    [images] = database.batch([bodies.images([A])])
    known = bodies.ArchivedImage("images/news/1/1.png", 6, 4)
    assert known.size == ImageSize(6, 4)
    assert bodies.images_by_item(images)[A] == {"https://x.example/1": known}


@pytest.mark.parametrize(("most", "count"), [(0, 1), (8, 1), (23, 1), (24, 2)])
def test_texts_are_read_as_far_as_they_fit_together(database: Database, most: int, count: int) -> None:
    [found] = database.batch([bodies.sources([B, A], most_characters=1_000, most_bytes=most)])
    assert [row["id"] for row in found.rows] == [B, A][:count]


def test_more_than_a_page_is_refused(database: Database) -> None:
    with pytest.raises(ValueError, match="201 items"):
        bodies.versions(str(number) for number in range(201))


def test_the_images_of_an_item_are_counted_in_an_index(sqlite: Database) -> None:
    add_feeds(sqlite, "plan")
    statement = bodies.versions([A])
    plan = [row["detail"] for row in sqlite.query("EXPLAIN QUERY PLAN " + statement.sql, [compact([A])]).rows]
    assert any("t USING COVERING INDEX image_tasks_item (item_id=? AND status=?)" in line for line in plan)
    assert not any(line.startswith("SCAN") and "j " not in line for line in plan), plan
