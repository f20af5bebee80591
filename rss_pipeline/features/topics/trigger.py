"""The decision whether a publication of topics starts now.

Pure functions that return their reason; the sensor `publish_when_changed` calls them. Which topics are due is
features/topics/publications.py's.
"""

from collections.abc import Collection, Sequence
from datetime import datetime

from rss_pipeline.pipeline.triggers.runs import JobRun, Start, Wait, is_alive, reason_to_wait

_NAMED = 5


def decide_publication(
    due: Sequence[str],
    runs: Sequence[JobRun],
    polls: Sequence[JobRun],
    live_run_ids: Collection[str],
    *,
    now: datetime,
) -> Start | Wait:
    """Start a run for topics that are due (their ids), one at a time. `runs` are the newest publications,
    `polls` the newest polls, newest first: a poll publishes at its end."""
    if not due:
        return Wait(reason="No topic is due.", is_idle=True)
    if (wait := reason_to_wait(runs, (), now=now)) is not None:
        return wait
    for poll in polls:
        if poll.state == "waiting" or (poll.state == "running" and is_alive(poll, live_run_ids, now)):
            return Wait(reason=f"The poll {poll.run_id[:8]} publishes at its end.")
    names = ", ".join(due[:_NAMED]) + (" ..." if len(due) > _NAMED else "")
    return Start(reason=f"{len(due)} topics changed: {names}.")
