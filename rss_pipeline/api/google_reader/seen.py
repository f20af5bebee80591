"""The items that each session has been shown, so that mark-all-as-read without a time marks nothing newer.

Newsboat and Fluent Reader send no `ts`. A listing shows all up to the newest number of arrival at its time.
It is kept in this process: after a restart, such a request marks what was stored a second before it.
"""

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock

MOST = 100_000
"""Streams of all sessions that are remembered. The first to be forgotten is, of the session that has listed
nothing for the longest time, the one that was listed longest ago."""


class Seen:
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

    def has_other(self, session_id: str, stream: str) -> bool:
        """True if the session was shown any stream but this one."""
        with self._lock:
            return bool(self._sessions.get(session_id, {}).keys() - {stream})
