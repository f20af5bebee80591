"""Runs whose process is gone although Dagster shows them as started: found by their process, and ended.

A code server tells of a worker that dies. Where both die (out of memory, a machine that restarts), nobody
does, and the run holds a place in the queue until it is past its longest time. The decision is `is_dead`; the
sensor that asks is sensors.py's.
"""

import json
import socket
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import dagster as dg
import psutil
from dagster._core.events import JobFailureData, RunFailureReason
from dagster._core.storage.tags import GRPC_INFO_TAG

HOST_TAG = "rss_pipeline/host"
"""Of a run that the command executes itself: the machine on which its process is to be looked for."""
_LOOKED_AT = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """What a run last let be seen: its process, by its event of it, and its newest event."""

    pid: int
    process_seen_at: datetime
    newest_at: datetime


def host_tags() -> dict[str, str]:
    """For runs that this process executes."""
    return {HOST_TAG: socket.gethostname()}


def end_dead_runs(
    instance: dg.DagsterInstance,
    *,
    now: datetime,
    silence: timedelta,
    live_runs: Callable[[], Collection[str]],
) -> list[str]:
    """End the runs of this machine that are dead; their ids. `live_runs`, ids with a live lease, is asked
    where there may be one."""
    suspects: list[dg.DagsterRun] = []
    for run in instance.get_runs(dg.RunsFilter(statuses=_LOOKED_AT)):
        if is_ours(run.tags):
            sign = last_sign(instance, run.run_id)
            if sign is not None and is_dead(sign, now=now, silence=silence, born=born):
                suspects.append(run)
    live = live_runs() if suspects else ()
    dead = [run for run in suspects if run.run_id not in live]
    for run in dead:
        _end(instance, run.run_id)
    return [run.run_id for run in dead]


def is_ours(tags: Mapping[str, str]) -> bool:
    """Whether its process, if it lives, is to be seen here: of a code server that listens on this machine,
    or of our command. Another machine's or container's code location has processes of its own."""
    here = {"localhost", "127.0.0.1", "::1", socket.gethostname()}
    if GRPC_INFO_TAG in tags:
        return json.loads(tags[GRPC_INFO_TAG]).get("host") in here
    return tags.get(HOST_TAG) in here


def is_dead(sign: Sign, *, now: datetime, silence: timedelta, born: Callable[[int], datetime | None]) -> bool:
    """Its process is gone, or its number is another's by now, and it has been silent for some time.

    Silence, because the last events of a process may be on their way when it ends.
    """
    if now - sign.newest_at < silence:
        return False
    since = born(sign.pid)
    return since is None or since > sign.process_seen_at + timedelta(seconds=1)


def born(pid: int) -> datetime | None:
    """When the living process of this number was started."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return datetime.fromtimestamp(process.create_time(), UTC)
    except psutil.NoSuchProcess:
        return None


def last_sign(instance: dg.DagsterInstance, run_id: str) -> Sign | None:
    """None where the run never told of its process: a time-out of Dagster's ends that one."""
    newest = instance.get_records_for_run(run_id, limit=1, ascending=False).records
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT):
        event = entry.dagster_event
        pid = event.engine_event_data.metadata.get("pid") if event is not None else None
        if pid is not None and str(pid.value).isdigit() and newest:
            return Sign(
                pid=int(str(pid.value)),
                process_seen_at=datetime.fromtimestamp(entry.timestamp, UTC),
                newest_at=datetime.fromtimestamp(newest[0].event_log_entry.timestamp, UTC),
            )
    return None


def _end(instance: dg.DagsterInstance, run_id: str) -> None:
    run = instance.get_run_by_id(run_id)
    if run is None or run.status not in _LOOKED_AT:
        return
    message = "Its process is gone: killed together with the code server, or the machine was restarted."
    if run.status is dg.DagsterRunStatus.CANCELING:
        instance.report_run_canceled(run, message)
    else:
        reason = JobFailureData(error=None, failure_reason=RunFailureReason.UNEXPECTED_TERMINATION)
        instance.report_run_failed(run, message, reason)
