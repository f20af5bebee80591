"""The op extract_images: write a task for each image of the items that no run has searched for images yet.

The search itself is image_search.py's. Nothing is downloaded here.
"""

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.pipeline.session.parser_pool import ParserPool
from rss_pipeline.pipeline.visits.image_search import ItemImageSearch, spooled_items
from rss_pipeline.pipeline.visits.visit import Stored, Visit, Visits
from rss_pipeline.progress import Progress
from rss_pipeline.storage.database import Database


def extract_images(
    visits: Visits, *, database: Database, clock: Clock, pool: ParserPool, progress: Progress
) -> Visits:
    """Write the image tasks of all items of the feeds visited that are without `images_extracted_at`.

    Items stored by this run come from its spool. Items of a run that ended before their search are read back
    from the database.
    """
    search = ItemImageSearch(database=database, clock=clock, pool=pool)
    leftovers = {visit.feed.id: visit for visit in visits if _has_leftovers(visit)}
    fresh = [
        (visit, spooled_items(visit.feed, visit.outcome.parsed, visit.outcome.new_ids))
        for visit in visits
        if isinstance(visit.outcome, Stored)
        and visit.outcome.new_ids
        and visit.feed.images
        and visit.feed.id not in leftovers
    ]
    progress.begin("extract_images", len(fresh))
    for visit in search.search(fresh):
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
    return visits


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
