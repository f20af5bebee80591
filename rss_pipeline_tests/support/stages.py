"""Stages of something that is costly to start: each is a test with a name, and builds on those before it.

No test is in here.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Stages(Generic[T]):
    """An installation and what is done with it, in this order, each once.

    A test reaches its stage: those before it that were not tried in this process come first, so that a test
    alone, or in another process than the one before it, finds what it builds on. One that failed is not tried
    again.
    """

    def __init__(self, subject: T, stages: Sequence[Callable[[T], None]]) -> None:
        self._subject = subject
        self._left = list(stages)

    def reach(self, stage: Callable[[T], None]) -> None:
        """Do all up to this one."""
        while stage in self._left:
            self._left.pop(0)(self._subject)


def name_of(stage: Callable[..., None]) -> str:
    """The words of a stage, for the test's id."""
    return stage.__name__
