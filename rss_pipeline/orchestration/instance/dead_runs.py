"""Dead runs: Dagster shows them as started, but their process no longer exists. They are found and ended.

The runner of `up` reports a run that is killed. If both are killed (out of memory, restart of the machine),
nothing reports it, and the run holds a place in the queue until `max_runtime_seconds`. The decision is
`is_dead`; the sensor `end_dead_runs` is in sensors.py.
"""

import json
import os
import socket
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import dagster as dg
import psutil

from rss_pipeline.orchestration.dagster_private import GRPC_INFO_TAG, JobFailureData, RunFailureReason
from rss_pipeline.orchestration.instance.own_location import REPOSITORY_TAG

HOST_TAG = "rss_pipeline/host"
"""A tag of runs that the command or the runner of `up` executes: the machine with its process."""
RUNNER_TAG = ".dagster/rss_pipeline_runner"
"""A tag of runs that `up` has started: the socket of its runner. The UI shows no tag with this beginning."""
RUNNER = "UP_RUNNER_SOCKET"
"""The variable with the path of the runner's socket, set by `up` for its processes."""
_KILLED = "Its process was killed: the system does that when memory is short, and so does `kill -9`."
_KILLED_WITH_UP = "The processes of `rss-pipeline up` were killed, and this run with them."
_RESTARTED = "The machine restarted while it was running."
_STOPPED = "`rss-pipeline up` was stopped. Feeds that were not finished are due again."
_LOOKED_AT = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSign:
    """The last signs of life of a run: the event with its process id, and its newest event."""

    pid: int
    process_seen_at: datetime
    newest_at: datetime


def host_tags() -> dict[str, str]:
    """Tags for runs that this process executes."""
    return {HOST_TAG: socket.gethostname()}


def run_tags() -> dict[str, str]:
    """The tags of a run that begins in this process."""
    return {**REPOSITORY_TAG, **host_tags()}


def end_dead_runs(
    instance: dg.DagsterInstance,
    *,
    now: datetime,
    silence: timedelta,
    live_runs: Callable[[], Collection[str]],
) -> list[str]:
    """End the dead runs of this machine; return their ids.

    `live_runs` returns the ids of runs with a live lease; it is called only if a run may be dead.
    """
    suspects: list[tuple[dg.DagsterRun, RunSign]] = []
    for run in instance.get_runs(dg.RunsFilter(statuses=_LOOKED_AT)):
        if is_ours(run.tags):
            sign = last_sign(instance, run.run_id)
            if sign is not None and is_dead(sign, now=now, silence=silence, born=born):
                suspects.append((run, sign))
    live = live_runs() if suspects else ()
    dead = [(run, sign) for run, sign in suspects if run.run_id not in live]
    for run, sign in dead:
        end_dead(instance, run.run_id, cause_of_death(run.tags, sign, booted_at=booted_at()))
    return [run.run_id for run, _ in dead]


def dead_among(instance: dg.DagsterInstance, run_ids: Collection[str], *, now: datetime) -> list[str]:
    """The runs of this machine among these without a process any more, without the time of silence: for
    leases, which a dead run would keep for minutes. A lease of a run that lives is renewed by it."""
    dead = []
    for run_id in run_ids:
        run = instance.get_run_by_id(run_id)
        if run is None or not is_ours(run.tags):
            continue
        sign = last_sign(instance, run_id)
        if sign is not None and is_dead(sign, now=now, silence=timedelta(0), born=born):
            dead.append(run_id)
    return dead


def end_of_last_up(instance: dg.DagsterInstance) -> list[str]:
    """End the runs of an `up` that was killed, before this one starts any; return their ids. Each ended with
    the process from which it was forked; one that was about to start has left no sign."""
    ended = []
    for run in instance.get_runs(dg.RunsFilter(statuses=[*_LOOKED_AT, dg.DagsterRunStatus.STARTING])):
        if RUNNER_TAG not in run.tags or not is_ours(run.tags):
            continue
        sign = last_sign(instance, run.run_id)
        if sign is None or is_dead(sign, now=sign.newest_at, silence=timedelta(0), born=born):
            end_dead(instance, run.run_id, cause_of_death(run.tags, sign, booted_at=booted_at()))
            ended.append(run.run_id)
    return ended


def begin_to_cancel(instance: dg.DagsterInstance, *, group: int) -> list[str]:
    """Report the runs of this process group as being canceled, before it gets its signal: else Dagster takes
    an orderly stop for a failure, and there would be an alert on the next start. Return their ids."""
    begun = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED]
    canceled = []
    for run in instance.get_runs(dg.RunsFilter(statuses=begun)):
        if not is_ours(run.tags):
            continue
        sign = last_sign(instance, run.run_id)
        # Without a sign, the runner or a code server of the group is about to start its process.
        is_in_group = (
            not run.tags.keys().isdisjoint((RUNNER_TAG, GRPC_INFO_TAG))
            if sign is None
            else _group_of(sign.pid) == group
        )
        if is_in_group:
            instance.report_run_canceling(run, _STOPPED)
            canceled.append(run.run_id)
    return canceled


def end_canceled(instance: dg.DagsterInstance) -> None:
    """End the runs of this machine that were to be canceled and have no process any more."""
    for run in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.CANCELING])):
        if is_ours(run.tags):
            sign = last_sign(instance, run.run_id)
            if sign is None or born(sign.pid) is None:
                end_dead(instance, run.run_id, _STOPPED)


def _group_of(pid: int) -> int | None:
    with suppress(ProcessLookupError):
        return os.getpgid(pid)
    return None


def is_ours(tags: Mapping[str, str]) -> bool:
    """True if the run's process can be seen here: the code server listens on this machine, or our command
    executes the run. The code location of another machine or container has its own processes."""
    here = {"localhost", "127.0.0.1", "::1", socket.gethostname()}
    if GRPC_INFO_TAG in tags:
        return json.loads(tags[GRPC_INFO_TAG]).get("host") in here
    return tags.get(HOST_TAG) in here


def is_dead(
    sign: RunSign, *, now: datetime, silence: timedelta, born: Callable[[int], datetime | None]
) -> bool:
    """True if the process no longer exists, or its id belongs to another one now, after some time of silence.

    Silence, because the last events of a process may not be stored yet when it ends.
    """
    if now - sign.newest_at < silence:
        return False
    since = born(sign.pid)
    return since is None or since > sign.process_seen_at + timedelta(seconds=1)


def cause_of_death(tags: Mapping[str, str], sign: RunSign | None, *, booted_at: datetime) -> str:
    """Return what ended a dead run, as a sentence: a restart of the machine, the end of the `up` that started
    it, or of its process alone."""
    if sign is not None and sign.newest_at < booted_at:
        return _RESTARTED
    runner = tags.get(RUNNER_TAG)
    return _KILLED if runner is None or runner == os.environ.get(RUNNER) else _KILLED_WITH_UP


def booted_at() -> datetime:
    """The start of this machine; in a container, of the machine that it is on."""
    return datetime.fromtimestamp(psutil.boot_time(), UTC)


def born(pid: int) -> datetime | None:
    """The start of the living process with this id; None without one."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return datetime.fromtimestamp(process.create_time(), UTC)
    except psutil.NoSuchProcess:
        return None


def last_sign(instance: dg.DagsterInstance, run_id: str) -> RunSign | None:
    """The last signs of the run; None without an event with its process id: Dagster's time-out ends it."""
    newest = instance.get_records_for_run(run_id, limit=1, ascending=False).records
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT):
        event = entry.dagster_event
        pid = event.engine_event_data.metadata.get("pid") if event is not None else None
        if pid is not None and str(pid.value).isdigit() and newest:
            return RunSign(
                pid=int(str(pid.value)),
                process_seen_at=datetime.fromtimestamp(entry.timestamp, UTC),
                newest_at=datetime.fromtimestamp(newest[0].event_log_entry.timestamp, UTC),
            )
    return None


def end_dead(instance: dg.DagsterInstance, run_id: str, message: str = _KILLED) -> None:
    """End this run, which is dead, unless it has ended."""
    run = instance.get_run_by_id(run_id)
    if run is None or run.status not in (*_LOOKED_AT, dg.DagsterRunStatus.STARTING):
        return
    if run.status is dg.DagsterRunStatus.CANCELING:
        instance.report_run_canceled(run, message)
    else:
        reason = JobFailureData(error=None, failure_reason=RunFailureReason.UNEXPECTED_TERMINATION)
        instance.report_run_failed(run, message, reason)
