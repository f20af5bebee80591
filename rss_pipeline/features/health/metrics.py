"""The figures of an installation as Prometheus metrics: names, units and help texts.

All are gauges of what is stored now. The database has states and no count of events; a counter made of them
would fall when a feed is removed, which Prometheus takes for a restart. Serving and writing are cli's.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from threading import Lock
from typing import Generic, Protocol, TypeVar

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.features import FEATURES
from rss_pipeline.features.health.checks import health_checks
from rss_pipeline.features.health.model import OFTEN, STATES, Look, evaluate
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_objects
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.reports.figures import FeedFigures, RowFigures, feed_figures, row_figures

T = TypeVar("T")

FEEDS_SECONDS = 60.0
"""The feeds are read at most this often."""
ROWS_SECONDS = 60.0
ROWS_SECONDS_PAID = 3_600.0
"""Items and image tasks are counted at most this often; the second where each row read is paid for."""
BACKUPS_SECONDS = 3_600.0


class JobTimes(Protocol):
    """The ends of a job's last runs, in seconds since 1970."""

    @property
    def last_success(self) -> float | None: ...
    @property
    def last_failure(self) -> float | None: ...


class Metrics(Collector):
    """A collector for a registry of its own. It keeps figures for a while."""

    def __init__(
        self,
        database: Database,
        objects: ObjectStore | None,
        settings: Settings,
        *,
        clock: Clock,
        jobs: Callable[[], Mapping[str, JobTimes]],
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        """`objects` is None if backups are not to be counted, which lists all of them."""
        rows_seconds = ROWS_SECONDS_PAID if settings.pays_by_row else ROWS_SECONDS
        self._settings = settings
        self._clock = clock
        self._jobs = jobs
        self._lock = Lock()
        self._feeds = _Kept(lambda: feed_figures(database, now=clock()), FEEDS_SECONDS, timer)
        self._rows = _Kept(lambda: row_figures(database), rows_seconds, timer)
        self._checks = _Kept(lambda: self._judged(often=True), FEEDS_SECONDS, timer)
        self._costly_checks = _Kept(lambda: self._judged(often=False), rows_seconds, timer)
        self._database = database
        parts = [part.load() for feature in FEATURES for part in feature.metrics]
        self._of_features = _Kept(lambda: [read(database) for read in parts], FEEDS_SECONDS, timer)
        self._backups = None
        if objects is not None:
            self._backups = _Kept(lambda: _backups(objects), BACKUPS_SECONDS, timer)

    def text(self) -> bytes:
        """The metrics in Prometheus' text format. Raises InfrastructureError."""
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)

    def describe(self) -> Iterator[Metric]:
        """Nothing: a registry would else collect once to learn the names."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            feeds, rows, of_features = self._feeds(), self._rows(), self._of_features()
            checks = self._checks() | self._costly_checks()
            backups = None if self._backups is None else self._backups()
        yield from _of_feeds(feeds, self._clock())
        yield from _of_rows(feeds, rows)
        for of_feature in of_features:
            yield from of_feature(self._clock())
        yield labelled(
            "rss_check_state",
            "Result of each health check: 0 is ok, 1 is a warning, 2 is an error.",
            "check",
            checks,
        )
        if backups is not None:
            yield gauge("rss_backups", "Documents in the object store.", backups[0])
            yield gauge("rss_backup_bytes", "Size of all documents in the object store.", backups[1])
        # Each look at a server that is paid by the row would be a request.
        size = None if self._settings.pays_by_row else self._settings.database.size()
        if size is not None:
            yield gauge(
                "rss_database_bytes",
                "Size of the database; of SQLite, the file with its write-ahead log.",
                size,
            )
        yield from _of_jobs(self._jobs())

    def _judged(self, *, often: bool) -> dict[str, float]:
        look = Look(
            database=self._database,
            objects=lambda: open_objects(self._settings),
            settings=self._settings,
            now=self._clock(),
        )
        return {
            check.name: float(STATES.index(found.state))
            for check in health_checks(self._settings)
            if check.asset is not None and (check.every == OFTEN) is often
            if (found := evaluate(check, look)) is not None
        }


class _Kept(Generic[T]):
    """A value that is made anew when it is older than `seconds`."""

    def __init__(self, make: Callable[[], T], seconds: float, timer: Callable[[], float]) -> None:
        self._make = make
        self._seconds = seconds
        self._timer = timer
        self._value: tuple[float, T] | None = None

    def __call__(self) -> T:
        now = self._timer()
        if self._value is None or now - self._value[0] >= self._seconds:
            self._value = (now, self._make())
        return self._value[1]


def gauge(name: str, help: str, value: float) -> Metric:
    """A metric with one value."""
    return GaugeMetricFamily(name, help, value=value)


def labelled(name: str, help: str, label: str, values: Mapping[str, float]) -> Metric:
    """A metric with a value for each of the label's."""
    family = GaugeMetricFamily(name, help, labels=[label])
    for each, value in values.items():
        family.add_metric([each], value)
    return family


def _of_feeds(feeds: FeedFigures, now: datetime) -> Iterator[Metric]:
    yield labelled(
        "rss_feeds",
        "Feeds by state. failing_long failed ten times in a row, unlisted is no longer in"
        " feeds.yaml, and unused was left by its last subscriber.",
        "state",
        feeds.by_state,
    )
    yield labelled(
        "rss_feeds_failing",
        "Feeds with a failed last visit, by the kind of failure.",
        "kind",
        feeds.failing_by_kind,
    )
    yield gauge("rss_feeds_due", "Feeds that are due and not on hold.", feeds.due)
    lag = 0.0 if feeds.oldest_due_at is None else max((now - feeds.oldest_due_at).total_seconds(), 0.0)
    yield gauge(
        "rss_poll_lag_seconds",
        "Time since the feed that waits longest became due, not counting a hold of its host.",
        lag,
    )
    yield gauge("rss_feeds_moved", "Feeds requested at another address than that of feeds.yaml.", feeds.moved)
    yield gauge("rss_feeds_warned", "Feeds with a warning about the newest document.", feeds.warned)
    for name, help, at in (
        ("visit", "End of the last visit of any feed.", feeds.last_visit_at),
        ("success", "Last successful visit of any feed.", feeds.last_success_at),
        ("document", "Last document received of any feed; it is in the backups.", feeds.last_document_at),
    ):
        if at is not None:
            yield gauge(f"rss_last_{name}_timestamp_seconds", help, at.timestamp())


def _of_rows(feeds: FeedFigures, rows: RowFigures) -> Iterator[Metric]:
    yield gauge("rss_items", "Items in the database.", rows.items)
    yield labelled(
        "rss_image_tasks",
        "Images of items by the status of their download.",
        "status",
        {"pending": feeds.images_pending, "failed": feeds.images_failed, "success": rows.images_archived},
    )
    yield gauge("rss_image_bytes", "Size of all archived images.", rows.image_bytes)


def _of_jobs(jobs: Mapping[str, JobTimes]) -> Iterator[Metric]:
    for name, help, ends in (
        (
            "success",
            "End of the last run of a job that succeeded, as far as Dagster's history reaches.",
            {job: each.last_success for job, each in jobs.items()},
        ),
        (
            "failure",
            "End of the last run of a job that failed, as far as Dagster's history reaches.",
            {job: each.last_failure for job, each in jobs.items()},
        ),
    ):
        known = {job: at for job, at in ends.items() if at is not None}
        if known:
            yield labelled(f"rss_job_last_{name}_timestamp_seconds", help, "job", known)


def _backups(objects: ObjectStore) -> tuple[int, int]:
    count = size = 0
    for info in objects.list("backups/"):
        count += 1
        size += info.size
    return count, size
