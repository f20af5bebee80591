"""Logging in and out.

A password is checked only after the attempt has been counted (throttle.py), so that attempts made at once
do not slip past the limit; the right one takes the count back. Every answer to a wrong login is the same,
whether or not there is such a user.
"""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedIn:
    """A session that has begun or was renewed, and the token that names it in the requests to come."""

    user_id: str
    session_id: str
    token: str
    """A JWT; of an app, the opaque token."""
    expires_at: datetime
    """When the token expires."""
    renewal: str | None = None
    """The opaque token that `renew` takes while the session lives; it opens nothing else. None for apps."""


@dataclass(frozen=True, slots=True)
class LoginRefused:
    """No session. All that may be told to whoever tried is when to try again."""

    retry_after: int | None = None
    """Seconds in which no login is tried; None: name or password is wrong."""
