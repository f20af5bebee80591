"""Where a feed is asked and where it says it moved, as a closing statement writes it.

What becomes of a redirect is decided in collector.moves.
"""

from rss_pipeline.collector.models import Feed, Whereabouts, instant
from rss_pipeline.storage.database import Row

_V = "json_extract(v.value, '$.{}')"
# Where a sync gave the feed another URL, or a password, while the visit went on, what it found is void.
_SAME_ENTRY = f"(url = {_V.format('url')} AND needs_access = {_V.format('needs_access')})"
SET_WHEREABOUTS = ", ".join(
    f"{column} = CASE WHEN {_SAME_ENTRY} THEN {_V.format(column)} ELSE {column} END"
    for column in ("fetch_url", "host", "move_url", "move_since")
)
"""Assignments to columns of feeds, from the JSON `v.value` with the fields of `whereabouts_row`."""


def whereabouts_row(feed: Feed, found: Whereabouts | None) -> Row:
    """The whereabouts from now on (None: as they were), and the registry's part that they follow from."""
    found = found or feed.whereabouts
    return {
        "fetch_url": found.fetch_url,
        "host": found.host,
        "move_url": found.move_url,
        "move_since": None if found.move_since is None else instant(found.move_since),
        "url": feed.url,
        "needs_access": int(feed.needs_access),
    }
