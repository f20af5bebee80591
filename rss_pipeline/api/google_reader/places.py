"""Places for requests that wait: a few at one time, so that those that do not wait find room beside them."""

from collections.abc import Iterator
from contextlib import contextmanager


class Places:
    """So many places; on one event loop."""

    def __init__(self, most: int) -> None:
        self._free = most

    @contextmanager
    def one(self) -> Iterator[bool]:
        """A place until the end of the block; False where none is free."""
        if self._free == 0:
            yield False
            return
        self._free -= 1
        try:
            yield True
        finally:
            self._free += 1
