"""`itertools.batched` of Python 3.12, with lists."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def batched(elements: Iterable[T], most: int) -> Iterator[list[T]]:
    """Consecutive elements, at most so many at a time."""
    remaining = iter(elements)
    while some := list(islice(remaining, most)):
        yield some
