"""Feeds with items and images that are months old, without the months: for the tests of retention.

Items come by real polls; only their age is set by hand, and the images' objects are put as a download would.
"""

import hashlib
import json
from datetime import datetime, timedelta
from typing import Any

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.features.retention.model import CleanResult
from rss_pipeline.features.retention.service import clean
from rss_pipeline.pipeline.triggers.daily import Allowance
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

IMAGE = bytes(range(100))
OLD, NEW = ("old-1", "old-2", "old-3"), ("new-1", "new-2")


def stock(pipeline: Pipeline, server: FeedServer) -> None:
    """Two feeds; the old items of both are 181 days old, the new ones just came; all images are there. Beside
    them is what makes them a small part of the store."""
    for place, id in enumerate(("one", "two"), start=2):
        body = rss(*OLD, *NEW, image="http://images.example").replace(b'.png">', b'.png"><img src="/2.png">')
        pipeline.register(server.route(f"127.0.0.{place}", "/feed", Answer(body=body)), id)
    pipeline.poll()
    for id in ("one", "two"):
        archive_images(pipeline.database, pipeline.objects, id)
        age(pipeline, id, 181, *OLD)
    assert len(list(pipeline.objects.list("images/"))) == 20
    add_rest(pipeline)


def add_rest(pipeline: Pipeline, items: int = 30) -> None:
    """A feed that is no longer in feeds.yaml, with items that are kept for ever: a clean of more than half of
    all items would be refused."""
    now = instant(pipeline.clock())
    pipeline.database.query(
        """INSERT INTO feeds (id, url, host, keep_days, registered, listed, created_at, next_fetch_at)
        VALUES ('rest', 'https://rest.example/', 'rest.example', 100000, 0, 0, ?, ?)""",
        [now, now],
    )
    pipeline.database.query(
        """INSERT INTO items (id, feed_id, guid, created_at, pub_date, pub_date_source, guid_source,
        categories, enclosures, images_extracted_at)
        SELECT 'rest-' || value, 'rest', value, ?, ?, 'fetched', 'guid', '[]', '[]', ? FROM json_each(?)""",
        [now, now, now, str([*range(items)])],
    )


def image_key(feed_id: str, guid: str, position: int) -> str:
    return f"images/{feed_id}/{hashlib.md5(guid.encode()).hexdigest()[:8]}/{position}.png"


def archive_images(database: Database, objects: ObjectStore, feed_id: str) -> None:
    """Give every task of this feed its object and say so in its row."""
    rows = database.query(
        """SELECT t.id, position, guid FROM image_tasks AS t JOIN items ON items.id = item_id
        WHERE feed_id = ? AND r2_key IS NULL""",
        [feed_id],
    ).rows
    for row in rows:
        key = image_key(feed_id, row["guid"], int(row["position"]))
        objects.put(key, IMAGE, content_type="image/png", metadata={"task-id": row["id"]})
        database.query(
            "UPDATE image_tasks SET status = 'success', r2_key = ?, bytes = ? WHERE id = ?",
            [key, len(IMAGE), row["id"]],
        )


def age(pipeline: Pipeline, feed_id: str, days: float, *guids: str) -> None:
    """Let these items of a feed, or all of them, have been stored so many days ago."""
    stored = instant(pipeline.clock() - timedelta(days=days))
    for guid in guids or pipeline.guids(feed_id):
        pipeline.database.query(
            """UPDATE items SET created_at = ?, arrived = CAST(strftime('%s', ?) AS INTEGER) * 1000000
            WHERE feed_id = ? AND guid = ?""",
            [stored, stored, feed_id, guid],
        )


def let_visited(pipeline: Pipeline, at: datetime, days: int = 28) -> None:
    """Let every feed have been visited then, and on all days before: a clean believes no clock that is days
    after all visits, nor one that jumped."""
    before = (at - timedelta(days=n) for n in range(days))
    visits = {f"{day:%d}": [f"{day:%Y-%m-%d}", 0, 1, 0] for day in before}
    pipeline.database.query(
        "UPDATE feeds SET last_visited_at = ?, visit_days = json_patch(coalesce(visit_days, '{}'), ?)",
        [instant(at), json.dumps(visits)],
    )


def forget_cleans(pipeline: Pipeline) -> None:
    """Let no clean have removed anything: what is stocked again is no part of what went."""
    pipeline.database.query("DELETE FROM installation WHERE name = 'cleans'")


def cleaned(pipeline: Pipeline, **options: Any) -> CleanResult:
    """A clean on the pipeline's own stores, or on those that are given, at its clock's time."""
    known: dict[str, Any] = {"now": pipeline.clock(), "allowance": Allowance(), **options}
    database, objects = known.pop("database", pipeline.database), known.pop("objects", pipeline.objects)
    return clean(database, objects, pipeline.settings, **known)


def is_sound(pipeline: Pipeline) -> None:
    """Nothing points at a missing object, no image is left without a row, tombstones hold."""
    keys = {row["r2_key"] for row in pipeline.rows("SELECT r2_key FROM image_tasks WHERE r2_key <> ''")}
    assert {info.key for info in pipeline.objects.list("images/")} == keys
    assert pipeline.rows("SELECT 1 FROM items JOIN expired_items USING (feed_id, guid) LIMIT 1") == [], (
        "an item and its tombstone"
    )


def nothing_is_left_to_do(pipeline: Pipeline) -> None:
    """A clean now removes nothing."""
    figures = cleaned(pipeline).figures()
    assert not any(figures.values()), figures


def poll_anew(pipeline: Pipeline, server: FeedServer) -> None:
    """The feeds are requested once more, and their documents have changed, though not in what they list."""
    for place, id in enumerate(("one", "two"), start=2):
        body = rss(*OLD, *NEW, title="Another title")
        server.route(f"127.0.0.{place}", "/feed", Answer(body=body))
        assert pipeline.feed(id) is not None
    pipeline.poll(all_feeds=True)
    assert pipeline.feed("one")["title"] == "Another title"


def is_clean(pipeline: Pipeline, server: FeedServer) -> None:
    """Items that were due are gone and nothing else is; it stays gone, though its feeds still list it."""
    for _ in range(2):
        for id in ("one", "two"):
            assert pipeline.guids(id) == sorted(NEW)
        assert len(pipeline.rows("SELECT id FROM image_tasks")) == 8
        tombstones = pipeline.rows("SELECT feed_id, guid FROM expired_items ORDER BY feed_id, guid")
        assert [tuple(row.values()) for row in tombstones] == [(id, g) for id in ("one", "two") for g in OLD]
        is_sound(pipeline)
        assert len(list(pipeline.objects.list("images/"))) == 8
        nothing_is_left_to_do(pipeline)
        poll_anew(pipeline, server)


def visited(pipeline: Pipeline, *, days: float) -> datetime:
    """The instant so many days after the last backup was put, when each feed was visited."""
    later = max(info.modified for info in pipeline.objects.list("backups/")) + timedelta(days=days)
    let_visited(pipeline, later)
    return later


def interrupt(pipeline: Pipeline) -> None:
    """A download that was killed between its object and its row: its lease is long over."""
    changed = pipeline.database.query(
        """UPDATE image_tasks SET status = 'pending', r2_key = NULL, bytes = NULL, lease_token = 'gone'
        WHERE id IN (SELECT min(t.id) FROM image_tasks AS t JOIN items ON items.id = item_id
          WHERE guid = 'old-1')"""
    ).changes
    assert changed == 1


def put_backups(pipeline: Pipeline, feed_id: str, *names: str) -> None:
    for name in names:
        key = f"backups/{feed_id}/{name}.xml"
        pipeline.objects.put(key, b"<rss/>", content_type="application/xml", metadata={"rss-pipeline": "{}"})
