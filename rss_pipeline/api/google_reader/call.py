"""One request of a Google Reader client: its call, its fields, and the session that it belongs to."""

import logging
import os
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TypeVar

import orjson
from starlette.requests import Request
from starlette.responses import Response

from rss_pipeline.api.auth import AsyncCaller
from rss_pipeline.api.google_reader.folded import NamedItems
from rss_pipeline.api.google_reader.forms import Fields
from rss_pipeline.api.google_reader.responses import RefusedCall
from rss_pipeline.api.gzip_member import PackedParts
from rss_pipeline.api.user_places import UserPlaces
from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.errors import NoSession
from rss_pipeline.reader.accounts.callers import Caller, SessionKey
from rss_pipeline.reader.accounts.tokens import read_opaque
from rss_pipeline.reader.bodies import Bodies
from rss_pipeline.reader.query import Query
from rss_pipeline.reader.stores import Stores

logger = logging.getLogger(__name__)

# The items that each session has been shown, so that mark-all-as-read without a time marks nothing newer.
# Newsboat and Fluent Reader send no `ts`. A listing shows all up to the newest number of arrival at its time.
# Where it is not known, after a crash, such a request marks what was stored a second before it.

MOST = 100_000
"""Streams of all sessions that are remembered. The first to be forgotten is, of the session that has listed
nothing for the longest time, the one that was listed longest ago."""


class NewestSeen:
    """The newest number that a session was shown of a stream; safe to use from several threads."""

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._count = 0
        self._sessions: OrderedDict[str, OrderedDict[str, int]] = OrderedDict()
        self._lock = Lock()

    def show(self, session_id: str, stream: str, number: int) -> None:
        """Remember that all items of the stream up to this number were listed."""
        with self._lock:
            streams = self._sessions.setdefault(session_id, OrderedDict())
            self._sessions.move_to_end(session_id)
            self._count += stream not in streams
            streams[stream] = max(number, streams.pop(stream, 0))
            while self._count > self._most:
                id, oldest = next(iter(self._sessions.items()))
                oldest.popitem(last=False)
                self._count -= 1
                if not oldest:
                    del self._sessions[id]

    def newest(self, session_id: str, streams: Iterable[str]) -> int | None:
        """The greatest number that any of these streams was shown up to; None if none was listed."""
        with self._lock:
            known = self._sessions.get(session_id) or OrderedDict[str, int]()
            found = [known[stream] for stream in streams if stream in known]
        return max(found, default=None)

    def last(self, session_id: str) -> int | None:
        """The greatest number of any listing of this session; None if there was none."""
        with self._lock:
            return max(self._sessions.get(session_id, {}).values(), default=None)

    def all(self) -> dict[str, dict[str, int]]:
        """By session, what it was shown of its streams."""
        with self._lock:
            return {session: dict(streams) for session, streams in self._sessions.items()}

    def has_other(self, session_id: str, stream: str) -> bool:
        """True if the session was shown any stream but this one."""
        with self._lock:
            return bool(self._sessions.get(session_id, {}).keys() - {stream})


# A few requests may wait at one time, so that those that do not wait find room beside them.


T = TypeVar("T")

_AUTHORIZATION = re.compile(r"GoogleLogin\s+auth=\s*\"?([^\s\"]+)\"?", re.IGNORECASE)

BAD_TOKEN = {"X-Reader-Google-Bad-Token": "true"}
"""The headers for a mistake in T alone. With it some clients fetch a new T instead of logging in."""


# What sessions were shown, for the process that serves next: this one ends where nobody is connected, and an
# app marks what it was sent an hour ago.


def keep(path: Path, seen: NewestSeen, named: NamedItems) -> None:
    """Write what sessions were shown; no disk is waited for, and a torn file is as none."""
    known = {"seen": seen.all(), "named": named.all()}
    if not any(known.values()):
        return
    beside = path.with_name(f"{path.name}.new")
    try:
        with os.fdopen(os.open(beside, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
            file.write(orjson.dumps(known))
        os.replace(beside, path)
    except OSError as error:
        logger.warning("apps mark less than they were shown: %s", error)


def recall(path: Path, seen: NewestSeen, named: NamedItems) -> None:
    """Remember what `keep` has written; nothing, if that cannot be read."""
    try:
        known = orjson.loads(path.read_bytes())
        shown = [
            (str(session), str(stream), int(number))
            for session, streams in known["seen"].items()
            for stream, number in streams.items()
        ]
        entries = [
            (str(session), int(number), [int(other) for other in others])
            for session, number, others in known["named"]
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
    for one in shown:
        seen.show(*one)
    for entry in entries:
        named.name(*entry)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The parts that all requests share."""

    stores: Stores
    clock: Clock
    seen: NewestSeen
    bodies: Bodies
    parts: PackedParts
    named: NamedItems = field(default_factory=NamedItems)
    waiting: UserPlaces = field(default_factory=lambda: UserPlaces(8))
    """For requests that wait for a search."""
    patience_seconds: float = 20.0
    """The time that such a request waits; clients wait for some 30 seconds."""

    @property
    def _sessions(self) -> Path:
        return self.stores.settings.home / "reader_sessions"

    def recall(self) -> None:
        """Remember what the last process had shown to sessions."""
        recall(self._sessions, self.seen, self.named)

    def keep(self) -> None:
        """Write that for the next one."""
        keep(self._sessions, self.seen, self.named)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request. `name` is the call without what follows it, `rest` is that: a stream's id in the path."""

    service: Service
    request: Request
    name: str
    rest: str
    query: Fields
    form: Fields
    body: bytes

    @property
    def fields(self) -> Fields:
        """The fields of query and form."""
        return self.form.over(self.query)


Answer = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureCall:
    """A call that a feature adds, by its name in `Feature.reader_calls`."""

    by_method: Mapping[str, Answer]
    body_bytes: int | None = None
    """The most of a body, where that is more than others take."""
    takes_any_body: bool = False
    """The body is the value itself, unless it is a multipart form."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """The caller of a request. Its methods raise Refused where the session has ended."""

    service: Service
    caller: AsyncCaller
    token: str = field(repr=False)
    by_token: bool = False
    """The session is that of T alone."""

    @property
    def user_id(self) -> str:
        return self.caller.user_id

    @property
    def session_id(self) -> str:
        return self.caller.key.session_id

    async def ask(self, query: Query[T]) -> T:
        """The value of a query that reads within a millisecond."""
        with self._or_refused():
            return await self.caller.ask(query)

    async def ask_long(self, query: Query[T]) -> T:
        """The value of a query that may take its time, in a thread."""
        with self._or_refused():
            return await self.caller.ask_long(query)

    async def run(self, work: Callable[[Caller], T]) -> T:
        """The result of a function that reads, and may take its time, in a thread."""
        with self._or_refused():
            return await self.caller.run(work)

    async def change(self, work: Callable[[Caller], T]) -> T:
        """The result of a function that writes, in a thread."""
        with self._or_refused():
            return await self.caller.change(work)

    async def make(self, work: Callable[[Caller], T]) -> T:
        """The result of a function that makes bodies of items, in a thread."""
        with self._or_refused():
            return await self.caller.make(work)

    @contextmanager
    def _or_refused(self) -> Iterator[None]:
        try:
            yield
        except NoSession:
            raise not_signed_in(BAD_TOKEN if self.by_token else None) from None


def signed_in(call: Call) -> SignedIn:
    """The caller by the header alone: no cookie and no T opens a call.

    Raises:
        Refused: there is no header with a token.
    """
    token = _token(call.request.headers.get("authorization"))
    if token is None:
        raise not_signed_in()
    return _caller(call, token)


def session_of(authorization: str | None) -> SessionKey | None:
    """The session that this header of a request names; None for a header of another kind.

    Raises:
        NoSession: the token is none of ours.
    """
    token = _token(authorization)
    return None if token is None else read_opaque(token, "google_reader")


def _token(authorization: str | None) -> str | None:
    match = _AUTHORIZATION.fullmatch(authorization.strip()) if authorization else None
    return None if match is None else match[1]


def signed_in_by_token(call: Call) -> SignedIn:
    """The caller by the header, or by T in the form: Liferea 1.14 sends no header with items/contents.

    Raises:
        Refused: there is neither.
    """
    token = call.form.first("T")
    if "authorization" in call.request.headers or token is None:
        return signed_in(call)
    return _caller(call, token, by_token=True)


def not_signed_in(headers: dict[str, str] | None = None) -> RefusedCall:
    """Status 401."""
    return RefusedCall(
        401,
        "You are not logged in, or no longer. Log in by POST accounts/ClientLogin with an app password and"
        " send the header Authorization: GoogleLogin auth=...",
        headers={"WWW-Authenticate": 'GoogleLogin realm="rss-pipeline"', **(headers or {})},
    )


def _caller(call: Call, token: str, *, by_token: bool = False) -> SignedIn:
    try:
        key = read_opaque(token, "google_reader")
    except NoSession:
        raise not_signed_in(BAD_TOKEN if by_token else None) from None
    caller = AsyncCaller(call.service.stores, key, call.service.clock)
    return SignedIn(call.service, caller, token, by_token=by_token)
