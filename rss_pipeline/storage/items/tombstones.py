"""Tombstones: the rows of expired_items, which keep a retired item away while its feed still lists it.

Retention writes them (features/retention), the inserts read them (items.py, features/replay).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.items.identities import drop_unused
from rss_pipeline.storage.sql import compact

TOMBSTONE_AGE = timedelta(days=60)
"""A tombstone stays while the feed listed its item within this time: feeds flap."""
UNLISTED_DOCUMENTS = 3
"""A tombstone stays until so many documents, one a day, did not list its item: one of them may be cut."""

_GUARD = "EXISTS (SELECT 1 FROM feeds WHERE id = ? AND lease_token = ?)"
_LISTED = "(SELECT value FROM json_each(?))"


def note_listed(
    feed_id: str, token: str, guids: Sequence[str], *, now: datetime, backup_days: int, is_first_today: bool
) -> list[Statement]:
    """Statements that note which retired items a stored document lists, and drop what is not needed any more.

    `guids` are all the document lists; they are the feed's only proof, so a document without items proves
    nothing. `is_first_today`: only the first document of a day counts as one without an item. Guarded by the
    lease's token. A replay can bring back the items in backups, so no tombstone goes that is younger than
    they get.
    """
    if not guids:
        return []
    listed = compact(list(guids))
    again = Statement(
        f"""UPDATE expired_items SET unlisted_since = NULL, unlisted_documents = 0
        WHERE feed_id = ? AND unlisted_since IS NOT NULL AND guid IN {_LISTED} AND {_GUARD}""",
        [feed_id, listed, feed_id, token],
        name="note retired items that are listed again",
    )
    if not is_first_today:
        return [again]
    age = max(TOMBSTONE_AGE, timedelta(days=backup_days))
    unlisted = Statement(
        f"""UPDATE expired_items SET unlisted_since = coalesce(unlisted_since, ?),
          unlisted_documents = unlisted_documents + 1
        WHERE feed_id = ? AND unlisted_documents < ? AND guid NOT IN {_LISTED} AND {_GUARD}""",
        [instant(now), feed_id, UNLISTED_DOCUMENTS, listed, feed_id, token],
        name="note retired items that are not listed",
    )
    drop = Statement(
        f"""DELETE FROM expired_items WHERE feed_id = ? AND expired_at < ? AND unlisted_since <= ?
          AND unlisted_documents >= ? AND {_GUARD}""",
        [feed_id, instant(now - age), instant(now - TOMBSTONE_AGE), UNLISTED_DOCUMENTS, feed_id, token],
        name="delete old tombstones",
    )
    return [again, unlisted, drop, drop_unused(feed_id, token)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetiredSince:
    """The retired items of a feed since some instant."""

    feed_id: str
    items: int


def retired_since(database: Database, since: datetime) -> list[RetiredSince]:
    """The feeds with items that were retired since then, by the database's clock."""
    rows = database.query(
        """SELECT feed_id, count(*) AS n FROM expired_items WHERE expired_at >= ?
        GROUP BY feed_id ORDER BY feed_id""",
        [instant(since)],
        name="count retired items",
    ).rows
    return [RetiredSince(feed_id=row["feed_id"], items=int(row["n"])) for row in rows]


def revive(feed_id: str, guids: Sequence[str], *, since: datetime) -> Statement:
    """A statement that drops the tombstones of these guids written since then; for the batch that inserts
    their items, so that no crash leaves an item neither stored nor retired."""
    return Statement(
        f"DELETE FROM expired_items WHERE feed_id = ? AND expired_at >= ? AND guid IN {_LISTED}",
        [feed_id, instant(since), compact(list(guids))],
        name="drop tombstones of revived items",
    )


def drop_since(database: Database, feed_id: str, *, since: datetime) -> int:
    """Drop the feed's tombstones written since then; return their number."""
    return database.query(
        "DELETE FROM expired_items WHERE feed_id = ? AND expired_at >= ?",
        [feed_id, instant(since)],
        name="drop tombstones",
    ).changes
