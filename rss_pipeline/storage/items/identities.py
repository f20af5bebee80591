"""The rows that are stored under guids that a document's items may have, or are like its items. Reads only.

Which of them an item is, is decided in collector.models.identity and pipeline.visits.identify.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.batched import batched
from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.collector.models.identity import MAX_TITLE_CHARACTERS, SPELLINGS, Known, spelling_parts
from rss_pipeline.storage.database import Database, Row, Statement, Value
from rss_pipeline.storage.sql import chunked, compact, number


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCounts:
    """The number of a document's guids, and of those that are known."""

    listed: int
    stored: int
    """Guids of items, and of retired ones."""
    aliases: int
    respelled: int
    """Guids that are not known, but in another spelling."""
    has_rewritten: bool
    """The feed has aliases at all."""


def count_known(database: Database, documents: Iterable[tuple[str, Sequence[str]]]) -> dict[str, KnownCounts]:
    """The counts for the guids of each of these documents, by the feed's id; none for one without items. One
    query for each megabyte of guids."""
    is_of = "EXISTS (SELECT 1 FROM {} AS s WHERE s.feed_id = listed.feed_id AND s.guid = listed.guid)"
    is_stored = " OR ".join(map(is_of.format, ("items", "expired_items")))
    spelled = ", ".join(f"'{start}' || listed.head || '{slash}' || listed.tail" for start, slash in SPELLINGS)
    is_spelled = " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} AS s WHERE s.feed_id = listed.feed_id AND s.guid IN ({spelled}))"
        for table in ("items", "expired_items", "item_aliases")
    )
    found: dict[str, KnownCounts] = {}
    listed = (
        compact([feed_id, [[guid, *(spelling_parts(guid) or (None, None))] for guid in guids]])
        for feed_id, guids in documents
    )
    for some in chunked(listed):
        rows = database.query(
            f"""WITH listed AS MATERIALIZED (
              SELECT json_extract(f.value, '$[0]') AS feed_id, json_extract(g.value, '$[0]') AS guid,
                json_extract(g.value, '$[1]') AS head, json_extract(g.value, '$[2]') AS tail
              FROM json_each(?) AS f, json_each(f.value, '$[1]') AS g)
            SELECT feed_id, count(*) AS listed, sum({number(is_stored)}) AS stored,
              sum({number(is_of.format("item_aliases"))}) AS aliases,
              sum(CASE WHEN listed.head IS NULL OR {is_stored} THEN 0 WHEN {is_spelled} THEN 1 ELSE 0 END)
                AS respelled,
              EXISTS (SELECT 1 FROM item_aliases AS a WHERE a.feed_id = listed.feed_id) AS has_rewritten
            FROM listed GROUP BY feed_id""",
            [some],
            name="count known guids",
        ).rows
        found |= {
            row["feed_id"]: KnownCounts(
                listed=int(row["listed"]),
                stored=int(row["stored"]),
                aliases=int(row["aliases"]),
                respelled=int(row["respelled"]),
                has_rewritten=bool(row["has_rewritten"]),
            )
            for row in rows
        }
    return found


def known_identities(database: Database, feed_id: str, guids: Iterable[str]) -> dict[str, Known]:
    """The feed's stored items and tombstones among these guids, and those of which one is an alias; one query
    for each megabyte of guids."""
    known: dict[str, Known] = {}
    for some in chunked(map(compact, dict.fromkeys(guids))):
        rows = database.query(
            f"""WITH listed AS MATERIALIZED (SELECT value AS guid FROM json_each(?)),
              own AS MATERIALIZED (
                SELECT guid, guid AS stored, NULL AS since FROM listed
                UNION ALL SELECT a.guid, a.item_guid, a.created_at
                FROM listed CROSS JOIN item_aliases AS a ON a.feed_id = ? AND a.guid = listed.guid)
            SELECT own.guid, own.stored, {_TITLE.format("i.title")} AS title, i.link,
              {_DATE} AS pub_date, i.pub_date_raw, i.backup_key, NULL AS expired_at,
              COALESCE(own.since, i.created_at) AS since
            FROM own CROSS JOIN items AS i ON i.feed_id = ? AND i.guid = own.stored
            UNION ALL SELECT own.guid, own.stored, {_TITLE.format("e.title")}, e.link,
              e.pub_date, NULL, NULL, e.expired_at, own.since
            FROM own CROSS JOIN expired_items AS e ON e.feed_id = ? AND e.guid = own.stored""",
            [some, feed_id, feed_id, feed_id],
            name="find known identities",
        ).rows
        known |= {row["guid"]: _known(row) for row in rows}
    return known


def alike(
    database: Database, feed_id: str, links: Iterable[str | None], titles: Iterable[str | None]
) -> dict[str, Known]:
    """The feed's stored items and tombstones with one of these links or titles, in any case, by guid.

    It goes through all that the feed has: it is for the few documents that may be rewritten.
    """
    pairs = [compact([link, None]) for link in dict.fromkeys(filter(None, links))]
    starts = dict.fromkeys(title[:MAX_TITLE_CHARACTERS] for title in titles if title)
    pairs += [compact([None, title]) for title in starts]
    found: dict[str, Known] = {}
    for some in chunked(pairs):
        rows = database.query(
            f"""WITH listed AS MATERIALIZED (
              SELECT json_extract(value, '$[0]') AS link, json_extract(value, '$[1]') AS title
              FROM json_each(?))
            SELECT i.guid, {_TITLE.format("i.title")} AS title, i.link, {_DATE} AS pub_date,
              NULL AS expired_at FROM items AS i WHERE i.feed_id = ? AND {_LIKE_LISTED.format("i")}
            UNION ALL SELECT e.guid, e.title, e.link, e.pub_date, e.expired_at
            FROM expired_items AS e WHERE e.feed_id = ? AND {_LIKE_LISTED.format("e")}""",
            [some, feed_id, feed_id],
            name="find items like the listed",
        ).rows
        found |= {row["guid"]: _known({"stored": row["guid"], **row}) for row in rows}
    return found


_TITLE = f"substr({{}}, 1, {MAX_TITLE_CHARACTERS})"
_DATE = "CASE i.pub_date_source WHEN 'feed' THEN i.pub_date END"
_LIKE_LISTED = f"""({{0}}.link IN (SELECT link FROM listed WHERE link IS NOT NULL)
  OR lower({_TITLE.format("{0}.title")}) IN (SELECT lower(title) FROM listed WHERE title IS NOT NULL))"""


def _known(row: Row) -> Known:
    return Known(
        title=row["title"],
        link=row["link"],
        pub_date=from_instant(row["pub_date"]),
        pub_date_raw=row.get("pub_date_raw"),
        backup_key=row.get("backup_key"),
        retired_at=from_instant(row["expired_at"]),
        alias_of=row["stored"] if row["stored"] != row["guid"] else None,
        since=from_instant(row.get("since")),
    )


ALIASES_KEPT = 3
"""The most of an item, those of the newest documents: some feeds make new guids at every visit."""
_AT_ONCE = 3
"""Parameters of 1 MB in one batch: 5,000 aliases of 600 bytes."""


def add_aliases(
    database: Database,
    feed_id: str,
    aliases: Mapping[str, str],
    *,
    fetched_at: datetime,
    token: str | None = None,
) -> None:
    """Write these guids of a document, each with the guid that its item is stored under.

    It has to come before the document's items. A run that died with some of them stored, or with some aliases
    written, would leave a document with fewer new guids, which shows no rewriting any more. So the aliases
    are one batch. With `token`, nothing is written if the lease was lost.
    """
    guard = "id = ?" if token is None else "id = ? AND lease_token = ?"
    guarded: list[Value] = [feed_id] if token is None else [feed_id, token]
    statements = [
        Statement(
            f"""INSERT INTO item_aliases (feed_id, guid, item_guid, created_at)
            SELECT ?, json_extract(value, '$[0]'), json_extract(value, '$[1]'), ? FROM json_each(?)
            WHERE EXISTS (SELECT 1 FROM feeds WHERE {guard}) ON CONFLICT (feed_id, guid) DO NOTHING""",
            [feed_id, instant(fetched_at), some, *guarded],
            name="add aliases",
        )
        for some in chunked(compact([new, old]) for new, old in aliases.items())
    ]
    for batch in batched(statements, _AT_ONCE):
        database.batch([*batch, _drop_oldest(feed_id, guard, guarded)])


def _drop_oldest(feed_id: str, guard: str, guarded: list[Value]) -> Statement:
    return Statement(
        f"""DELETE FROM item_aliases WHERE feed_id = ? AND guid IN (
          SELECT guid FROM (
            SELECT guid, row_number() OVER (PARTITION BY item_guid ORDER BY created_at DESC, guid) AS place
            FROM item_aliases WHERE feed_id = ?) AS placed
          WHERE place > {ALIASES_KEPT})
        AND EXISTS (SELECT 1 FROM feeds WHERE {guard})""",
        [feed_id, feed_id, *guarded],
        name="drop oldest aliases",
    )


def alias_counts(database: Database, feed_id: str) -> dict[str, int]:
    """The number of aliases of each item that has any, by its guid."""
    rows = database.query(
        "SELECT item_guid, count(*) AS n FROM item_aliases WHERE feed_id = ? GROUP BY item_guid",
        [feed_id],
        name="count aliases",
    ).rows
    return {row["item_guid"]: int(row["n"]) for row in rows}


def drop_unused(feed_id: str, token: str) -> Statement:
    """A statement that drops the aliases of items that are neither stored nor retired any more."""
    gone = " AND ".join(
        f"NOT EXISTS (SELECT 1 FROM {table} AS s WHERE s.feed_id = item_aliases.feed_id"
        " AND s.guid = item_aliases.item_guid)"
        for table in ("items", "expired_items")
    )
    return Statement(
        f"""DELETE FROM item_aliases WHERE feed_id = ? AND {gone}
        AND EXISTS (SELECT 1 FROM feeds WHERE id = ? AND lease_token = ?)""",
        [feed_id, feed_id, token],
        name="drop unused aliases",
    )
