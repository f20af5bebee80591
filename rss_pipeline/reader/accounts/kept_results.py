"""Results of what users read, kept while nothing of it changes: for stores where reads are paid by the row.

A result is kept with the version of what its user sees (storage.accounts.users.read_version), which is read
again, in the same batch as the session, each time that the result is used; or one row is, which shows that
neither can be another (`read_changes`), for apps that request feed by feed. So whatever changed by another
process, on another machine or by another door is seen at once, and a result is never another user's.
"""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rss_pipeline.storage.database import Result, Statement, Value

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
class Look:
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
        self._looks: OrderedDict[Hashable, Look] = OrderedDict()
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

    def last_look(self, session: Hashable) -> Look | None:
        """The last look at this session."""
        with self._lock:
            return self._looks.get(session)

    def keep_look(self, session: Hashable, look: Look | None) -> None:
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
