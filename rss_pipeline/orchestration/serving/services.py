"""The processes under `rss-pipeline up`: code servers, our webserver, and the daemon; beside them the reader.

As `dagster dev` starts them, which has no place for a webserver of one's own. When webserver or daemon ends,
this process ends with all the rest, and the supervisor (cli/supervisor.py) starts it again. Dagster's manager
starts a code server again that ended. When the reader ends, it is restarted alone.
https://docs.dagster.io/deployment/oss/oss-deployment-architecture
"""

import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType

import dagster as dg
import yaml
from dagster import DagsterEventType

from rss_pipeline.collector.models.plain_text import one_line
from rss_pipeline.environment import load_env_file
from rss_pipeline.errors import InfrastructureError, ensure_room
from rss_pipeline.orchestration.dagster_private import (
    DAEMON,
    ModuleTarget,
    ProxyServerManager,
    WorkspaceFileTarget,
    WorkspaceLoadTarget,
    configure_loggers,
    setup_interrupt_handlers,
)
from rss_pipeline.orchestration.instance.dead_runs import begin_to_cancel
from rss_pipeline.orchestration.jobs import POLL_FEEDS, REFRESH_FEEDS
from rss_pipeline.orchestration.reporting.asset_keys import POLLS
from rss_pipeline.orchestration.reporting.run_errors import first_error
from rss_pipeline.orchestration.serving.refresher import Forked
from rss_pipeline.orchestration.serving.refresher import start as start_refresher
from rss_pipeline.orchestration.serving.restarted import restarted
from rss_pipeline.orchestration.wakes import waking
from rss_pipeline.settings import Settings

# The lines that `rss-pipeline up` prints: one for each poll that visited a feed, one for each red run.
# Read from the instance, so that a run that was killed has its line as well.

_NAMES = {POLL_FEEDS: "poll", REFRESH_FEEDS: "refresh", "__ASSET_JOB": "materialization"}
_WITH_ERRORS = {
    DagsterEventType.STEP_FAILURE,
    DagsterEventType.RESOURCE_INIT_FAILURE,
    DagsterEventType.ENGINE_EVENT,
    DagsterEventType.RUN_FAILURE,
}
_OVERLAP = timedelta(minutes=1)
"""Runs are written by several processes, and a later time may be written first."""
_REMEMBERED = 1_000
_LONGEST = 1_000
_POLLS_LOOKED_AT = 10


class RunLines:
    """The lines of the runs that ended since the last look."""

    def __init__(self, instance: dg.DagsterInstance, *, began: datetime) -> None:
        self._instance = instance
        self._began = began
        self._since = began
        self._printed: deque[str] = deque(maxlen=_REMEMBERED)

    def new(self) -> Iterator[str]:
        """Yield the lines, in the order in which the runs ended. An older run that changes has none."""
        ended = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE]
        records = self._instance.get_run_records(
            dg.RunsFilter(statuses=ended, updated_after=self._since - _OVERLAP),
            order_by="update_timestamp",
            ascending=True,
        )
        for record in records:
            run, at = record.dagster_run, datetime.fromtimestamp(record.end_time or 0, UTC)
            self._since = max(self._since, record.update_timestamp.replace(tzinfo=UTC))
            if at < self._began or run.run_id in self._printed:
                continue
            self._printed.append(run.run_id)
            if (said := self._said(run)) is not None:
                line = f"{at.astimezone():%H:%M:%S} {_NAMES.get(run.job_name, run.job_name)}{said}"
                yield one_line(line)[:_LONGEST]

    def _said(self, run: dg.DagsterRun) -> str | None:
        if run.status is dg.DagsterRunStatus.FAILURE:
            return f" failed: {self._reason(run.run_id)}"
        return self._visited(run.run_id) if run.job_name in (POLL_FEEDS, REFRESH_FEEDS) else None

    def _visited(self, run_id: str) -> str | None:
        polls = self._instance.fetch_materializations(POLLS, limit=_POLLS_LOOKED_AT).records
        for poll in polls:
            event = poll.asset_materialization
            if poll.run_id == run_id and event is not None and event.description:
                return f": {event.description}"
        return None

    def _reason(self, run_id: str) -> str:
        logged = self._instance.all_logs(run_id, of_type=_WITH_ERRORS)
        events = [entry.dagster_event for entry in logged if entry.dagster_event is not None]
        found = first_error(events)
        if found is not None:
            return found[1]
        ends = [event.message for event in events if event.event_type is DagsterEventType.RUN_FAILURE]
        return next((message for message in ends if message), None) or "it gave no reason"


LOOK_SECONDS = 1.0
LINES_SECONDS = 3.0
STOP_SECONDS = 60.0
"""Time for webserver and daemon to end by themselves."""

_logger = logging.getLogger("dagster")


def run(workspace: Path | None, *, parent: int) -> int:
    """Run all processes until one ends, this one is interrupted, or its parent has this id no longer; return
    the exit code.

    The code locations are those of this workspace.yaml, or else the pipeline alone.
    """
    settings = _settings()
    # First of all: a process that has threads cannot be forked safely.
    refresher = start_refresher(settings)
    with (
        _reader(settings) as look_at_reader,
        dg.DagsterInstance.get() as instance,
        # Before the code servers: they ask it for the intervals of sensors.
        waking(instance, settings) as wake_sensors,
        code_servers(instance, workspace) as addresses,
    ):
        print_new = print_lines(
            RunLines(instance, began=datetime.now(UTC)), home=Path(os.environ["DAGSTER_HOME"])
        )

        def look() -> None:
            print_new()
            look_at_reader()
            # A history that cannot be read now: sensors tick by their intervals meanwhile.
            with suppress(Exception):
                wake_sensors()

        return until_one_ends(
            {
                "webserver": ("rss_pipeline.orchestration.serving.webserver", str(addresses)),
                # Its other messages are those of every tick of every sensor.
                "daemon": (DAEMON, "run", "--log-level", "warning", "--workspace", str(addresses)),
            },
            on_look=look,
            # Runs of other machines go on.
            on_interrupt=lambda: (
                settings.runs_elsewhere is None and begin_to_cancel(instance, group=os.getpgrp())
            ),
            parent=parent,
            forked={"refresher": refresher},
        )


def _settings() -> Settings:
    load_env_file(Path.cwd())
    return Settings.from_environ(os.environ, cwd=Path.cwd())


def _reader(settings: Settings) -> AbstractContextManager[Callable[[], None]]:
    """The reader, which neither needs Dagster nor ends it, and the function that checks it."""
    if not settings.reader:
        return nullcontext(lambda: None)
    return restarted("The reader", [sys.executable, "-m", "rss_pipeline.cli", "reader"])


def print_lines(lines: RunLines, *, home: Path, every: float = LINES_SECONDS) -> Callable[[], None]:
    """A function that prints the lines that are new, at most once in so many seconds.

    `home` is Dagster's. That its disk is full is printed once: no run could record it.
    """
    next_look = 0.0
    was_full = False

    def look() -> None:
        nonlocal next_look, was_full
        if time.monotonic() < next_look:
            return
        next_look = time.monotonic() + every
        try:
            try:
                ensure_room(home)
                was_full = False
            except InfrastructureError as full:
                if not was_full:
                    sys.stdout.write(f"{full}\n")
                was_full = True
            for line in lines.new():
                sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
        # A history that cannot be read now, a terminal that is gone: collecting goes on without the lines.
        except Exception as error:  # noqa: BLE001
            _logger.debug("no line about runs: %s", error)

    return look


def until_one_ends(
    modules: Mapping[str, Sequence[str]],
    *,
    parent: int,
    look: float = LOOK_SECONDS,
    stop: float = STOP_SECONDS,
    on_look: Callable[[], None] = lambda: None,
    on_interrupt: Callable[[], object] = lambda: None,
    forked: Mapping[str, Forked] = MappingProxyType({}),
) -> int:
    """Run these modules with their arguments, each in a process, beside those that are `forked`, until one
    ends; then end the others.

    `on_look` is called at each look, `on_interrupt` before an interrupt of this process ends them. Return the
    exit code 1; an interrupt, or the end of this process's parent, ends them all, too.
    """
    processes: dict[str, subprocess.Popen[bytes] | Forked] = {**forked}
    try:
        for name, module in modules.items():
            processes[name] = subprocess.Popen([sys.executable, "-m", *module])
        while True:
            for name, process in processes.items():
                if process.poll() is not None:
                    _logger.error("Dagster's %s ended (exit code %s)", name, process.returncode)
                    return 1
            if os.getppid() != parent:
                # Its lock on the home is free: the next `up` would start a second daemon beside ours.
                _logger.error("`rss-pipeline up` was killed: its processes end")
                return 1
            on_look()
            time.sleep(look)
    except KeyboardInterrupt:
        on_interrupt()
        raise
    finally:
        _stop(*processes.values(), seconds=stop)


@contextmanager
def code_servers(instance: dg.DagsterInstance, workspace: Path | None) -> Iterator[Path]:
    """A server for each code location, and the file that says where they listen."""
    with (
        ProxyServerManager(instance, _target(workspace), code_server_log_level="warning") as servers,
        tempfile.TemporaryDirectory() as folder,
    ):
        addresses = Path(folder) / "workspace.yaml"
        addresses.write_text(yaml.dump({"load_from": servers.get_code_server_specs()}), "utf-8")
        yield addresses


def _target(workspace: Path | None) -> WorkspaceLoadTarget:
    if workspace is not None:
        return WorkspaceFileTarget([str(workspace)])
    return ModuleTarget("rss_pipeline.definitions", None, os.getcwd(), None)


def _stop(*processes: "subprocess.Popen[bytes] | Forked", seconds: float) -> None:
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


if __name__ == "__main__":
    # Some of Dagster's messages are for those who develop their code beside it, as under `dagster dev`.
    os.environ["DAGSTER_IS_DEV_CLI"] = "1"
    configure_loggers()
    setup_interrupt_handlers()
    up = int(sys.argv[1])
    try:
        sys.exit(run(Path(sys.argv[2]) if len(sys.argv) > 2 else None, parent=up))
    except KeyboardInterrupt:
        _logger.info("Dagster's processes have ended")
    finally:
        if os.getppid() != up and os.getpgrp() == os.getpid():
            # What the supervisor would do: runs that are in progress release their claims.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.killpg(os.getpgrp(), signal.SIGTERM)
