"""A parser pool for the sessions of many tests: most of a poll's time is the start of its parser process.

The processes and all that they do are the product's. Only their end is put off, to that of the test session;
tests of what becomes of the processes let each session start its own (`pipeline.parser_pool = None`).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from rss_pipeline.pipeline.session.parser_pool import ParserPool, WorkerFailure

T = TypeVar("T")
R = TypeVar("R")


class KeptParsers(ParserPool):
    """A pool that a session cannot close, with the usual limits."""

    PROCESSES = 1
    SECONDS = 20.0

    def __init__(self) -> None:
        super().__init__(processes=self.PROCESSES, timeout=self.SECONDS)
        self._kept: ParserPool = ParserPool(processes=self.PROCESSES, timeout=self.SECONDS)

    def map(
        self, function: Callable[[T], R], tasks: Iterable[T], *, timeout: float | None = None
    ) -> Iterator[tuple[T, R | WorkerFailure]]:
        return self._kept.map(function, tasks, timeout=timeout)

    def attempt(self, function: Callable[[T], object], task: T) -> None:
        self._kept.attempt(function, task)

    def close(self) -> None:
        """Nothing: the next session takes the same processes."""

    def end(self) -> None:
        """End the processes; a later `map` starts others."""
        self._kept.close()
