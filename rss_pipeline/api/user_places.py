"""Places for requests that wait, on one event loop: so many for all users, and a few of them for each.

Without the second limit one user's requests could keep all others from waiting.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

EACH = 2
"""Requests of one user: a browser and a phone at once."""
RETRY_SECONDS = 5


class UserFull(Exception):
    """As many requests of this user wait as may; another one can come when one of them has ended."""


class UserPlaces:
    """The places. `most` is for all users together; None leaves that to others."""

    def __init__(self, most: int | None = None, *, each: int = EACH) -> None:
        self._most = most
        self._each = each
        self._taken = Counter[str]()

    @contextmanager
    def one(self, user_id: str) -> Iterator[bool]:
        """A place until the end of the block; False where none is free.

        Raises:
            UserFull: the user has as many as one may.
        """
        if self._taken[user_id] >= self._each:
            raise UserFull
        if self._most is not None and self._taken.total() >= self._most:
            yield False
            return
        self._taken[user_id] += 1
        try:
            yield True
        finally:
            self._taken[user_id] -= 1
            if not self._taken[user_id]:
                del self._taken[user_id]
