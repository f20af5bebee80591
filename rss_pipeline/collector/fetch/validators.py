"""Validators: which of them are sent back, and when a request goes without them. Pure functions.

All are stored as they came (`storage.feeds.closing_parts`). `feed_visit.py` has the request that they go to.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import median

from rss_pipeline.collector.fetch.shared_answers import Headers
from rss_pipeline.collector.http.headers import http_date
from rss_pipeline.collector.models.feed import Feed

LONGEST_UNCHECKED = timedelta(days=30)
SHORTEST_UNCHECKED = timedelta(days=7)
USUAL_GAPS_UNCHECKED = 4
"""So many usual gaps between two items may pass with nothing but 304; then one request goes without
validators, for some caches never update. Publishers count such requests, so a week has one at most."""

CHECKED_AGAIN = timedelta(days=1)

FIRST_MODIFIED = datetime(1990, 1, 1, tzinfo=UTC)
"""No document of the Web is older: an earlier date is a default, as that of a clock that was never set."""
AHEAD = timedelta(hours=24)
"""A date further ahead of its answer's own is not that of a change (RFC 9110 8.8.2.1)."""
_MOST_BYTES = 8_192
"""The most of both together."""
_EMPTY_ETAGS = frozenset({"", '""', 'W/""'})


def sent_validators(etag: str | None, last_modified: str | None, *, dated: datetime | None) -> Headers:
    """The headers of a conditional request, byte for byte as they were received: Latin-1, as in `Head` (RFC
    9110 13.1.2, 13.1.3). One that cannot be true is left out: its server would answer 304 for ever.

    `dated` is the Date of the answer that gave `last_modified`, as far as it is known.
    """
    pairs = (
        ("If-None-Match", None if etag in _EMPTY_ETAGS else etag),
        ("If-Modified-Since", last_modified if may_be_true(last_modified, dated=dated) else None),
    )
    sent = [(name.encode(), value.encode("latin-1", "replace")) for name, value in pairs if value]
    # The date does not count beside an ETag (RFC 9110 13.1.3), and not all servers take so long a head.
    return sent if sum(len(value) for _, value in sent) <= _MOST_BYTES else sent[:1]


def may_be_true(last_modified: str | None, *, dated: datetime | None) -> bool:
    """Return False for a date before the Web, or after its answer. What is no date may be any mark."""
    at = http_date(last_modified)
    return at is None or (at >= FIRST_MODIFIED and (dated is None or at - dated <= AHEAD))


def is_unchecked(feed: Feed, *, now: datetime) -> bool:
    """Return True if the next request has to show that a 304 would be true.

    A feed that fails has no stuck cache. A check that failed is not made again within a day: a 304 to the
    next visit ends the failure.
    """
    last, checked = feed.http.last_body_at, feed.http.validators_state.checked_at
    if last is None or feed.failures.in_a_row or (checked is not None and now - checked < CHECKED_AGAIN):
        return False
    return now - last >= unchecked_for(feed.schedule.hints.updates)


def unchecked_for(updates: Sequence[datetime]) -> timedelta:
    """The longest time without a document for a feed with newest items of these times."""
    times = sorted(set(updates))
    if len(times) < 2:
        return LONGEST_UNCHECKED
    usual = timedelta(seconds=median((b - a).total_seconds() for a, b in pairwise(times)))
    return min(LONGEST_UNCHECKED, max(SHORTEST_UNCHECKED, USUAL_GAPS_UNCHECKED * usual))
