"""The contact that publishers get where RSS_USER_AGENT_CONTACT names none: given on the first user's page.

In the database, so that every machine of the installation sends it from its next run on.
"""

from rss_pipeline.storage.database import Database, Statement, one


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
