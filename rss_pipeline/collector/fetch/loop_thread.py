"""A round's event loop in a thread of its own, with its outcomes reported in the caller's thread.

It knows neither feeds nor images: `feed_round.py` and `image_round.py` pass the work.
"""

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Generic, TypeVar

J = TypeVar("J")
R = TypeVar("R")
Report = Callable[[int, R], None]
"""Reports the outcome of the job with this index."""

NAME_LOOKUPS = 32
"""Threads for getaddrinfo, which has no time-out: some may hang while the others go on."""

_CLOSING_SECONDS = 1.0
"""Time at the end for tasks that close what was left open; they need almost none."""


def run_round(
    work: Callable[[Report[R]], Awaitable[None]],
    jobs: Sequence[J],
    on_done: Callable[[J, R], None] | None,
    on_idle: Callable[[], None] | None = None,
) -> list[R]:
    """Run `work`, which reports one outcome for each job; return the outcomes in the order of the jobs.

    `on_done` is called in the caller's thread, in the order of the reports, and `on_idle` there when all so
    far were passed on. Raises what `work` raises. An exception raised in the caller's thread meanwhile (an
    interrupt, an error in `on_done`) cancels `work`, waits until it has ended, and is raised again.
    """
    outcomes: dict[int, R] = {}
    thread = _LoopThread(work)
    try:
        # Within the block: an interrupt may be raised once the thread runs, before `start` returns.
        thread.start()
        while (entry := _next(thread.done, on_idle)) is not None:
            index, outcome = entry
            outcomes[index] = outcome
            if on_done is not None:
                on_done(jobs[index], outcome)
    except BaseException:
        thread.stop()
        raise
    thread.join()
    if thread.error is not None:
        raise thread.error
    return [outcomes[index] for index in range(len(jobs))]


def _next(
    done: "queue.SimpleQueue[tuple[int, R] | None]", on_idle: Callable[[], None] | None
) -> tuple[int, R] | None:
    if on_idle is not None and done.empty():
        on_idle()
    return done.get()


class _LoopThread(threading.Thread, Generic[R]):
    """Signals are handled in the main thread. With the loop there, the exception that Dagster's handler
    raises could end up in a callback of asyncio, which logs it and continues; here it is raised in
    `queue.get`. A loop that already runs in the caller's thread does no harm either.
    """

    def __init__(self, work: Callable[[Report[R]], Awaitable[None]]) -> None:
        super().__init__(name="fetch", daemon=True)
        self.done: queue.SimpleQueue[tuple[int, R] | None] = queue.SimpleQueue()
        """The reports; None is the end."""
        self.error: BaseException | None = None
        self._work = work
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._stopped = False

    def stop(self) -> None:
        """Cancel the work and wait for its end. Call it in the caller's thread."""
        self._stopped = True
        if self.ident is None:
            # `start` was interrupted: the thread does not exist, or will find out that it was stopped.
            return
        # The loop is closed if the round has ended by itself in the meantime.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._cancel)
        self.join()

    def run(self) -> None:
        names = ThreadPoolExecutor(NAME_LOOKUPS, thread_name_prefix="fetch-dns")
        loop = self._loop
        try:
            if self._stopped:
                return
            loop.set_default_executor(names)
            self._task = loop.create_task(self._whole())
            try:
                loop.run_until_complete(self._task)
            finally:
                loop.run_until_complete(loop.shutdown_asyncgens())
                # A body that was not read to its end is closed by a task of its own.
                if left := asyncio.all_tasks(loop):
                    loop.run_until_complete(asyncio.wait(left, timeout=_CLOSING_SECONDS))
        # Carried over to the caller's thread, which raises it.
        except BaseException as error:  # noqa: BLE001
            self.error = _unwrapped(error)
        finally:
            # Not asyncio.run: it would wait for each name lookup that hangs, and nothing ends one.
            names.shutdown(wait=False, cancel_futures=True)
            loop.close()
            self.done.put(None)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _whole(self) -> None:
        await self._work(lambda index, outcome: self.done.put((index, outcome)))


def _unwrapped(error: BaseException) -> BaseException:
    """The first exception within the groups that task groups made."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
