"""Runs of a job as the decisions see them, the two results of a decision, and the reasons to wait.

No Dagster in here: orchestration/recent_runs.py reads the runs from the instance.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

STARTING_GRACE = timedelta(minutes=3)
"""A run that started this recently may not have claimed yet."""
LONGEST_BACKOFF = timedelta(minutes=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """A run of a job: its state, and the UTC instants of its start and end if it has them."""

    run_id: str
    state: str
    """`waiting` (queued or starting), `running`, `succeeded`, `failed`, `died`, `offline` or `canceled`. No
    back-off follows `died` (killed from outside, no sign of a broken store) and `offline` (no feed has ever
    been reached: the feeds themselves are due in five minutes, and the first who waits is a newcomer)."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    all_since: datetime | None = None
    """For a poll of all feeds: it was to visit every feed without a visit since then."""
    is_of_all: bool = False
    """True for a poll of all feeds, from its start."""
    shard: str | None = None
    """For a poll of one shard: which, as in the run's tag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A run starts now, with this configuration and these tags."""

    reason: str
    run_config: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """No run starts now."""

    reason: str
    is_idle: bool = False
    """Nothing waits, and no run holds anything that could wait after it: until something becomes due, or
    another run of the job is made, the decision stays."""


def reason_to_wait(runs: Sequence[JobRun], live_run_ids: Collection[str], *, now: datetime) -> Wait | None:
    """The reason why no run of a job may start now: one is in progress, or the last ones failed.

    `runs` are the newest, newest first; `live_run_ids` are the runs with a live lease.
    """
    for run in runs:
        if run.state == "waiting":
            return Wait(reason=f"Run {run.run_id[:8]} is about to start.")
        if run.state == "running" and is_alive(run, live_run_ids, now):
            return Wait(reason=f"Run {run.run_id[:8]} is still running.")
    failed, until = backoff(runs)
    if until is not None and until - LONGEST_BACKOFF <= now < until:
        return Wait(
            reason=f"The last {failed} runs failed because a store or our network did not work;"
            f" the next run starts at {until:%H:%M:%S} UTC."
        )
    return None


def backoff(runs: Sequence[JobRun]) -> tuple[int, datetime | None]:
    """The number of runs that failed in a row, and the end of the back-off: 1, 2, 4 ... 30 minutes."""
    failed = []
    for run in runs:
        if run.state == "failed":
            failed.append(run)
        elif run.state == "succeeded":
            break
    if not failed:
        return 0, None
    back_off = min(timedelta(minutes=1) * 2 ** min(len(failed) - 1, 10), LONGEST_BACKOFF)
    ended = failed[0].ended_at
    return len(failed), None if ended is None else ended + back_off


def is_within(at: datetime | None, time: timedelta, *, now: datetime) -> bool:
    """True for an instant at most that long ago. One further in the future is of a clock that was put back
    since, and waiting for it could take a day."""
    return at is not None and -time < now - at < time


def is_alive(run: JobRun, live_run_ids: Collection[str], now: datetime) -> bool:
    """Return True for a run with a living process.

    STARTED proves nothing: the process may have been killed with its code server. Its lease does.
    """
    return is_within(run.started_at, STARTING_GRACE, now=now) or run.run_id in live_run_ids
