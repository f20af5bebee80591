"""A client that requests pages as a browser does: with a cookie, and Origin with every form."""

import httpx

from rss_pipeline.api.auth import COOKIE
from rss_pipeline.reader.accounts.tokens import new_opaque
from rss_pipeline.storage.accounts import sessions
from rss_pipeline_tests.support.reader import URL, Reader, User


def browser(reader: Reader, user: User | None = None) -> httpx.Client:
    """A client of pages, signed in as this user or no one's. It follows no redirect by itself."""
    client = reader.client(origin=URL, sec_fetch_site="same-origin", sec_fetch_mode="navigate")
    if user is not None:
        opaque, now = new_opaque(), reader.clock()
        [row] = reader.database.query("SELECT password_hash FROM users WHERE id = ?", [user.id]).rows
        begun = sessions.begin_by_password(
            opaque.session_id, user.id, password_hash=row["password_hash"], client="a browser", now=now
        )
        reader.database.batch([begun])
        client.cookies.set(COOKIE, opaque.of(user.id))
    return client
