"""Values that are kept for a time, so that what a remote store has read is not read for every view."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

MOST_KEPT = 200


class Timed:
    """Values by key, each for so many seconds, the latest ones alone."""

    def __init__(self, *, lifetime: float, seconds: Callable[[], float], most: int = MOST_KEPT) -> None:
        self._lifetime, self._seconds, self._most = lifetime, seconds, most
        self._values: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()

    def get(self, key: Hashable) -> Any:
        """The value, or None for one that is too old or was never put."""
        until, value = self._values.get(key, (0.0, None))
        return value if self._seconds() < until else None

    def put(self, key: Hashable, value: object) -> None:
        self._values[key] = (self._seconds() + self._lifetime, value)
        self._values.move_to_end(key)
        while len(self._values) > self._most:
            self._values.popitem(last=False)
