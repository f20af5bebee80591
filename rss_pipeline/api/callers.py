"""The caller of a request for code on the event loop: which statements run on it, and which in a thread.

An embedded database answers a short read in less time than a thread takes to begin. Whatever may wait, for
the lock of a writer or for the network, is done in a thread.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeVar

from starlette.concurrency import run_in_threadpool

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.errors import DatabaseUnavailable, InfrastructureError, NoSession
from rss_pipeline.reader.accounts.callers import REQUEST_SECONDS, Caller, SessionKey
from rss_pipeline.reader.query import Query
from rss_pipeline.reader.stores import Stores

T = TypeVar("T")

_BESIDE_SECONDS = 0.5
"""The time that a page gives what it writes by the way. It takes milliseconds."""

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

    def _caller(self) -> Caller:
        return Caller(self.key, self.stores.database, self.clock, self.stores.kept)

    async def ask(self, query: Query[T]) -> T:
        """The value of a query that reads for a millisecond at most."""
        if self.stores.is_remote:
            return await self.ask_long(query)
        caller = self._caller()
        value = caller.ask(query)
        await self._touch_soon(caller)
        return value

    async def ask_long(self, query: Query[T]) -> T:
        """The value of a query that may read for longer: counts, many items."""
        return await self.run(lambda caller: caller.ask(query))

    async def run(self, work: Callable[[Caller], T]) -> T:
        """The result of a function that reads, and may take its time."""
        caller = self._caller()
        result = await run_in_threadpool(work, caller)
        await self._touch_soon(caller)
        return result

    async def change(self, work: Callable[[Caller], T]) -> T:
        """The result of a function that writes. Few do at one time: those that wait for the lock of another
        process leave threads for all that only read.

        Raises DatabaseUnavailable, besides: others have waited in vain for as long as a request may.
        """
        writing = self.stores.writing
        try:
            # A limit of time costs as much as some statements.
            async with asyncio.timeout(REQUEST_SECONDS) if writing.locked() else nullcontext():
                await writing.acquire()
        except TimeoutError:
            raise DatabaseUnavailable(
                f"other requests have waited to write for {REQUEST_SECONDS:g} s; see what holds the lock"
            ) from None
        try:
            return await run_in_threadpool(work, self._caller())
        finally:
            writing.release()

    async def change_beside(self, work: Callable[[Caller], object], *, what: str) -> asyncio.Task[None]:
        """Do what a page writes by the way: it is shown at once also while another process holds the lock,
        and without it if that takes too long. `what` is for the log."""

        async def done() -> None:
            try:
                await self.change(work)
            except (InfrastructureError, NoSession) as error:
                _logger.warning("%s: %s", what, error)

        task = asyncio.create_task(done())
        # The loop alone does not keep it.
        self.stores.unfinished.add(task)
        task.add_done_callback(self.stores.unfinished.discard)
        await asyncio.wait([task], timeout=_BESIDE_SECONDS)
        return task

    async def make(self, work: Callable[[Caller], T]) -> T:
        """The result of a function that makes bodies of items. Few do at one time, so that a request for what
        is kept waits neither for a thread nor for many who compute; those that wait hold no thread."""
        async with self.stores.making:
            return await self.run(work)

    async def _touch_soon(self, caller: Caller) -> None:
        touched = self.stores.touched
        if caller.touch_is_due and self.key.session_id not in touched:
            touched.add(self.key.session_id)
            task = await self.change_beside(Caller.touch, what="the last use of a session was not written")
            task.add_done_callback(lambda _: touched.discard(self.key.session_id))
