"""The start and the end of runs of our own code location, forked by a process of `up`.

dagster.yaml names the launcher in here. It asks serving/runner.py, which forks, through a socket; without
that process, and for code locations of others, Dagster's own launcher does as ever.
https://docs.dagster.io/deployment/execution/run-launchers
"""

import json
import os
import socket
import sys
from typing import Any

import dagster as dg

from rss_pipeline.orchestration.dagster_private import (
    CheckRunHealthResult,
    DagsterUserCodeUnreachableError,
    LaunchRunContext,
    ModuleCodePointer,
    WorkerStatus,
)
from rss_pipeline.orchestration.instance.dead_runs import RUNNER, RUNNER_TAG, host_tags
from rss_pipeline.orchestration.instance.own_location import OWN_MODULE

FORKS_RUNS = sys.platform == "linux"
"""Elsewhere a run would outlive a runner that is killed, and macOS refuses parts of itself to forks: there a
code server starts runs."""
_SECONDS = 30.0
"""Time for an answer. The runner gives it in milliseconds, or the machine is overloaded."""


class ForkedRunLauncher(dg.DefaultRunLauncher):
    """Dagster's launcher, but for runs of our own code location below `up`."""

    def launch_run(self, context: LaunchRunContext) -> None:
        """Start the run.

        Raises:
            DagsterUserCodeUnreachableError: no process can be started now. The daemon puts the run back into
                the queue, for this error only.
        """
        run, address = context.dagster_run, os.environ.get(RUNNER)
        if address is None or not _is_own(run):
            super().launch_run(context)
            return
        self._instance.add_run_tags(run.run_id, {RUNNER_TAG: address, **host_tags()})
        try:
            refused = ask(address, begin=run.run_id).get("refused")
        except OSError as error:
            refused = f"the process that starts runs does not answer ({error})"
        if refused is not None:
            raise DagsterUserCodeUnreachableError(f"No run was started: {refused}. It waits in the queue.")
        self._run_ids.add(run.run_id)

    def terminate(self, run_id: str) -> bool:
        """Interrupt the run; return True if its process got the signal."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished or RUNNER_TAG not in run.tags:
            return bool(super().terminate(run_id))  # type: ignore[no-untyped-call]
        self._instance.report_run_canceling(run)
        is_there = _is_there(run, interrupt=run_id)
        if not is_there:
            self._instance.report_engine_event(
                "The run has no process any more: nothing was interrupted.", run, cls=self.__class__
            )
        return bool(is_there)

    @property
    def supports_check_run_worker_health(self) -> bool:
        """True: the runner knows the processes of its runs."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """The state of the run's process. One that cannot be seen is left to Dagster's time limits, and to
        the sensor `end_dead_runs`."""
        is_there = _is_there(run, look=run.run_id) if RUNNER_TAG in run.tags else None
        if is_there is False:
            return CheckRunHealthResult(WorkerStatus.FAILED, "the run's process has ended")
        return CheckRunHealthResult(WorkerStatus.RUNNING)


def queue_again(instance: dg.DagsterInstance) -> list[str]:
    """Put back into the queue what a daemon was about to start when it was killed, and what the runner has no
    process of; return the ids of these runs. They would keep places in the queue for minutes, and then fail.
    """
    address = os.environ.get(RUNNER)
    if address is None or not isinstance(instance.run_launcher, ForkedRunLauncher):
        return []
    again = []
    for found in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTING])):
        if not _is_own(found) or ask(address, look=found.run_id)["is_there"]:
            continue
        # Its process may have ended since the list was read.
        run = instance.get_run_by_id(found.run_id)
        if run is not None and run.status is dg.DagsterRunStatus.STARTING and run.remote_job_origin:
            event = dg.DagsterEvent(dg.DagsterEventType.PIPELINE_ENQUEUED.value, run.job_name)
            instance.report_dagster_event(event, run_id=run.run_id)
            again.append(run.run_id)
    return again


def _is_own(run: dg.DagsterRun) -> bool:
    """By the module, not by the location's name: `dagster job launch` gives it another one."""
    if (origin := run.job_code_origin) is None or origin.executable_path != sys.executable:
        return False
    pointer = origin.repository_origin.code_pointer
    return isinstance(pointer, ModuleCodePointer) and pointer.module == OWN_MODULE


def _is_there(run: dg.DagsterRun, **request: str) -> bool | None:
    """True if the runner has a process of this run; None if nobody can say."""
    try:
        return bool(ask(run.tags[RUNNER_TAG], **request)["is_there"])
    except (FileNotFoundError, ConnectionRefusedError):
        # The runs of a runner end with it.
        return False
    except OSError:
        return None


def ask(address: str, **request: str) -> dict[str, Any]:
    """The runner's answer to `begin`, `interrupt` or `look` with the id of a run.

    Raises:
        OSError: there is none.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_SECONDS)
        connection.connect(address)
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as answers:
            answer = answers.readline()
    if not answer:
        raise ConnectionError("no answer")
    found: dict[str, Any] = json.loads(answer)
    return found
