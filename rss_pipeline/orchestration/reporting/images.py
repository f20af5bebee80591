"""The metadata of a download run: its own figures, and the totals of the image archive.

To count every task, every row is read, which D1 charges for. So tasks are counted once a day; in between, the
totals of the last materialization plus the figures of the run are used.
"""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

from rss_pipeline.orchestration.reporting.asset_keys import ITEM_IMAGES
from rss_pipeline.orchestration.reporting.failure_table import failure_table
from rss_pipeline.pipeline.images.round import Downloads
from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.pipeline.visits.summary import FailureRow
from rss_pipeline.storage.images.image_closings import ImageTotals, image_totals, pending_images

COUNTED_EVERY = timedelta(days=1)


def image_metadata(run: RunContext, instance: dg.DagsterInstance, done: Downloads) -> dict[str, Any]:
    """Numbers that plot: for the run `archived` (of these `adopted`), `archived_bytes`, `failed_attempts` and
    `given_up`; in total `pending`, `success`, `failed` and `bytes`."""
    totals, counted_at = _totals(run, instance, done)
    metadata: dict[str, Any] = {
        "archived": done.archived,
        "adopted": done.adopted,
        "archived_bytes": done.bytes,
        "failed_attempts": done.failed_attempts,
        "given_up": done.failed,
        **asdict(totals),
        "counted_at": dg.MetadataValue.timestamp(counted_at),
    }
    if done.failures:
        metadata["failures"] = failure_table(
            [
                FailureRow(feed_id=feed_id, url=url, kind=kind, message=message)
                for feed_id, url, kind, message in done.failures
            ]
        )
    return metadata


def _totals(run: RunContext, instance: dg.DagsterInstance, done: Downloads) -> tuple[ImageTotals, datetime]:
    now = run.clock().astimezone(UTC)
    event = instance.get_latest_materialization_event(ITEM_IMAGES)
    known = (
        {} if event is None or event.asset_materialization is None else event.asset_materialization.metadata
    )
    before: dict[str, Any] = {name: value.value for name, value in known.items()}
    counted = before.get("counted_at")
    if isinstance(counted, float) and now - datetime.fromtimestamp(counted, UTC) < COUNTED_EVERY:
        totals = ImageTotals(
            pending=pending_images(run.database),
            success=int(before["success"]) + done.archived,
            failed=int(before["failed"]) + done.failed,
            bytes=int(before["bytes"]) + done.bytes,
        )
        return totals, datetime.fromtimestamp(counted, UTC)
    return image_totals(run.database), now
