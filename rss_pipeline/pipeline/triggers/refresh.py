"""The decision whether a run for requests of users starts now.

Pure functions that return their reason; the sensor `refresh_feeds_when_requested` and the processes of `up`
call them. The claim of the run decides which requests it takes (storage/refresh/open_requests.py).
"""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta

from rss_pipeline.pipeline.triggers.runs import JobRun, Start, Wait, reason_to_wait
from rss_pipeline.storage.refresh.open_requests import Waiting

PATIENCE = timedelta(seconds=10)
"""A request that is younger is left to the processes of `up`, which start a run within a second."""


def decide_refresh(
    waiting: Waiting, runs: Sequence[JobRun], live_run_ids: Collection[str], *, now: datetime
) -> Start | Wait:
    """Start a run for requests that nothing on this machine has taken up, or wait. `runs` are the newest runs
    of the job, newest first."""
    if waiting.count == 0:
        return Wait(reason="No feed is requested.", is_idle=True)
    if waiting.can_begin == 0 or waiting.oldest_ms is None:
        return Wait(reason=_others(waiting.count))
    age = now - datetime.fromtimestamp(waiting.oldest_ms / 1000, UTC)
    # One from further in the future was made before the clock was put back.
    if abs(age) < PATIENCE:
        return Wait(reason="The requests are new: `rss-pipeline up` starts a run for them at once.")
    return reason_to_wait(runs, live_run_ids, now=now) or Start(reason=refresh_reason(waiting))


def refresh_reason(waiting: Waiting) -> str:
    """The reason of a run; no user's name."""
    count = waiting.can_begin
    return (
        "A feed is requested in the reader." if count == 1 else f"{count} feeds are requested in the reader."
    )


def _others(count: int) -> str:
    return "A request waits for another run." if count == 1 else f"{count} requests wait for other runs."
