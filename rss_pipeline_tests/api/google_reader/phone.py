"""A Google Reader client of the tests: a user, an app password, and requests with its header.

No test is in here.
"""

from typing import Any, Self

import httpx

from rss_pipeline.pipeline.accounts import app_passwords
from rss_pipeline.pipeline.accounts.callers import Caller
from rss_pipeline.pipeline.accounts.tokens import sign_jwt
from rss_pipeline_tests.pipeline.accounts.signed_in import signed_in
from rss_pipeline_tests.support.reader import Reader

API = "/greader/reader/api/0/"


class Phone:
    """One user's app."""

    def __init__(self, reader: Reader, caller: Caller, name: str) -> None:
        self.reader = reader
        self.caller = caller
        self.name = name
        self.user_id = caller.user_id
        self._made = app_passwords.create(caller, f"{name}'s phone")
        self.password = self._made.secret
        self.auth = self._login()
        self.client = reader.client(authorization=f"GoogleLogin auth={self.auth}")

    @classmethod
    def of_new_user(cls, reader: Reader, name: str) -> Self:
        return cls(reader, signed_in(reader.database, name, clock=reader.clock), name)

    def get(self, call: str, **params: Any) -> httpx.Response:
        return self.client.get(API + call, params=params)

    def post(self, call: str, fields: Any = None, **params: Any) -> httpx.Response:
        """A form; a value that is a list is a repeated field."""
        return self.client.post(API + call, data=fields, params=params)

    def revoke(self) -> None:
        assert app_passwords.revoke(self.caller, self._made.id)

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
