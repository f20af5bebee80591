"""The decision whether a poll starts now.

Pure functions that return their reason; the sensor `poll_feeds_when_due` calls them. The claim of the
poll decides which feeds it visits (storage/feeds/claims.py).
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.pipeline.triggers.runs import JobRun, Start, Wait, reason_to_wait
from rss_pipeline.storage.feeds.due import DueSummary

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
        return Wait(reason="No feed is due.")
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
    config = {"all": True, "not_visited_since": instant(since)}
    return Start(
        reason=f"A poll of all feeds was requested at {since:%H:%M} UTC, and some are left.",
        run_config={"ops": {"claim": {"config": config}}},
    )
