"""The runs of `up` for requests of users, within a second of each: the job `refresh_feeds`, and those of
features (`Feature.user_work`).

A run by the sensor and the queue begins after half a minute or more. So the runner (runner.py), which has
everything imported, looks at one file (reader/refresh.py), and forks a look at the requests when it changed;
the database is read only then. Runs elsewhere are started by the sensor `refresh_feeds_when_requested`.
"""

from dataclasses import dataclass
from datetime import timedelta

import dagster as dg

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.features import FEATURES
from rss_pipeline.features.feature import UserWork
from rss_pipeline.orchestration.build_polls import refresh_definitions
from rss_pipeline.orchestration.in_process import refresh_in_process, user_work_in_process
from rss_pipeline.orchestration.instance.dead_runs import dead_among
from rss_pipeline.orchestration.instance.storages import OPEN_FILES
from rss_pipeline.orchestration.serving.forked import DONE, FAILED, WAITING, expect_objects
from rss_pipeline.orchestration.serving.parsers import fork_parser_server
from rss_pipeline.orchestration.serving.warmed import opened
from rss_pipeline.pipeline.triggers.starts import refresh_reason
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import leases
from rss_pipeline.storage.refresh import open_requests

QUIET_SECONDS = 0.4
"""After the last request, so that all of one click on many feeds share a run."""
LONGEST_WAIT = 2.0
"""From the first request to its run, while more come."""
AGAIN_SECONDS = 3.0
"""Between two looks while requests wait for what other runs hold."""
LONGEST_BACKOFF = 60.0
SOON = timedelta(minutes=1)
"""Work of a feature that waits for less is looked for again; a sensor starts what waits for more."""


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


def serve(settings: Settings) -> int:
    """Run the jobs that users wait for, if there is something that they can begin with; return the exit code
    of the look."""
    with open_database(settings) as database:
        found = open_requests.waiting(database, now=utc_now())
        works, has_soon = _works(database)
        if found.count == 0 and not works:
            return WAITING if found.soon or has_soon else DONE
        if found.count:
            with opened() as instance:
                _end_leases_of_dead_runs(database, instance)
        if found.can_begin == 0 and not works:
            return WAITING
    expect_objects()
    if settings.database.is_here:
        OPEN_FILES.close()
        fork_parser_server()
    with open_database(settings) as database, opened() as instance:
        definitions = refresh_definitions(settings, clock=utc_now)
        if found.can_begin:
            error = refresh_in_process(definitions, instance, reason=refresh_reason(found))
            if error is not None:
                return FAILED
        for work in works:
            name = work.job.load().name
            error = user_work_in_process(definitions, instance, name, reason=work.reason)
            if error is not None:
                return FAILED
        left = open_requests.waiting(database, now=utc_now())
        works, has_soon = _works(database)
        return WAITING if left.count or left.soon or works or has_soon else DONE


def _works(database: Database) -> tuple[list[UserWork], bool]:
    """The work of features that users wait for now, and whether more does soon."""
    now, works, has_soon = utc_now(), list[UserWork](), False
    for each in FEATURES:
        if each.user_work is None or (at := each.user_work.next_at.load()(database)) is None:
            continue
        if at <= now:
            works.append(each.user_work)
        has_soon |= at <= now + SOON
    return works, has_soon


def _end_leases_of_dead_runs(database: Database, instance: dg.DagsterInstance) -> None:
    """End the leases of killed runs that keep requests waiting. Their feeds are visited alone next."""
    holding = open_requests.holding_leases(database)
    dead = dead_among(instance, {lease.run_id for lease in holding}, now=utc_now())
    for lease in holding:
        if lease.run_id in dead:
            leases.end(database, lease.token, forgive=False)
