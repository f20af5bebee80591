"""How often a feed asks to be fetched: RSS ttl, skipHours, skipDays and the syndication module.

Only what the document says; what is made of it is for `collector.schedule`.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta

from rss_pipeline.collector.parse.raw_feed import byte_count

_PERIODS: Mapping[str, timedelta] = {
    "hourly": timedelta(hours=1),
    "daily": timedelta(days=1),
    "weekly": timedelta(days=7),
    "monthly": timedelta(days=30),
    "yearly": timedelta(days=365),
}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_HOUR = re.compile(r"[01]?[0-9]|2[0-4]")
_LONGEST = timedelta(days=365)
_MOST = 10**6


def wished_pause(ttl: str | None, period: str | None, frequency: str | None) -> timedelta | None:
    """The pause between two visits that `<ttl>` (minutes) asks for, else sy:updatePeriod / updateFrequency.

    The module's defaults are daily and once (https://web.resource.org/rss/1.0/modules/syndication/).
    """
    if minutes := byte_count(ttl):
        return min(timedelta(minutes=min(minutes, _MOST)), _LONGEST)
    span = _PERIODS.get((period or "").lower())
    times = byte_count(frequency)
    if span is None and not times:
        return None
    return (span or _PERIODS["daily"]) / min(times or 1, _MOST)


def skipped_hours(texts: Iterable[str]) -> frozenset[int]:
    """UTC hours 0 to 23; RSS 0.91 counted from 1 to 24."""
    return frozenset(int(text) % 24 for text in texts if _HOUR.fullmatch(text))


def skipped_days(texts: Iterable[str]) -> frozenset[int]:
    """Weekdays, Monday 0."""
    return frozenset(_DAYS.index(text.lower()) for text in texts if text.lower() in _DAYS)
