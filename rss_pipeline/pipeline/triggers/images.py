"""Decisions on whether a download of images starts now: of new images, of failed ones again.

Pure functions that return their reason; a sensor and a schedule call them. The claim of the run decides which
images it downloads (storage/images/claims.py).
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.pipeline.triggers.runs import JobRun, Start, Wait, reason_to_wait
from rss_pipeline.storage.images.claims import ImagesDue

PATIENCE = timedelta(minutes=2)
"""The images of one poll share a run."""
MANY_WAITING = 100


def decide_fresh(due: ImagesDue, runs: Sequence[JobRun], *, now: datetime) -> Start | Wait:
    """Start a run for images that were never tried. `runs` are the newest download runs, newest first."""
    if due.fresh == 0:
        return Wait(reason="No new image waits.")
    if (wait := reason_to_wait(runs, due.live_run_ids, now=now)) is not None:
        return wait
    oldest = from_instant(due.oldest_fresh_at)
    if due.fresh >= MANY_WAITING or (oldest is not None and now - oldest >= PATIENCE):
        return Start(reason=f"{due.fresh} new images wait.")
    return Wait(reason=f"{due.fresh} new images wait, none for {PATIENCE.seconds // 60} minutes yet.")


def decide_retries(due: ImagesDue, runs: Sequence[JobRun], *, now: datetime) -> Start | Wait:
    """Start a run for images after the back-off of their first or second failed attempt."""
    if due.retries == 0:
        return Wait(reason="No image is due for another attempt.")
    if (wait := reason_to_wait(runs, due.live_run_ids, now=now)) is not None:
        return wait
    return Start(reason=f"{due.retries} images are due for another attempt.")
