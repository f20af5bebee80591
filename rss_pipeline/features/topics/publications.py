"""The publication of topics in the database: which are due, the lease on one, and its end.

What a topic shows is read by storage.items.newest, its documents are built in features.topics. Leases live by
the database's clock.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.features.topics.model import TopicSpec
from rss_pipeline.features.topics.stale import STALE
from rss_pipeline.storage.database import Database, Statement, one
from rss_pipeline.storage.sql import EXPIRY, NOW, compact, new_token, number, storable

LEASE_SECONDS = 120
INDEX = "index"
"""The list of all topics among the ids of what is due; no topic may have this id."""
INDEX_KEY = "topics/index.json"
OPML_KEY = "topics/index.opml"

_HASH_CHARACTERS = 64
_ERROR_CHARACTERS = 500
_HAS_DOCUMENT = """EXISTS (SELECT 1 FROM topic_members AS m CROSS JOIN feeds ON feeds.id = m.feed_id
  WHERE m.topic_id = topics.id AND feeds.first_stored_at IS NOT NULL)"""
_IS_FREE = f"(lease_until IS NULL OR lease_until <= {NOW})"
_SECONDS = "'+' || CAST(json_extract(definition, '$.every') AS INTEGER) || ' seconds'"
# Behind its hash, the list's row has a mark of its own for each change of what the list shows.
_IS_MARKED = f"length(hash) > {_HASH_CHARACTERS}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A document that was put into the object store."""

    key: str
    hash: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A topic with the lease that lets one process publish it."""

    topic: TopicSpec
    token: str
    stale: int
    """The changes that this publication shows."""
    is_removed: bool
    is_listed: bool
    """True if it was published before, so that the list of topics has it."""
    hashes: dict[str, str]
    """The hash of each of its documents in the object store, by key."""


def due(database: Database, *, now: datetime) -> list[str]:
    """The ids of changed topics with an `every` that has passed, `INDEX` among them where the list did.

    A topic is not published before one of its feeds has brought a document: empty, it would have its first
    items only after `every`.
    """
    # An index keeps the topics that changed apart: mostly there are none.
    rows = database.query(
        f"""SELECT id FROM topics WHERE stale > 0 AND {_IS_FREE} AND (removed = 1
            OR (published_at IS NULL AND {_HAS_DOCUMENT})
            OR published_at > ? OR strftime('%Y-%m-%dT%H:%M:%SZ', published_at, {_SECONDS}) <= ?)
        UNION ALL SELECT '{INDEX}' FROM published_files WHERE key = '{INDEX_KEY}' AND {_IS_MARKED}""",
        [instant(now), instant(now)],
        name="find topics to publish",
    ).rows
    return sorted(row["id"] for row in rows)


def is_due(database: Database, now: datetime) -> bool:
    """True if a topic, or the list, is to be published."""
    return bool(due(database, now=now))


def keys(topic_id: str) -> tuple[str, str]:
    """The keys of a topic's documents: JSON Feed and Atom."""
    return f"topics/{topic_id}.json", f"topics/{topic_id}.atom"


def take(database: Database, topic_id: str) -> Taken | None:
    """Take the lease on a topic; None while another process has it, and where there is no such topic."""
    token = new_token()
    taken, files = database.batch(
        [
            Statement(
                f"""UPDATE topics SET lease_token = ?, lease_until = {EXPIRY} WHERE id = ? AND {_IS_FREE}
                RETURNING definition, stale, removed, published_at""",
                [token, None, LEASE_SECONDS, topic_id],
                name="take a topic",
            ),
            Statement(
                "SELECT key, hash FROM published_files WHERE key IN (SELECT value FROM json_each(?))",
                [compact(keys(topic_id))],
                name="read hashes of a topic",
            ),
        ]
    )
    row = one(taken)
    if row is None:
        return None
    return Taken(
        topic=TopicSpec.of_json(row["definition"]),
        token=token,
        stale=int(row["stale"]),
        is_removed=bool(row["removed"]),
        is_listed=row["published_at"] is not None,
        hashes={file["key"]: file["hash"] for file in files.rows},
    )


def end(database: Database, taken: Taken, files: Sequence[Published], *, entries: int, now: datetime) -> bool:
    """End a publication that put these documents. A change that came meanwhile is published the next time.

    False where the lease was over, and perhaps another process published the topic meanwhile: which of both
    wrote last is not known, so it is published again.
    """
    topic_id, at = taken.topic.id, instant(now)
    written = [_write_files(files, at)] if files else []
    relisted = [MARK_INDEX] if taken.is_removed or not taken.is_listed else []
    ended = Statement(
        f"""UPDATE topics SET stale = CASE WHEN stale = ? THEN 0 ELSE stale END,
          stale_at = CASE WHEN stale = ? THEN NULL ELSE {NOW} END, error = NULL, entries = ?,
          published_at = coalesce(?, published_at), lease_token = NULL, lease_until = NULL
        WHERE id = ? AND lease_token = ?""",
        [
            *(taken.stale, taken.stale, entries),
            at if files or not taken.is_listed else None,
            *(topic_id, taken.token),
        ],
        name="end a publication",
    )
    if database.batch([*written, *relisted, ended])[-1].changes:
        return True
    database.batch(
        [
            Statement(
                "UPDATE published_files SET hash = '' WHERE key IN (SELECT value FROM json_each(?))",
                [compact(keys(topic_id))],
                name="forget hashes of a topic",
            ),
            Statement(f"UPDATE topics SET {STALE} WHERE id = ?", [topic_id], name="mark topics stale"),
        ]
    )
    return False


def release(database: Database, taken: Taken, *, error: str | None = None) -> None:
    """Release a topic that was not published; it stays due. `error` is kept for people until one is."""
    database.query(
        """UPDATE topics SET lease_token = NULL, lease_until = NULL, error = coalesce(?, error)
        WHERE id = ? AND lease_token = ?""",
        [error and storable(error[:_ERROR_CHARACTERS]), taken.topic.id, taken.token],
        name="release a topic",
    )


_UNKNOWN = f"{'':{_HASH_CHARACTERS}}?"
MARK_INDEX = Statement(
    f"""INSERT INTO published_files (key, hash, bytes, published_at)
      VALUES ('{INDEX_KEY}', '{_UNKNOWN}', 0, {NOW})
    ON CONFLICT (key) DO UPDATE
    SET hash = substr(published_files.hash, 1, {_HASH_CHARACTERS}) || '?' || hex(randomblob(8))""",
    name="mark the list of topics",
)
"""For the batch of whatever changes the list: which topics there are, and their titles and links."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """The topics of the list, and what is known of its documents."""

    topics: tuple[TopicSpec, ...]
    hashes: dict[str, str]
    mark: str
    """The mark that `end_index` ends: not that of a change since then."""


def index(database: Database, *, even_unchanged: bool = False) -> Index | None:
    """The list of topics where it changed: those that have documents and did not leave the registry."""
    files = database.query(
        "SELECT key, hash FROM published_files WHERE key IN (SELECT value FROM json_each(?))",
        [compact([INDEX_KEY, OPML_KEY])],
        name="read hashes of the list",
    ).rows
    hashes = {row["key"]: row["hash"] for row in files}
    mark = hashes.get(INDEX_KEY, "")
    if not mark or (len(mark) <= _HASH_CHARACTERS and not even_unchanged):
        return None
    topics = database.query(
        "SELECT definition FROM topics WHERE removed = 0 AND published_at IS NOT NULL ORDER BY id",
        name="read the list of topics",
    ).rows
    return Index(
        topics=tuple(TopicSpec.of_json(row["definition"]) for row in topics),
        hashes={key: hash[:_HASH_CHARACTERS] for key, hash in hashes.items()},
        mark=mark,
    )


def end_index(
    database: Database, read: Index, own: Published, others: Sequence[Published], *, now: datetime
) -> None:
    """End the publication of the list. A change that came meanwhile is published the next time."""
    ended = Statement(
        "UPDATE published_files SET hash = ?, bytes = ?, published_at = ? WHERE key = ? AND hash = ?",
        [own.hash, own.bytes, instant(now), own.key, read.mark],
        name="end the list of topics",
    )
    database.batch([ended, *([_write_files(others, instant(now))] if others else [])])


def _write_files(files: Iterable[Published], at: str) -> Statement:
    rows = [[file.key, file.hash, file.bytes, at] for file in files]
    key, hash, size, published_at = (f"json_extract(value, '$[{n}]')" for n in range(4))
    return Statement(
        f"""INSERT INTO published_files (key, hash, bytes, published_at)
          SELECT {key}, {hash}, {number(size)}, {published_at} FROM json_each(?) WHERE true
        ON CONFLICT (key) DO UPDATE
        SET hash = excluded.hash, bytes = excluded.bytes, published_at = excluded.published_at""",
        [compact(rows)],
        name="write published files",
    )


def installation(database: Database) -> UUID | None:
    """The base of the ids of topics; None before the first publication."""
    row = one(
        database.query("SELECT value FROM installation WHERE name = 'uuid'", name="read the installation")
    )
    return None if row is None else UUID(row["value"])


def set_installation(database: Database, uuid: UUID) -> UUID:
    """Keep it, unless another process was first; return the one that is kept."""
    _, found = database.batch(
        [
            Statement(
                "INSERT INTO installation (name, value) VALUES ('uuid', ?) ON CONFLICT (name) DO NOTHING",
                [str(uuid)],
                name="write the installation",
            ),
            Statement("SELECT value FROM installation WHERE name = 'uuid'", name="read the installation"),
        ]
    )
    return UUID(found.rows[0]["value"])


def topic_ids(database: Database) -> list[str]:
    """The topics of the registry."""
    rows = database.query("SELECT id FROM topics WHERE removed = 0 ORDER BY id", name="list topics").rows
    return [row["id"] for row in rows]
