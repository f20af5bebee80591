"""The table `first_user_code`: one row, while there is no user, with the code that makes the first one.

A try is counted before its code is looked at, so that many at once are not all the first one.
"""

from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.storage.database import Result, Statement

TRIES = 10
"""Wrong codes in `TRIES_LAST`."""
TRIES_LAST = timedelta(hours=1)


def put(code: str) -> Statement:
    """Keep this code while there is no user, unless there is one already."""
    return Statement(
        """INSERT INTO first_user_code (id, code) SELECT 1, ? WHERE NOT EXISTS (SELECT 1 FROM users)
        ON CONFLICT (id) DO NOTHING""",
        [code],
        name="keep a code for the first user",
    )


def read() -> Statement:
    """The code, with `tried_at`; no row where none was kept."""
    return Statement("SELECT code, tried_at FROM first_user_code", name="read the code for the first user")


def count(*, now: datetime) -> Statement:
    """Count a try; it changes no row where no further one is allowed now."""
    begun = instant(now - TRIES_LAST)
    return Statement(
        """UPDATE first_user_code SET tries = CASE WHEN tried_at > ? THEN tries ELSE 0 END + 1,
          tried_at = CASE WHEN tried_at > ? THEN tried_at ELSE ? END
        WHERE tries < ? OR tried_at <= ?""",
        [begun, begun, instant(now), TRIES, begun],
        name="count a try of the code",
    )


def tries_again_at(result: Result) -> datetime | None:
    """The time from which a code may be tried again once all tries are used, of the row that `read` gave."""
    first = from_instant(result.rows[0]["tried_at"]) if result.rows else None
    return None if first is None else first + TRIES_LAST


def take_back() -> Statement:
    """Undo `count`: the code was right."""
    return Statement("UPDATE first_user_code SET tries = tries - 1", name="take back a try of the code")


def forget() -> Statement:
    """Remove the code: it was used, or is of a time before there were users."""
    return Statement("DELETE FROM first_user_code", name="remove the code for the first user")
