"""The loop of the process from which all others of `up` are forked: servers, runs, looks at requests.

It has everything imported, neither threads nor an open database, and shares nearly all of its memory with
what it forks: a run begins within half a second, where the imports alone took three. The launcher
(run_launcher.py) asks it through a socket in a folder of this user.
"""

import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import dagster as dg

from rss_pipeline.errors import InfrastructureError
from rss_pipeline.orchestration.dagster_private import (
    capture_interrupts,
    setup_interrupt_handlers,
)
from rss_pipeline.orchestration.dagster_private_commands import execute_run_command_body
from rss_pipeline.orchestration.instance.dead_runs import RUNNER, end_dead
from rss_pipeline.orchestration.run_launcher import FORKS_RUNS
from rss_pipeline.orchestration.serving.beats import until_beat
from rss_pipeline.orchestration.serving.forked import DONE, FAILED, Forked, expect_objects
from rss_pipeline.orchestration.serving.kept import Follower, Kept, Process
from rss_pipeline.orchestration.serving.parsers import fork_parser_server
from rss_pipeline.orchestration.serving.refresher import Moment, serve
from rss_pipeline.orchestration.serving.warmed import opened
from rss_pipeline.reader.refresh import read_mark
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database
from rss_pipeline.storage.feeds import leases
from rss_pipeline.web import healthz

STOP_SECONDS = 60.0
"""Time for runs and servers to end by themselves."""
_ASKING_SECONDS = 2.0
_WAITING_CONNECTIONS = 64
_logger = logging.getLogger("dagster")
_ENDING = {signal.SIGINT, signal.SIGTERM}


def listen() -> socket.socket:
    """A socket for the launcher, named in RUNNER where this process starts runs.

    Raises:
        InfrastructureError: there can be none.
    """
    folder = tempfile.mkdtemp(prefix="runner-")
    listener = socket.socket(socket.AF_UNIX)
    address = str(Path(folder) / "runner")
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        os.rmdir(folder)
        raise InfrastructureError(
            f"the process that starts runs cannot listen on {address} ({error}): set TMPDIR to a folder with"
            " a shorter path, on a disk of this machine"
        ) from error
    listener.listen(_WAITING_CONNECTIONS)
    if FORKS_RUNS:
        os.environ[RUNNER] = address
    Forked.listeners.append(listener)
    return listener


@dataclass(slots=True)
class Runner:
    """The servers, the runs that were forked, and the look at the requests."""

    settings: Settings
    listener: socket.socket
    servers: Sequence[Kept] = ()
    followers: Sequence[Follower] = ()
    runs: dict[str, Forked] = field(default_factory=dict)
    """By the id of the run."""
    reports: list[Forked] = field(default_factory=list)
    look: Forked | None = None

    def keep_running(self, *, parent: int) -> None:
        """Fork what is asked for until an interrupt or the end of the parent."""
        # The first look finds what was requested while nothing ran.
        moment = Moment(again_at=time.monotonic())
        while os.getppid() == parent:
            now = time.monotonic()
            moment.see(read_mark(self.settings), now)
            if self.look is not None and self.look.poll() is not None:
                moment.end(self.look.poll() or DONE, now)
                self.look = None
            if self.look is None and moment.is_due(now):
                moment.begin()
                try:
                    self.look = self._fork("rss-refresh", lambda: serve(self.settings))
                except InfrastructureError:
                    moment.end(FAILED, now)
            self._reap()
            for server in self.servers:
                server.look()
            for follower in self.followers:
                follower.look(has_runs=bool(self.runs))
            self.listen_again()
            healthz.note([server.name for server in self.servers if server.is_missing])
            awaiting = {each: server for server in self.servers for each in server.awaited}
            for ready in select.select([self.listener, *awaiting], [], [], until_beat())[0]:
                if ready is self.listener:
                    self.answer()
                else:
                    awaiting[ready].heard(ready)

    def _fork(self, name: str, work: Callable[[], int]) -> Forked:
        return Forked(name, work)

    def listen_again(self) -> None:
        """Make the socket anew if it is gone: systems remove what was not changed below /tmp for days."""
        address = Path(self.listener.getsockname())
        if address.exists():
            return
        listener = socket.socket(socket.AF_UNIX)
        # Another look, if there is no folder now.
        with suppress(OSError):
            address.parent.mkdir(mode=0o700, exist_ok=True)
            listener.bind(str(address))
            listener.listen(_WAITING_CONNECTIONS)
            if self.listener in Forked.listeners:
                Forked.listeners[Forked.listeners.index(self.listener)] = listener
            self.listener, listener = listener, self.listener
        listener.close()

    def answer(self) -> None:
        """Answer one request. One that is broken, or whose sender has gone, harms no other."""
        with suppress(OSError, ValueError, AttributeError):
            connection, _ = self.listener.accept()
            with connection, _closed_in_forks(connection):
                connection.settimeout(_ASKING_SECONDS)
                with connection.makefile("rb") as requests:
                    request = json.loads(requests.readline())
                match request:
                    case {"begin": str(run_id)}:
                        answer: dict[str, object] = self._begin(run_id)
                    case {"interrupt": str(run_id)}:
                        answer = {"is_there": self._interrupt(run_id)}
                    case {"look": str(run_id)}:
                        answer = {"is_there": self._is_there(run_id)}
                    case _:
                        answer = {"refused": "not a request"}
                connection.sendall(json.dumps(answer).encode() + b"\n")

    def _begin(self, run_id: str) -> dict[str, object]:
        if self._is_there(run_id):
            return {}

        # A run that is interrupted before it can take it has its signal afterwards.
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        try:
            self.runs[run_id] = self._fork("rss-run", lambda: execute(run_id))
        except InfrastructureError as error:
            return {"refused": str(error)}
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        return {}

    def _is_there(self, run_id: str) -> bool:
        run = self.runs.get(run_id)
        return run is not None and run.poll() is None

    def _interrupt(self, run_id: str) -> bool:
        if not self._is_there(run_id):
            return False
        self.runs[run_id].send_signal(signal.SIGINT)
        return True

    def _reap(self) -> None:
        for run_id, run in list(self.runs.items()):
            if (code := run.poll()) is None:
                continue
            if code != DONE:
                # Another look, if there is no process for the report now.
                with suppress(InfrastructureError):
                    report = partial(report_end, self.settings, run_id, code)
                    self.reports.append(self._fork("rss-report", report))
                    del self.runs[run_id]
            else:
                del self.runs[run_id]
        self.reports = [report for report in self.reports if report.poll() is None]

    def end(self, *, seconds: float = STOP_SECONDS) -> None:
        """Interrupt all. Runs release their claims, and requests are open for the next `up`."""
        self.listener.close()
        kept: list[Kept | Follower] = [*self.servers, *self.followers]
        servers = [each.process for each in kept if each.process is not None]
        left: list[Process] = [*self.runs.values(), *self.reports, *servers]
        stop([*left, *([] if self.look is None else [self.look])], seconds=seconds)


@contextmanager
def _closed_in_forks(connection: socket.socket) -> Iterator[None]:
    Forked.listeners.append(connection)
    try:
        yield
    finally:
        Forked.listeners.remove(connection)


def stop(processes: Sequence[Process], *, seconds: float) -> None:
    """Interrupt these processes, and kill those that have not ended within this time."""
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
    until = time.monotonic() + seconds
    for process in processes:
        try:
            process.wait(timeout=max(until - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            _logger.warning("process %s did not end within %g s and is killed", process.pid, seconds)
            process.kill()
            process.wait()


def execute(run_id: str) -> int:
    """Execute this run in this process; return the exit code."""
    expect_objects()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    setup_interrupt_handlers()
    # Without it, the run says why it cannot parse, or the system has room again by then.
    with suppress(InfrastructureError):
        fork_parser_server()
    with capture_interrupts(), opened() as instance:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        run = instance.get_run_by_id(run_id)
        if run is not None and run.status is dg.DagsterRunStatus.CANCELING:
            instance.report_run_canceled(run)
        elif run is not None and not run.is_finished:
            # Dagster prints each event of a run that a person starts: its config names no logger.
            # What its steps print is in the UI all the same.
            with (
                open(os.devnull, "w", encoding="utf-8") as nowhere,
                redirect_stderr(sys.stderr if "loggers" in run.run_config else nowhere),
            ):
                execute_run_command_body(
                    run_id=run_id,
                    instance=instance,
                    write_stream_fn=lambda _: None,
                    set_exit_code_on_failure=False,
                )
        run = instance.get_run_by_id(run_id)
        return DONE if run is None or run.is_finished else FAILED


def report_end(settings: Settings, run_id: str, code: int) -> int:
    """Report a run whose process has ended with this exit code, unless it reported its end itself; and end
    its claims, for which others would wait until they lapse."""
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    with opened() as instance:
        end_dead(instance, run_id, f"The process of this run ended unexpectedly ({how}).")
    with open_database(settings) as database:
        leases.end_of_killed(database, [run_id], host_delay=settings.host_delay_seconds)
    return DONE
