"""The search for images in items: in worker processes, its results written in batches.

Which HTML names an image is collector.images', the statements are storage.images'. Nothing is downloaded.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.item import Item
from rss_pipeline.collector.models.outcome import Parsed
from rss_pipeline.pipeline.session.parser_pool import ParserPool, WorkerFailure
from rss_pipeline.pipeline.session.parser_tasks import ImageSearch, find_item_images, read_chunks
from rss_pipeline.storage.database import MAX_PARAMETER_BYTES, Database
from rss_pipeline.storage.images import tasks as image_tasks
from rss_pipeline.storage.images.tasks import ItemImages
from rss_pipeline.storage.items.items import image_source, rows_to_items

logger = logging.getLogger(__name__)

_ALONE_SECONDS = 5.0
_HOSTILE_ITEMS = 3
"""Items of one feed that may overrun before the rest of its items is left without images."""
_AT_ONCE_BYTES = MAX_PARAMETER_BYTES // 2

Job = TypeVar("Job")


def spooled_items(feed: Feed, parsed: Parsed, ids: Iterable[str]) -> ImageSearch:
    """The search in these items of a document with its rows in the spool."""
    return ImageSearch(feed=feed, feed_link=parsed.header.link, path=parsed.path, ids=frozenset(ids))


class ItemImageSearch:
    """Finds the images of items and writes their tasks, those of several feeds in one batch."""

    def __init__(
        self, *, database: Database, clock: Clock, pool: ParserPool, images_per_item: int | None = None
    ) -> None:
        self.left_out: Counter[str] = Counter()
        """Images beyond the most of their items, by feed."""
        self._most = images_per_item
        self._database = database
        self._clock = clock
        self._pool = pool
        self._found: list[ItemImages] = []
        self._feeds: list[tuple[str, str | None]] = []
        self._bytes = 0

    def search(self, jobs: Sequence[tuple[Job, ImageSearch]]) -> Iterator[Job]:
        """Search each job's items; yields the job once its images are added."""
        jobs = [(job, replace(task, most=self._most)) for job, task in jobs]
        owners = {id(task): job for job, task in jobs}
        for task, result in self._pool.map(find_item_images, [task for _, task in jobs]) if jobs else ():
            found = result if not isinstance(result, WorkerFailure) else self._one_by_one(task)
            self.left_out[task.feed.id] += sum(images.left_out for images in found)
            self._add(found)
            yield owners[id(task)]

    def search_stored(self, feed: Feed, feed_link: str | None) -> None:
        """Search the items of a feed that the database has without `images_extracted_at`."""
        for page in image_tasks.pending_items(self._database, feed.id):
            found = tuple((row["id"], image_source(row)) for row in page)
            for _ in self.search([(feed, ImageSearch(feed=feed, feed_link=feed_link, items=found))]):
                pass

    def finish(self, feed: Feed, *, content_hash: str | None = None) -> None:
        """All images of the feed were added. `content_hash` is that of the document stored just now."""
        self._feeds.append((feed.id, content_hash or feed.http.content_hash))

    def write(self) -> None:
        """Write all that was added."""
        now = self._clock()
        for batch in image_tasks.record_statements(self._found, feeds=self._feeds, now=now):
            self._database.batch(batch)
        self._found, self._feeds, self._bytes = [], [], 0

    def _add(self, found: Iterable[ItemImages]) -> None:
        for images in found:
            if self._bytes > _AT_ONCE_BYTES:
                self.write()
            self._found.append(images)
            self._bytes += 100 + sum(len(url) + 100 for url in images.urls)

    def _one_by_one(self, task: ImageSearch) -> list[ItemImages]:
        """The images of a feed that overran or killed a worker: each item alone; hostile ones have none."""
        items: Iterable[tuple[str, Item]] = task.items
        if task.path is not None:
            items = ((id, item) for id, item in rows_to_items(read_chunks(task.path)) if id in task.ids)
        images: list[ItemImages] = []
        hostile = 0
        for id, item in items:
            alone = ImageSearch(feed=task.feed, feed_link=task.feed_link, items=((id, item),), most=task.most)
            result: list[ItemImages] | WorkerFailure = WorkerFailure(
                "crashed", "too many hostile items before it"
            )
            if hostile < _HOSTILE_ITEMS:
                [(_, result)] = self._pool.map(find_item_images, [alone], timeout=_ALONE_SECONDS)
            if isinstance(result, WorkerFailure):
                hostile += 1
                logger.warning("%s, item %s: no search for images: %s", task.feed.url, id, result.message)
                result = [ItemImages(item_id=id, urls=())]
            images += result
        return images
