"""The caller of a request: the session, and batches that hold only while the session does.

The session is looked up in the same batch that reads or writes, so a request needs one round trip to the
database. How a session begins is login.py's, what a token carries is tokens.py's.
"""

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from rss_pipeline.collector.models.clock import Clock, from_instant, instant
from rss_pipeline.errors import NoSession, StorageRejected
from rss_pipeline.reader.query import Query
from rss_pipeline.storage.accounts import sessions
from rss_pipeline.storage.accounts import user_rows as users
from rss_pipeline.storage.database import Database, Result, Statement, Value

# Results of what users read, kept while nothing of it changes: for stores where reads are paid by the row.
#
# A result is kept with the version of what its user sees (storage.accounts.user_rows.read_version), which is
# read again, in the same batch as the session, each time that the result is used; or one row is, which shows
# that neither can be another (`read_changes`), for apps that request feed by feed. So whatever changed by
# another process, on another machine or by another door is seen at once, and a result is never another
# user's.

MOST_KEPT_BYTES = 16_000_000
"""The size of all results of a process; those that were not used for the longest time go first."""
_MOST_LOOKS = 1_000
_VALUE_BYTES = 40
_RESULT_BYTES = 1_000
"""Sizes of a value beside its text, and of a result beside its values."""

Version = tuple[Any, ...]
"""Equal ones are of the same moment, as far as the user can see."""
_Key = tuple[str, str, tuple[Value, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLook:
    """A look at a session that was alive, and at the version of what its user sees."""

    changes: tuple[Any, ...]
    """The row of `read_changes` at that moment."""
    version: Version
    expires_at: str
    last_used_at: datetime


@dataclass(frozen=True, slots=True)
class _Kept:
    version: Version
    result: Result
    size: int


class KeptResults:
    """Results by user and statement, of limited size. Safe to use from several threads."""

    def __init__(self, *, most_bytes: int = MOST_KEPT_BYTES) -> None:
        self._most = most_bytes
        self._size = 0
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._looks: OrderedDict[Hashable, SessionLook] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes of what is kept, estimated."""
        return self._size

    def known(self, user_id: str, statement: Statement) -> tuple[Version, Result] | None:
        """The last result of this statement for this user, with its version."""
        key = _key(user_id, statement)
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                return None
            self._kept.move_to_end(key)
        # A result of its own: what is made of it is not kept with it.
        return kept.version, Result(kept.result.names, list(kept.result.values), kept.result.changes)

    def keep(self, user_id: str, statement: Statement, version: Version, result: Result) -> None:
        """Keep the result of a statement that was read together with this version."""
        key, size = _key(user_id, statement), _size(statement, result)
        own = Result(result.names, list(result.values), result.changes)
        with self._lock:
            before = self._kept.pop(key, None)
            self._size -= 0 if before is None else before.size
            if size > self._most // 4:
                return
            self._kept[key] = _Kept(version, own, size)
            self._size += size
            while self._size > self._most:
                _, gone = self._kept.popitem(last=False)
                self._size -= gone.size

    def last_look(self, session: Hashable) -> SessionLook | None:
        """The last look at this session."""
        with self._lock:
            return self._looks.get(session)

    def keep_look(self, session: Hashable, look: SessionLook | None) -> None:
        """Keep a look at a session, or forget it."""
        with self._lock:
            self._looks.pop(session, None)
            if look is not None:
                self._looks[session] = look
            while len(self._looks) > _MOST_LOOKS:
                self._looks.popitem(last=False)


def _key(user_id: str, statement: Statement) -> _Key:
    return user_id, statement.sql, tuple(statement.params)


def _size(statement: Statement, result: Result) -> int:
    texts = [value for row in result.values for value in row if isinstance(value, str)]
    texts += [value for value in statement.params if isinstance(value, str)]
    values = len(result.values) * len(result.names)
    # A character takes four bytes at most, and in most texts one or two.
    return _RESULT_BYTES + _VALUE_BYTES * values + 2 * sum(map(len, texts)) + len(statement.sql)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SessionKey:
    """The name of a session, as a request carries it. It is true once the store has the session."""

    session_id: str
    user_id: str
    purpose: sessions.Kind


@dataclass(slots=True)
class Caller:
    """The user of one request. Every statement reaches the database together with the look at the session.

    Raises, each of its methods:
        NoSession: the session has ended, or never was; nothing was applied and nothing is shown.
        DatabaseUnavailable: the database cannot work now.
    """

    key: SessionKey
    database: Database
    clock: Clock
    kept: KeptResults | None = None
    """Results of earlier requests; None where nothing is kept."""
    _last_used_at: datetime | None = field(default=None, init=False)
    _expires_at: str = field(default="", init=False)

    @property
    def user_id(self) -> str:
        """The user to bind statements to. Only the methods below make sure that it is the caller."""
        return self.key.user_id

    def ask(self, query: Query[T]) -> T:
        """The value of a query."""
        return query.read(self.read(*query.statements))

    def read(self, *statements: Statement) -> list[Result]:
        """The results of statements that only read, of one moment."""
        if self.kept is None or not any(statement.is_kept for statement in statements):
            return self._read(statements)
        return self._kept_or_read(self.kept, statements)

    def _read(self, statements: Sequence[Statement]) -> list[Result]:
        alive, *results = self.database.batch([self._alive(), *statements])
        if not alive.values:
            raise NoSession
        last_used_at, self._expires_at = alive.values[0]
        self._last_used_at = from_instant(last_used_at)
        return results

    def _kept_or_read(self, kept: KeptResults, statements: Sequence[Statement]) -> list[Result]:
        """The kept results of the version that the user sees at this moment, with what is not kept; or, in
        another batch, all anew."""
        user_id = self.user_id
        found = [kept.known(user_id, one) if one.is_kept else None for one in statements]
        if all(known is not None or not one.is_kept for one, known in zip(statements, found, strict=True)):
            others = [one for one in statements if not one.is_kept]
            if not others and (known := [each for each in found if each is not None]):
                versions = {version for version, _ in known}
                if len(versions) == 1 and self._is_unchanged(kept, versions.pop()):
                    return [result for _, result in known]
            version, rest = self._read_version(kept, others)
            left = iter(rest)
            if all(known is None or known[0] == version for known in found):
                return [next(left) if known is None else known[1] for known in found]
        version, results = self._read_version(kept, statements)
        for one, result in zip(statements, results, strict=True):
            if one.is_kept:
                kept.keep(user_id, one, version, result)
        return results

    def _read_version(
        self, kept: KeptResults, statements: Sequence[Statement]
    ) -> tuple[Version, list[Result]]:
        """The version of what the user sees, and the results of statements, of one moment."""
        read, *results = self._read([users.read_version(self.user_id), *statements])
        state_version, number, changes = read.values[0]
        version = (state_version, number)
        if changes is not None and self._last_used_at is not None:
            look = SessionLook(
                changes=(number, changes),
                version=version,
                expires_at=self._expires_at,
                last_used_at=self._last_used_at,
            )
            kept.keep_look(self.key, look)
        return version, results

    def _is_unchanged(self, kept: KeptResults, version: Version) -> bool:
        """True if one row shows that the session is alive and the user still sees this version."""
        look = kept.last_look(self.key)
        if look is None or look.version != version or look.expires_at <= instant(self.clock()):
            return False
        [read] = self.database.batch([users.read_changes()])
        if read.values != [look.changes]:
            return False
        self._last_used_at = look.last_used_at
        return True

    def write(self, *statements: Statement) -> list[Result]:
        """The results of statements that write, all applied or none; they raise `state_version` by one."""
        key, now = self.key, self.clock()
        guard = sessions.guard(key.session_id, key.user_id, key.purpose, now=now)
        touch = sessions.touch(key.session_id, now=now)
        try:
            results = self.database.batch([*guard, *statements, *touch])
        except StorageRejected:
            # Refused because of the session, or because of the data? Only another look shows it.
            if not self.database.batch([self._alive()])[0].rows:
                raise NoSession from None
            raise
        return results[len(guard) : -len(touch)]

    @property
    def touch_is_due(self) -> bool:
        """True after a read of a session with its last use long ago."""
        return self._last_used_at is not None and self._last_used_at <= self.clock() - sessions.TOUCHED_EVERY

    def touch(self) -> None:
        """Write that the session was used, and let it live on. Unlike a read it needs the database's lock."""
        self.database.batch(sessions.touch(self.key.session_id, now=self.clock()))
        self._last_used_at = None
        if self.kept is not None:
            self.kept.keep_look(self.key, None)

    def _alive(self) -> Statement:
        key = self.key
        return sessions.alive(key.session_id, key.user_id, key.purpose, now=self.clock())
