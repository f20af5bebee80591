"""A child process of this one, by its id: the part of `subprocess.Popen` that `up` needs, for one that was
forked, or that the program before this one began in the same process.
"""

import os
import signal
import subprocess
import time

_UNKNOWN = 1


class Child:
    """A child process with this id."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        if self.returncode is None:
            self._reap(os.WNOHANG)
        return self.returncode

    def _reap(self, options: int) -> None:
        try:
            pid, status = os.waitpid(self.pid, options)
        except ChildProcessError:
            # A signal came between its end and the note of it: the handler has seen the code, or nobody.
            if self.returncode is None:
                self.returncode = _UNKNOWN
        else:
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, for at most so many seconds; return the exit code.

        Raises:
            subprocess.TimeoutExpired: it has not ended by then.
        """
        if timeout is None and self.returncode is None:
            self._reap(0)
        until = time.monotonic() + (timeout or 0)
        while (code := self.poll()) is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired(["child"], timeout or 0)
            time.sleep(0.05)
        return code

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)
