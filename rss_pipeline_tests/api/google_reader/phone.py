"""A Google Reader client of the tests: a user, an app password, and requests with its header.

No test is in here.
"""

import secrets
from collections.abc import Iterable
from typing import Any, Self

import httpx

from rss_pipeline.reader.accounts import app_passwords
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.accounts.tokens import sign_jwt
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.subscriptions.subscriptions import Wanted, subscribe
from rss_pipeline_tests.reader.accounts.signed_in import signed_in
from rss_pipeline_tests.storage.values import item, visit
from rss_pipeline_tests.support.reader import Reader

API = "/greader/reader/api/0/"


class Phone:
    """One user's app."""

    def __init__(self, reader: Reader, caller: Caller, name: str) -> None:
        self.reader = reader
        self.caller = caller
        self.name = name
        self.user_id = caller.user_id
        made = app_passwords.create(caller, f"{name}'s phone {secrets.token_hex(4)}")
        self._password_id, self.password = made.id, made.secret
        self.auth = self._login()
        self.client = reader.client(authorization=f"GoogleLogin auth={self.auth}")

    @classmethod
    def of_new_user(cls, reader: Reader, name: str) -> Self:
        return cls(reader, signed_in(reader.database, name, clock=reader.clock), name)

    def another(self) -> Self:
        """Another app of the same user, which was shown nothing yet."""
        return type(self)(self.reader, self.caller, self.name)

    def get(self, call: str, **params: Any) -> httpx.Response:
        return self.client.get(API + call, params=params)

    def post(self, call: str, fields: Any = None, **params: Any) -> httpx.Response:
        """A form; a value that is a list is a repeated field."""
        return self.client.post(API + call, data=fields, params=params)

    def subscribe(self, *feeds: str, folder: str | None = None) -> None:
        """Subscribe feeds that are registered; all their items are unread."""
        wanted = [Wanted(feed_id=feed, folder=folder) for feed in feeds]
        self.reader.database.batch(subscribe(self.user_id, wanted, at=self.reader.clock()))

    def ids(self, stream: str = "user/-/state/com.google/reading-list", **params: Any) -> list[int]:
        """The numbers of a stream's items, of all pages."""
        params = {"s": stream, "n": 1_000} | params
        found: list[int] = []
        while True:
            answer = self.get("stream/items/ids", **params).json()
            found += [int(each["id"]) for each in answer["itemRefs"]]
            if "continuation" not in answer:
                return found
            params["c"] = answer["continuation"]

    def unread(self, stream: str = "user/-/state/com.google/reading-list") -> set[int]:
        return set(self.ids(stream, xt="user/-/state/com.google/read"))

    def mark(self, numbers: Iterable[int], *, a: str = "", r: str = "") -> httpx.Response:
        """edit-tag by names of states."""
        tags = {name: f"user/-/state/com.google/{tag}" for name, tag in (("a", a), ("r", r)) if tag}
        return self.post("edit-tag", {"i": [str(number) for number in numbers], **tags})

    def revoke(self) -> None:
        assert app_passwords.revoke(self.caller, self._password_id)

    def jwt(self) -> str:
        """A token of the same user for the JSON API."""
        key = self.caller.key
        signed = sign_jwt(
            self.reader.stores.secret,
            user_id=key.user_id,
            session_id=key.session_id,
            now=self.reader.clock(),
        )
        return signed[0]

    def _login(self) -> str:
        with self.reader.client() as client:
            fields = {"Email": self.name, "Passwd": self.password}
            answer = client.post("/greader/accounts/ClientLogin", data=fields)
        return dict(line.split("=") for line in answer.text.splitlines())["Auth"]


def arrive(database: Database, feed: str, *guids: str, **fields: Any) -> list[int]:
    """New items of a registered feed, visited; their numbers in the order of `guids`."""
    visit(database, [item(guid, **fields) for guid in guids], id=feed)
    rows = database.query("SELECT guid, arrived FROM items WHERE feed_id = ?", [feed]).rows
    known = {row["guid"]: int(row["arrived"]) for row in rows}
    return [known[guid] for guid in guids]
