"""The publication of topics in the database: which are due, the lease on one, and its end.

What a topic shows is read by storage.items.newest, its documents are built in features.topics. Leases live by
the database's clock.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.features.topics.model import TopicSpec
from rss_pipeline.storage.database import Database, Row, Statement, one
from rss_pipeline.storage.sql import EXPIRY, NOW, chunked, compact, new_token, number, storable

# The mark on topics that are to be published again.
#
# The mark counts: a publication takes back what it has read, and not what came meanwhile.

STALE = f"stale = topics.stale + 1, stale_at = coalesce(topics.stale_at, {NOW})"
"""The mark on a row of topics."""
MARK_STALE = Statement(
    f"UPDATE topics SET {STALE} WHERE id IN (SELECT topic_id FROM topic_members WHERE feed_id {{feeds}})",
    name="mark topics stale",
)
"""Mark all topics with some feeds."""


def mark_topics_stale(database: Database, topic_ids: Sequence[str]) -> None:
    """Mark these topics: they are published again, although nothing of them changed."""
    for chunk in chunked(map(compact, topic_ids)):
        database.query(
            f"UPDATE topics SET {STALE} WHERE id IN (SELECT value FROM json_each(?))",
            [chunk],
            name="mark topics stale",
        )


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
class PublishedDocument:
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


def end(
    database: Database, taken: Taken, files: Sequence[PublishedDocument], *, entries: int, now: datetime
) -> bool:
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
    database: Database,
    read: Index,
    own: PublishedDocument,
    others: Sequence[PublishedDocument],
    *,
    now: datetime,
) -> None:
    """End the publication of the list. A change that came meanwhile is published the next time."""
    ended = Statement(
        "UPDATE published_files SET hash = ?, bytes = ?, published_at = ? WHERE key = ? AND hash = ?",
        [own.hash, own.bytes, instant(now), own.key, read.mark],
        name="end the list of topics",
    )
    database.batch([ended, *([_write_files(others, instant(now))] if others else [])])


def _write_files(files: Iterable[PublishedDocument], at: str) -> Statement:
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


# The topics table as the registry writes it.
#
# `topic_changes` is a pure decision; only `write_topics` writes.

STORED_TOPICS = Statement("SELECT id, definition, removed FROM topics ORDER BY id", name="read topics")
"""Every topic with its last definition, also those that left the registry (`removed`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChanges:
    """The changes that a registry makes to the topics table."""

    written: tuple[TopicSpec, ...] = ()
    """New ones, changed ones, and those that came back."""
    removed: tuple[str, ...] = ()
    """The topics that are no longer listed. Their documents stay, and are published once more, marked as
    such."""
    count: int = 0
    """All topics of the registry."""

    @property
    def is_empty(self) -> bool:
        return not (self.written or self.removed)

    def __str__(self) -> str:
        if not (self.count or self.written):
            return ""
        return (
            f"{self.count} topics: {len(self.written)} new or changed, {len(self.removed)} no longer listed"
        )


def topic_changes(specs: Iterable[TopicSpec], rows: Iterable[Row]) -> TopicChanges:
    """Compare the topics of a registry with the rows of STORED_TOPICS."""
    wanted = {spec.id: spec for spec in specs}
    known = {row["id"]: row for row in rows}
    return TopicChanges(
        written=tuple(
            spec
            for id, spec in wanted.items()
            if id not in known or known[id]["removed"] or known[id]["definition"] != spec.to_json()
        ),
        removed=tuple(sorted(id for id, row in known.items() if not row["removed"] and id not in wanted)),
        count=len(wanted),
    )


def sync_topics(database: Database, specs: Iterable[TopicSpec], rows: Iterable[Row]) -> TopicChanges:
    """Bring the topics of a registry into the database, which has these rows of STORED_TOPICS."""
    changes = topic_changes(specs, rows)
    write_topics(database, changes)
    return changes


def write_topics(database: Database, changes: TopicChanges) -> None:
    """Write a registry's changes; each topic that is written or removed is to be published again.

    A removed topic has no members any more, so that no news of a feed requests its publication.
    """
    topics = (
        compact(
            {"id": spec.id, "definition": spec.to_json(), "feeds": sorted({one.feed_id for one in spec.of})}
        )
        for spec in changes.written
    )
    for chunk in chunked(topics):
        database.batch(
            [
                Statement(_UPSERT, [chunk], name="write topics"),
                Statement(_DROP_MEMBERS, [chunk], name="drop members of topics"),
                Statement(_ADD_MEMBERS, [chunk], name="write members of topics"),
                MARK_INDEX,
            ]
        )
    for chunk in chunked(map(compact, changes.removed)):
        among = "IN (SELECT value FROM json_each(?))"
        database.batch(
            [
                Statement(
                    f"UPDATE topics SET removed = 1, {STALE} WHERE id {among}",
                    [chunk],
                    name="mark topics removed",
                ),
                Statement(
                    f"DELETE FROM topic_members WHERE topic_id {among}",
                    [chunk],
                    name="drop members of topics",
                ),
            ]
        )


_UPSERT = f"""INSERT INTO topics (id, definition, stale_at)
  SELECT json_extract(value, '$.id'), json_extract(value, '$.definition'), {NOW} FROM json_each(?) WHERE true
  ON CONFLICT (id) DO UPDATE SET definition = excluded.definition, removed = 0, {STALE}"""
_OF = "json_extract(v.value, '$.id')"
_DROP_MEMBERS = f"""DELETE FROM topic_members WHERE (topic_id, feed_id) IN (
  SELECT m.topic_id, m.feed_id FROM json_each(?) AS v JOIN topic_members AS m ON m.topic_id = {_OF}
  WHERE m.feed_id NOT IN (SELECT value FROM json_each(v.value, '$.feeds')))"""
_ADD_MEMBERS = f"""INSERT INTO topic_members (topic_id, feed_id)
  SELECT {_OF}, f.value FROM json_each(?) AS v, json_each(v.value, '$.feeds') AS f WHERE true
  ON CONFLICT (topic_id, feed_id) DO NOTHING"""


# The topics with their publications, for people and for metrics. Reads only.

LATE = timedelta(hours=6)
"""A change is published by the poll that brings it, or by the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicState:
    """A topic of the registry, and its documents."""

    spec: TopicSpec
    entries: int | None
    """None before the first publication, as `published_at`."""
    bytes: int
    """Size of both documents."""
    published_at: datetime | None
    """The time at which a document last changed."""
    stale_at: datetime | None
    """The time of the first change that is not published yet."""
    error: str | None
    """Why the last publication failed; None after one that did not."""

    def due_at(self) -> datetime | None:
        """The time from which the next publication is due; None where nothing changed."""
        if self.stale_at is None or self.published_at is None:
            return self.stale_at
        return max(self.stale_at, self.published_at + self.spec.every)

    def warning(self, now: datetime) -> str | None:
        """A sentence where readers do not have what was collected."""
        due = self.due_at()
        if due is None:
            return None
        if self.error is not None:
            return f"not published: {self.error}"
        if now - due < LATE:
            return None
        hours = int((now - due) / timedelta(hours=1))
        return (
            f"a change has waited for {hours} hours to be published: the next poll does it, or"
            f" `rss-pipeline publish {self.spec.id}`"
        )


def topic_states(database: Database) -> list[TopicState]:
    """The topics of the registry, by id."""
    rows = database.query(
        """SELECT definition, entries, published_at, CASE WHEN stale > 0 THEN stale_at END AS stale_at, error,
        (SELECT coalesce(sum(bytes), 0) FROM published_files
          WHERE key IN ('topics/' || id || '.json', 'topics/' || id || '.atom')) AS bytes
        FROM topics WHERE removed = 0 ORDER BY id""",
        name="read topics and publications",
    ).rows
    return [
        TopicState(
            spec=TopicSpec.of_json(row["definition"]),
            entries=None if row["entries"] is None else int(row["entries"]),
            bytes=int(row["bytes"]),
            published_at=from_instant(row["published_at"]),
            stale_at=from_instant(row["stale_at"]),
            error=row["error"],
        )
        for row in rows
    ]
