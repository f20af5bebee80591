"""The limit of items that are read from one document, and which of more items are read.

No format is known here: the readers say how to find an item's date.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from rss_pipeline.collector.parse.dates.read import parse_date

MAX_ITEMS = 5_000
"""Items that are read from one document; the others are counted. feedparser takes 0.7 s for 5,000."""

_NEVER = datetime.min.replace(tzinfo=UTC)

T = TypeVar("T")


def newest_items(items: Sequence[T], dates_of: Callable[[T], Sequence[str]], *, now: datetime) -> list[T]:
    """At most MAX_ITEMS of the items of a document, in its order: the newest by date.

    `dates_of` gives an item's dates as published, the preferred first; `now` limits their years. Where a
    publisher lists the oldest first, no new item would ever be among the first 5,000. Where dates do not
    decide (most items have none, or all the same), both ends are kept, half each.
    """
    if len(items) <= MAX_ITEMS:
        return list(items)
    dates = _dates(items, dates_of, now)
    last = sorted(dates, reverse=True)[MAX_ITEMS - 1]
    kept = {place for place, date in enumerate(dates) if date > last}
    equal = [place for place, date in enumerate(dates) if date == last]
    room = MAX_ITEMS - len(kept)
    kept.update(equal[: room - room // 2], equal[len(equal) - room // 2 :])
    return [items[place] for place in sorted(kept)]


def _dates(items: Sequence[T], dates_of: Callable[[T], Sequence[str]], now: datetime) -> list[datetime]:
    """A date for each item. One without takes that of the item before it, or of the next."""
    found = [
        next((date for raw in dates_of(item) if (date := parse_date(raw, now=now))), None) for item in items
    ]
    if 2 * sum(date is not None for date in found) < len(found):
        return [_NEVER] * len(found)
    before = next(date for date in found if date is not None)
    dates = []
    for date in found:
        before = date or before
        dates.append(before)
    return dates
