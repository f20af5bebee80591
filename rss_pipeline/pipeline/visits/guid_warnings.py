"""Warnings of guids that name no item: new ones for known items, and known ones for new items.

Guids that items of one document share are found when it is parsed.
"""

import logging
from collections.abc import Sequence

from rss_pipeline.collector.models.outcome import Parsed
from rss_pipeline.collector.models.warning import FeedWarning
from rss_pipeline.pipeline.session.parser_tasks import read_chunks
from rss_pipeline.pipeline.visits.visit import Visit
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.closings import add_warning
from rss_pipeline.storage.items import items, replay
from rss_pipeline.storage.items.items import COLUMNS

logger = logging.getLogger(__name__)

_UNSTABLE_FROM = 5
_UNSTABLE_SHARE = 0.8
_COMPARED = 3
"""Items of a document without news, the first ones, that are compared with those stored under their guids."""
_TELLING = ("title", "link", "pub_date")


def warn_of_guids(
    database: Database, visit: Visit, parsed: Parsed, *, fresh: Sequence[str], listed: Sequence[str]
) -> None:
    """Warn where a stored document has guids that change, or that are used again.

    `fresh` are the ids of its new items, `listed` those of all.
    """
    if visit.feed.schedule.last_success_at is None:
        return
    found = (
        _unstable(database, visit, parsed, fresh)
        if fresh
        else _used_again(database, parsed, listed[:_COMPARED])
    )
    if found is not None:
        logger.warning("%s: %s", visit.feed.url, found.sentence)
        add_warning(database, visit.feed.id, found)


def _unstable(database: Database, visit: Visit, parsed: Parsed, fresh: Sequence[str]) -> FeedWarning | None:
    """Nearly all items are new to a feed that was stored before, yet under known titles."""
    if len(fresh) < max(_UNSTABLE_FROM, _UNSTABLE_SHARE * parsed.items_seen):
        return None
    known = items.known_titles(database, visit.feed.id, fresh)
    if known < _UNSTABLE_SHARE * len(fresh):
        return None
    return FeedWarning(
        kind="unstable_guids",
        sentence=f"unstable guids: {known} of {len(fresh)} new items have titles that are known; if the"
        " server puts tokens into guids or links, set `key: link` or `key: title+date` for this feed",
    )


def _used_again(database: Database, parsed: Parsed, listed: Sequence[str]) -> FeedWarning | None:
    """An item with the guid of a stored one, but another title, link and date: it is another item."""
    rows = replay.known_rows(read_chunks(parsed.path)) if listed else {}
    read = {id: dict(zip(COLUMNS, rows[id], strict=True)) for id in listed if id in rows}
    others = [
        id
        for id, stored in items.by_ids(database, list(read), columns=_TELLING).items()
        if all(stored[name] and read[id][name] and stored[name] != read[id][name] for name in _TELLING)
    ]
    if not others:
        return None
    title = str(read[others[0]]["title"])[:60]
    return FeedWarning(
        kind="reused_guids",
        sentence=f'reused guids: "{title}" has the guid of a stored item, but another title, link and date;'
        " it is not stored. If the server gives each new item the same guid, set `key: link` or"
        " `key: title+date` for this feed",
    )
