"""The question whether a purge would find nothing, answered without an import of Dagster.

For `purge --dry-run`: what a purge removes is decided in upkeep/purge_job.py. Only SQLite files in Dagster's
home are read here, where Dagster's own storage and ours (storages.py) have them. In doubt the answer is no,
and the purge itself looks.
"""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import yaml

from rss_pipeline.orchestration.instance.history_files import ids_in, logs_in
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import feed_changes
from rss_pipeline.storage.images.image_closings import image_totals

_OTHER_PLACES = ("storage", "run_storage", "event_log_storage", "schedule_storage", "compute_logs",
                 "local_artifact_storage")  # fmt: skip
"""Keys of dagster.yaml that move the history out of the home, or into other files of it.
https://docs.dagster.io/deployment/oss/dagster-yaml
"""
_OURS = {
    "storage": {
        "custom": {
            "module": "rss_pipeline.orchestration.instance.storages",
            "class": "OpenSqliteStorage",
            "config": {"base_dir": {"env": "DAGSTER_HOME"}},
        }
    },
    "compute_logs": {
        "module": "rss_pipeline.orchestration.instance.storages",
        "class": "RunOutput",
        "config": {"base_dir": {"env": "DAGSTER_HOME"}},
    },
}
"""As our dagster.yaml has it."""
_OLD_RUNS = """SELECT EXISTS (SELECT 1 FROM runs WHERE status IN ('SUCCESS', 'FAILURE', 'CANCELED')
  AND update_timestamp < :before) OR EXISTS (SELECT 1 FROM bulk_actions WHERE timestamp < :before)"""
_OLD_TICKS = """SELECT EXISTS (SELECT 1 FROM job_ticks WHERE timestamp < :before
  AND id NOT IN (SELECT max(id) FROM job_ticks GROUP BY selector_id))"""
_WIPED = "SELECT EXISTS (SELECT 1 FROM asset_keys WHERE asset_details IS NOT NULL)"
_GREEN = """SELECT DISTINCT partition FROM event_logs WHERE asset_key = '["feed_items"]'
  AND dagster_event_type = 'ASSET_MATERIALIZATION' AND partition IS NOT NULL"""
_IMAGES = """SELECT EXISTS (SELECT 1 FROM event_logs WHERE asset_key = '["item_images"]'
  AND dagster_event_type = 'ASSET_MATERIALIZATION')"""


def nothing_to_purge(home: Path, database: Database, *, before: datetime) -> bool:
    """Return True if a purge of what ended before then would remove nothing and record nothing again.

    `home` is Dagster's home folder.
    """
    try:
        return not (
            _is_elsewhere(home / "dagster.yaml")
            or _has_old_files(home, before)
            or _has(home / "history" / "runs.db", _OLD_RUNS, before)
            or _has(home / "schedules" / "schedules.db", _OLD_TICKS, before)
            or _has_lost(home / "history" / "runs" / "index.db", database)
        )
    except (sqlite3.Error, OSError, yaml.YAMLError):
        # Locked, or written by a Dagster with other tables.
        return False


def _is_elsewhere(file: Path) -> bool:
    if not file.exists():
        return False
    keys = yaml.load(file.read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return isinstance(keys, dict) and any(keys[key] != _OURS.get(key) for key in _OTHER_PLACES if key in keys)


def _has_old_files(home: Path, before: datetime) -> bool:
    runs = (folder for folder in (home / "history" / "runs", home / "storage") if folder.is_dir())
    if any(changed < before.timestamp() for folder in runs for _, changed in ids_in(folder)):
        return True
    return any(True for folder in (home / "storage").glob("*/*") for _ in logs_in(folder, before))


def _has(file: Path, question: str, before: datetime) -> bool:
    if not file.exists():
        return False
    with closing(_read_only(file)) as history:
        at = before.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        return bool(history.execute(question, {"before": at}).fetchone()[0])


def _has_lost(file: Path, database: Database) -> bool:
    """True where the newest event of a feed, or of the images, is not in this home."""
    green: set[str] = set()
    has_images = False
    if file.exists():
        with closing(_read_only(file)) as events:
            if events.execute(_WIPED).fetchone()[0]:
                return True
            green = {partition for (partition,) in events.execute(_GREEN)}
            has_images = bool(events.execute(_IMAGES).fetchone()[0])
    if not green.issuperset(feed_changes.ever_changed(database)):
        return True
    if has_images:
        return False
    totals = image_totals(database)
    return bool(totals.success or totals.failed)


def _read_only(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=2.0)
