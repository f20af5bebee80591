"""A document's hints on how often to fetch it: RSS ttl, skipHours, skipDays and the syndication module.

Only reading; `collector.schedule` decides on their effect.
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


def requested_interval(ttl: str | None, period: str | None, frequency: str | None) -> timedelta | None:
    """The time between two visits by `<ttl>` (minutes), else by sy:updatePeriod / updateFrequency.

    The syndication module's defaults are daily and once (https://web.resource.org/rss/1.0/modules/syndication/).
    """
    if minutes := byte_count(ttl):
        return min(timedelta(minutes=min(minutes, _MOST)), _LONGEST)
    span = _PERIODS.get((period or "").lower())
    times = byte_count(frequency)
    if span is None and not times:
        return None
    return (span or _PERIODS["daily"]) / min(times or 1, _MOST)


def skipped_hours(texts: Iterable[str]) -> frozenset[int]:
    """The hours of skipHours as UTC hours 0 to 23; RSS 0.91 counted from 1 to 24."""
    return frozenset(int(text) % 24 for text in texts if _HOUR.fullmatch(text))


def skipped_days(texts: Iterable[str]) -> frozenset[int]:
    """The days of skipDays as weekdays, Monday 0."""
    return frozenset(_DAYS.index(text.lower()) for text in texts if text.lower() in _DAYS)
