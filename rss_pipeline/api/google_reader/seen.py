"""The items that each session has been shown, so that mark-all-as-read without a time marks nothing newer.

Newsboat and Fluent Reader send no `ts`. A listing shows all up to the newest number of arrival at its time.
It is kept in this process: after a restart, such a request marks what was stored a second before it.
"""

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock

MOST = 100_000
"""Sessions and streams that are remembered; the one that was listed longest ago is forgotten first."""


_ANY = ""
"""The key for whatever was listed last."""
_FOLDERS = "user/-/label/"
"""The key for whichever folder was listed last; the stream of each folder begins with it."""


class Seen:
    """The newest number that a session was shown of a stream; safe to use from several threads."""

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._numbers: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._lock = Lock()

    def show(self, session_id: str, stream: str, number: int) -> None:
        """Remember that all items of the stream up to this number were listed."""
        with self._lock:
            kinds = [_ANY, _FOLDERS] if stream.startswith(_FOLDERS) else [_ANY]
            for key in ((session_id, each) for each in (stream, *kinds)):
                self._numbers[key] = max(number, self._numbers.pop(key, 0))
            while len(self._numbers) > self._most:
                self._numbers.popitem(last=False)

    def newest(self, session_id: str, streams: Iterable[str]) -> int | None:
        """The greatest number that any of these streams was shown up to; None if none was listed."""
        with self._lock:
            found = [self._numbers.get((session_id, stream)) for stream in streams]
        return max((number for number in found if number is not None), default=None)

    def has_folders(self, session_id: str) -> bool:
        """True if the session was shown any folder."""
        return self.newest(session_id, [_FOLDERS]) is not None

    def last(self, session_id: str) -> int | None:
        """The greatest number of any listing of this session; None if there was none."""
        return self.newest(session_id, [_ANY])
