"""The images of an item that are not archived yet, and a user's request to load them now.

A request makes tasks due, and nothing more: hosts on hold, the pace of a host, the most bytes of a feed's day
and the claim (claims.py) stay above it. It starts a download at once (pipeline/triggers/images.py).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.database import Result, Statement
from rss_pipeline.storage.images.closings import MAX_ATTEMPTS

BETWEEN_ATTEMPTS = timedelta(hours=1)
"""Between two attempts at one image, whoever requests them: as after the first that fails."""
REQUESTED = "requested"
"""The `last_error_kind` of a task that a user waits for."""

_OF_USER = """t.item_id = ? AND t.status <> 'success' AND EXISTS (SELECT 1 FROM items AS i
  JOIN feeds AS f ON f.id = i.feed_id
  JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = i.feed_id
  WHERE i.id = t.item_id AND f.images = 1)"""
_CAN_BE_REQUESTED = """t.lease_token IS NULL AND coalesce(t.last_error_kind, 'host_on_hold') = 'host_on_hold'
  AND ((t.attempts = 0 AND t.last_error_kind IS NULL) OR t.updated_at <= ?)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingImages:
    """The images of an item that are not archived, by what can be done."""

    requestable: int
    """They would be loaded now."""
    coming: int
    """Requested, or being loaded."""
    waiting: int
    """They failed, or were put off by their host, less than an hour ago, or wait for the end of an outage of
    ours, or of their feed's day."""

    @property
    def number(self) -> int:
        return self.requestable + self.coming + self.waiting


def missing_images(user_id: str, item_id: str, *, now: datetime) -> Statement:
    """A query for the images of an item of this user that are not archived, for `missing_of`."""
    return Statement(
        f"""SELECT count(*) AS n, count(*) FILTER (WHERE {_CAN_BE_REQUESTED}) AS requestable,
          count(*) FILTER (WHERE t.lease_token IS NOT NULL OR t.last_error_kind = '{REQUESTED}') AS coming
        FROM image_tasks AS t WHERE {_OF_USER}""",
        [instant(now - BETWEEN_ATTEMPTS), item_id, user_id],
        name="count missing images",
    )


def missing_of(result: Result) -> MissingImages:
    """The result of `missing_images`."""
    [row] = result.rows
    requestable, coming = int(row["requestable"]), int(row["coming"])
    return MissingImages(requestable=requestable, coming=coming, waiting=int(row["n"]) - requestable - coming)


def request_images(user_id: str, item_id: str, *, now: datetime) -> Statement:
    """Make the images of an item of this user due that are not archived; those with three failed attempts get
    one more. Done twice, it changes nothing."""
    return Statement(
        f"""UPDATE image_tasks AS t SET status = 'pending', attempts = min(attempts, {MAX_ATTEMPTS - 1}),
          next_attempt_at = NULL, last_error_kind = '{REQUESTED}'
        WHERE {_OF_USER} AND {_CAN_BE_REQUESTED}""",
        [item_id, user_id, instant(now - BETWEEN_ATTEMPTS)],
        name="request images of an item",
    )
