"""The members of a feed's streams, all at once. Reads only; their counts are storage.items.streams'."""

from rss_pipeline.storage.database import Database


def stored_members(database: Database, feed_id: str) -> dict[str, frozenset[str]]:
    """The ids of the items of each stream of a feed, as they are stored."""
    found: dict[str, set[str]] = {}
    for row in database.query(
        "SELECT stream, item_id FROM item_streams WHERE feed_id = ?",
        [feed_id],
        name="read members of streams",
    ).rows:
        found.setdefault(row["stream"], set()).add(row["item_id"])
    return {name: frozenset(ids) for name, ids in found.items()}
