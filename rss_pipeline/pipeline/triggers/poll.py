"""Whether a poll should start now, and the sentence where not. A pure decision; sensors.py asks it.

Which feeds the poll then visits is the claim's business.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.storage.feeds.due import DueSummary

PATIENCE = timedelta(minutes=4)
"""How long a due feed waits for others to share a run with; a small registry costs 300 runs a day at most."""
MANY_DUE = 100
STARTING_GRACE = timedelta(minutes=3)
"""A run that started this recently may not have claimed yet."""
LONGEST_BACKOFF = timedelta(minutes=30)
ALL_SINCE_TAG = "rss_pipeline/all_since"
"""Of a run that visits every feed without a visit since then, due or not: as many as one run can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """A run of a job: its state and the UTC instants of its start and end, where it has them."""

    run_id: str
    state: str
    """`waiting` (queued or starting), `running`, `succeeded`, `failed`, `died` or `canceled`. Who died, was
    killed from without: that says nothing of a store, and no pause is made for it."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    all_since: datetime | None = None
    """It was to visit every feed that had no visit since then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    reason: str
    run_config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    reason: str


def decide(due: DueSummary, runs: Sequence[JobRun], *, now: datetime) -> Start | Wait:
    """Start a poll or wait. `runs` are the newest poll runs, newest first."""
    if due.due == 0:
        return Wait(reason="No feed is due.")
    if (hindrance := hindered(runs, due.live_run_ids, now=now)) is not None:
        return hindrance
    if due.never_fetched:
        return Start(reason=f"{due.never_fetched} feeds were never visited.")
    if due.due >= MANY_DUE:
        return Start(reason=f"{MANY_DUE} feeds or more are due.")
    oldest = from_instant(due.oldest_due_at)
    if oldest is not None and now - oldest >= PATIENCE:
        return Start(reason=f"{due.due} feeds are due, the oldest since {oldest:%H:%M} UTC.")
    return Wait(
        reason=f"{due.due} feeds are due, none for {PATIENCE.seconds // 60} minutes yet: waiting for more."
    )


def all_under_way(runs: Sequence[JobRun]) -> datetime | None:
    """Since when every feed is to be visited, where the newest run began with that and went well."""
    if runs and runs[0].state == "succeeded":
        return runs[0].all_since
    return None


def go_on(since: datetime) -> Start:
    """The next run for all that has no visit since then."""
    config = {"all": True, "not_visited_since": instant(since)}
    return Start(
        reason=f"All feeds were asked for at {since:%H:%M} UTC, and some are left.",
        run_config={"ops": {"claim": {"config": config}}},
    )


def hindered(runs: Sequence[JobRun], live_run_ids: Collection[str], *, now: datetime) -> Wait | None:
    """Why no run of a job may start now, if so: one is at it, or the last ones failed.

    `live_run_ids` are the runs with a live lease.
    """
    for run in runs:
        if run.state == "waiting":
            return Wait(reason=f"Run {run.run_id[:8]} is about to start.")
        if run.state == "running" and _is_alive(run, live_run_ids, now):
            return Wait(reason=f"Run {run.run_id[:8]} is at it.")
    failed, until = backoff(runs)
    if until is not None and now < until:
        return Wait(
            reason=f"The last {failed} runs failed for want of a store or our network;"
            f" the next one starts at {until:%H:%M:%S} UTC."
        )
    return None


def _is_alive(run: JobRun, live_run_ids: Collection[str], now: datetime) -> bool:
    """A STARTED run proves nothing: its process may have died with its code server. Its lease does."""
    just_started = run.started_at is not None and now - run.started_at < STARTING_GRACE
    return just_started or run.run_id in live_run_ids


def backoff(runs: Sequence[JobRun]) -> tuple[int, datetime | None]:
    """How many runs failed in a row up to now, and until when to wait: 1, 2, 4 ... 30 minutes."""
    failed = []
    for run in runs:
        if run.state == "failed":
            failed.append(run)
        elif run.state == "succeeded":
            break
    if not failed:
        return 0, None
    pause = min(timedelta(minutes=1) * 2 ** min(len(failed) - 1, 10), LONGEST_BACKOFF)
    ended = failed[0].ended_at
    return len(failed), None if ended is None else ended + pause
