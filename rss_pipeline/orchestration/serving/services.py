"""The processes under `rss-pipeline up`: our webserver, the daemon, the runner; beside them the reader.

When webserver, daemon or runner ends, this process ends with all the rest, and the supervisor
(cli/supervisor.py) starts it again. When the reader ends, it is restarted alone.
https://docs.dagster.io/deployment/oss/oss-deployment-architecture
"""

import logging
import os
import pickle
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

import dagster as dg
from dagster import DagsterEventType

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.collector.models.plain_text import one_line
from rss_pipeline.environment import load_env_file
from rss_pipeline.errors import InfrastructureError, RssPipelineError, disk_full, disk_is_full, ensure_room
from rss_pipeline.orchestration.dagster_private import configure_loggers, setup_interrupt_handlers
from rss_pipeline.orchestration.instance.clock_shift import WallClock, heal_ticks
from rss_pipeline.orchestration.instance.dead_runs import begin_to_cancel, end_canceled
from rss_pipeline.orchestration.instance.home import changed_by_hand, open_instance, prepare_home
from rss_pipeline.orchestration.jobs import POLL_FEEDS, REFRESH_FEEDS
from rss_pipeline.orchestration.registry_partitions import register
from rss_pipeline.orchestration.reporting.asset_keys import POLLS
from rss_pipeline.orchestration.reporting.run_errors import first_error
from rss_pipeline.orchestration.run_launcher import OWN_MODULE
from rss_pipeline.orchestration.serving.code_servers import watched
from rss_pipeline.orchestration.serving.forked import DONE, FAILED, Forked
from rss_pipeline.orchestration.serving.locations import workspace_file
from rss_pipeline.orchestration.serving.restarted import restarted
from rss_pipeline.orchestration.serving.runner import start as start_runner
from rss_pipeline.orchestration.wakes import waking
from rss_pipeline.pipeline.registry.sync import RegistrySync
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database

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


def run(workspace: Path | None, *, parent: int, handed_over: int) -> int:
    """Run all processes until one ends, this one is interrupted, or its parent has this id no longer; return
    the exit code.

    The code locations are those of this workspace.yaml, or else the pipeline alone. `handed_over` is a file
    with what `up` has synced.
    """
    settings = _settings()
    prepare_home(settings)
    # First of all: a process that has threads, or an open database, cannot be forked safely.
    if (code := Forked("rss-prepare", lambda: prepare(settings, handed_over)).wait()) != DONE:
        return code
    # Runs have the definitions, too, before they begin.
    import_module(OWN_MODULE)
    runner = start_runner(settings)
    with (
        _reader(settings) as look_at_reader,
        dg.DagsterInstance.get() as instance,
        _canceled_at_end(settings, instance),
        # Before the definitions are loaded: their sensors ask it for their intervals.
        waking(instance, settings) as wake_sensors,
        workspace_file(instance, workspace) as (addresses, servers),
    ):
        print_new = print_lines(
            RunLines(instance, began=datetime.now(UTC)), home=Path(os.environ["DAGSTER_HOME"])
        )

        heal = healed(instance)
        look_at_servers = watched(os.getpid()) if servers is not None else lambda: None

        def look() -> None:
            print_new()
            look_at_reader()
            # A history that cannot be read now: sensors tick by their intervals meanwhile.
            with suppress(Exception):
                wake_sensors()
            heal()
            look_at_servers()

        return until_one_ends(
            {
                "webserver": ("rss_pipeline.orchestration.serving.webserver", str(addresses)),
                "daemon": ("rss_pipeline.orchestration.serving.daemon", str(addresses)),
            },
            on_look=look,
            # Runs of other machines go on.
            on_interrupt=lambda: (
                settings.runs_elsewhere is None and begin_to_cancel(instance, group=os.getpgrp())
            ),
            parent=parent,
            forked={"runner": runner},
        )


def prepare(settings: Settings, handed_over: int) -> int:
    """Give the instance what `up` has synced, and let sensors go on if the clock was put back; return the
    exit code. It is a process of its own, which leaves no open database behind."""
    try:
        with open_database(settings) as database, open_instance(settings) as instance:
            if (sentence := changed_by_hand(settings)) is not None:
                _complain(sentence)
            if (synced := _synced(handed_over)) is not None:
                register(database, instance, synced)
                # Once: a feed that was forgotten may be back when these processes start again.
                os.ftruncate(handed_over, 0)
            heal_ticks(instance, now=utc_now())
    except RssPipelineError as error:
        _complain(str(error))
        return FAILED
    except Exception as error:
        if not disk_is_full(error, at=settings.home):
            raise
        _complain(f"{disk_full(settings.home)}. Cause: {type(error).__name__}: {error}")
        return FAILED
    return DONE


def _synced(handed_over: int) -> RegistrySync | None:
    """The sync of `up`, which wrote this file itself; None if feeds.yaml has mistakes, or the next time."""
    size = os.fstat(handed_over).st_size
    found = pickle.loads(os.pread(handed_over, size, 0)) if size else None
    assert found is None or isinstance(found, RegistrySync)
    return found


def _complain(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


@contextmanager
def _canceled_at_end(settings: Settings, instance: dg.DagsterInstance) -> Iterator[None]:
    """End the runs that were to be canceled, after all processes have ended. Runs of other machines go on."""
    try:
        yield
    finally:
        if settings.runs_elsewhere is None:
            end_canceled(instance)


def healed(instance: dg.DagsterInstance) -> Callable[[], None]:
    """A function that lets sensors go on if the clock was put back since its last call."""
    clock = WallClock()

    def look() -> None:
        if not clock.was_put_back():
            return
        try:
            sensors = heal_ticks(instance, now=utc_now())
        # A history that cannot be read now; the next start heals them.
        except Exception:
            _logger.exception("The clock was put back, and sensors wait until it is that late again.")
            return
        _complain(f"The clock was put back; {sensors} sensors go on at once, not when it is that late again.")

    return look


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
    up, handed_over = map(int, sys.argv[1:3])
    try:
        workspace = Path(sys.argv[3]) if len(sys.argv) > 3 else None
        sys.exit(run(workspace, parent=up, handed_over=handed_over))
    except RssPipelineError as error:
        _complain(str(error))
        sys.exit(1)
    except KeyboardInterrupt:
        _logger.info("Dagster's processes have ended")
    finally:
        if os.getppid() != up and os.getpgrp() == os.getpid():
            # What the supervisor would do: runs that are in progress release their claims.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.killpg(os.getpgrp(), signal.SIGTERM)
