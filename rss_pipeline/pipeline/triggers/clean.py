"""Whether a clean should start, and the sentence where not: pure decisions; schedules.py asks them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rss_pipeline.pipeline.triggers.poll import Start, Wait

LONGEST_CLEAN = timedelta(minutes=30)
"""A clean gives itself 10 minutes. What has been running for longer died with its machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanRun:
    """A run of the clean job, or of the purge, that was no dry run."""

    run_id: str
    state: str
    """As of `polling.PollRun`; here `queued` is apart from `waiting`, which is only starting."""
    created_at: datetime
    is_unfinished: bool = False
    """It succeeded, and left something due."""


def daily(runs: Sequence[CleanRun], *, now: datetime) -> Start | Wait:
    """The day's clean: unless one is at it. `runs` are the newest, newest first."""
    return at_it(runs, now) or Start(reason="It is the time of day.")


def again(runs: Sequence[CleanRun], *, now: datetime) -> Start | Wait:
    """The hour's clean: only where the newest one did not finish. Who died counts as that, so does who
    was cancelled: a machine that restarts cancels, too.
    """
    if not runs:
        return Wait(reason="Nothing was cleaned yet; the daily clean is the first.")
    hindrance = at_it(runs, now)
    if hindrance is not None:
        return hindrance
    newest = runs[0]
    if newest.state == "succeeded" and not newest.is_unfinished:
        return Wait(reason="The last clean finished.")
    left = "left something" if newest.state == "succeeded" else "did not come to its end"
    return Start(reason=f"Run {newest.run_id[:8]} {left}.")


def at_it(runs: Sequence[CleanRun], now: datetime) -> Wait | None:
    """Why none may start now, if so: one waits or is under way."""
    for run in runs:
        if run.state == "queued":
            return Wait(reason=f"Run {run.run_id[:8]} is in the queue.")
        if run.state in ("waiting", "running") and now - run.created_at < LONGEST_CLEAN:
            return Wait(reason=f"Run {run.run_id[:8]} is at it.")
    return None
