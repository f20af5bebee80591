"""Feeds in step with their subscriptions: visited or not, how often at least, and unused since when.

The statement belongs behind each change of subscriptions, in its batch.
"""

from collections.abc import Sequence
from datetime import datetime

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.features import FEED_KEYS
from rss_pipeline.storage.database import Statement
from rss_pipeline.storage.sql import chunked, compact


def recount(feed_ids: Sequence[str], *, at: datetime) -> list[Statement]:
    """Bring feeds in step with their subscriptions: `registered`, the shortest wished interval, and since
    when they are unused. A feed that is used again is due when it was: who comes and goes causes no visits,
    and a feed that fails keeps its back-off.

    A feed that was not used before either does not become unused by it.
    """
    among = "id IN (SELECT value FROM json_each(?))"
    return [_recount(among, chunk, at) for chunk in chunked(map(compact, feed_ids))]


def recount_urls(urls: Sequence[str], *, at: datetime) -> list[Statement]:
    """`recount` of the feeds with these URLs, as they are stored."""
    among = "url IN (SELECT value FROM json_each(?))"
    return [_recount(among, chunk, at) for chunk in chunked(map(compact, urls))]


def recount_without(user_id: str, *, at: datetime) -> Statement:
    """`recount` of the feeds that this user subscribes to, as if nothing was."""
    return _recount(
        "id IN (SELECT feed_id FROM subscriptions WHERE user_id = ?)", user_id, at, without=user_id
    )


_LEFT_KEYS = [name for name, key in FEED_KEYS.items() if not key.stays]
_ANEW = "new.used = 1 AND registered = 0 AND listed = 0"
_WISHED = """max(coalesce(not_before, ''),
  strftime('%Y-%m-%dT%H:%M:%SZ', ?, '+' || CAST(new.wish AS INTEGER) || ' seconds'))"""
_IS_SHORTER = "(new.wish < coalesce(feeds.wished_interval, 9e9) AND consecutive_failures = 0)"
_SOONER = "sooner than planned: wished by a subscriber"
_PLANNED = "planned before a subscriber's wish was changed"


def _recount(among: str, param: str, at: datetime, *, without: str = "") -> Statement:
    of_feed = "SELECT {} FROM subscriptions AS s WHERE s.feed_id = f.id AND s.user_id <> ?"
    return Statement(
        f"""UPDATE feeds SET registered = new.used, wished_interval = new.wish,
          unused_since = CASE WHEN new.used = 1 THEN NULL WHEN registered = 1 THEN ? ELSE unused_since END,
          -- What feeds.yaml said of it is over.
          enabled = CASE WHEN {_ANEW} THEN watched ELSE enabled END,
          interval = CASE WHEN {_ANEW} THEN NULL ELSE interval END,
          {"".join(f"{name} = CASE WHEN {_ANEW} THEN NULL ELSE {name} END," for name in _LEFT_KEYS)}
          folder = CASE WHEN {_ANEW} THEN NULL ELSE folder END,
          registered_title = CASE WHEN {_ANEW} THEN NULL ELSE registered_title END,
          next_fetch_at = CASE WHEN new.used = 1 AND registered = 0 AND enabled = 0 THEN ?
            WHEN {_IS_SHORTER} THEN min(next_fetch_at, {_WISHED}) ELSE next_fetch_at END,
          schedule_reason = CASE WHEN {_IS_SHORTER} AND {_WISHED} < next_fetch_at THEN ?
            -- The time stays; the interval that it came from is no longer wished.
            WHEN feeds.wished_interval < coalesce(new.wish, 9e9) AND consecutive_failures = 0 THEN ?
            ELSE schedule_reason END
        FROM (SELECT f.id AS feed_id, CAST(f.listed = 1 OR EXISTS ({of_feed.format("1")}) AS INTEGER) AS used,
            ({of_feed.format("min(s.wished_interval)")}) AS wish
          FROM feeds AS f WHERE f.{among}) AS new
        WHERE feeds.id = new.feed_id AND forgotten = 0
          AND (registered <> new.used OR feeds.wished_interval IS NOT new.wish)""",
        [*4 * (instant(at),), _SOONER, _PLANNED, without, without, param],
        name="recount feeds",
    )
