"""The end of each job's last run, read from Dagster's run storage without an import of Dagster.

Only from the SQLite file of the default storage; with another storage nothing is known here.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRuns:
    """Seconds since 1970; None if no such run is in the history."""

    last_success: float | None = None
    last_failure: float | None = None


def last_runs(dagster_home: Path) -> dict[str, JobRuns]:
    """Job name to the ends of its last runs; empty if there is no history that can be read."""
    file = dagster_home / "history" / "runs.db"
    if not file.exists():
        return {}
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=2.0)) as history:
            rows = history.execute(
                "SELECT pipeline_name, status, max(end_time) FROM runs"
                " WHERE status IN ('SUCCESS', 'FAILURE') GROUP BY 1, 2"
            ).fetchall()
    except sqlite3.Error:
        # Locked, or written by a Dagster whose tables differ: these figures are missing then, and no others.
        return {}
    ends: dict[str, dict[str, float]] = {}
    for job, status, end in rows:
        if job and end is not None:
            ends.setdefault(job, {})[status] = float(end)
    return {
        job: JobRuns(last_success=each.get("SUCCESS"), last_failure=each.get("FAILURE"))
        for job, each in sorted(ends.items())
    }
