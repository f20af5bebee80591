"""The room that the items and images of a feed take, and everything stored. Reads only.

Bytes of content are in the rows, so of a feed the newest items alone are added up.
"""

from dataclasses import dataclass

from rss_pipeline.storage.database import Result, Statement

NEWEST_ITEMS = 5_000
"""The most items of a feed that are added up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRoom:
    """The number of a feed's newest items, and the sizes of their texts and images."""

    items: int
    text_bytes: int
    images_archived: int
    image_bytes: int
    images_pending: int
    images_failed: int


def _bytes(column: str) -> str:
    # The length of a text is in characters.
    return f"coalesce(length(CAST(i.{column} AS BLOB)), 0)"


def room_of(user_id: str, feed_id: str) -> Statement:
    """A query for the room that a feed of this user takes, for `feed_room`."""
    return Statement(
        f"""WITH newest AS MATERIALIZED (
          SELECT i.id, {_bytes("title")} + {_bytes("content_html")} + {_bytes("summary")} AS bytes
          FROM subscriptions AS s CROSS JOIN items AS i INDEXED BY items_of_feed ON i.feed_id = s.feed_id
          WHERE s.user_id = ? AND s.feed_id = ? ORDER BY i.arrived DESC LIMIT {NEWEST_ITEMS})
        SELECT (SELECT count(*) FROM newest) AS items, (SELECT sum(bytes) FROM newest) AS text_bytes,
          count(*) FILTER (WHERE t.status = 'success') AS archived, sum(t.bytes) AS image_bytes,
          count(*) FILTER (WHERE t.status = 'pending') AS pending,
          count(*) FILTER (WHERE t.status = 'failed') AS failed
        FROM newest CROSS JOIN image_tasks AS t INDEXED BY image_tasks_item ON t.item_id = newest.id""",
        [user_id, feed_id],
        name="measure a feed",
    )


def feed_room(result: Result) -> FeedRoom:
    """The result of `room_of`."""
    row = result.rows[0]
    return FeedRoom(
        items=int(row["items"]),
        text_bytes=int(row["text_bytes"] or 0),
        images_archived=int(row["archived"] or 0),
        image_bytes=int(row["image_bytes"] or 0),
        images_pending=int(row["pending"] or 0),
        images_failed=int(row["failed"] or 0),
    )
