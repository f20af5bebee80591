"""Figures of the database for metrics: gauges of its present state, for it counts no events. Reads only.

`feed_figures` reads each feed once and two indexes of image tasks. `row_figures` reads every item and image
task: where rows read are paid for (D1), seldom.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.feeds.predicates import (
    FAILING,
    FAILING_LONG,
    GONE,
    LAST_VISIT_FAILED,
    MOVED,
    UNLISTED,
    UNUSED,
    WARNED,
)
from rss_pipeline.storage.feeds.stored_holds import DUE_NOW, free_since
from rss_pipeline.storage.images.image_closings import image_totals

FEED_STATES = (
    *("answering", "failing", "failing_long", "gone", "new"),
    *("disabled", "unwatched", "unlisted", "unused"),
)
"""Each feed is in one of them. `failing_long` failed ten times in a row; `new` was never visited."""

_STATE = f"""CASE WHEN {UNUSED} THEN 'unused' WHEN {UNLISTED} THEN 'unlisted'
  WHEN watched = 0 THEN 'unwatched' WHEN enabled = 0 THEN 'disabled'
  WHEN {GONE} THEN 'gone' WHEN {FAILING_LONG} THEN 'failing_long' WHEN {FAILING} THEN 'failing'
  WHEN last_visited_at IS NULL THEN 'new' ELSE 'answering' END"""
OPEN_IMAGES = """SELECT
  (SELECT count(*) FROM image_tasks INDEXED BY image_tasks_due WHERE status = 'pending') AS pending,
  (SELECT count(*) FROM image_tasks INDEXED BY image_tasks_failed WHERE status = 'failed') AS failed"""
"""From the indexes of these tasks alone. Without their names SQLite goes through the index of all tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedFigures:
    """Counts of feeds; instants are the latest of any feed, None if there is none."""

    by_state: Mapping[str, int]
    failing_by_kind: Mapping[str, int]
    """Polled feeds with a failed last visit, by the kind of its failure; feeds that are gone included."""
    due: int
    oldest_due_at: datetime | None
    moved: int
    warned: int
    last_visit_at: datetime | None
    last_success_at: datetime | None
    last_document_at: datetime | None
    images_pending: int
    images_failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFigures:
    """Counts over all items and image tasks."""

    items: int
    images_archived: int
    image_bytes: int


def feed_figures(database: Database, *, now: datetime) -> FeedFigures:
    """Read the feeds table once."""
    at = instant(now)
    feeds, images = database.batch(
        [
            Statement(
                f"""SELECT {_STATE} AS state,
                  CASE WHEN {LAST_VISIT_FAILED}
                    THEN coalesce(last_error_kind, 'unknown') END AS kind,
                  count(*) AS n, count(*) FILTER (WHERE {DUE_NOW}) AS due,
                  min(CASE WHEN {DUE_NOW} THEN {free_since()} END) AS oldest,
                  count(*) FILTER (WHERE {MOVED}) AS moved,
                  count(*) FILTER (WHERE {WARNED}) AS warned, max(last_visited_at) AS visit,
                  max(last_success_at) AS success, max(last_body_at) AS document
                FROM feeds WHERE forgotten = 0 GROUP BY 1, 2""",
                [at] * 6,
                name="read figures of feeds",
            ),
            Statement(
                OPEN_IMAGES,
                name="read figures of images",
            ),
        ]
    )
    by_state = dict.fromkeys(FEED_STATES, 0)
    by_kind: dict[str, int] = {}
    for row in feeds.rows:
        by_state[row["state"]] += int(row["n"])
        if row["kind"] is not None:
            by_kind[row["kind"]] = by_kind.get(row["kind"], 0) + int(row["n"])

    def latest(name: str) -> datetime | None:
        return from_instant(max((row[name] for row in feeds.rows if row[name]), default=None))

    return FeedFigures(
        by_state=by_state,
        failing_by_kind=by_kind,
        due=sum(int(row["due"]) for row in feeds.rows),
        oldest_due_at=from_instant(min((row["oldest"] for row in feeds.rows if row["oldest"]), default=None)),
        moved=sum(int(row["moved"]) for row in feeds.rows),
        warned=sum(int(row["warned"]) for row in feeds.rows),
        last_visit_at=latest("visit"),
        last_success_at=latest("success"),
        last_document_at=latest("document"),
        images_pending=int(images.rows[0]["pending"]),
        images_failed=int(images.rows[0]["failed"]),
    )


def row_figures(database: Database) -> RowFigures:
    """Count all items and image tasks."""
    items = database.query("SELECT count(*) AS n FROM items", name="count items").rows[0]["n"]
    totals = image_totals(database)
    return RowFigures(items=int(items), images_archived=totals.success, image_bytes=totals.bytes)
