"""The command `reader`: the reader's APIs in this process, without Dagster."""

import logging
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import click

from rss_pipeline.collector.models.plain_text import one_line
from rss_pipeline.features import FEATURES
from rss_pipeline.settings import Settings


@click.command()
@click.option("--listener", type=int, hidden=True, help="Serve at this open socket, while somebody reads.")
@click.pass_obj
def reader(settings: Settings, listener: int | None) -> None:
    """Serve the reader alone: its JSON API and the Google Reader API, with a login.

    `up` starts it as well (RSS_READER=off: it does not). This command is for a machine of its own, beside one
    that collects into the same stores. SIGINT (Ctrl-C) and SIGTERM end it. `rss-pipeline user add` adds who
    may log in.
    """
    if listener is None:
        serve_reader(settings)
    else:
        from rss_pipeline.web.on_demand import idle_seconds

        serve_reader(settings, listener=socket.socket(fileno=listener), idle_seconds=idle_seconds)


def serve_reader(
    settings: Settings,
    *,
    listener: socket.socket | None = None,
    clients: Sequence[socket.socket] = (),
    idle_seconds: Callable[[bool], float] | None = None,
    is_said: bool = True,
    looks_are_forked: bool = False,
) -> bool:
    """Serve the reader in this process, until it is interrupted or was idle for so long; return True where it
    is needed also while nobody reads, which `idle_seconds` is given. Processes of features run beside it, but
    for those that have looks, where these are forked."""
    from rss_pipeline.api.server import serve

    stays = False
    with ExitStack() as stack:
        # Before the server has threads.
        for process in of_features(settings):
            if process.look is None or not looks_are_forked:
                stack.enter_context(beside(process))
        for feature in FEATURES:
            for part in feature.beside_reader:
                stays = stack.enter_context(part.load()(settings)) or stays
        serve(
            settings,
            say=_say if is_said else lambda _: None,
            listener=listener,
            clients=clients,
            idle_seconds=None if idle_seconds is None else partial(idle_seconds, stays),
        )
    return stays


def _say(line: str) -> None:
    # Not through cli/output: that loads what draws tables into a server that stays.
    sys.stdout.write(f"{one_line(line)}\n")
    sys.stdout.flush()


# A process beside this one, for as long as this one runs: started again where it ends by itself.

_LOOK_SECONDS = 1.0
START_SECONDS = 3.0
"""Time for which the reader has the machine to itself: both would take twice as long to start."""
_FIRST_WAIT, _LONGEST_WAIT = 5.0, 60.0
_STOP_SECONDS = 10.0

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildProcess:
    """`rss-pipeline` with these arguments, started `after` seconds from now."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    after: float = 0.0
    look: Callable[[bool], int] | None = None
    """The same work once, where `up` forks it each time when the database, a file, has changed. It returns an
    exit code, and says what does not work if it is given True."""


def of_features(settings: Settings) -> list[ChildProcess]:
    """The processes beside the reader."""
    return [part.load()(settings) for feature in FEATURES for part in feature.reader_processes]


@contextmanager
def beside(child: ChildProcess) -> Iterator[None]:
    """Run it beside the block. Exit code 0 says that there is nothing to do, and it is not started again."""
    stop = threading.Event()
    thread = threading.Thread(target=_keep, args=(child, stop), name=child.name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_STOP_SECONDS + _LOOK_SECONDS)


def _keep(child: ChildProcess, stop: threading.Event) -> None:
    wait = _FIRST_WAIT
    stop.wait(child.after)
    while not stop.is_set():
        command = [sys.executable, "-m", "rss_pipeline.cli", *child.arguments]
        process = subprocess.Popen(command, env=child.environment)
        while process.poll() is None and not stop.wait(_LOOK_SECONDS):
            pass
        if stop.is_set():
            _end(process)
            return
        if process.returncode == 0:
            return
        _logger.warning(
            "%s ended (exit code %s); it is started again in %g s", child.name, process.returncode, wait
        )
        stop.wait(wait)
        wait = min(2 * wait, _LONGEST_WAIT)


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
