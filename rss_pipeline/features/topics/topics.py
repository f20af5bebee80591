"""The topics table as the registry writes it.

`topic_changes` is a pure decision; only `apply` writes. Publications are in publications.py, the mark that
requests one in stale.py.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from rss_pipeline.features.topics.model import TopicSpec
from rss_pipeline.features.topics.publications import MARK_INDEX
from rss_pipeline.features.topics.stale import STALE
from rss_pipeline.storage.database import Database, Row, Statement
from rss_pipeline.storage.sql import NOW, chunked, compact

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


def apply(database: Database, changes: TopicChanges) -> None:
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
