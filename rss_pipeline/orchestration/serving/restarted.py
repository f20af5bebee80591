"""A command that is restarted when it ends."""

import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

STEADY_SECONDS = 60.0
"""A process that ran this long is restarted after a second."""
LONGEST_WAIT = 60.0

_logger = logging.getLogger("dagster")


def next_wait(life: float, wait: float) -> float:
    """Seconds until the next start after a life of so many, by the wait before that: 1, 2, 4 ... 60."""
    return 1.0 if life >= STEADY_SECONDS else min(max(1.0, wait * 2), LONGEST_WAIT)


class Restarted:
    """A command that runs until `stop`, or until it has ended after `let_end`."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
        *,
        in_group: bool = False,
    ) -> None:
        self._name = name
        self._command = command
        self._clock = clock
        self._process: subprocess.Popen[bytes] | None = None
        self._began = 0.0
        self._wait = 0.0
        self._next_start = 0.0
        self._in_group = in_group
        """In a process group of its own, which Ctrl-C does not reach."""
        self._is_ending = False

    @property
    def has_ended(self) -> bool:
        """True after `let_end`, once there is no process."""
        return self._is_ending and (self._process is None or self._process.poll() is not None)

    def start(self) -> None:
        """Start it for the first time."""
        self._began = self._clock()
        self._process = subprocess.Popen(self._command, process_group=0 if self._in_group else None)

    def look(self) -> None:
        """Restart it where it has ended."""
        if self._is_ending:
            return
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

    def let_end(self, number: int) -> None:
        """Send it a signal, and start it no more."""
        self._is_ending = True
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """End it at once, with what it has started."""
        self._is_ending = True
        process = self._process
        if process is None or process.poll() is not None:
            return
        if self._in_group:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
