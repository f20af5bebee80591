"""A look at what waits for the sensors that start runs, in one request that reads a dozen rows.

Each value is the end of an index: what waits already is not read again, however much of it there is. The
counts and conditions of the runs themselves are read where one of these values has changed.
"""

from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.database import Database, one
from rss_pipeline.storage.feeds.holds import WRONG_CLOCK
from rss_pipeline.storage.feeds.predicates import POLLED
from rss_pipeline.storage.images.claims import RETRY_WRONG_CLOCK
from rss_pipeline.storage.images.wanted import REQUESTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The newest of everything for which runs are started."""

    feeds_since: str
    """The newest instant at which a feed became due or a hold of feeds ended; empty for none."""
    images_since: str
    """The same of images and their hosts."""
    images_requested: bool
    """A user waits for an image."""
    requests: bool
    """A user's request for a visit is not done."""
    topics: bool
    """A topic changed since it was published."""
    wrong_clock: bool
    """Something is scheduled further away than anything of ours: the next claim puts that right."""


def _newest(value: str, rows: str) -> str:
    return f"(SELECT {value} FROM {rows} AND {value} <= ? ORDER BY {value} DESC LIMIT 1)"


def _beyond(value: str, rows: str) -> str:
    return f"EXISTS (SELECT 1 FROM {rows} AND {value} > ?)"


_POLLED = f"feeds WHERE {POLLED}"
_PENDING, _ATTEMPT = "image_tasks WHERE status = 'pending'", "coalesce(next_attempt_at, created_at)"
_HOLDS = {table: f"{table} WHERE hold_until IS NOT NULL" for table in ("hosts", "feed_holds", "image_holds")}
_QUERY = f"""SELECT
  {_newest("next_fetch_at", _POLLED)} AS feed, {_newest("hold_until", _HOLDS["hosts"])} AS host,
  {_newest("hold_until", _HOLDS["feed_holds"])} AS feed_hold,
  {_newest(_ATTEMPT, _PENDING)} AS image, {_newest("hold_until", _HOLDS["image_holds"])} AS image_host,
  EXISTS (SELECT 1 FROM image_tasks WHERE status = 'pending' AND last_error_kind = '{REQUESTED}') AS wanted,
  EXISTS (SELECT 1 FROM refresh_requests WHERE state <> 'done') AS requests,
  EXISTS (SELECT 1 FROM topics WHERE stale > 0) AS topics,
  {_beyond("next_fetch_at", _POLLED)} OR {_beyond("hold_until", _HOLDS["hosts"])}
    OR {_beyond("hold_until", _HOLDS["feed_holds"])} OR {_beyond("hold_until", _HOLDS["image_holds"])}
    OR {_beyond(_ATTEMPT, _PENDING)} AS wrong_clock"""


def waiting(database: Database, *, now: datetime) -> Waiting:
    """Return what waits at `now`, each kind by its newest instant."""
    at, late = instant(now), instant(now + WRONG_CLOCK)
    image_late = instant(now + RETRY_WRONG_CLOCK)
    row = one(
        database.query(
            _QUERY, [*5 * [at], late, late, late, image_late, image_late], name="look for what waits"
        )
    )
    assert row is not None
    newest = {name: row[name] or "" for name in ("feed", "host", "feed_hold", "image", "image_host")}
    return Waiting(
        feeds_since=max(newest["feed"], newest["host"], newest["feed_hold"]),
        images_since=max(newest["image"], newest["host"], newest["image_host"]),
        images_requested=bool(row["wanted"]),
        requests=bool(row["requests"]),
        topics=bool(row["topics"]),
        wrong_clock=bool(row["wrong_clock"]),
    )
