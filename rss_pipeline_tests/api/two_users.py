"""Two users who subscribe to a feed each and one together, and what each sees: for the tests of access.

No test is in here.
"""

from dataclasses import dataclass
from typing import Any

import pytest

from rss_pipeline.api.auth import COOKIE
from rss_pipeline.reader.accounts.app_passwords import create
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.accounts.tokens import new_opaque
from rss_pipeline.storage.accounts import sessions
from rss_pipeline_tests.storage.subscriptions.readers import arrive, subscribe
from rss_pipeline_tests.storage.values import register, spec
from rss_pipeline_tests.support.reader import Reader, User

UNKNOWN = ("nobody-s", "0" * 32, "%2e%2e", "x" * 500, "' OR 1=1 --", "\u00fc", "-1", "*")
"""Ids that nothing has, and what is no id."""
FOREIGN_PAGE = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}


@dataclass(frozen=True, slots=True)
class Two:
    """Ann, who was added first, subscribes hers and both, Bob subscribes his and both."""

    reader: Reader
    ann: User
    bob: User

    def ids(self, kind: str) -> dict[str, str]:
        """The ids of this kind: `hers` Ann's, `his` Bob's."""
        match kind:
            case "feed":
                return {"hers": "hers", "his": "his"}
            case "item":
                return {"hers": self._item("hers"), "his": self._item("his")}
            case "image":
                return {of: f"images/{of}/0a1b2c3d/0.png" for of in ("hers", "his")}
            case "task":
                return {
                    of: user.client.post(f"/api/feeds/{of}/refresh").json()["task_id"]
                    for of, user in (("hers", self.ann), ("his", self.bob))
                }
            case "mark":
                return {
                    of: user.client.post(f"/api/feeds/{of}/mark-read", json={"up_to": 2**53 - 1}).json()[
                        "undo"
                    ]["id"]
                    for of, user in (("hers", self.ann), ("his", self.bob))
                }
            case "session":
                return {"hers": self.ann.key.session_id, "his": self.bob.key.session_id}
            case _:
                return {
                    of: create(Caller(user.key, self.reader.database, self.reader.clock), "app").id
                    for of, user in (("hers", self.ann), ("his", self.bob))
                }

    def _item(self, feed: str) -> str:
        rows = self.reader.database.query("SELECT id FROM items WHERE feed_id = ?", [feed]).rows
        return str(rows[0]["id"])

    def seen_by(self, user: User) -> list[Any]:
        """The view of a user, as far as a user could change it."""
        feeds = user.client.get("/api/feeds").json()
        return [
            feeds["state_version"],
            feeds["feeds"],
            user.client.get("/api/items").json(),
            user.client.get("/api/items", params={"starred_only": True}).json(),
            user.client.get("/api/user/preferences").json(),
            user.client.get("/api/user/app-passwords").json(),
            len(user.client.get("/api/user/sessions").json()["sessions"]),
        ]


def cookie_of(reader: Reader, user: User) -> str:
    """The cookie of another session of a user."""
    opaque = new_opaque()
    [row] = reader.database.query("SELECT password_hash FROM users WHERE id = ?", [user.id]).rows
    begun = sessions.begin_by_password(
        opaque.session_id,
        user.id,
        password_hash=row["password_hash"],
        client="a browser",
        now=reader.clock(),
    )
    assert reader.database.batch([begun])[0].changes == 1
    return f"{COOKIE}={opaque.of(user.id)}"


def stored(reader: Reader) -> dict[str, list[dict[str, Any]]]:
    """All rows of all tables, to see that nothing was written."""
    query = reader.database.query
    names = query("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").rows
    return {
        row["name"]: [dict(each) for each in query(f'SELECT * FROM "{row["name"]}" ORDER BY 1').rows]
        for row in names
    }


def without_versions(stored: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """The same without the counts by which a user's clients see changes: a try to change raises them, too."""
    users = [{**row, "state_version": None} for row in stored["users"]]
    sequences = [{**row, "changes": None} for row in stored["sequences"]]
    return {**stored, "users": users, "sequences": sequences}


@pytest.fixture
def two(reader: Reader) -> Two:
    return two_on(reader)


def two_on(reader: Reader) -> Two:
    """Ann and Bob with their feeds in an empty reader."""
    register(reader.database, *map(spec, ("hers", "his", "both")))
    for feed in ("hers", "his", "both"):
        arrive(reader.database, feed, "1", "2")
        key = f"images/{feed}/0a1b2c3d/0.png"
        reader.stores.objects.put(key, b"\x89PNG", content_type="image/png")
    ann = reader.user("ann")
    reader.clock.pass_(seconds=1)
    bob = reader.user("bob")
    subscribe(reader.database, ann.id, "hers", "both")
    subscribe(reader.database, bob.id, "his", "both")
    return Two(reader, ann, bob)
