"""The cursor of alerts: the row `alerts` of `installation`. Its text is made by pipeline/health/alerts.py.

All processes of an installation share it, so that each thing is reported once, whoever noticed it.
"""

from rss_pipeline.storage.database import Database
from rss_pipeline.storage.sql import storable


def alert_cursor(database: Database) -> str | None:
    """The cursor as it was written last; None before the first time."""
    rows = database.query(
        "SELECT value FROM installation WHERE name = 'alerts'", name="read the cursor of alerts"
    ).rows
    return rows[0]["value"] if rows else None


def replace_alert_cursor(database: Database, before: str | None, after: str) -> bool:
    """Replace the cursor; False, and nothing is written, if another process has replaced it meanwhile."""
    if before is None:
        sql = "INSERT INTO installation (name, value) VALUES ('alerts', ?) ON CONFLICT (name) DO NOTHING"
        params = [storable(after)]
    else:
        sql = "UPDATE installation SET value = ? WHERE name = 'alerts' AND value = ?"
        params = [storable(after), before]
    return database.query(sql, params, name="write the cursor of alerts").changes > 0
