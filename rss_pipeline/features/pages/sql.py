"""The statements of pages: the rules of hosts for robots."""

from datetime import datetime

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.database import Database, Statement


def robots_since(database: Database, origin: str, since: datetime) -> tuple[str | None, str | None] | None:
    """The rules of an origin as JSON, and the sentence on why there are none; None if it was not requested
    since an instant."""
    rows = database.query(
        "SELECT rules, refusal FROM robots WHERE origin = ? AND requested_at > ?",
        [origin, instant(since)],
        name="read the rules for robots",
    ).rows
    return (rows[0]["rules"], rows[0]["refusal"]) if rows else None


def keep_robots(origin: str, *, rules: str | None, refusal: str | None, at: datetime) -> Statement:
    """A statement that keeps the rules of an origin, or the sentence on why they are not known."""
    return Statement(
        """INSERT INTO robots (origin, requested_at, rules, refusal) VALUES (?, ?, ?, ?)
        ON CONFLICT (origin) DO UPDATE SET requested_at = excluded.requested_at,
          rules = excluded.rules, refusal = excluded.refusal""",
        [origin, instant(at), rules, refusal],
        name="keep the rules for robots",
    )


def drop_robots(before: datetime) -> Statement:
    """A statement that removes what was read before an instant."""
    return Statement(
        "DELETE FROM robots WHERE requested_at <= ?", [instant(before)], name="drop old rules for robots"
    )
