"""Runs that `up` forks: begun, interrupted, killed and refused, by the launcher that dagster.yaml names."""

import errno
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import psutil
import pytest
from dagster._core.origin import JobPythonOrigin, RepositoryPythonOrigin
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.errors import InfrastructureError, not_started
from rss_pipeline.orchestration.dagster_private import (
    DagsterUserCodeUnreachableError,
    LaunchRunContext,
    ModuleCodePointer,
    WorkerStatus,
)
from rss_pipeline.orchestration.instance.dead_runs import RUNNER, is_ours, last_sign
from rss_pipeline.orchestration.instance.own_location import OWN_MODULE
from rss_pipeline.orchestration.run_launcher import ForkedRunLauncher, ask, queue_again
from rss_pipeline.orchestration.serving import runner
from rss_pipeline.orchestration.serving.forked import Forked
from rss_pipeline.orchestration.serving.runner import Runner
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.prepared import Prepared, PreparedProcess
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.waiting import PATIENCE, soon

NOWHERE = "/nowhere/runner"


@pytest.fixture
def launcher(pipeline: DagsterPipeline, monkeypatch: pytest.MonkeyPatch) -> ForkedRunLauncher:
    """That of a daemon below `up` when its runner is away."""
    monkeypatch.setenv(RUNNER, NOWHERE)
    launcher = ForkedRunLauncher()
    launcher.register_instance(pipeline.instance)
    return launcher


@pytest.fixture
def running(
    pipeline: DagsterPipeline,
    launcher: ForkedRunLauncher,
    prepared: Prepared,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[PreparedProcess]:
    """A runner that the launcher calls, of the pipeline's home."""
    settings, path = pipeline.settings, tmp_path / "runner"
    environment = {
        **os.environ,
        "DAGSTER_HOME": pipeline.instance.root_directory,
        "RSS_PIPELINE_HOME": str(settings.home),
        "RSS_FEEDS_FILE": str(settings.feeds_file),
        "RSS_HOST_DELAY_SECONDS": "0",
        "RSS_PARSE_WORKERS": "1",
    }
    module = "rss_pipeline_tests.orchestration.serving.a_runner"
    process = prepared.start(module, str(path), folder=settings.home, environment=environment)
    monkeypatch.setenv(RUNNER, soon(lambda: path.read_text("utf-8") if path.exists() else ""))
    yield process
    if process.returncode is None:
        process.send_signal(signal.SIGKILL)
        process.wait()


def queued(
    pipeline: DagsterPipeline, *, module: str = OWN_MODULE, executable: str = sys.executable
) -> dg.DagsterRun:
    """A poll of all feeds, as the queue hands it to the launcher."""
    pointer = ModuleCodePointer(module, "defs", str(pipeline.settings.home))
    repository = RepositoryPythonOrigin(executable, pointer, None, ["dagster"], None)
    return pipeline.instance.create_run_for_job(
        pipeline.definitions().resolve_job_def("poll_feeds"),
        run_config={"ops": {"claim": {"config": {"all": True}}}},
        job_code_origin=JobPythonOrigin("poll_feeds", repository),
        remote_job_origin=RemoteJobOrigin(
            RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("here"), "__repository__"), "poll_feeds"
        ),
    )


def launch(launcher: ForkedRunLauncher, run: dg.DagsterRun) -> None:
    launcher.launch_run(LaunchRunContext(dagster_run=run, workspace=None))


def now(pipeline: DagsterPipeline, run: dg.DagsterRun) -> dg.DagsterRun:
    found = pipeline.instance.get_run_by_id(run.run_id)
    assert found is not None
    return found


def has_ended(pipeline: DagsterPipeline, run: dg.DagsterRun) -> dg.DagsterRunStatus | None:
    found = now(pipeline, run)
    return found.status if found.is_finished else None


@pytest.fixture
def asked(pipeline: DagsterPipeline, server: FeedServer) -> Iterator[threading.Event]:
    """Set once the only feed is requested, which answers at the end of the test."""
    asked, over = threading.Event(), threading.Event()

    def ask(_: object) -> Answer:
        asked.set()
        return Answer(body=rss("a"), wait_for=over)

    pipeline.clock.now = utc_now()
    pipeline.register(server.route("127.0.0.2", "/feed", ask), "feed")
    pipeline.sync()
    yield asked
    over.set()


def starting(pipeline: DagsterPipeline, run: dg.DagsterRun) -> None:
    """The state in which the queue hands a run to the launcher."""
    event = dg.DagsterEvent(dg.DagsterEventType.PIPELINE_STARTING.value, run.job_name)
    pipeline.instance.report_dagster_event(event, run_id=run.run_id)


@pytest.mark.slow
def test_a_run_that_a_killed_daemon_was_about_to_start_is_queued_again_and_one_that_began_is_not(
    pipeline: DagsterPipeline,
    launcher: ForkedRunLauncher,
    running: PreparedProcess,
    asked: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline.instance, "_run_launcher", launcher)
    unborn, begun, foreign = queued(pipeline), queued(pipeline), queued(pipeline, module="of.somebody")
    launch(launcher, begun)
    assert asked.wait(PATIENCE)
    for run in (unborn, begun, foreign):
        starting(pipeline, run)
    assert queue_again(pipeline.instance) == [unborn.run_id]
    assert now(pipeline, unborn).status is dg.DagsterRunStatus.QUEUED
    assert now(pipeline, begun).status is dg.DagsterRunStatus.STARTING
    assert launcher.terminate(begun.run_id)
    soon(lambda: has_ended(pipeline, begun))


@pytest.mark.slow
def test_a_run_that_is_terminated_is_canceled_and_releases_its_feeds(
    pipeline: DagsterPipeline,
    launcher: ForkedRunLauncher,
    running: PreparedProcess,
    asked: threading.Event,
    tmp_path: Path,
) -> None:
    run = queued(pipeline)
    launch(launcher, run)
    launch(launcher, run)
    assert asked.wait(PATIENCE)
    tagged = now(pipeline, run)
    assert is_ours(tagged.tags)
    sign = last_sign(pipeline.instance, run.run_id)
    assert sign is not None
    process = psutil.Process(sign.pid)
    assert (process.name(), process.ppid()) == ("rss-run", running.pid)
    assert launcher.check_run_worker_health(tagged).status is WorkerStatus.RUNNING
    assert launcher.terminate(run.run_id)
    assert soon(lambda: has_ended(pipeline, run)) is dg.DagsterRunStatus.CANCELED
    soon(lambda: launcher.check_run_worker_health(tagged).status is WorkerStatus.FAILED)
    assert not launcher.terminate(run.run_id)
    assert pipeline.rows("SELECT id FROM feeds WHERE lease_token IS NOT NULL OR unclosed_claims > 0") == []
    assert (tmp_path / "runner.said").read_text("utf-8") == "", "its events are in the history"


@pytest.mark.slow
def test_a_run_that_is_killed_fails_at_once_and_says_by_what(
    pipeline: DagsterPipeline,
    launcher: ForkedRunLauncher,
    running: PreparedProcess,
    asked: threading.Event,
) -> None:
    run = queued(pipeline)
    launch(launcher, run)
    assert asked.wait(PATIENCE)
    sign = last_sign(pipeline.instance, run.run_id)
    assert sign is not None
    os.kill(sign.pid, signal.SIGKILL)
    assert soon(lambda: has_ended(pipeline, run)) is dg.DagsterRunStatus.FAILURE
    [end] = pipeline.instance.all_logs(run.run_id, of_type=dg.DagsterEventType.RUN_FAILURE)
    assert "The process of this run ended unexpectedly (signal 9)." in end.message
    # Its feed may be visited again, and is still under suspicion.
    soon(lambda: pipeline.rows("SELECT id FROM feeds WHERE lease_token IS NULL AND unclosed_claims = 1"))
    assert pipeline.rows("SELECT feeds, hosts FROM leases WHERE feeds <> '[]' OR hosts <> '[]'") == []


@pytest.mark.slow
def test_when_the_runner_is_killed_its_runs_end_and_are_seen_to_be_gone(
    pipeline: DagsterPipeline,
    launcher: ForkedRunLauncher,
    running: PreparedProcess,
    asked: threading.Event,
) -> None:
    """SIGTERM comes of the system to each of them: they release their feeds."""
    run = queued(pipeline)
    launch(launcher, run)
    assert asked.wait(PATIENCE)
    tagged = now(pipeline, run)
    running.send_signal(signal.SIGKILL)
    soon(lambda: pipeline.rows("SELECT id FROM feeds WHERE lease_token IS NOT NULL") == [])
    assert launcher.check_run_worker_health(tagged).status is WorkerStatus.FAILED
    with pytest.raises(DagsterUserCodeUnreachableError, match="does not answer"):
        launch(launcher, queued(pipeline))


def test_a_run_without_a_runner_stays_in_the_queue(
    pipeline: DagsterPipeline, launcher: ForkedRunLauncher
) -> None:
    """The daemon puts a run back for this error, and for no other."""
    with pytest.raises(DagsterUserCodeUnreachableError, match="It waits in the queue"):
        launch(launcher, queued(pipeline))


def test_runs_of_other_code_are_started_by_dagsters_own_launcher(
    pipeline: DagsterPipeline, launcher: ForkedRunLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also runs of this code in another interpreter, and all where no `up` has a runner."""
    theirs = [
        pipeline.instance.create_run_for_job(pipeline.definitions().resolve_job_def("poll_feeds")),
        queued(pipeline, module="their.definitions"),
        queued(pipeline, executable="/usr/bin/another-python"),
    ]
    for run in theirs:
        with pytest.raises(dg.DagsterInvariantViolationError, match="requires a workspace"):
            launch(launcher, run)
        assert launcher.check_run_worker_health(run).status is WorkerStatus.RUNNING
    monkeypatch.delenv(RUNNER)
    with pytest.raises(dg.DagsterInvariantViolationError, match="requires a workspace"):
        launch(launcher, queued(pipeline))


class _NoRoom(Runner):
    def _fork(self, name: str, work: Callable[[], int]) -> Forked:
        raise InfrastructureError(not_started(OSError(errno.EAGAIN, "")))


def test_a_run_for_which_no_process_can_be_started_stays_in_the_queue_and_says_why(
    pipeline: DagsterPipeline,
    launcher: ForkedRunLauncher,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(RUNNER, str(tmp_path / "runner"))
    run = queued(pipeline)
    errors: list[Exception] = []

    def begin() -> None:
        try:
            launch(launcher, run)
        except DagsterUserCodeUnreachableError as error:
            errors.append(error)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.environ[RUNNER])
        listener.listen()
        full = _NoRoom(pipeline.settings, listener)
        thread = threading.Thread(target=begin)
        thread.start()
        full.answer()
        thread.join()
    [error] = errors
    assert "this user may have no more processes (`ulimit -u`" in str(error)
    assert now(pipeline, run).status is dg.DagsterRunStatus.NOT_STARTED


@pytest.mark.parametrize("request_", [b"", b"\n", b"[]\n", b"{not json\n", b"\xff\n", b'{"begin": 1}\n'])
def test_a_broken_request_harms_no_other(pipeline: DagsterPipeline, tmp_path: Path, request_: bytes) -> None:
    address = str(tmp_path / "runner")
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as broken:
        listener.bind(address)
        listener.listen()
        idle = Runner(pipeline.settings, listener)
        broken.connect(address)
        broken.sendall(request_)
        broken.shutdown(socket.SHUT_WR)
        idle.answer()
        found: list[object] = []
        thread = threading.Thread(target=lambda: found.append(ask(address, look="r")))
        thread.start()
        idle.answer()
        thread.join()
    assert found == [{"is_there": False}]


@pytest.mark.parametrize("with_folder", [False, True])
def test_a_socket_that_the_system_removes_is_made_anew(
    pipeline: DagsterPipeline, tmp_path: Path, with_folder: bool
) -> None:
    address = tmp_path / "folder" / "runner"
    address.parent.mkdir()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(address))
    listener.listen()
    idle = Runner(pipeline.settings, listener)
    idle.listen_again()
    assert idle.listener is listener, "it is there"
    address.unlink()
    if with_folder:
        address.parent.rmdir()
    idle.listen_again()
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(ask(str(address), look="r")))
    thread.start()
    idle.answer()
    thread.join()
    idle.listener.close()
    assert found == [{"is_there": False}]
    assert address.parent.stat().st_mode & 0o077 == 0 or not with_folder


def test_a_path_that_is_too_long_for_a_socket_is_an_error_with_the_remedy(
    pipeline: DagsterPipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("long" * 30)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    with pytest.raises(InfrastructureError, match="set TMPDIR to a folder with a shorter path"):
        runner.listen()
    assert list(deep.iterdir()) == []
