"""Users and subscriptions of an installation under test, as rows. No test is in here."""

from rss_pipeline.storage.database import Database, Statement

_SINCE = "2026-03-01T00:00:00Z"


def subscribe(database: Database, user: str, *feed_ids: str) -> None:
    """Make the user, if there is none of this id, and subscribe these feeds."""
    database.batch(
        [
            Statement(
                """INSERT INTO users (id, name, password_hash, created_at) VALUES (?, ?, 'none', ?)
                ON CONFLICT DO NOTHING""",
                [user, user, _SINCE],
            ),
            *(
                Statement(
                    "INSERT INTO subscriptions (user_id, feed_id, read_up_to, added_at) VALUES (?, ?, 0, ?)",
                    [user, id, _SINCE],
                )
                for id in feed_ids
            ),
        ]
    )
