"""The command `reader`: the reader's APIs in this process, without Dagster."""

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import click

from rss_pipeline.cli.output import terminal
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.settings import Settings

_HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""For the process that builds the index: FTS5 looks up each word in a table of 32 MB, and with pages of 4 KB
nearly each look is for one that the processor does not know."""


@click.command()
@click.pass_obj
def reader(settings: Settings) -> None:
    """Serve the reader alone: its JSON API and the Google Reader API, with a login.

    `up` starts it as well (RSS_READER=off: it does not). This command is for a machine of its own, beside one
    that collects into the same stores. SIGINT (Ctrl-C) and SIGTERM end it. `rss-pipeline user add` adds who
    may log in.
    """
    from rss_pipeline.api.server import serve
    from rss_pipeline.features.health.alerts import watching

    arguments = ["search-index", "--follow", "--parent", str(os.getpid())]
    # Without an index the first search would wait for it.
    after = _START_SECONDS if settings.search_path.exists() else 0.0
    # Before the server has threads.
    with (
        beside("The search index", arguments, {**_HUGE_PAGES, **os.environ}, after=after),
        watching(settings, clock=utc_now),
    ):
        serve(settings, say=_say)


def _say(line: str) -> None:
    terminal.say(line)
    sys.stdout.flush()


# A process beside this one, for as long as this one runs: started again where it ends by itself.

_LOOK_SECONDS = 1.0
_START_SECONDS = 3.0
"""Time for which this process has the machine to itself: both would take twice as long to start."""
_FIRST_WAIT, _LONGEST_WAIT = 5.0, 60.0
_STOP_SECONDS = 10.0

_logger = logging.getLogger(__name__)


@contextmanager
def beside(
    name: str, arguments: Sequence[str], environment: Mapping[str, str], *, after: float
) -> Iterator[None]:
    """Run `rss-pipeline` with these arguments beside the block, `after` seconds from now. Exit code 0 says
    that there is nothing to do, and it is not started again."""
    stop = threading.Event()
    keep = (name, arguments, environment, stop, after)
    thread = threading.Thread(target=_keep, args=keep, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_STOP_SECONDS + _LOOK_SECONDS)


def _keep(
    name: str, arguments: Sequence[str], environment: Mapping[str, str], stop: threading.Event, after: float
) -> None:
    wait = _FIRST_WAIT
    stop.wait(after)
    while not stop.is_set():
        process = subprocess.Popen([sys.executable, "-m", "rss_pipeline.cli", *arguments], env=environment)
        while process.poll() is None and not stop.wait(_LOOK_SECONDS):
            pass
        if stop.is_set():
            _end(process)
            return
        if process.returncode == 0:
            return
        _logger.warning(
            "%s ended (exit code %s); it is started again in %g s", name, process.returncode, wait
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
