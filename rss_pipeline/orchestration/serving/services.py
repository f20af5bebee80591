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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import dagster as dg
import yaml
from dagster._cli.proxy_server_manager import ProxyServerManager
from dagster._core.workspace.load_target import ModuleTarget, WorkspaceFileTarget, WorkspaceLoadTarget
from dagster._utils.interrupts import setup_interrupt_handlers
from dagster._utils.log import configure_loggers

from rss_pipeline.environment import load_env_file
from rss_pipeline.errors import InfrastructureError, ensure_room
from rss_pipeline.orchestration.instance.dead_runs import begin_to_cancel
from rss_pipeline.orchestration.serving.refresher import Forked
from rss_pipeline.orchestration.serving.refresher import start as start_refresher
from rss_pipeline.orchestration.serving.restarted import restarted
from rss_pipeline.orchestration.serving.run_lines import RunLines
from rss_pipeline.settings import Settings

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
        code_servers(instance, workspace) as addresses,
    ):
        print_new = print_lines(
            RunLines(instance, began=datetime.now(UTC)), home=Path(os.environ["DAGSTER_HOME"])
        )

        def look() -> None:
            print_new()
            look_at_reader()

        return until_one_ends(
            {
                "webserver": ("rss_pipeline.orchestration.serving.webserver", str(addresses)),
                # Its other messages are those of every tick of every sensor.
                "daemon": ("dagster._daemon", "run", "--log-level", "warning", "--workspace", str(addresses)),
            },
            on_look=look,
            # In a fleet the runs are the workers', and go on.
            on_interrupt=lambda: settings.fleet is None and begin_to_cancel(instance, group=os.getpgrp()),
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
