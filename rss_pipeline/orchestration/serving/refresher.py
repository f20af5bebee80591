"""The process of `up` that starts runs for requests of users within a second: the job `refresh_feeds`.

A run by the sensor and the queue begins after half a minute or more, and the import of Dagster alone takes
seconds. So this process is forked from services.py before that has threads: it has everything imported,
shares nearly all of its memory, and forks once more for each run. It sleeps and looks at one file
(reader/refresh.py); the database is read only after a request. Runs elsewhere are started by the sensor
`refresh_feeds_when_requested`.
"""

import gc
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

import dagster as dg

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.orchestration.build_polls import refresh_definitions
from rss_pipeline.orchestration.in_process import refresh_in_process
from rss_pipeline.orchestration.instance.dead_runs import dead_among
from rss_pipeline.pipeline.triggers.refresh import refresh_reason
from rss_pipeline.reader.refresh import read_mark
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import leases
from rss_pipeline.storage.refresh import open_requests

LOOK_SECONDS = 0.25
QUIET_SECONDS = 0.4
"""After the last request, so that all of one click on many feeds share a run."""
LONGEST_WAIT = 2.0
"""From the first request to its run, while more come."""
AGAIN_SECONDS = 3.0
"""Between two looks while requests wait for what other runs hold."""
LONGEST_BACKOFF = 60.0
STOP_SECONDS = 30.0
"""Time for a run to end by itself."""

DONE, WAITING, FAILED = 0, 3, 1
"""Exit codes of a look: nothing is left; requests are left; a store does not work."""

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Moment:
    """The time of the next look at the requests, by what was seen so far. Times are of one steady clock."""

    mark: int | None = None
    requested_at: float | None = None
    """The first request that no look has seen."""
    last_at: float = 0.0
    again_at: float | None = None
    failures: int = 0

    def see(self, mark: int | None, now: float) -> None:
        """Note the mark as it is now."""
        if mark != self.mark:
            self.mark = mark
            self.last_at = now
            if self.requested_at is None:
                self.requested_at = now

    def is_due(self, now: float) -> bool:
        """True where a look should start now, if none is running."""
        if self.failures and self.again_at is not None:
            return now >= self.again_at
        if self.requested_at is not None:
            return now - self.last_at >= QUIET_SECONDS or now - self.requested_at >= LONGEST_WAIT
        return self.again_at is not None and now >= self.again_at

    def begin(self) -> None:
        """A look starts: requests from now on are another one's."""
        self.requested_at = self.again_at = None

    def end(self, code: int, now: float) -> None:
        """A look has ended with this exit code; a negative one is a signal's."""
        if code == DONE:
            self.failures = 0
        elif code == WAITING or code < 0:
            self.failures = 0
            self.again_at = now + AGAIN_SECONDS
        else:
            self.failures += 1
            self.again_at = now + min(AGAIN_SECONDS * 2 ** min(self.failures - 1, 10), LONGEST_BACKOFF)


class Forked:
    """A forked process, with the part of `subprocess.Popen` that services.py uses."""

    def __init__(self, work: Callable[[], int]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            _exit_after(work)

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, for at most so many seconds; return the exit code.

        Raises:
            subprocess.TimeoutExpired: it has not ended by then.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired(["forked"], timeout or 0)
            time.sleep(0.05)
        return code

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def _exit_after(work: Callable[[], int]) -> NoReturn:
    # Not sys.exit: what the parent has registered for its own end is not ours to do.
    code = FAILED
    try:
        random.seed()
        code = work()
    except KeyboardInterrupt:
        code = WAITING
    except BaseException:
        _logger.exception("requests for visits could not be served")
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def start(settings: Settings) -> Forked:
    """Fork the process. The caller has no threads."""
    gc.collect()
    # What is frozen is not touched by a collection, so its pages stay shared.
    gc.freeze()
    parent = os.getpid()
    return Forked(lambda: keep_looking(settings, parent=parent))


def keep_looking(settings: Settings, *, parent: int) -> int:
    """Look at the mark until an interrupt or the end of the parent; fork a look when it is due."""
    # The first look finds what was requested while nothing ran.
    moment, look = Moment(again_at=time.monotonic()), None
    try:
        while os.getppid() == parent:
            now = time.monotonic()
            moment.see(read_mark(settings), now)
            if look is not None and look.poll() is not None:
                moment.end(look.poll() or DONE, now)
                look = None
            if look is None and moment.is_due(now):
                moment.begin()
                look = Forked(lambda: serve(settings))
            time.sleep(LOOK_SECONDS)
    finally:
        if look is not None:
            # The run releases its claims, and the requests are open for the next `up`.
            look.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                look.wait(timeout=STOP_SECONDS)
    return DONE


def serve(settings: Settings) -> int:
    """Run the job, if there are requests that it can begin with; return the exit code of the look."""
    with open_database(settings) as database:
        found = open_requests.waiting(database, now=utc_now())
        if found.count == 0:
            return WAITING if found.soon else DONE
        with dg.DagsterInstance.get() as instance:
            _end_leases_of_dead_runs(database, instance)
            if found.can_begin == 0:
                return WAITING
            definitions = refresh_definitions(settings, clock=utc_now)
            error = refresh_in_process(definitions, instance, reason=refresh_reason(found))
        if error is not None:
            return FAILED
        left = open_requests.waiting(database, now=utc_now())
        return WAITING if left.count or left.soon else DONE


def _end_leases_of_dead_runs(database: Database, instance: dg.DagsterInstance) -> None:
    """End the leases of killed runs that keep requests waiting. Their feeds are visited alone next."""
    holding = open_requests.holding_leases(database)
    dead = dead_among(instance, {lease.run_id for lease in holding}, now=utc_now())
    for lease in holding:
        if lease.run_id in dead:
            leases.end(database, lease.token, forgive=False)
