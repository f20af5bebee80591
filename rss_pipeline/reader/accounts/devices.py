"""The devices on which an account's owner has logged in: what a browser keeps, and what it proves.

The text in the browser is a random id and a mark for each user who logged in there, signed by the key of
tokens. So it holds for as long as the browser keeps it, however many devices and addresses a user has, and it
names nobody: without the key a mark tells neither a user nor whether there is one.
"""

import base64
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

LIFETIME = timedelta(days=400)
"""The longest that browsers keep a cookie (RFC 6265bis, 5.5)."""
_ID_BYTES = 24
_MARK_BYTES = 16
_MOST_MARKS = 8
"""Users of one browser; the last ones stay."""
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)
_PURPOSE = b"rss-pipeline device"


@dataclass(frozen=True, slots=True)
class Device:
    """A browser: its id, and the marks of its users."""

    id: str
    marks: tuple[str, ...] = ()

    @classmethod
    def new(cls) -> Self:
        """A browser in which nobody has logged in."""
        return cls(secrets.token_urlsafe(_ID_BYTES))

    @classmethod
    def read(cls, text: str | None) -> Self:
        """The browser that keeps this text; a new one for a text that is none of ours."""
        id, *marks = (text or "").split(".", _MOST_MARKS + 1)
        return cls(id, tuple(marks[:_MOST_MARKS])) if _ID.fullmatch(id) else cls.new()

    def __str__(self) -> str:
        return ".".join((self.id, *self.marks))

    @property
    def place(self) -> str:
        """The text under which its failed logins are counted."""
        return place_of("device", self.id)

    def knows(self, secret: bytes, name: str) -> bool:
        """True if the user of this name has logged in there."""
        own = self._mark(secret, name)
        return any(hmac.compare_digest(own.encode(), mark.encode()) for mark in self.marks)

    def with_user(self, secret: bytes, name: str) -> "Device":
        """The browser after a login of the user of this name."""
        own = self._mark(secret, name)
        others = [mark for mark in self.marks if mark != own]
        return Device(self.id, tuple([*others, own][-_MOST_MARKS:]))

    def _mark(self, secret: bytes, name: str) -> str:
        message = b"\0".join((_PURPOSE, self.id.encode(), name.encode(errors="surrogatepass")))
        digest = hmac.digest(secret, message, "sha256")
        return base64.urlsafe_b64encode(digest[:_MARK_BYTES]).rstrip(b"=").decode()


def place_of(kind: str, secret: str) -> str:
    """The text that stands for an address, of a device or a session with this secret."""
    return f"{kind}:{hashlib.sha256(secret.encode(errors='surrogatepass')).hexdigest()[:32]}"
