"""The looks of the sensors at a database: D1 is paid by request and by row, and most ticks find nothing.

Where a decision found nothing to begin with, the later ticks look at one row that tells what a minute may
have brought, which all sensors share, and decide again when that has changed or the job has another run. What
no look shows is found a day later, so in SQLite and Postgres, which cost nothing, each tick decides.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime, timedelta

import dagster as dg

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.orchestration.triggers import Decide, Tick, tick
from rss_pipeline.pipeline.triggers.runs import Wait
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import connect, open_database
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.reports.overview import NewestWork, waiting

SHARED_FOR = timedelta(seconds=50)
"""Time for which one look serves the ticks."""
OVERLAP = timedelta(minutes=2)
"""Time by which the clock of another machine, which wrote what waits, may be behind."""
CLOCK_TRUSTED_FOR = timedelta(minutes=10)
"""Time between two looks for what a wrong clock scheduled."""
DECIDED_FOR = timedelta(hours=24)
SCHEMA_CHECKED_FOR = 600.0
"""Seconds. Each run checks the schema at its start."""

Awaits = Callable[[NewestWork, str], bool]
"""A test of what waits: is there something to decide, where the last decision was made at this instant?"""


def feeds(found: NewestWork, since: str) -> bool:
    """True if a feed may be claimable that was not then."""
    return found.wrong_clock or found.feeds_since > since


def images(found: NewestWork, since: str) -> bool:
    """True if an image may be claimable that was not then, or a user waits for one."""
    return found.wrong_clock or found.images_requested or found.images_since > since


def requests(found: NewestWork, since: str) -> bool:
    """True if a user's request for a visit is not done."""
    return found.requests


def topics(found: NewestWork, since: str) -> bool:
    """True if a topic changed since it was published."""
    return found.topics


def articles(found: NewestWork, since: str) -> bool:
    """True if a user waits for an article."""
    return found.articles


class Looks:
    """One for all sensors and schedules of a process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._last: tuple[datetime, NewestWork] | None = None
        self._clock_checked_at: datetime | None = None
        self._idle: dict[str, tuple[datetime, str | None, str]] = {}
        """By sensor: when it found nothing, the newest run of its job then, and what it said."""
        self._schema_checked_at: float | None = None

    def tick(
        self,
        name: str,
        job_name: str,
        decide: Decide,
        instance: dg.DagsterInstance,
        *,
        awaits: Awaits,
        now: datetime,
        tags: Mapping[str, str],
    ) -> Tick:
        """The result of a tick of the sensor or schedule of this name; skipped where the database cannot be
        reached."""
        try:
            if not self._settings.pays_by_row:
                with self.open() as database:
                    return tick(decide(database, instance, now), tags=tags)
            found = self._look(now)
            newest = next(iter(instance.get_run_ids(dg.RunsFilter(job_name=job_name), limit=1)), None)
            if (idle := self._idle.get(name)) is not None:
                at, run_id, reason = idle
                holds = at <= now < at + DECIDED_FOR and run_id == newest
                if holds and not awaits(found, instant(at - OVERLAP)):
                    return dg.SkipReason(reason)
            with self.open() as database:
                decision = decide(database, instance, now)
        except RssPipelineError as error:
            return dg.SkipReason(f"The database cannot be read: {error}")
        self._idle.pop(name, None)
        if isinstance(decision, Wait) and decision.is_idle:
            self._idle[name] = now, newest, decision.reason
        return tick(decision, tags=tags)

    def forget(self) -> None:
        """Decide anew at the next tick of each: the registry has changed."""
        self._idle.clear()

    @contextmanager
    def open(self) -> Iterator[Database]:
        """The database. The schema of a server's is checked now and then, not by each tick."""
        at = time.monotonic()
        if self._schema_checked_at is not None and at - self._schema_checked_at < SCHEMA_CHECKED_FOR:
            with closing(connect(self._settings)) as database:
                yield database
            return
        with open_database(self._settings) as database:
            self._schema_checked_at = at if self._settings.pays_by_row else None
            yield database

    def _look(self, now: datetime) -> NewestWork:
        with self._lock:
            is_fresh = self._last is not None and timedelta(0) <= now - self._last[0] < SHARED_FOR
            if self._last is None or not is_fresh:
                checked = self._clock_checked_at
                is_trusted = checked is not None and timedelta(0) <= now - checked < CLOCK_TRUSTED_FOR
                with self.open() as database:
                    self._last = now, waiting(database, now=now, with_clock=not is_trusted)
                if not is_trusted:
                    self._clock_checked_at = now
            return self._last[1]
