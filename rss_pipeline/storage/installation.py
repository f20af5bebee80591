"""The table `installation`: values that all processes of an installation share.

The cursor of alerts is there so that each thing is reported once, whoever noticed it.
"""

from rss_pipeline.storage.database import Database, Statement, one
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


# The contact that publishers get where RSS_USER_AGENT_CONTACT names none: given on the first user's page.
#
# In the database, so that every machine of the installation sends it from its next run on.


def read_contact(database: Database) -> str | None:
    """The address or web page; None where nobody has given one."""
    row = one(
        database.query("SELECT value FROM installation WHERE name = 'contact'", name="read the contact")
    )
    return None if row is None else str(row["value"])


def put_contact(contact: str) -> Statement:
    """A statement that keeps it."""
    return Statement(
        """INSERT INTO installation (name, value) VALUES ('contact', ?)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value""",
        [contact],
        name="keep the contact",
    )
