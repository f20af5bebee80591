"""A round's event loop in a thread of its own, and its outcomes in the caller's thread.

It knows neither feeds nor images: `fetch.py` and `image_fetch.py` say what is done.
"""

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Generic, TypeVar

D = TypeVar("D")
Tell = Callable[[D], None]

NAME_LOOKUPS = 32
"""Threads for getaddrinfo, which has no time-out: some may hang while the others go on."""


def run_round(work: Callable[[Tell[D]], Awaitable[None]], told: Tell[D]) -> None:
    """Run `work` to its end; what it tells comes to `told` in the caller's thread, in the order it was told.

    Raises what `work` raises. Whatever is raised in the caller's thread meanwhile (an interrupt, an error
    in `told`) cancels `work`, waits until it has ended, and goes on up.
    """
    round_ = _Round(work)
    round_.start()
    try:
        while (entry := round_.done.get()) is not None:
            told(entry[0])
    except BaseException:
        round_.stop()
        raise
    round_.join()
    if round_.error is not None:
        raise round_.error


class _Round(threading.Thread, Generic[D]):
    """Signals are handled in the main thread. With the loop there, the exception that Dagster's handler
    raises could land in a callback of asyncio's, which logs it and goes on; here it lands in a
    `queue.get`. A loop that already runs in the caller's thread does no harm either.
    """

    def __init__(self, work: Callable[[Tell[D]], Awaitable[None]]) -> None:
        super().__init__(name="fetch", daemon=True)
        self.done: queue.SimpleQueue[tuple[D] | None] = queue.SimpleQueue()
        self.error: BaseException | None = None
        self._work = work
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """Cancel what runs and wait until nothing does. To be called in the caller's thread."""
        # The loop is closed where the round has ended by itself in the meantime.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._cancel)
        self.join()

    def run(self) -> None:
        names = ThreadPoolExecutor(NAME_LOOKUPS, thread_name_prefix="fetch-dns")
        loop = self._loop
        try:
            loop.set_default_executor(names)
            self._task = loop.create_task(self._whole())
            try:
                loop.run_until_complete(self._task)
            finally:
                loop.run_until_complete(loop.shutdown_asyncgens())
        # Carried over to the caller's thread, which raises it.
        except BaseException as error:  # noqa: BLE001
            self.error = _first(error)
        finally:
            # Not asyncio.run: it waits for every name lookup that hangs, and nothing ends one.
            names.shutdown(wait=False, cancel_futures=True)
            loop.close()
            self.done.put(None)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _whole(self) -> None:
        await self._work(lambda outcome: self.done.put((outcome,)))


def _first(error: BaseException) -> BaseException:
    """The exception itself where a task group wrapped it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
