"""Figures of Dagster's own tables, read without its import: what is switched off, when its daemon was seen.

From the SQLite files of the default storage, or from Postgres; with another storage nothing is known here.
"""

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from rss_pipeline.settings import Settings

RUNS, SCHEDULES = "history/runs.db", "schedules/schedules.db"
"""Files below Dagster's home."""
_STOPPED = "SELECT instigator_body FROM instigators WHERE status = 'STOPPED'"
_SEEN = "SELECT timestamp FROM daemon_heartbeats WHERE daemon_type = 'SENSOR'"


def switched_off(settings: Settings) -> frozenset[str]:
    """The names of the sensors and schedules that are stopped."""
    return frozenset(_name(row[0]) for row in read(settings, SCHEDULES, _STOPPED))


def daemon_seen_at(settings: Settings) -> datetime | None:
    """The last sign of life of what evaluates sensors; None where there was none."""
    seen = [_at(row[0]) for row in read(settings, RUNS, _SEEN)]
    return seen[0] if seen else None


def read(settings: Settings, file: str, sql: str) -> Iterable[tuple[Any, ...]]:
    """The rows of a query without parameters; none where it cannot be read."""
    if settings.runs_elsewhere is None:
        return _in_file(settings, file, sql)
    return _in_postgres(settings.runs_elsewhere.libpq_url, sql)


def _name(body: str) -> str:
    try:
        return str(json.loads(body)["origin"]["job_name"])
    except (ValueError, LookupError, TypeError):
        return ""


def _at(stored: datetime | str) -> datetime:
    at = datetime.fromisoformat(stored) if isinstance(stored, str) else stored
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def _in_file(settings: Settings, name: str, sql: str) -> Iterable[tuple[Any, ...]]:
    file = settings.dagster_home / name
    if not file.is_file():
        return ()
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=2.0)) as history:
            return history.execute(sql).fetchall()
    except sqlite3.Error:
        # Locked, damaged, or written by a Dagster with other tables: these figures are missing then, and no
        # others.
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
