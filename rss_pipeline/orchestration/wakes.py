"""Sensors that are woken: they tick each five minutes while nothing happens, and within seconds when it does.

A tick costs four commits of Dagster's and some 80 KB, whatever it finds, and a daemon at rest made nine a
minute. So `up` looks at what costs nothing: whether files of this machine have changed. Only then it reads
one row of the database, or the runs that are in progress, and lets the sensors concerned tick as often as
without all this. That is for the embedded database: elsewhere others write, so that sensors tick by their own
intervals. The sensors are in sensors.py, what each awaits in looks.py.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import dagster as dg

from rss_pipeline.collector.models.clock import Clock, instant, utc_now
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.orchestration import looks
from rss_pipeline.orchestration.dagster_private import (
    InstigatorState,
    InstigatorStatus,
    InstigatorType,
    SensorInstigatorData,
)
from rss_pipeline.orchestration.looks import Awaits
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import connect
from rss_pipeline.storage.reports.overview import NewestWork, waiting

WOKEN_SECONDS = 300
"""The interval of a sensor that is woken: for what no look shows."""
SYNC_REGISTRY, END_DEAD_RUNS = "sync_registry", "end_dead_runs"
RECENT = timedelta(seconds=WOKEN_SECONDS)
"""Images that were due before are another schedule's, or those of a tick."""
LOOK_AGAIN = timedelta(seconds=5)
"""Between two looks at rows or runs that change all the time, or at a tick that was asked for."""

_BY_UP = "UP_WAKES_SENSORS"
"""Set for the processes of `up`: under `dagster dev` nothing wakes a sensor."""
_LONG_AGO = timedelta(days=1)
_AWAITED: dict[str, tuple[Awaits, timedelta]] = {
    "fetch_requested_articles_when_due": (looks.articles, timedelta(seconds=30)),
    "download_images_when_waiting": (looks.images, timedelta(seconds=60)),
    "publish_when_changed": (looks.topics, timedelta(seconds=60)),
    "refresh_feeds_when_requested": (looks.requests, timedelta(seconds=30)),
}
"""For each sensor that starts runs: the thing it awaits, and its interval while that waits."""
_WOKEN = {*_AWAITED, SYNC_REGISTRY, END_DEAD_RUNS}
_DEAD_EVERY = timedelta(seconds=30)
_IN_PROGRESS = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]


def interval_of(sensor: str, seconds: int, settings: Settings) -> int:
    """Seconds between two ticks of a sensor: a long time in processes of `up` if it wakes this one."""
    return WOKEN_SECONDS if sensor in _WOKEN and _BY_UP in os.environ and _is_alone(settings) else seconds


def _is_alone(settings: Settings) -> bool:
    return settings.database_server is None and settings.runs_elsewhere is None


class Files:
    """Some files, and whether they have changed since the last look: by time and size."""

    def __init__(self, *paths: Path) -> None:
        self._paths = paths
        self._last: object = None

    def have_changed(self) -> bool:
        """True at the first look, at one after a change, and while none of them can be seen."""
        seen = tuple(map(_stat, self._paths))
        before, self._last = self._last, seen
        return seen != before or not any(seen)


def _stat(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


@contextmanager
def longer_intervals(settings: Settings) -> Iterator[None]:
    """Definitions that are loaded within, or in processes that are started within, have sensors with long
    intervals where `waking` wakes them."""
    if not _is_alone(settings):
        yield
        return
    os.environ[_BY_UP] = "1"
    try:
        yield
    finally:
        del os.environ[_BY_UP]


def waking(instance: dg.DagsterInstance, settings: Settings) -> Callable[[], None]:
    """The looks of `up`, to be called about each second."""
    return Wakes(instance, settings).look if _is_alone(settings) else lambda: None


class Wakes:
    """The looks of one `up` at what has changed."""

    def __init__(self, instance: dg.DagsterInstance, settings: Settings, *, clock: Clock = utc_now) -> None:
        self._instance, self._settings, self._clock = instance, settings, clock
        self._feeds_file = Files(settings.feeds_file)
        # The sensor ticks at the start anyway.
        self._feeds_file.have_changed()
        self._rows = _Look(Files(*with_log(settings.database_path)))
        self._runs = _Look(Files(*with_log(settings.dagster_home / "history/runs.db")))
        self._woken_at: dict[str, datetime] = {}
        self._asked: dict[str, datetime] = {}
        """Sensors that have not ticked since they were asked to."""
        self._asked_again_at: datetime | None = None

    def look(self) -> None:
        """Wake the sensors that have something to do now."""
        now = self._clock()
        if self._feeds_file.have_changed():
            self._ask(SYNC_REGISTRY, now, every=timedelta(0))
        self._rows.take(now, self._look_at_rows)
        self._runs.take(now, self._look_at_runs)
        if self._asked and (self._asked_again_at is None or not _is_within(self._asked_again_at, now)):
            self._asked_again_at = now
            ticked = wake(self._instance, self._asked, now=now)
            self._asked = {
                name: at for name, at in self._asked.items() if name not in ticked and at <= now < at + RECENT
            }

    def _look_at_rows(self, now: datetime) -> timedelta | None:
        try:
            with closing(connect(self._settings)) as database:
                found = waiting(database, now=now)
        except RssPipelineError:
            # The poll says so.
            return RECENT
        due = due_sensors(found, now=now)
        for name in due:
            self._ask(name, now, every=_AWAITED[name][1])
        return min((_AWAITED[name][1] for name in due), default=None)

    def _look_at_runs(self, now: datetime) -> timedelta | None:
        if not self._instance.get_runs_count(dg.RunsFilter(statuses=_IN_PROGRESS)):
            return None
        self._ask(END_DEAD_RUNS, now, every=_DEAD_EVERY)
        return _DEAD_EVERY

    def _ask(self, name: str, now: datetime, *, every: timedelta) -> None:
        last = self._woken_at.get(name)
        if last is None or not last <= now < last + every:
            self._woken_at[name] = self._asked[name] = now
            self._asked_again_at = None


class _Look:
    """A look that is taken where files have changed, and again while it finds something."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._is_stale = False
        self._last: datetime | None = None
        self._again: timedelta | None = None

    def take(self, now: datetime, look: Callable[[datetime], timedelta | None]) -> None:
        self._is_stale |= self._files.have_changed()
        wait = LOOK_AGAIN if self._is_stale else self._again
        if wait is None or (self._last is not None and self._last <= now < self._last + wait):
            return
        self._is_stale, self._last = False, now
        self._again = look(now)


def with_log(path: Path) -> tuple[Path, Path]:
    """A database of SQLite, and its log of what was written last."""
    return path, path.with_name(f"{path.name}-wal")


def _is_within(last: datetime, now: datetime) -> bool:
    return last <= now < last + LOOK_AGAIN


def due_sensors(found: NewestWork, *, now: datetime) -> list[str]:
    """The names of the sensors that have something to do by what waits."""
    return [name for name, (awaits, _) in _AWAITED.items() if awaits(found, instant(now - RECENT))]


def wake(instance: dg.DagsterInstance, asked: Mapping[str, datetime], *, now: datetime) -> list[str]:
    """Let these sensors tick at the daemon's next look; return those that have ticked since they were asked.

    The tick that is in progress writes its own time at its end, so a sensor is asked until it has ticked.
    """
    states: Iterable[InstigatorState] = instance.all_instigator_state(instigator_type=InstigatorType.SENSOR)
    done = []
    long_ago = (now - _LONG_AGO).timestamp()
    for state in states:
        data, at = state.instigator_data, asked.get(state.instigator_name)
        if at is None or not isinstance(data, SensorInstigatorData):
            continue
        last = max(data.last_tick_timestamp or 0.0, data.last_tick_start_timestamp or 0.0)
        if last >= at.timestamp() or state.status is InstigatorStatus.STOPPED:
            done.append(state.instigator_name)
        elif last > (now - RECENT).timestamp():
            ticks_next = data._replace(last_tick_timestamp=long_ago, last_tick_start_timestamp=long_ago)
            instance.update_instigator_state(state.with_data(ticks_next))
    return done
