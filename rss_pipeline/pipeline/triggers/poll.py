"""The decisions whether a poll starts now: of what is due, of all feeds once a day.

Pure functions that return their reason; the sensor `poll_feeds_when_due` and the schedule `poll_all_daily`
call them. The claim of the poll decides which feeds it visits (storage/feeds/claims.py). For the command
`poll`, the question is whether a poll has any work.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, time, timedelta
from typing import Any

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.features import FEATURES
from rss_pipeline.pipeline.registry.sync import RegistrySync
from rss_pipeline.pipeline.triggers.daily import latest
from rss_pipeline.pipeline.triggers.runs import JobRun, Start, Wait, reason_to_wait
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.claimable import Due
from rss_pipeline.storage.feeds.due import DueSummary, is_claimable
from rss_pipeline.storage.feeds.feed_changes import has_unreported
from rss_pipeline.storage.refresh.open_requests import waiting

PATIENCE = timedelta(minutes=4)
"""A due feed waits so long for others to share a run; a small registry then costs at most 300 runs a day."""
MANY_DUE = 100
ALL_SINCE_TAG = "rss_pipeline/all_since"
"""A tag of runs that visit every feed without a visit since then, due or not, as far as one run can."""
NOTHING_REACHED_TAG = "rss_pipeline/nothing_reached"
"""A tag of runs that failed because no feed could be reached, and none ever was."""


def decide(due: DueSummary, runs: Sequence[JobRun], *, now: datetime) -> Start | Wait:
    """Start a poll or wait. `runs` are the newest poll runs, newest first."""
    if due.due == 0:
        return Wait(reason="No feed is due.", is_idle=not (due.live_run_ids or due.waits_for_turn))
    if (wait := reason_to_wait(runs, due.live_run_ids, now=now)) is not None:
        return wait
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


def polling_all_since(runs: Sequence[JobRun]) -> datetime | None:
    """The instant since which every feed is to be visited, where the newest run began that and succeeded."""
    if runs and runs[0].state == "succeeded":
        return runs[0].all_since
    return None


def poll_the_rest(since: datetime) -> Start:
    """Start the next run for every feed without a visit since then."""
    return Start(
        reason=f"A poll of all feeds was requested at {since:%H:%M} UTC, and some are left.",
        run_config=_all_since(since),
    )


def decide_sweep(runs: Sequence[JobRun], *, now: datetime, at: time, timezone: str) -> Start | Wait:
    """Start the poll of all feeds that is due since the clocks showed `at`. `runs` are the newest poll runs.

    A daemon that was off for days catches up with a tick for each: one poll is enough.
    """
    for run in runs:
        begun = run.all_since is not None and run.all_since >= latest(now, at=at, timezone=timezone)
        if begun and run.state in ("waiting", "running", "succeeded"):
            return Wait(reason=f"Run {run.run_id[:8]} is today's poll of all feeds.")
    return Start(reason=f"It is {at:%H:%M}: all feeds are visited.", run_config=_all_since(now))


def _all_since(since: datetime) -> dict[str, Any]:
    return claim_config({"all": True, "not_visited_since": instant(since)})


def claim_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The run config of a poll with this config of its claim."""
    return {"ops": {"claim": {"config": dict(config)}}}


def has_registry_news(synced: RegistrySync) -> bool:
    """Return True if Dagster does not know yet what this sync of the registry changed."""
    return bool(synced.forgotten) or not synced.is_without_changes


def has_pending_work(database: Database, synced: RegistrySync, *, now: datetime) -> bool:
    """Return True if a poll would change something: partition keys, a visit, also one that a user waits for,
    an event, or the last step of a feature.

    Small queries only, so that a poll by cron with nothing due costs neither Dagster's import nor a run.
    """
    return (
        has_registry_news(synced)
        or is_claimable(database, Due(now=now))
        or has_unreported(database)
        or waiting(database, now=now).can_begin > 0
        or any(
            feature.after_poll is not None and feature.after_poll.is_due.load()(database, now)
            for feature in FEATURES
        )
    )
