"""The common part of the sensors and schedules that start runs: from a decision to a run request.

The decisions are in pipeline/triggers, the sensors and schedules themselves in sensors.py and schedules.py;
when a decision is made anew is looks.py's.
https://docs.dagster.io/guides/automate
"""

from collections.abc import Callable, Mapping
from datetime import datetime

import dagster as dg

from rss_pipeline.orchestration.queueing import REASON_TAG
from rss_pipeline.orchestration.run_config import QUIET
from rss_pipeline.pipeline.triggers.runs import Start, Wait
from rss_pipeline.storage.database import Database

Tick = dg.RunRequest | list[dg.RunRequest] | dg.SkipReason
Decision = Start | list[Start] | Wait
Decide = Callable[[Database, dg.DagsterInstance, datetime], Decision]
"""A decision by what is due in the database and which runs the instance has; the last argument is now."""


def tick(decision: Decision, *, tags: Mapping[str, str]) -> Tick:
    """The result of a tick by a decision: runs with these tags and their reasons, or the reason for none.

    Nothing is logged: each tick that logs costs a file, and the run itself shows what was due.
    """
    match decision:
        case Start():
            return _request(decision, tags)
        case Wait(reason=reason):
            return dg.SkipReason(reason)
        case starts:
            return [_request(start, tags) for start in starts]


def _request(start: Start, tags: Mapping[str, str]) -> dg.RunRequest:
    return dg.RunRequest(
        tags={**tags, **start.tags, REASON_TAG: start.reason}, run_config={**QUIET, **start.run_config}
    )
