"""Whether a download of images should start now, and the sentence where not. Pure decisions.

sensors.py and schedules.py ask them; which images a run then takes is the claim's business.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.pipeline.triggers.poll import JobRun, Start, Wait, hindered
from rss_pipeline.storage.images.claims import ImagesDue

PATIENCE = timedelta(minutes=2)
"""The images of one poll share a run."""
MANY_WAITING = 100


def decide_fresh(due: ImagesDue, runs: Sequence[JobRun], *, now: datetime) -> Start | Wait:
    """For images that were never tried. `runs` are the newest download runs, newest first."""
    if due.fresh == 0:
        return Wait(reason="No new image waits.")
    if (hindrance := hindered(runs, due.live_run_ids, now=now)) is not None:
        return hindrance
    oldest = from_instant(due.oldest_fresh_at)
    if due.fresh >= MANY_WAITING or (oldest is not None and now - oldest >= PATIENCE):
        return Start(reason=f"{due.fresh} new images wait.")
    return Wait(reason=f"{due.fresh} new images wait, none for {PATIENCE.seconds // 60} minutes yet.")


def decide_retries(due: ImagesDue, runs: Sequence[JobRun], *, now: datetime) -> Start | Wait:
    """For images whose first or second attempt failed and whose pause is over."""
    if due.retries == 0:
        return Wait(reason="No image is due for another attempt.")
    if (hindrance := hindered(runs, due.live_run_ids, now=now)) is not None:
        return hindrance
    return Start(reason=f"{due.retries} images are due for another attempt.")
