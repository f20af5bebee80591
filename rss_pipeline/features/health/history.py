"""The ends of jobs' last runs and the state of the daemon, read from Dagster's storage without its import.

From the SQLite file of the default storage, or from Postgres; with another storage nothing is known
here.
"""

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rss_pipeline.features import FEATURES
from rss_pipeline.settings import Settings

_LAST = """SELECT pipeline_name, status, max(end_time) FROM runs
  WHERE status IN ('SUCCESS', 'FAILURE') GROUP BY 1, 2"""

_STOPPED = "SELECT instigator_body FROM instigators WHERE status = 'STOPPED'"
_SEEN = "SELECT timestamp FROM daemon_heartbeats WHERE daemon_type = 'SENSOR'"

RUNNING = frozenset(
    {
        "poll_feeds_when_due",
        "refresh_feeds_when_requested",
        "download_images_when_waiting",
        "sync_registry",
        "end_dead_runs",
        "back_up_users",
        "purge_daily",
        "retry_images",
    }
)
"""The sensors and schedules that are on from the start, wherever this runs, but for those of features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRuns:
    """Seconds since 1970; None if no such run is in the history."""

    last_success: float | None = None
    last_failure: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonState:
    """The state of the daemon, as its storage has it."""

    seen_at: datetime | None
    """The last sign of life of what evaluates sensors; None where there was none."""
    switched_off: tuple[str, ...]
    """The members of `on_from_the_start` that a person has switched off."""


def last_runs(settings: Settings) -> dict[str, JobRuns]:
    """Job name to the ends of its last runs; empty if there is no history that can be read."""
    ends: dict[str, dict[str, float]] = {}
    for job, status, end in _read(settings, "history/runs.db", _LAST):
        if job and end is not None:
            ends.setdefault(job, {})[status] = float(end)
    return {
        job: JobRuns(last_success=each.get("SUCCESS"), last_failure=each.get("FAILURE"))
        for job, each in sorted(ends.items())
    }


def daemon_state(settings: Settings) -> DaemonState:
    """The state of the daemon of this installation, as far as it can be read."""
    seen = [_at(row[0]) for row in _read(settings, "history/runs.db", _SEEN)]
    stopped = {_name(row[0]) for row in _read(settings, "schedules/schedules.db", _STOPPED)}
    switched_off = tuple(sorted(on_from_the_start(settings) & stopped))
    return DaemonState(seen_at=seen[0] if seen else None, switched_off=switched_off)


def on_from_the_start(settings: Settings) -> frozenset[str]:
    """The sensors and schedules that are on by themselves with these settings."""
    return RUNNING.union(*(feature.automations(settings) for feature in FEATURES))


def _name(body: str) -> str:
    try:
        return str(json.loads(body)["origin"]["job_name"])
    except (ValueError, LookupError, TypeError):
        return ""


def _at(stored: datetime | str) -> datetime:
    at = datetime.fromisoformat(stored) if isinstance(stored, str) else stored
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def _read(settings: Settings, file: str, sql: str) -> Iterable[tuple[Any, ...]]:
    if settings.runs_elsewhere is None:
        return _in_file(settings, file, sql)
    return _in_postgres(settings.runs_elsewhere.libpq_url, sql)


def _in_file(settings: Settings, name: str, sql: str) -> Iterable[tuple[Any, ...]]:
    file = settings.dagster_home / name
    if not file.exists():
        return ()
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=2.0)) as history:
            return history.execute(sql).fetchall()
    except sqlite3.Error:
        # Locked, or written by a Dagster with other tables: these figures are missing then, and no others.
        return ()


def _in_postgres(url: str, sql: str) -> Iterable[tuple[Any, ...]]:
    # Only there is its driver for certain.
    import psycopg

    try:
        with psycopg.connect(url) as history:
            # No statement of ours has a parameter or a part from outside.
            return history.execute(sql.encode()).fetchall()
    except psycopg.Error:
        return ()
