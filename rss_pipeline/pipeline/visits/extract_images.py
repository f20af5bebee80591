"""The op extract_images: write a task for each image of the items that no run has searched for images yet,
and keep their HTML.

The search is made in worker processes, its results are written in batches. Which HTML names an image is
collector.images', the statements are storage.images'. Nothing is downloaded.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.outcome import Parsed
from rss_pipeline.collector.models.warning import FeedWarning
from rss_pipeline.collector.sanitize.rules_version import rules_version
from rss_pipeline.pipeline.session.parser_pool import ParserPool, WorkerFailure
from rss_pipeline.pipeline.session.parser_tasks import (
    ImageSearch,
    find_item_images,
    found_early,
    is_begun,
    search_early,
)
from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.pipeline.visits.visit import Stored, Visit, Visits
from rss_pipeline.storage.database import MAX_PARAMETER_BYTES, Database
from rss_pipeline.storage.feeds.closings import add_warning
from rss_pipeline.storage.images import image_tasks
from rss_pipeline.storage.images.image_tasks import ItemImages
from rss_pipeline.storage.kept_html import is_kept

logger = logging.getLogger(__name__)

_ALONE_SECONDS = 5.0
_HOSTILE_ITEMS = 3
"""Items of one feed that may overrun before the rest of its items is left without images."""
_AT_ONCE_BYTES = MAX_PARAMETER_BYTES // 2
"""The tasks of one write: each touches pages all over their indexes, so a few large ones cost less."""
_HTML_AT_ONCE_BYTES = 2 * MAX_PARAMETER_BYTES
"""The HTML of one write, which is written behind that of the items before, and touches no page twice."""

Job = TypeVar("Job")


def spooled_items(
    feed: Feed, parsed: Parsed, ids: Iterable[str], *, keep: Mapping[str, str | None]
) -> ImageSearch:
    """The search in these items of a document with its rows in the spool; `keep` has the items whose text is
    stored as it is there, with the time of their last repair."""
    return ImageSearch(
        feed=feed, feed_link=parsed.header.link, path=parsed.path, ids=frozenset(ids), keep=keep
    )


class ItemImageSearch:
    """Finds the images of items and writes their tasks, those of several feeds in one batch; with them the
    HTML of the items, where the database has it."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        pool: ParserPool,
        images_per_item: int | None = None,
        again: bool = False,
    ) -> None:
        self.left_out: Counter[str] = Counter()
        """Images beyond the most of their items, by feed."""
        self._most = images_per_item
        self._again = again
        self.is_kept = is_kept(database)
        """True if the HTML of items is kept."""
        self._database = database
        self._clock = clock
        self._pool = pool
        self._found: list[ItemImages] = []
        self._feeds: list[tuple[str, str | None]] = []
        self._put_off: set[str] = set()
        """Feeds with items that wait for the next visit, by id."""
        self._bytes = self._html_bytes = 0

    def search(self, jobs: Sequence[tuple[Job, ImageSearch]]) -> Iterator[Job]:
        """Search each job's items; yields the job once its images are added."""
        left: dict[int, tuple[Job, ImageSearch]] = {}
        for job, unlimited in jobs:
            if self.add_early(unlimited):
                yield job
            else:
                task = self._limited(unlimited)
                left[id(task)] = job, task
        tasks = [task for _, task in left.values()]
        for task, result in self._pool.map(find_item_images, tasks) if tasks else ():
            self._add(task, self._without_html(task) if isinstance(result, WorkerFailure) else result)
            yield left[id(task)][0]

    def begin(self, task: ImageSearch) -> None:
        """Search a task's items early, for a later `search` of the same task: the workers are idle while
        documents are stored. It waits for them."""
        if task.path is not None and not is_begun(task.path):
            self._pool.attempt(search_early, self._limited(task))

    def add_early(self, task: ImageSearch) -> bool:
        """Add the images of a task that was searched early; False if it was not."""
        limited = self._limited(task)
        found = found_early(limited)
        if found is not None:
            self._add(limited, found)
        return found is not None

    def _limited(self, task: ImageSearch) -> ImageSearch:
        return replace(task, most=self._most, keep=task.keep if self.is_kept else {})

    def search_stored(self, feed: Feed, feed_link: str | None) -> None:
        """Search the items of a feed that the database has without `images_extracted_at`."""
        self._again = True
        for page in image_tasks.pending_items(self._database, feed.id):
            keep = {row["id"]: row["repaired_at"] for row in page}
            task = ImageSearch(feed=feed, feed_link=feed_link, rows=tuple(page), keep=keep)
            for _ in self.search([(feed, task)]):
                pass

    def finish(self, feed: Feed, *, content_hash: str | None = None) -> None:
        """All images of the feed were added, but for what the next visit searches. `content_hash` is that of
        the document stored just now."""
        if feed.id not in self._put_off:
            self._feeds.append((feed.id, content_hash or feed.http.content_hash))

    def write(self) -> None:
        """Write all that was added."""
        now = self._clock()
        for batch in image_tasks.record_statements(
            self._found, feeds=self._feeds, rules=rules_version(), now=now, again=self._again
        ):
            self._database.batch(batch)
        self._found, self._feeds = [], []
        self._bytes = self._html_bytes = 0

    def _add(self, task: ImageSearch, found: Iterable[ItemImages]) -> None:
        for images in found:
            self.left_out[task.feed.id] += images.left_out
            if self._bytes > _AT_ONCE_BYTES or self._html_bytes > _HTML_AT_ONCE_BYTES:
                self.write()
            self._found.append(images)
            self._bytes += 100 + sum(len(url) + 100 for url in images.urls)
            self._html_bytes += 0 if images.html is None else len(images.html.html)

    def _without_html(self, task: ImageSearch) -> list[ItemImages]:
        """The images of a feed that overran or killed a worker: its HTML is made when somebody reads it."""
        bare = replace(task, keep={})
        if not task.keep:
            return self._one_by_one(bare)
        [(_, result)] = self._pool.map(find_item_images, [bare])
        return self._one_by_one(bare) if isinstance(result, WorkerFailure) else result

    def _one_by_one(self, task: ImageSearch) -> list[ItemImages]:
        """The images of a feed with hostile items: each item alone. Hostile ones have none; where the machine
        may have ended the parser, the item waits for the next visit."""
        images: list[ItemImages] = []
        hostile = killed = 0
        for row in task.found():
            id = row["id"]
            is_searched = task.path is None or id in task.ids
            alone = replace(task, path=None, ids=frozenset(), rows=(row,))
            result: list[ItemImages] | WorkerFailure = WorkerFailure(
                "crashed", "too many such items before it", may_pass=killed >= _HOSTILE_ITEMS
            )
            if max(hostile, killed) < _HOSTILE_ITEMS:
                [(_, result)] = self._pool.map(find_item_images, [alone], timeout=_ALONE_SECONDS)
            if isinstance(result, WorkerFailure) and result.may_pass:
                killed += 1
                self._put_off.add(task.feed.id)
                logger.warning(
                    "%s, item %s: searched at the next visit: %s", task.feed.url, id, result.message
                )
                continue
            if isinstance(result, WorkerFailure):
                hostile += 1
                logger.warning("%s, item %s: no search for images: %s", task.feed.url, id, result.message)
                result = [ItemImages(item_id=id, urls=())]
            images += [each._replace(is_searched=is_searched) for each in result]
        return images


def extract_images(visits: Visits, *, run: RunContext, pool: ParserPool) -> Visits:
    """Write the image tasks of all items of the feeds visited that are without `images_extracted_at`, and the
    HTML of new items.

    Items stored by this run come from its spool. Items of a run that ended before their search are read back
    from the database.
    """
    search = image_search(run, pool)
    leftovers = {visit.feed.id: visit for visit in visits if _has_leftovers(visit)}
    fresh = [
        (visit, task)
        for visit in visits
        if isinstance(visit.outcome, Stored) and (task := _task(visit, visit.outcome, search))
    ]
    run.progress.begin("extract_images", len(fresh))
    tasks = {visit.feed.id: task for visit, task in fresh}
    for visit in search.search(fresh):
        _searched(search, visit, tasks[visit.feed.id], run=run)
    if leftovers and fresh:
        # The images found so far are not to be found again.
        search.write()
    for visit in leftovers.values():
        link = visit.outcome.parsed.header.link if isinstance(visit.outcome, Stored) else visit.feed.link
        search.search_stored(visit.feed, link)
        _finish(search, visit)
    _write(search, run=run)
    return visits


def extract_early(visits: Visits, *, run: RunContext, pool: ParserPool) -> Visits:
    """Write what `extract_images` does of the documents just stored that were searched when they were read,
    for it need not wait for the other feeds."""
    search = image_search(run, pool)
    written: dict[str, Visit] = {}
    for visit in visits:
        stored = visit.outcome
        task = _task(visit, stored, search) if isinstance(stored, Stored) else None
        if isinstance(stored, Stored) and task is not None and search.add_early(task):
            run.progress.begin("extract_images", 1)
            _searched(search, visit, task, run=run)
            written[visit.feed.id] = replace(visit, outcome=replace(stored, are_images_written=True))
    _write(search, run=run)
    return [written.get(visit.feed.id, visit) for visit in visits]


def _searched(search: ItemImageSearch, visit: Visit, task: ImageSearch, *, run: RunContext) -> None:
    if task.ids:
        _finish(search, visit)
    run.progress.advance("extract_images")


def _write(search: ItemImageSearch, *, run: RunContext) -> None:
    search.write()
    for feed_id, count in search.left_out.items():
        if count:
            _warn(run.database, feed_id, count, run.settings.images_per_item)


def image_search(run: RunContext, pool: ParserPool, *, again: bool = False) -> ItemImageSearch:
    """The search of a run; `again`: in items that may have been searched before."""
    return ItemImageSearch(
        database=run.database,
        clock=run.clock,
        pool=pool,
        images_per_item=run.settings.images_per_item,
        again=again,
    )


def begin(visit: Visit, search: ItemImageSearch) -> None:
    """Search the new items of a visit early, as far as it can be done."""
    task = _task(visit, visit.outcome, search) if isinstance(visit.outcome, Stored) else None
    if task is not None:
        search.begin(task)


def _task(visit: Visit, stored: Stored, search: ItemImageSearch) -> ImageSearch | None:
    """The search in the new items of a document, and those with HTML to be kept; None if there is nothing to
    do. Of leftovers, new items with images are among those that are read back."""
    if stored.are_images_written:
        return None
    has_leftovers = _has_leftovers(visit)
    ids = stored.new_ids if visit.feed.images and not has_leftovers else ()
    kept = (*(() if has_leftovers else stored.new_ids), *stored.imageless_ids)
    if not ids and not (search.is_kept and kept):
        return None
    return spooled_items(visit.feed, stored.parsed, ids, keep=dict.fromkeys(kept))


def _warn(database: Database, feed_id: str, count: int, most: int | None) -> None:
    sentence = f"{count:,} images were skipped: at most {most:,} are archived per item (RSS_IMAGES_PER_ITEM)"
    logger.warning("%s: %s", feed_id, sentence)
    add_warning(database, feed_id, FeedWarning(kind="too_many_images", sentence=sentence))


def _has_leftovers(visit: Visit) -> bool:
    """A run ended between storing the feed's items and searching them; the database knows which items."""
    feed = visit.feed
    return feed.images and (feed.unfinished.images_pending or feed.unfinished.was_interrupted)


def _finish(search: ItemImageSearch, visit: Visit) -> None:
    stored = visit.outcome.parsed.document.content_hash if isinstance(visit.outcome, Stored) else None
    if isinstance(visit.outcome, Stored) and visit.outcome.parsed.cut_off:
        # The feed's hash is that of the whole document before.
        stored = None
    search.finish(visit.feed, content_hash=stored)
