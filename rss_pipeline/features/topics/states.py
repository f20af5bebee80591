"""The topics with their publications, for people and for metrics. Reads only."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.features.topics.model import TopicSpec
from rss_pipeline.storage.database import Database

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
