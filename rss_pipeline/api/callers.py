"""The caller of a request for code on the event loop: which statements run on it, and which in a thread.

An embedded database answers a short read in less time than a thread takes to begin. Whatever may wait, for
the lock of a writer or for the network, is done in a thread.
"""

import logging
from collections.abc import Callable
from typing import TypeVar

from starlette.concurrency import run_in_threadpool

from rss_pipeline.api.stores import Stores
from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.errors import InfrastructureError
from rss_pipeline.pipeline.accounts.callers import Caller, SessionKey
from rss_pipeline.storage.database import Result, Statement

T = TypeVar("T")

_logger = logging.getLogger(__name__)


class AsyncCaller:
    """The user of one request, as `Caller`; each method raises what that one raises."""

    def __init__(self, stores: Stores, key: SessionKey, clock: Clock) -> None:
        self.stores = stores
        self.key = key
        self.clock = clock

    @property
    def user_id(self) -> str:
        """The user to bind statements to. Only the methods below make sure that it is the caller."""
        return self.key.user_id

    async def read(self, *statements: Statement) -> list[Result]:
        """The results of statements that read for a millisecond at most."""
        return await self.read_by(lambda caller: caller.read(*statements))

    async def read_long(self, *statements: Statement) -> list[Result]:
        """The results of statements that may read for longer: counts, many items."""
        return await self.run(lambda caller: caller.read(*statements))

    async def write(self, *statements: Statement) -> list[Result]:
        """The results of statements that write, all applied or none."""
        return await self.run(lambda caller: caller.write(*statements))

    async def read_by(self, work: Callable[[Caller], T]) -> T:
        """The result of a function that reads for a millisecond at most."""
        if self.stores.is_remote:
            return await self.run(work)
        caller = Caller(self.key, self.stores.prompt, self.clock)
        result = work(caller)
        if caller.touch_is_due:
            await run_in_threadpool(self._touch, caller)
        return result

    async def run(self, work: Callable[[Caller], T]) -> T:
        """The result of a function that may take its time."""
        return await run_in_threadpool(self._run, work)

    async def make(self, work: Callable[[Caller], T]) -> T:
        """The result of a function that makes bodies of items. Few do at one time, so that a request for what
        is kept waits neither for a thread nor for many who compute; those that wait hold no thread."""
        async with self.stores.making:
            return await self.run(work)

    def _run(self, work: Callable[[Caller], T]) -> T:
        caller = Caller(self.key, self.stores.database, self.clock)
        result = work(caller)
        if caller.touch_is_due:
            self._touch(caller)
        return result

    def _touch(self, caller: Caller) -> None:
        """The answer is there already: it does not wait for a lock that another process has for long."""
        try:
            Caller(caller.key, self.stores.database, self.clock).touch()
        except InfrastructureError as error:
            _logger.warning("the last use of a session was not written: %s", error)
