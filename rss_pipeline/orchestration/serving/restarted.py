"""A process beside Dagster's that is restarted alone when it ends: Dagster goes on meanwhile.

The processes that end together are in services.py.
"""

import logging
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

STEADY_SECONDS = 60.0
"""A process that ran this long is restarted after a second."""
LONGEST_WAIT = 60.0
STOP_SECONDS = 20.0

_logger = logging.getLogger("dagster")


@contextmanager
def restarted(
    name: str,
    command: Sequence[str],
    *,
    clock: Callable[[], float] = time.monotonic,
    stop: float = STOP_SECONDS,
) -> Iterator[Callable[[], None]]:
    """Run a command until the end of the block. Gives a function that restarts it where it has ended; call it
    each second."""
    process = _Restarted(name, command, clock)
    process.start()
    try:
        yield process.look
    finally:
        process.stop(stop)


def next_wait(life: float, wait: float) -> float:
    """Seconds until the next start after a life of so many, by the wait before that: 1, 2, 4 ... 60."""
    return 1.0 if life >= STEADY_SECONDS else min(max(1.0, wait * 2), LONGEST_WAIT)


class _Restarted:
    def __init__(self, name: str, command: Sequence[str], clock: Callable[[], float]) -> None:
        self._name = name
        self._command = command
        self._clock = clock
        self._process: subprocess.Popen[bytes] | None = None
        self._began = 0.0
        self._wait = 0.0
        self._next_start = 0.0

    def start(self) -> None:
        self._began = self._clock()
        self._process = subprocess.Popen(self._command)

    def look(self) -> None:
        if self._process is None:
            if self._clock() >= self._next_start:
                self.start()
        elif self._process.poll() is not None:
            self._wait = next_wait(self._clock() - self._began, self._wait)
            self._next_start = self._clock() + self._wait
            _logger.error(
                "%s ended (exit code %s); it is restarted in %g s",
                self._name,
                self._process.returncode,
                self._wait,
            )
            self._process = None

    def stop(self, seconds: float) -> None:
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            _logger.warning("%s did not end within %g s and is killed", self._name, seconds)
            process.kill()
            process.wait()
