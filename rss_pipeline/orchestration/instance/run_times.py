"""The end of each job's last run, read from Dagster's run storage without an import of Dagster.

From the SQLite file of the default storage, or from a fleet's Postgres; with another storage nothing is known
here.
"""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from rss_pipeline.server_settings import FleetSettings
from rss_pipeline.settings import Settings

_LAST = """SELECT pipeline_name, status, max(end_time) FROM runs
  WHERE status IN ('SUCCESS', 'FAILURE') GROUP BY 1, 2"""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRuns:
    """Seconds since 1970; None if no such run is in the history."""

    last_success: float | None = None
    last_failure: float | None = None


def last_runs(settings: Settings) -> dict[str, JobRuns]:
    """Job name to the ends of its last runs; empty if there is no history that can be read."""
    rows = _in_file(settings) if settings.fleet is None else _in_postgres(settings.fleet)
    ends: dict[str, dict[str, float]] = {}
    for job, status, end in rows:
        if job and end is not None:
            ends.setdefault(job, {})[status] = float(end)
    return {
        job: JobRuns(last_success=each.get("SUCCESS"), last_failure=each.get("FAILURE"))
        for job, each in sorted(ends.items())
    }


def _in_file(settings: Settings) -> Iterable[tuple[Any, ...]]:
    file = settings.dagster_home / "history" / "runs.db"
    if not file.exists():
        return ()
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=2.0)) as history:
            return history.execute(_LAST).fetchall()
    except sqlite3.Error:
        # Locked, or written by a Dagster with other tables: these figures are missing then, and no others.
        return ()


def _in_postgres(fleet: FleetSettings) -> Iterable[tuple[Any, ...]]:
    # Only a fleet has the driver for certain.
    import psycopg

    try:
        with psycopg.connect(fleet.dagster_url.replace("+psycopg2", "", 1)) as history:
            return history.execute(_LAST).fetchall()
    except psycopg.Error:
        return ()
