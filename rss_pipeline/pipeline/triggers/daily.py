"""Decisions on whether a daily job starts now: the clean of the stores, the purge of run history.

Pure functions that return their reason; the schedules in orchestration/schedules.py call them. What a clean
removes is in features/retention, what a purge removes in orchestration/upkeep/purge_job.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from time import monotonic
from zoneinfo import ZoneInfo

from rss_pipeline.pipeline.triggers.runs import Start, Wait, is_within

UNFINISHED_TAG = "rss_pipeline/unfinished"
"""A tag of runs that succeeded and left work for the next run."""
REFUSED_TAG = "rss_pipeline/refused"
"""A tag of runs that failed because a person has to confirm them: the next one would fail likewise."""
LONGEST_RUN = timedelta(minutes=30)
"""A clean and a purge stop after 10 minutes. A run that started longer ago was killed with its machine."""


class Allowance:
    """The time limit of a clean or purge in seconds; None is no limit."""

    def __init__(self, seconds: float | None = None, clock: Callable[[], float] = monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._began = clock()

    def is_spent(self, share: float = 1.0) -> bool:
        """True once this share of the time is over."""
        return self._seconds is not None and self._clock() - self._began >= share * self._seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyRun:
    """A run of the clean or the purge job that was no dry run."""

    run_id: str
    state: str
    """`queued`, `waiting` (starting), `running`, `succeeded`, `failed` or `canceled`."""
    created_at: datetime
    is_unfinished: bool = False
    """The run succeeded and left work for the next run."""
    is_refused: bool = False
    """The run removed nothing, until a person confirms it or the next day."""


def decide_daily(runs: Sequence[DailyRun], *, now: datetime) -> Start | Wait:
    """Start the day's run unless one is running. `runs` are the newest, newest first."""
    return _in_progress(runs, now) or Start(reason="It is the time of day.")


def decide_again(runs: Sequence[DailyRun], *, now: datetime) -> Start | Wait:
    """Start another run where the newest one did not finish. `runs` are the newest, newest first.

    A run that was killed or canceled did not finish: a machine that restarts cancels, too.
    """
    if not runs:
        return Wait(reason="There was no run yet; the daily run is the first.")
    return _in_progress(runs, now) or _unfinished(runs[0]) or Wait(reason="The last run finished.")


def decide_once_a_day(runs: Sequence[DailyRun], *, now: datetime, at: time, timezone: str) -> Start | Wait:
    """Start one run since the last time the clocks showed `at`, and another where it did not finish.

    Called every hour, it serves a machine that sleeps at that time, and a new Dagster home. `runs` are the
    newest, newest first.
    """
    if (wait := _in_progress(runs, now)) is not None:
        return wait
    if not runs or runs[0].created_at < latest(now, at=at, timezone=timezone):
        return Start(reason="There was no run today.")
    return _unfinished(runs[0]) or Wait(reason=f"Run {runs[0].run_id[:8]} finished today.")


def latest(now: datetime, *, at: time, timezone: str) -> datetime:
    """The last instant, up to now, at which the clocks of the time zone showed this time of day."""
    local = now.astimezone(ZoneInfo(timezone))
    today = local.replace(hour=at.hour, minute=at.minute, second=0, microsecond=0)
    return today if today <= local else today - timedelta(days=1)


def _in_progress(runs: Sequence[DailyRun], now: datetime) -> Wait | None:
    for run in runs:
        if run.state == "queued":
            return Wait(reason=f"Run {run.run_id[:8]} is in the queue.")
        if run.state in ("waiting", "running") and is_within(run.created_at, LONGEST_RUN, now=now):
            return Wait(reason=f"Run {run.run_id[:8]} is still running.")
    return None


def _unfinished(newest: DailyRun) -> Start | Wait | None:
    if newest.is_refused:
        return Wait(reason=f"Run {newest.run_id[:8]} removed nothing: its error message says what to do.")
    if newest.state != "succeeded":
        return Start(reason=f"Run {newest.run_id[:8]} did not finish.")
    if newest.is_unfinished:
        return Start(reason=f"Run {newest.run_id[:8]} left work for the next run.")
    return None
