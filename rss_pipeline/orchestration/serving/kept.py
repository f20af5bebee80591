"""A process of `up` that is started again where it has ended: at once after a failure, and otherwise when
somebody connects to its socket. That socket is open all the time, and nobody is refused.
"""

import logging
import socket
import subprocess
import time
from collections.abc import Callable
from typing import Any

from rss_pipeline.errors import InfrastructureError
from rss_pipeline.orchestration.serving.forked import AGAIN, DONE, Forked
from rss_pipeline.orchestration.serving.front import Front
from rss_pipeline.orchestration.serving.restarted import next_wait
from rss_pipeline.web.on_demand import RENEW

_logger = logging.getLogger("dagster")

Process = Forked | subprocess.Popen[Any]

FOLLOW_SECONDS = 5.0
"""Between the ends and starts of one that follows what changes; twice as long after each failure."""
LONGEST_FOLLOW_SECONDS = 60.0
RUN_SECONDS = 120.0
"""It waits so long for the end of runs: what both take at once, a small machine may not have."""


class Kept:
    """One such process; `start` starts it. With a `front` it may end, with exit code 0, when nobody needs
    it, and is started for who comes next; `at_once` is False for one that starts so, too. With exit code
    AGAIN the next one starts at once."""

    def __init__(
        self,
        name: str,
        start: Callable[[], Process],
        *,
        front: Front | None = None,
        at_once: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.process: Process | None = None
        self.name = name
        self._front = front
        self._start = start
        self._clock = clock
        self._rests = not at_once
        self._began = self._next_start = self._wait = 0.0

    @property
    def awaited(self) -> list[socket.socket]:
        """Its socket and its silent clients, while whoever comes there makes it start."""
        return [self._front.listener, *self._front.clients] if self._front and self._rests else []

    @property
    def is_missing(self) -> bool:
        """True if it should run and the last look did not start it. One that ended since then may rest."""
        return not self._rests and self.process is None

    def renew(self) -> None:
        """Let it end as soon as nobody is connected, and the next one take its place."""
        if self.process is not None:
            self.process.send_signal(RENEW)

    def heard(self, ready: socket.socket) -> None:
        """Start it if there is somebody for it at one of the sockets that it awaits."""
        if self._front is not None and self._rests and self._front.wants_server(ready):
            self._rests = False
            self.look()

    def look(self) -> None:
        """Start it where it has ended, and it is time."""
        if self.process is not None and (code := self.process.poll()) is not None:
            self.process = None
            self._rests = code == DONE and self._front is not None
            if not self._rests and code != AGAIN:
                self._later(f"{self.name} ended (exit code {code})")
        if self.process is None and not self._rests and self._clock() >= self._next_start:
            self._began = self._clock()
            try:
                self.process = self._start()
            except (InfrastructureError, OSError) as error:
                self._later(f"{self.name} could not be started: {error}")
                return
            if self._front is not None:
                self._front.hand_over()
        elif self._front is not None and self._rests:
            self._front.let_go_silent()

    def _later(self, why: str) -> None:
        self._wait = next_wait(self._clock() - self._began, self._wait)
        self._next_start = self._clock() + self._wait
        _logger.error("%s; it is restarted in %g s", why, self._wait)


class Follower:
    """A process that is started where something `has_changed`, and ends by itself, while another one runs:
    its first look comes a moment after that began. `start` is told whether a failure is to be said."""

    def __init__(
        self,
        name: str,
        start: Callable[[bool], Process],
        has_changed: Callable[[], bool],
        *,
        beside: Kept,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.process: Process | None = None
        self._name = name
        self._start = start
        self._has_changed = has_changed
        self._beside = beside
        self._clock = clock
        self._stale_since: float | None = None
        self._is_beside = False
        self._failures = 0
        self._next_start = 0.0

    def look(self, *, has_runs: bool = False) -> None:
        """Start it where there is something to do, and it is time."""
        now = self._clock()
        if self.process is not None:
            if (code := self.process.poll()) is None:
                return
            self.process = None
            self._end(now, failed=code != DONE)
        if self._beside.process is None:
            self._is_beside = False
            return
        if not self._is_beside:
            # Whoever came has the machine for the first answer.
            self._is_beside, self._stale_since, self._next_start = True, now, now + 1
        if self._has_changed() and self._stale_since is None:
            self._stale_since = now
        if self._stale_since is None or (has_runs and now < self._stale_since + RUN_SECONDS):
            return
        if now >= self._next_start:
            self._stale_since = None
            try:
                self.process = self._start(self._failures == 0)
            except InfrastructureError as error:
                _logger.debug("%s could not be brought up to date: %s", self._name, error)
                self._end(now, failed=True)

    def _end(self, now: float, *, failed: bool) -> None:
        self._failures = self._failures + 1 if failed else 0
        if failed:
            self._stale_since = now
        wait = FOLLOW_SECONDS * 2 ** min(self._failures, 4)
        self._next_start = now + min(wait, LONGEST_FOLLOW_SECONDS)
