"""Looking for images in stored items, in worker processes, and writing their tasks.

Which HTML names an image is collector.images', the statements are storage.image_tasks'. Nothing is
downloaded here.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence

from rss_pipeline.collector.models.item import Item
from rss_pipeline.pipeline.visits.parser_pool import (
    ImageSearch,
    WorkerFailure,
    find_item_images,
    read_chunks,
)
from rss_pipeline.pipeline.visits.session import Session
from rss_pipeline.pipeline.visits.visit import Replayed, Stored, Visit, Visits
from rss_pipeline.storage.database import MAX_PARAMETER_BYTES
from rss_pipeline.storage.images import tasks as image_tasks
from rss_pipeline.storage.images.tasks import ItemImages
from rss_pipeline.storage.items.items import image_source, rows_to_items

logger = logging.getLogger("rss_pipeline")

_ALONE_SECONDS = 5.0
_HOSTILE_ITEMS = 3
"""Items of one feed that may overrun before the rest of its items is left without images."""
_AT_ONCE_BYTES = MAX_PARAMETER_BYTES // 2


def find_and_record(session: Session, visits: Sequence[Visit]) -> int:
    """Write the image tasks of items without `images_extracted_at` of the feeds visited; how many images.

    Items stored by this run come from its spool. Items whose run ended before they were looked at are read
    back from the database.
    """
    visits = [visit for visit in visits if visit.replay is None or not visit.replay.dry_run]
    fresh = {visit.key: visit for visit in visits if _has_fresh_items(visit)}
    session.progress.begin("extract_images", len(fresh))
    waiting = _Waiting(session)
    tasks = {key: _fresh_task(visit) for key, visit in fresh.items()}
    keys = {id(task): key for key, task in tasks.items()}
    # A replay has several visits of a feed, and only the last one ends the search.
    left = Counter(visit.feed.id for visit in fresh.values())
    for task, result in session.workers.map(find_item_images, tasks.values()) if tasks else ():
        waiting.add(result if not isinstance(result, WorkerFailure) else _one_by_one(session, task))
        left[task.feed.id] -= 1
        visit = fresh[keys[id(task)]]
        if not left[task.feed.id] and not _has_leftovers(visit):
            waiting.done(visit)
        session.progress.advance("extract_images")
    leftovers = {visit.feed.id: visit for visit in visits if _has_leftovers(visit)}
    if leftovers and fresh:
        # What was just found is not to be found again.
        waiting.write()
    for visit in leftovers.values():
        _take_up_leftovers(session, visit, waiting)
    waiting.write()
    return waiting.images


def _has_fresh_items(visit: Visit) -> bool:
    """A replay reads its leftovers from the spool too: their relative URLs are that document's."""
    return (
        isinstance(visit.outcome, Stored | Replayed)
        and bool(visit.outcome.new_ids)
        and visit.feed.images
        and (visit.replay is not None or not _has_leftovers(visit))
    )


def _has_leftovers(visit: Visit) -> bool:
    """A run that ended between storing items and looking for their images: the database knows which."""
    feed = visit.feed
    interrupted = visit.replay is None and feed.unfinished.was_interrupted
    return feed.images and (feed.unfinished.images_pending or interrupted)


def _fresh_task(visit: Visit) -> ImageSearch:
    assert isinstance(visit.outcome, Stored | Replayed)
    parsed = visit.outcome.parsed
    return ImageSearch(
        feed=visit.feed, feed_link=parsed.link, path=parsed.path, ids=frozenset(visit.outcome.new_ids)
    )


def _take_up_leftovers(session: Session, visit: Visit, waiting: "_Waiting") -> None:
    feed = visit.feed
    link = visit.outcome.parsed.link if isinstance(visit.outcome, Stored | Replayed) else feed.link
    for page in image_tasks.pending_items(session.database, feed.id):
        found = tuple((row["id"], image_source(row)) for row in page)
        task = ImageSearch(feed=feed, feed_link=link, items=found)
        for _, result in session.workers.map(find_item_images, [task]):
            waiting.add(result if not isinstance(result, WorkerFailure) else _one_by_one(session, task))
    waiting.done(visit)


def _one_by_one(session: Session, task: ImageSearch) -> list[ItemImages]:
    """A feed whose HTML overran or killed a worker: each item alone; the hostile ones have no images."""
    items: Iterable[tuple[str, Item]] = task.items
    if task.path is not None:
        items = ((id, item) for id, item in rows_to_items(read_chunks(task.path)) if id in task.ids)
    images: list[ItemImages] = []
    hostile = 0
    for id, item in items:
        alone = ImageSearch(feed=task.feed, feed_link=task.feed_link, items=((id, item),))
        result: list[ItemImages] | WorkerFailure = WorkerFailure(
            "crashed", "too many hostile items before it"
        )
        if hostile < _HOSTILE_ITEMS:
            [(_, result)] = session.workers.map(find_item_images, [alone], timeout=_ALONE_SECONDS)
        if isinstance(result, WorkerFailure):
            hostile += 1
            logger.warning("%s, item %s: no images were looked for: %s", task.feed.url, id, result.message)
            result = [ItemImages(item_id=id, urls=())]
        images += result
    return images


class _Waiting:
    """Found images on their way into the database, several feeds to a batch."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._found: list[ItemImages] = []
        self._feeds: list[tuple[str, str | None]] = []
        self._bytes = 0
        self.images = 0

    def add(self, found: list[ItemImages]) -> None:
        for images in found:
            if self._bytes > _AT_ONCE_BYTES:
                self.write()
            self._found.append(images)
            self._bytes += 100 + sum(len(url) + 100 for url in images.urls)

    def done(self, visit: Visit) -> None:
        """All images of the visit's feed were added."""
        outcome = visit.outcome
        stored = outcome.parsed.document.content_hash if isinstance(outcome, Stored) else None
        self._feeds.append((visit.feed.id, stored or visit.feed.http.content_hash))

    def write(self) -> None:
        now = self._session.clock()
        for batch in image_tasks.record_statements(self._found, feeds=self._feeds, now=now):
            self._session.database.batch(batch)
        self.images += sum(len(images.urls) for images in self._found)
        self._found, self._feeds, self._bytes = [], [], 0


def extract_images(session: Session, visits: Visits) -> Visits:
    """Write an image task for each image of the items that nobody looked at yet, from this run or another."""
    find_and_record(session, visits)
    return visits
