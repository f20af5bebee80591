"""The end of a feed: all of its rows go, in two steps between which its partition key goes.

The condition for it is pipeline.registry.forget's; a feed that somebody has subscribed to since then stays,
whole. Objects stay.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.errors import DatabaseFull, ForgetRefused
from rss_pipeline.storage.database import Database, HasReserve, InFile, Row, Statement, shrink
from rss_pipeline.storage.feeds.predicates import SUBSCRIBED, UNLISTED, UNUSED, WITHOUT_DOCUMENT
from rss_pipeline.storage.kept_html import drop_where
from rss_pipeline.storage.sql import LIVE_TOKENS_NOW, chunked, compact
from rss_pipeline.storage.stale import mark_stale


def begin_forget(database: Database, feed_id: str) -> dict[str, int]:
    """Delete all of a feed but its row, which says that it is forgotten; how many rows went. Objects stay.

    The row goes by `end_forget`, after its partition key: without it nothing would show a key that a killed
    process left. Its URL is free at once.

    Raises:
        ForgetRefused: a user of the reader subscribes to it; nothing was deleted.
    """
    try:
        return _begin(database, feed_id)
    except DatabaseFull:
        # The room of deleted rows is not everywhere free before they are committed, and the log of SQLite
        # takes the more the more go at once. A process that is killed here leaves a feed with fewer rows,
        # which may be forgotten as before.
        reserve = database if isinstance(database, HasReserve) else None
        if reserve is not None:
            reserve.use_reserve()
        gone = _slices(database, feed_id)
        shrink(database)
        rest = _begin(database, feed_id)
        if reserve is not None:
            reserve.keep_reserve()
    return {name: gone[name] + rest[name] for name in rest}


def _slices(database: Database, feed_id: str) -> dict[str, int]:
    """Delete the items of a feed, some at once; how many rows went.

    Raises:
        DatabaseFull: there is no room even for that.
    """
    gone = {"image_tasks": 0, "items": 0}
    most = _ITEMS_AT_ONCE
    while True:
        of_slice = f"id IN (SELECT i.id FROM items AS i WHERE i.feed_id {_free(feed_id)[0]} LIMIT {most})"
        try:
            *_, image_tasks, items = database.batch(_of_items(of_slice, _free(feed_id)[1]))
        except DatabaseFull:
            if most == 1:
                raise
            most //= 10
            continue
        if items.changes == 0:
            return gone
        gone = {
            "image_tasks": gone["image_tasks"] + image_tasks.changes,
            "items": gone["items"] + items.changes,
        }
        if isinstance(database, InFile):
            # Its log is written into the file as soon as that has room for it, and takes the next slice.
            database.shrink()


def _begin(database: Database, feed_id: str) -> dict[str, int]:
    *rows, members = _of_their_own(*_free(feed_id))
    results = database.batch(
        [
            *rows,
            # What may need room comes behind what makes some.
            *mark_stale(compact([feed_id])),
            members,
            Statement(
                f"""UPDATE feeds SET forgotten = 1, registered = 0, listed = 0, url = 'forgotten:' || id
                WHERE id = ? AND NOT {SUBSCRIBED}""",
                [feed_id],
                name="mark feed forgotten",
            ),
        ]
    )
    image_tasks, items = results[len(rows) - 2 : len(rows)]
    if results[-1].changes == 0:
        raise ForgetRefused(
            f"a user of the reader subscribes to {feed_id}: it goes when no user does any more"
        )
    return {"image_tasks": image_tasks.changes, "items": items.changes}


def _free(feed_id: str) -> tuple[str, str]:
    return f"IN (SELECT value FROM json_each(?) WHERE {_FREE})", compact([feed_id])


def end_forget(database: Database, *feed_ids: str) -> int:
    """Delete those of these feeds that are marked as forgotten, with whatever they still have; return their
    number. One that was registered again meanwhile stays."""
    deleted = 0
    for chunk in chunked(map(compact, feed_ids)):
        *_, feeds = database.batch(end_statements(chunk))
        deleted += feeds.changes
    return deleted


def end_statements(ids: str) -> list[Statement]:
    """The statements of `end_forget` for a JSON list of ids."""
    return [
        *_of_their_own(f"IN (SELECT id FROM feeds WHERE {_FORGOTTEN})", ids),
        Statement(f"DELETE FROM feeds WHERE {_FORGOTTEN}", [ids], name="forget feeds"),
    ]


_ITEMS_AT_ONCE = 100
_FREE = "value NOT IN (SELECT feed_id FROM subscriptions)"
_FORGOTTEN = "forgotten = 1 AND id IN (SELECT value FROM json_each(?))"


def _of_their_own(among: str, ids: str) -> list[Statement]:
    """Statements that delete the rows of some feeds in the other tables: at the end image tasks, items, and
    members of topics.

    Their holds stay: a publisher's Retry-After is valid also for a feed that is taken out and added again.
    """
    return [
        Statement(f"DELETE FROM item_streams WHERE feed_id {among}", [ids], name="forget streams' items"),
        Statement(f"DELETE FROM streams WHERE feed_id {among}", [ids], name="forget streams"),
        Statement(f"DELETE FROM expired_items WHERE feed_id {among}", [ids], name="forget tombstones"),
        Statement(f"DELETE FROM item_aliases WHERE feed_id {among}", [ids], name="forget aliases"),
        *_of_items(f"feed_id {among}", ids),
        Statement(f"DELETE FROM topic_members WHERE feed_id {among}", [ids], name="forget members"),
    ]


def _of_items(chosen: str, ids: str) -> list[Statement]:
    """Statements that delete the items for which this condition holds: at the end image tasks, and items."""
    of_items = f"item_id IN (SELECT id FROM items WHERE {chosen})"
    return [
        Statement(f"DELETE FROM item_versions WHERE {of_items}", [ids], name="forget versions"),
        drop_where(f"items.{chosen}", [ids]),
        # By its key alone a row would go with its item, and be counted as one.
        Statement(f"DELETE FROM story_members WHERE {of_items}", [ids], name="forget members of stories"),
        Statement(f"DELETE FROM image_tasks WHERE {of_items}", [ids], name="forget image tasks"),
        Statement(f"DELETE FROM items WHERE {chosen}", [ids], name="forget items"),
    ]


# Feeds that no one wants any more: a list of them, and the start of the removal of empty ones.
#
# The removal ends like that of `forget`: first the partition key, then the row.

# A run that claimed the feed before it was taken out may be about to write.
_EMPTY = f"""{UNLISTED} AND unused_since IS NULL AND {WITHOUT_DOCUMENT}
    AND (lease_token IS NULL OR lease_token NOT IN ({LIVE_TOKENS_NOW}))
    AND NOT EXISTS (SELECT 1 FROM items WHERE feed_id = feeds.id)
    AND NOT EXISTS (SELECT 1 FROM expired_items WHERE feed_id = feeds.id)"""
"""Taken out of feeds.yaml, without an item, also a retired one, and without a claim; its backups are not
known here. A feed that its subscribers left waits for the clean: its back-off is known until then."""


def empty(database: Database) -> list[str]:
    """Ids of the unlisted feeds of which the database has nothing."""
    rows = database.query(
        f"SELECT id FROM feeds WHERE {_EMPTY} ORDER BY id", name="find empty unlisted feeds"
    ).rows
    return [row["id"] for row in rows]


def begin_removal(database: Database, ids: Sequence[str]) -> list[str]:
    """Mark those of these feeds as forgotten that are still empty; return their ids, sorted."""
    marked: list[str] = []
    for chunk in chunked(map(compact, ids)):
        marked += (
            row["id"]
            for row in database.query(
                f"""UPDATE feeds SET forgotten = 1, url = 'forgotten:' || id
                WHERE id IN (SELECT value FROM json_each(?)) AND {_EMPTY} RETURNING id""",
                [chunk],
                name="mark empty feeds forgotten",
            ).rows
        )
    return sorted(marked)


def unlisted(database: Database) -> list[Row]:
    """Id, URL and number of items of each unlisted feed."""
    return database.query(
        f"""SELECT id, url, (SELECT count(*) FROM items WHERE feed_id = feeds.id) AS items
        FROM feeds WHERE {UNLISTED} ORDER BY id""",
        name="list unlisted feeds",
    ).rows


# Feeds that their last subscriber left: those past their time, and the start of their removal.
#
# Their items and images go first (features/retention); the removal ends like that of `forget`.

UNUSED_AFTER = timedelta(days=7)
"""Time that a feed is kept after its last subscriber left it."""

# A run that claimed the feed before it was left may be about to write.
_DUE = f"""{UNUSED} AND unused_since <= ?
    AND (lease_token IS NULL OR lease_token NOT IN ({LIVE_TOKENS_NOW}))"""


def due_unused_feeds(database: Database, *, now: datetime) -> list[str]:
    """Ids of the unused feeds past their time at `now`."""
    rows = database.query(
        f"SELECT id FROM feeds WHERE {_DUE} ORDER BY id",
        [instant(now - UNUSED_AFTER)],
        name="find unused feeds",
    ).rows
    return [row["id"] for row in rows]


def begin_removal_of_unused(database: Database, feed_id: str, *, now: datetime) -> int | None:
    """Delete the image tasks of this feed, and forget its validators, so that its next visit, if somebody
    subscribes to it now, brings what it lists again. Return the number of tasks; None if it is not due now.
    """
    before = instant(now - UNUSED_AFTER)
    begun, tasks = database.batch(
        [
            Statement(
                f"""UPDATE feeds SET last_etag = NULL, last_modified = NULL, validators_url = NULL,
                validators_state = NULL,
                content_hash = NULL, failed_hash = NULL, failed_version = NULL, cut_hash = NULL, cuts = 0
                WHERE id = ? AND {_DUE}""",
                [feed_id, before],
                name="begin removal of an unused feed",
            ),
            Statement(
                f"""DELETE FROM image_tasks WHERE item_id IN (SELECT items.id FROM items
                WHERE feed_id IN (SELECT id FROM feeds WHERE id = ? AND {_DUE}))""",
                [feed_id, before],
                name="delete image tasks of an unused feed",
            ),
        ]
    )
    return tasks.changes if begun.changes else None


def sizes(database: Database, feed_id: str) -> tuple[int, int]:
    """The numbers of items and image tasks of a feed."""
    row = database.query(
        """SELECT count(*) AS items, coalesce(sum((
          SELECT count(*) FROM image_tasks WHERE item_id = items.id)), 0) AS tasks
        FROM items WHERE feed_id = ?""",
        [feed_id],
        name="count what an unused feed has",
    ).rows[0]
    return int(row["items"]), int(row["tasks"])
