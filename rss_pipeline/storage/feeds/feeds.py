"""Feeds by id, and single facts of them.

What the registry writes is in registered.py, claims in claims.py, closed visits in closings.py, changes and
their reports in feed_changes.py, the end of a feed in forget.py.
"""

from collections.abc import Iterable, Iterator, Sequence

from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.storage.database import Database, Result, Statement
from rss_pipeline.storage.feeds.feed_row import FEED_COLUMNS, feed_of
from rss_pipeline.storage.sql import chunked, compact


def known_pages(database: Database) -> dict[str, tuple[str | None, str | None]]:
    """Feed id to title and web page, of all feeds."""
    rows = database.query("SELECT id, title, link FROM feeds", name="read titles").rows
    return {row["id"]: (row["title"], row["link"]) for row in rows}


def feeds_by_id(database: Database, ids: Sequence[str]) -> dict[str, Feed]:
    """These feeds by id; unknown ids are left out."""
    rows = database.query(
        f"SELECT {FEED_COLUMNS} FROM feeds WHERE id IN (SELECT value FROM json_each(?))",
        [compact(list(ids))],
        name="read feeds",
    ).rows
    return {row["id"]: feed_of(row) for row in rows}


def not_our_outage(database: Database, ids: Sequence[str], *, answered: bool) -> frozenset[str]:
    """The feeds among these that fail by themselves although an outage of ours postponed them.

    A host has answered since that outage, or just now (`answered`), so our network was up. An answer that
    the outage's own run stored later does not count.
    """
    rows = database.query(
        f"""SELECT id FROM feeds WHERE id IN (SELECT value FROM json_each(?)) AND schedule_kind = 'our_outage'
        AND (? = 1 OR strftime('%Y-%m-%dT%H:%M:%SZ', next_fetch_at, '-' || ({_SETTLED}) || ' seconds')
          < (SELECT max(last_fetched_at) FROM feeds))""",
        [compact(list(ids)), int(answered)],
        name="find outages of ours that are over",
    ).rows
    return frozenset(row["id"] for row in rows)


def any_answered(database: Database) -> bool:
    """True if any feed was ever answered, with any status."""
    rows = database.query(
        "SELECT 1 FROM feeds WHERE last_fetched_at IS NOT NULL LIMIT 1", name="find an answered feed"
    ).rows
    return bool(rows)


_SETTLED = "CASE outage_pauses {} ELSE 3360 END".format(
    " ".join(f"WHEN {n} THEN {max(300 * 2 ** (n - 1), 300) - 240}" for n in range(5))
)
"""Seconds from 4 min after an outage, when its run has ended, until its feeds are due again."""


def forget_failed_document(database: Database, feed_id: str, document_hash: str) -> None:
    """Forget that this document could not be read, unless another one has failed since."""
    database.query(
        """UPDATE feeds SET failed_hash = NULL, failed_version = NULL WHERE id = ? AND failed_hash = ?""",
        [feed_id, document_hash],
        name="forget failed document",
    )


# The ids of feeds: of all, read page by page, for there may be a million; and those that are taken.

_PAGE = 5_000


def feed_ids(database: Database) -> Iterator[str]:
    """The ids of all feeds, in their order."""
    after = ""
    while True:
        rows = database.query(
            f"SELECT id FROM feeds WHERE id > ? ORDER BY id LIMIT {_PAGE}", [after], name="read feed ids"
        ).rows
        yield from (row["id"] for row in rows)
        if len(rows) < _PAGE:
            return
        after = rows[-1]["id"]


def stored_urls(ids: Iterable[str]) -> list[Statement]:
    """Queries for the feeds with these ids, and with each of these and a number; `urls_by_id` reads them."""
    return [
        Statement(
            # All that begin with the id and a hyphen: no other sign of an id comes before the dot.
            """SELECT feeds.id, feeds.url FROM json_each(?) AS j
            CROSS JOIN feeds ON feeds.id >= j.value AND feeds.id < j.value || '.'
            WHERE feeds.forgotten = 0""",
            [chunk],
            name="find taken ids",
        )
        for chunk in chunked(map(compact, ids))
    ]


def urls_by_id(found: Iterable[Result]) -> dict[str, str]:
    """The results of `stored_urls`."""
    return {row["id"]: row["url"] for result in found for row in result.rows}
