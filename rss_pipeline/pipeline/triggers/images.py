"""Decisions on whether a download of images starts now: of new images, of failed ones again.

Pure functions that return their reason; a sensor and a schedule call them. The claim of the run decides which
images it downloads (storage/images/image_claims.py).
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.pipeline.triggers.runs import JobRun, Start, Wait, is_alive, reason_to_wait
from rss_pipeline.storage.images.image_claims import ImagesDue

PATIENCE = timedelta(minutes=2)
"""The images of one poll share a run."""
MANY_WAITING = 100
_SHARDS_A_RUN = 4
"""Polls need most of the places: where there are eight shards, two downloads may run at once."""
_MOST_AT_ONCE = 8


def most_at_once(shards: int) -> int:
    """Downloads of new images that may run at once where there are so many shards."""
    return min(max(1, shards // _SHARDS_A_RUN), _MOST_AT_ONCE)


def decide_fresh(due: ImagesDue, runs: Sequence[JobRun], *, now: datetime, at_once: int = 1) -> Start | Wait:
    """Start a run for images that were never tried, or that a user waits for. `runs` are the newest download
    runs, newest first.

    Another one, up to `at_once`, where many wait at hosts that no run has: those are the ones that count.
    """
    if due.fresh == due.requested == 0:
        return Wait(reason="No new image waits.", is_idle=not due.live_run_ids)
    running = [run for run in runs if run.state == "running" and is_alive(run, due.live_run_ids, now)]
    if due.fresh >= MANY_WAITING and len(running) < at_once:
        runs = [run for run in runs if run not in running]
    if (wait := reason_to_wait(runs, due.live_run_ids, now=now)) is not None:
        return wait
    if due.requested:
        return Start(reason=f"A user waits for {due.requested} images.")
    oldest = from_instant(due.oldest_fresh_at)
    if due.fresh >= MANY_WAITING or (oldest is not None and now - oldest >= PATIENCE):
        return Start(reason=f"{due.fresh} new images wait.")
    return Wait(reason=f"{due.fresh} new images wait, none for {PATIENCE.seconds // 60} minutes yet.")


def decide_retries(due: ImagesDue, runs: Sequence[JobRun], *, now: datetime) -> Start | Wait:
    """Start a run for images after the back-off of their first or second failed attempt."""
    if due.retries == 0:
        return Wait(reason="No image is due for another attempt.", is_idle=not due.live_run_ids)
    if (wait := reason_to_wait(runs, due.live_run_ids, now=now)) is not None:
        return wait
    return Start(reason=f"{due.retries} images are due for another attempt.")
