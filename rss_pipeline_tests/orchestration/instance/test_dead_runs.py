"""A run without a living process is ended, and no other."""

import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from dagster._core.events import EngineEventData

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.orchestration.instance.dead_runs import (
    HOST_TAG,
    RUNNER,
    RUNNER_TAG,
    RunSign,
    begin_to_cancel,
    born,
    cause_of_death,
    end_canceled,
    end_dead_runs,
    host_tags,
    is_dead,
)
from rss_pipeline.orchestration.recent_runs import recent_runs
from rss_pipeline.orchestration.upkeep.purge_job import purge_history
from rss_pipeline.pipeline.triggers.runs import JobRun, backoff

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
STARTING = dg.DagsterRunStatus.STARTING
STARTED, CANCELING = dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING


@pytest.fixture(scope="module")
def gone() -> int:
    """The number of a process that lived."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        return process.pid


@pytest.mark.parametrize(
    ("started", "newest", "dead"),
    [
        (None, NOON - 3 * MINUTE, True),
        (None, NOON - 1 * MINUTE, False),  # Just ended: its last event may be on its way.
        (NOON - 10 * MINUTE, NOON - 9 * MINUTE, False),  # At a long step.
        (NOON - 5 * MINUTE, NOON - 4 * MINUTE, True),  # Its number is another's since.
    ],
)
def test_a_worker_without_its_process_is_dead_and_so_is_a_silent_one(
    started: datetime | None, newest: datetime, dead: bool
) -> None:
    sign = RunSign(pid=7, process_seen_at=NOON - 10 * MINUTE, newest_at=newest)
    assert is_dead(sign, now=NOON, silence=2 * MINUTE, born=lambda _: started) is dead


@pytest.mark.parametrize(
    ("tags", "booted_at", "cause"),
    [
        ({}, NOON - MINUTE, "Its process was killed"),  # Of a command.
        ({RUNNER_TAG: "/this"}, NOON - MINUTE, "Its process was killed"),
        ({RUNNER_TAG: "/another"}, NOON - MINUTE, "The processes of `rss-pipeline up` were killed"),
        ({}, NOON + MINUTE, "The machine restarted"),
        ({RUNNER_TAG: "/another"}, NOON + MINUTE, "The machine restarted"),
    ],
)
def test_a_restart_is_named_where_there_was_one_and_else_what_was_killed(
    monkeypatch: pytest.MonkeyPatch, tags: dict[str, str], booted_at: datetime, cause: str
) -> None:
    monkeypatch.setenv(RUNNER, "/this")
    sign = RunSign(pid=7, process_seen_at=NOON - MINUTE, newest_at=NOON)
    assert cause_of_death(tags, sign, booted_at=booted_at).startswith(cause)


def test_a_process_is_born_when_it_was_and_never_again(gone: int) -> None:
    assert born(gone) is None
    mine = born(os.getpid())
    assert mine is not None
    assert mine < utc_now()


def started(
    instance: dg.DagsterInstance, pid: int, tags: dict[str, str], status: dg.DagsterRunStatus = STARTED
) -> str:
    run = instance.create_run_for_job(purge_history, status=status, tags=tags)
    instance.report_engine_event("Started process for run", run, EngineEventData.in_process(pid))
    return run.run_id


def end(
    instance: dg.DagsterInstance, live: Sequence[str] = (), *, later: timedelta = 5 * MINUTE
) -> list[str]:
    return end_dead_runs(instance, now=utc_now() + later, silence=3 * MINUTE, live_runs=lambda: live)


def test_only_the_dead_of_this_machine_without_a_lease_are_ended(
    instance: dg.DagsterInstance, gone: int
) -> None:
    launched = {".dagster/grpc_info": '{"host": "localhost", "socket": "/run/code"}'}
    dead = started(instance, gone, launched)
    ours = started(instance, gone, host_tags())
    canceled = started(instance, gone, launched, CANCELING)
    leased = started(instance, gone, launched)
    others = [
        started(instance, os.getpid(), launched),
        started(instance, gone, {HOST_TAG: "another machine"}),
        started(instance, gone, {".dagster/grpc_info": '{"host": "user-code", "port": 4000}'}),
        started(instance, gone, {}),
        instance.create_run_for_job(purge_history, status=STARTED, tags=launched).run_id,
    ]
    assert end(instance, later=MINUTE) == []
    assert set(end(instance, [leased])) == {dead, ours, canceled}
    assert {run.run_id for run in instance.get_runs(dg.RunsFilter(statuses=[STARTED]))} == {leased, *others}
    [run] = instance.get_runs(dg.RunsFilter(run_ids=[canceled]))
    assert run.status is dg.DagsterRunStatus.CANCELED


def test_an_orderly_stop_cancels_the_runs_of_its_processes_and_no_others(
    instance: dg.DagsterInstance, gone: int
) -> None:
    launched = {".dagster/grpc_info": '{"host": "localhost", "socket": "/run/code"}'}
    with subprocess.Popen(["sleep", "100"], process_group=0) as worker:
        below = [started(instance, worker.pid, launched), started(instance, worker.pid, host_tags())]
        # Its process is about to begin.
        below.append(instance.create_run_for_job(purge_history, status=STARTING, tags=launched).run_id)
        others = [
            started(instance, os.getpid(), host_tags()),
            started(instance, worker.pid, {HOST_TAG: "another machine"}),
            instance.create_run_for_job(purge_history, status=STARTING, tags={}).run_id,
        ]
        assert set(begin_to_cancel(instance, group=worker.pid)) == {*below}
        end_canceled(instance)
        canceling = {run.run_id for run in instance.get_runs(dg.RunsFilter(statuses=[CANCELING]))}
        assert canceling == {*below[:2]}, "their processes live"
        worker.kill()
    end_canceled(instance)
    runs = {run.run_id: run.status for run in instance.get_runs()}
    assert {runs[id] for id in below} == {dg.DagsterRunStatus.CANCELED}
    assert [runs[id] for id in others] == [STARTED, STARTED, STARTING]
    assert all(run.state != "failed" for run in recent_runs(instance, "purge_history"))


def test_a_run_that_was_killed_makes_the_next_one_wait_for_nothing(
    instance: dg.DagsterInstance, gone: int
) -> None:
    id = started(instance, gone, host_tags())
    end(instance)
    [run] = recent_runs(instance, "purge_history")
    assert (run.run_id, run.state) == (id, "died")
    assert backoff([run]) == (0, None)
    assert backoff([JobRun(run_id="other", state="failed", ended_at=NOON)])[0] == 1
