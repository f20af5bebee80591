"""What a visit, a new item and an image task cost in Cloudflare, measured on real workerd.

    python -m benchmarks.cloudflare_cost [--feeds 100]

Rows written are D1's own `meta.rows_written`; requests are counted at the client. The figures of
docs/cloudflare.md come from here.
"""

import argparse
import json
import os
import random
import re
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import dagster as dg

from rss_pipeline.collector.models.clock import instant, utc_now
from rss_pipeline.collector.models.hold import url_hash
from rss_pipeline.features.full_text.service import fetch_articles
from rss_pipeline.features.full_text.sql import is_due
from rss_pipeline.features.retention.service import clean
from rss_pipeline.features.stories.service import catch_up
from rss_pipeline.features.streams.service import refresh
from rss_pipeline.reader.feed_queries import hidden_unread
from rss_pipeline.reader.item_queries import Filter, Fold, Page, arrival_numbers
from rss_pipeline.storage.backends.d1.database import D1Database
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.feeds.leases import end
from rss_pipeline.storage.images.image_claims import claim_images, earlier_requests
from rss_pipeline.storage.images.image_closings import Archived, Asked, record_archived
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.schema import migrate
from rss_pipeline_tests.features.full_text.made import article
from rss_pipeline_tests.reader.accounts.signed_in import signed_in
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.services.cloudflare import Cloudflare, local_cloudflare
from rss_pipeline_tests.support.stored import add_feeds, add_items, item


class Counting(D1Database):
    """A D1Database that adds up what its statements cost."""

    counts: ClassVar[Counter[str]] = Counter()
    lock = threading.Lock()

    def _exchange(self, path: str, body: bytes) -> tuple[int, bytes]:
        status, answer = super()._exchange(path, body)
        told = json.loads(answer)
        with self.lock:
            self.counts["requests"] += 1
            for each in told if isinstance(told, list) else [told]:
                self.counts["rows_written"] += int(each["meta"].get("rows_written") or 0)
                self.counts["rows_read"] += int(each["meta"].get("rows_read") or 0)
                self.counts["milliseconds"] += round(float(each["meta"].get("duration") or 0))
        return status, answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--feeds", type=int, default=100)
    parser.add_argument("--stories", action="store_true", help="only what stories cost")
    options = parser.parse_args()
    feeds = options.feeds
    with (
        tempfile.TemporaryDirectory() as scratch,
        local_cloudflare() as cloudflare,
        FeedServer() as server,
        _pipeline(Path(scratch), cloudflare) as (pipeline, resources),
    ):
        if options.stories:
            _stories(pipeline.database, pipeline.objects, feeds, Path(scratch) / "stories.window")
            return
        for number in range(feeds):
            _publish(server, pipeline, number, items=0)
        _poll(pipeline, resources, f"first poll of {feeds} feeds without items", feeds)
        _poll(pipeline, resources, f"poll of {feeds} unchanged feeds", feeds)
        for number in range(feeds):
            _publish(server, None, number, items=1)
        _poll(pipeline, resources, f"poll of {feeds} feeds with a new item each", feeds)
        for number in range(feeds):
            _publish(server, None, number, items=11, image="http://images.example")
        _poll(pipeline, resources, f"poll of {feeds} feeds with ten new items and images each", feeds)
        _publish(server, pipeline, feeds, items=200, text="x" * 5_000)
        _poll(pipeline, resources, "poll of one new feed with 200 items of 5 KB (beside the unchanged)", 1)
        _streams(server, pipeline, resources)
        _articles(server, pipeline, resources)
        _pages(server, pipeline, resources)
        _archive(pipeline)
        _clean(pipeline)


def _publish(
    server: FeedServer,
    pipeline: DagsterPipeline | None,
    number: int,
    *,
    items: int,
    image: str | None = None,
    text: str = "",
) -> None:
    host = f"127.0.{1 + number // 250}.{1 + number % 250}"
    body = rss(*(f"{number}-{n}" for n in range(items)), image=image).replace(
        b"Text of", f"{text}Text of".encode()
    )
    url = server.route(host, "/feed", Answer(body=body, etag=f'"{number}-{items}"'))
    if pipeline is not None:
        pipeline.feeds.append({"url": url, "id": f"feed-{number:04}", "allow_private": True})
        pipeline.write_registry()


@contextmanager
def _pipeline(home: Path, cloudflare: Cloudflare) -> Iterator[tuple[DagsterPipeline, dict[str, Any]]]:
    os.environ.update(cloudflare.environ)
    (home / "dagster").mkdir()
    with dg.DagsterInstance.from_config(str(home / "dagster")) as instance:
        pipeline = DagsterPipeline(home, instance)
        database = Counting(cloudflare.url, cloudflare.token)
        migrate(database)
        pipeline.database = database
        yield pipeline, {"database": dg.ResourceDefinition.hardcoded_resource(database)}
        database.close()


def _poll(pipeline: DagsterPipeline, resources: dict[str, Any], what: str, feeds: int) -> None:
    Counting.counts.clear()
    pipeline.clock.turn(hours=25)
    rounds = pipeline.poll(all_feeds=True, resources=resources)
    counts = Counting.counts
    print(
        f"{what}: {counts['requests']} requests in {len(rounds)} run(s),"
        f" {counts['rows_written']:,} rows written ({counts['rows_written'] / feeds:.2f} a feed),"
        f" {counts['rows_read']:,} rows read, {counts['milliseconds']:,} ms in the database"
    )


def _streams(server: FeedServer, pipeline: DagsterPipeline, resources: dict[str, Any]) -> None:
    """A feed of 500 items and ten authors that lists 50 of them, without streams and with ten."""

    def publish(newest: int, *, listed: int = 50) -> str:
        body = rss(*(f"{number}" for number in range(newest, newest - listed, -1)))
        body = re.sub(rb"(\d)</title>", rb"\1</title><author>A\1</author>", body)
        return server.route("127.0.9.9", "/feed", Answer(body=body, etag=f'"{newest}"'))

    def poll(what: str) -> None:
        pipeline.clock.turn(hours=1)
        Counting.counts.clear()
        pipeline.poll("split", resources=resources)
        counts = Counting.counts
        print(f"{what}: {counts['rows_read']:,} rows read, {counts['rows_written']:,} written")

    feed: dict[str, Any] = {"url": publish(500, listed=500), "id": "split", "allow_private": True}
    pipeline.feeds.append(feed)
    pipeline.write_registry()
    pipeline.poll("split", resources=resources)
    publish(505)
    poll("visit of one feed, five of 50 items new, no streams")
    feed["streams"] = {f"a{number}": {"author": f"A{number}"} for number in range(10)}
    pipeline.write_registry()
    pipeline.sync()
    Counting.counts.clear()
    refreshed = refresh(pipeline.database)
    counts = Counting.counts
    print(
        f"{refreshed.streams} new streams over {refreshed.items} stored items: {counts['rows_read']:,} rows"
        f" read, {counts['rows_written']:,} written"
    )
    for newest in (510, 515):
        publish(newest)
        poll("the visit with five of 50 items new, ten streams")
    poll("visit of the unchanged feed with ten streams")


def _articles(server: FeedServer, pipeline: DagsterPipeline, resources: dict[str, Any]) -> None:
    """Twenty new items of a feed with `full_text: on`, each with an article of 20 KB and no images."""
    host, number = "127.0.9.8", 20

    def publish(items: int) -> str:
        listed = rss(*(f"a{n}" for n in range(items))).replace(
            b"http://example.com/", server.url(host, "/").encode()
        )
        return server.route(host, "/feed", Answer(body=listed, etag=f'"{items}"'))

    for n in range(1, number + 1):
        page = article(n, title=f"Title of a{n} and of an item", paragraphs=60)
        server.route(host, f"/a{n}", Answer(body=page.encode(), headers={"Content-Type": "text/html"}))
    url = publish(1)
    pipeline.feeds.append({"url": url, "id": "teasers", "allow_private": True, "full_text": "on"})
    pipeline.write_registry()
    pipeline.poll("teasers", resources=resources)
    publish(1 + number)
    pipeline.clock.turn(hours=1)
    pipeline.poll("teasers", resources=resources)
    for what in (f"articles of {number} new items", "a look for articles, with none due"):
        pipeline.clock.turn(minutes=11)
        Counting.counts.clear()
        if is_due(pipeline.database, now=pipeline.clock()):
            with pipeline.session(database=pipeline.database) as session, session.step():
                assert fetch_articles(session).shown == number
        counts = Counting.counts
        print(
            f"{what}: {counts['requests']} requests, {counts['rows_written']:,} rows written"
            f" ({counts['rows_written'] / number:.2f} an article), {counts['rows_read']:,} rows read,"
            f" {counts['milliseconds']:,} ms in the database"
        )


def _pages(server: FeedServer, pipeline: DagsterPipeline, resources: dict[str, Any]) -> None:
    """Twenty web pages without a feed, of twenty entries each."""
    number = 20

    def publish(newest: int, path: str, hits: int) -> list[str]:
        listed = "".join(
            f'<article><h2><a href="{path}{n}-entry">Entry {n} of it</a></h2><p>{n} words.</p></article>'
            for n in range(newest, newest - 20, -1)
        )
        body = (
            f"<html><head><title>News</title></head><body><main>{listed}</main>{hits}</body></html>".encode()
        )
        answer = Answer(body=body, headers={"Content-Type": "text/html"})
        return [server.route(f"127.0.8.{1 + page}", "/news", answer) for page in range(number)]

    def poll(what: str) -> None:
        pipeline.clock.turn(hours=25)
        Counting.counts.clear()
        pipeline.poll(*ids, resources=resources)
        counts = Counting.counts
        print(
            f"{what} of {number} pages: {counts['requests']} requests, {counts['rows_written']:,} rows"
            f" written ({counts['rows_written'] / number:.2f} a page), {counts['rows_read']:,} rows read"
        )

    ids = [f"page{page}" for page in range(number)]
    for id, url in zip(ids, publish(20, "/news/", 0), strict=True):
        pipeline.feeds.append({"url": url, "id": id, "allow_private": True, "page": "auto"})
    pipeline.write_registry()
    poll("first visit")
    publish(20, "/news/", 1)
    poll("visit without an entry that is new")
    publish(21, "/news/", 2)
    poll("visit with one new entry")
    publish(21, "/blog/", 3)
    poll("visit with all entries at other addresses")
    publish(21, "/blog/", 4)
    poll("visit after that")


def _archive(pipeline: DagsterPipeline) -> None:
    """Claim image tasks and record that their images lie in R2, as a download run does."""
    database, now = pipeline.database, pipeline.clock()
    # Made up as they are, all images are of one host, of which a claim takes no more than its share.
    database.query("UPDATE image_tasks SET host = 'host-' || (rowid % 50)")
    Counting.counts.clear()
    claimed = claim_images(database, now=now, run_id="cost", lease_seconds=180, limit=1000)
    hashes = {task.id: url_hash(task.url) for task in claimed.tasks}
    assert earlier_requests(database, list(hashes.values()), now=now) == {}
    archived = [
        Archived(task_id=id, key=f"images/{id}", bytes=40_000, asked=(Asked(url_hash=hashed),))
        for id, hashed in hashes.items()
    ]
    assert len(record_archived(database, claimed.token, archived, now=now)) == len(archived) > 0
    end(database, claimed.token, forgive=True)
    counts = Counting.counts
    print(
        f"archiving {len(archived)} images: {counts['requests']} requests,"
        f" {counts['rows_written']:,} rows written ({counts['rows_written'] / len(archived):.2f} an image),"
        f" {counts['milliseconds']:,} ms in the database"
    )


def _clean(pipeline: DagsterPipeline) -> None:
    """Retire everything; each item has three images then, which lie in R2."""
    database, objects = pipeline.database, pipeline.objects
    database.query(
        """INSERT INTO image_tasks (id, item_id, original_url, created_at, updated_at, host, position)
        SELECT items.id || '-' || value, items.id, 'u', 'x', 'x', 'h', 1 + value
        FROM items, json_each('[0, 1, 2]') WHERE value < 3 - (SELECT count(*) FROM image_tasks
          WHERE item_id = items.id)"""
    )
    database.query(
        """UPDATE image_tasks SET status = 'success', bytes = 40000,
        r2_key = 'images/' || (SELECT feed_id FROM items WHERE id = item_id) || '/' || id || '/0.png'"""
    )
    database.query("UPDATE items SET created_at = '2020-01-01T00:00:00Z', arrived = NULL")
    items = int(database.query("SELECT count(*) AS n FROM items").rows[0]["n"])
    Counting.counts.clear()
    cleaned = clean(database, objects, pipeline.settings, now=pipeline.clock(), confirmed=True)
    counts = Counting.counts
    assert cleaned.total.items == items
    print(
        f"retiring {items} items with three images each: {counts['requests']} requests,"
        f" {counts['rows_written']:,} rows written ({counts['rows_written'] / items:.2f} an item),"
        f" {counts['rows_read']:,} rows read, {counts['milliseconds']:,} ms in the database"
    )
    Counting.counts.clear()
    clean(database, objects, pipeline.settings, now=pipeline.clock())
    print(f"a clean with nothing to do: {counts['requests']} requests, {counts['rows_read']:,} rows read")


def _stories(database: Database, objects: ObjectStore, feeds: int, window: Path) -> None:
    """A day of 24 polls in which each feed brings 20 items, of which a third is in stories of two feeds; then
    what a user reads of all feeds, with all of that unread."""
    names = [f"feed-{number:04}" for number in range(feeds)]
    add_feeds(database, *names)
    user = signed_in(database, "ada", clock=utc_now).user_id
    database.query("UPDATE users SET preferences = '{\"stories\":true}'")
    database.query(
        """INSERT INTO subscriptions (user_id, feed_id, read_up_to, added_at)
        SELECT ?, id, 0, created_at FROM feeds""",
        [user],
    )
    chance, start = random.Random(1), utc_now() - timedelta(hours=24)
    words = [f"{chance.choice('bdfgklmnprst')}{chance.choice('aeiou')}{n}x" for n in range(20_000)]
    number, costs, joined = int(start.timestamp()) * 1_000_000, Counter[str](), 0
    for hour in range(24):
        rows = list[Row]()
        for n in range(feeds * 20 // 29):
            text, at = " ".join(chance.sample(words, 120)), instant(start + timedelta(hours=hour))
            for copy in range(2 if n % 5 == 0 else 1):
                number += 1_000
                feed = names[(n * 7 + copy * 13 + hour) % feeds]
                row = item(feed, f"{hour}-{n}-{copy}", at, title=text[:60], content_html=f"<p>{text}</p>")
                rows.append({**row, "arrived": number})
        add_items(database, rows)
        database.query(
            """INSERT INTO sequences (name, value) VALUES ('items', CAST(? AS INTEGER))
            ON CONFLICT (name) DO UPDATE SET value = excluded.value""",
            [number],
        )
        Counting.counts.clear()
        joined += catch_up(database, objects, window).joined
        costs += Counting.counts
    items = int(database.query("SELECT count(*) AS n FROM items").rows[0]["n"])
    print(
        f"stories of a day, {items:,} items of {feeds} feeds, {joined:,} join: {costs['requests']} requests,"
        f" {costs['rows_written']:,} rows written, {costs['rows_read']:,} read"
    )
    unread, page = Filter(is_read=False), Page(limit=50)
    for what, query in (
        ("the counts of a page", hidden_unread(user)),
        ("a list of 50 unread items", arrival_numbers(user, unread, page)),
        ("the same with stories once", arrival_numbers(user, replace(unread, fold=Fold()), page)),
    ):
        Counting.counts.clear()
        database.batch(query.statements)
        print(f"{what}: {Counting.counts['rows_read']:,} rows read")


if __name__ == "__main__":
    main()
