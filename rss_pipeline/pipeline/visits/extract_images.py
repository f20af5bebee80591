"""The op extract_images: write a task for each image of the items that no run has searched for images yet,
and keep their HTML.

The search itself is image_search.py's. Nothing is downloaded here.
"""

import logging

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.collector.models.warning import FeedWarning
from rss_pipeline.pipeline.session.parser_pool import ParserPool
from rss_pipeline.pipeline.session.parser_tasks import ImageSearch
from rss_pipeline.pipeline.visits.image_search import ItemImageSearch, spooled_items
from rss_pipeline.pipeline.visits.visit import Stored, Visit, Visits
from rss_pipeline.progress import Progress
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.closings import add_warning

logger = logging.getLogger(__name__)


def extract_images(
    visits: Visits,
    *,
    database: Database,
    clock: Clock,
    pool: ParserPool,
    progress: Progress,
    images_per_item: int | None = None,
) -> Visits:
    """Write the image tasks of all items of the feeds visited that are without `images_extracted_at`, and the
    HTML of new items.

    Items stored by this run come from its spool. Items of a run that ended before their search are read back
    from the database.
    """
    search = ItemImageSearch(database=database, clock=clock, pool=pool, images_per_item=images_per_item)
    leftovers = {visit.feed.id: visit for visit in visits if _has_leftovers(visit)}
    fresh = [
        (visit, task)
        for visit in visits
        if isinstance(visit.outcome, Stored) and (task := _task(visit, visit.outcome, search))
    ]
    progress.begin("extract_images", len(fresh))
    finished = {visit.feed.id for visit, task in fresh if task.ids}
    for visit in search.search(fresh):
        if visit.feed.id in finished:
            _finish(search, visit)
        progress.advance("extract_images")
    if leftovers and fresh:
        # The images found so far are not to be found again.
        search.write()
    for visit in leftovers.values():
        link = visit.outcome.parsed.header.link if isinstance(visit.outcome, Stored) else visit.feed.link
        search.search_stored(visit.feed, link)
        _finish(search, visit)
    search.write()
    for feed_id, count in search.left_out.items():
        if count:
            _warn(database, feed_id, count, images_per_item)
    return visits


def begin(visit: Visit, search: ItemImageSearch) -> None:
    """Search the new items of a visit early, as far as it can be done."""
    task = _task(visit, visit.outcome, search) if isinstance(visit.outcome, Stored) else None
    if task is not None:
        search.begin(task)


def _task(visit: Visit, stored: Stored, search: ItemImageSearch) -> ImageSearch | None:
    """The search in the new items of a document, and those with HTML to be kept; None if there is nothing to
    do. Of leftovers, new items with images are among those that are read back."""
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
