"""Whether a purge should start, and the sentence where not: a pure decision; schedules.py asks it hourly."""

from collections.abc import Sequence
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from rss_pipeline.pipeline.triggers.clean import CleanRun, at_it
from rss_pipeline.pipeline.triggers.poll import Start, Wait


def decide(runs: Sequence[CleanRun], *, now: datetime, at: time, timezone: str) -> Start | Wait:
    """One purge since the last time it was `at` o'clock, and another where that did not finish.

    A machine that sleeps at that hour, or a Dagster home that is new, has its purge within the hour.
    `runs` are the newest, newest first.
    """
    if (hindrance := at_it(runs, now)) is not None:
        return hindrance
    if not runs or runs[0].created_at < latest(now, at=at, timezone=timezone):
        return Start(reason="None was done today.")
    newest = runs[0]
    if newest.state == "succeeded" and not newest.is_unfinished:
        return Wait(reason=f"Run {newest.run_id[:8]} did it today.")
    left = "left something" if newest.state == "succeeded" else "did not come to its end"
    return Start(reason=f"Run {newest.run_id[:8]} {left}.")


def latest(now: datetime, *, at: time, timezone: str) -> datetime:
    """The last instant, up to now, at which the clocks there showed this time of day."""
    local = now.astimezone(ZoneInfo(timezone))
    today = local.replace(hour=at.hour, minute=at.minute, second=0, microsecond=0)
    return today if today <= local else today - timedelta(days=1)
