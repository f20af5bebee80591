"""The decision that a clean removes nothing until a person confirms it: a wrong clock makes everything old.

A pure function; the facts come from storage.items.retention.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import duration, instant

LONGEST_SILENCE = timedelta(days=3)
"""The daemon visits every feed at least once a day; a clock that shows more since the last visit may be
wrong."""
MOST_AT_ONCE = 5
"""A daily clean removes a small part of the items; more than one in five is a clock or a setting."""
FEW = 1_000
"""Fewer items than this may be removed at once: a small or quiet collection may well be old as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The extent of a clean, and the clock that it goes by."""

    now: datetime
    last_visit: datetime | None
    """The last visit of any feed."""
    items_due: int
    items: int
    """All items, where many are due."""


def refusal(extent: Extent) -> str | None:
    """The reason why this clean may not remove anything, with what to do; None if it may."""
    silence = None if extent.last_visit is None else extent.now - extent.last_visit
    if silence is None or silence > LONGEST_SILENCE:
        since = (
            "no feed was visited yet"
            if silence is None or extent.last_visit is None
            else f"the last visit of any feed was {duration(silence)} before ({instant(extent.last_visit)})"
        )
        return (
            f"the clean removed nothing: it is {instant(extent.now)} by this machine's clock, and {since}."
            " With a wrong clock it would remove what is not old. Check the clock (`date`, `timedatectl"
            f" set-ntp true`); if it is right, poll first (`rss-pipeline poll`), or {_CONFIRM}"
        )
    if extent.items_due >= FEW and MOST_AT_ONCE * extent.items_due > extent.items:
        return (
            f"the clean removed nothing: {extent.items_due:,} of {extent.items:,} items are past their time"
            f" at {instant(extent.now)}, more than a fifth. Check the clock (`date`), RSS_KEEP_DAYS and"
            " `keep` in feeds.yaml, and see `rss-pipeline clean --dry-run`; if it is intended,"
            f" {_CONFIRM}"
        )
    return None


_CONFIRM = "confirm with `rss-pipeline clean --yes` (in the UI: the job clean_store with `yes: true`)."
