"""A process beside this one, for as long as this one runs: started again where it ends by itself."""

import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

_LOOK_SECONDS = 1.0
_START_SECONDS = 3.0
"""Time for which this process has the machine to itself: both would take twice as long to start."""
_FIRST_WAIT, _LONGEST_WAIT = 5.0, 60.0
_STOP_SECONDS = 10.0

_logger = logging.getLogger(__name__)


@contextmanager
def beside(name: str, arguments: Sequence[str], environment: Mapping[str, str]) -> Iterator[None]:
    """Run `rss-pipeline` with these arguments beside the block. Exit code 0 says that there is nothing to do,
    and it is not started again."""
    stop = threading.Event()
    thread = threading.Thread(target=_keep, args=(name, arguments, environment, stop), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_STOP_SECONDS + _LOOK_SECONDS)


def _keep(name: str, arguments: Sequence[str], environment: Mapping[str, str], stop: threading.Event) -> None:
    wait = _FIRST_WAIT
    stop.wait(_START_SECONDS)
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
