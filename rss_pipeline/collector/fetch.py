"""A round: many feeds asked politely, each with an outcome, none able to stop the others.

Not here: what happens to one feed (`fetch_one.py`), and what becomes of the outcomes.
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from rss_pipeline.collector.fetch_one import FeedVisit
from rss_pipeline.collector.http import Client, FetchPolicy
from rss_pipeline.collector.models import (
    Access,
    Clock,
    Document,
    Failure,
    Feed,
    GivenBack,
    NotModified,
    utc_now,
)
from rss_pipeline.collector.pacing import Pace, Turns

FetchOutcome = NotModified | Document | Failure | GivenBack
OnDone = Callable[[Feed, FetchOutcome], None]

NAME_LOOKUPS = 32
"""Threads for getaddrinfo, which has no time-out: some may hang while the others go on."""


def fetch_feeds(
    jobs: Sequence[tuple[Feed, Access]],
    *,
    policy: FetchPolicy,
    spool: Path,
    clock: Clock = utc_now,
    on_done: OnDone | None = None,
    pace: Pace | None = None,
) -> list[FetchOutcome]:
    """Ask every feed once, within the policy; one outcome a job, in the order of the jobs.

    A `Document`'s body lies in `spool` (an existing folder) under the feed's id. `on_done` is called in
    the caller's thread as outcomes come. A process passes one `pace` to all its rounds, so that the
    pause a host is given holds from one round to the next.

    A feed's trouble is a `Failure`, never an exception. Raises `InfrastructureError` where the spool
    cannot be written. Whatever is raised in the caller's thread while it waits (an interrupt, an error
    in `on_done`) ends all requests and goes on up.
    """
    round_ = _Round(jobs, policy=policy, spool=spool, clock=clock, pace=pace or Pace())
    outcomes: dict[int, FetchOutcome] = {}
    round_.start()
    try:
        while (entry := round_.done.get()) is not None:
            index, outcome = entry
            outcomes[index] = outcome
            if on_done is not None:
                on_done(jobs[index][0], outcome)
    except BaseException:
        round_.stop()
        raise
    round_.join()
    if round_.error is not None:
        raise round_.error
    return [outcomes[index] for index in range(len(jobs))]


class _Round(threading.Thread):
    """The event loop of one round, in a thread of its own.

    Signals are handled in the main thread. With the loop there, the exception that Dagster's handler
    raises could land in a callback of asyncio's, which logs it and goes on; here it lands in a
    `queue.get`. A loop that already runs in the caller's thread does no harm either.
    """

    def __init__(
        self,
        jobs: Sequence[tuple[Feed, Access]],
        *,
        policy: FetchPolicy,
        spool: Path,
        clock: Clock,
        pace: Pace,
    ) -> None:
        super().__init__(name="fetch", daemon=True)
        self.done: queue.SimpleQueue[tuple[int, FetchOutcome] | None] = queue.SimpleQueue()
        self.error: BaseException | None = None
        self._jobs = jobs
        self._policy = policy
        self._spool = spool
        self._clock = clock
        self._pace = pace
        self._loop = asyncio.new_event_loop()
        self._visits: asyncio.Task[None] | None = None

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
            self._visits = loop.create_task(self._visit_all())
            try:
                loop.run_until_complete(self._visits)
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
        if self._visits is not None:
            self._visits.cancel()

    async def _visit_all(self) -> None:
        policy = self._policy
        turns = Turns(
            self._pace,
            host_delay=policy.host_delay,
            concurrency=policy.concurrency,
            round_seconds=policy.round_seconds,
        )
        async with Client(policy) as client, asyncio.TaskGroup() as group:
            for index, (feed, access) in enumerate(self._jobs):
                visit = FeedVisit(
                    feed=feed,
                    access=access,
                    client=client,
                    turns=turns,
                    policy=policy,
                    spool=self._spool,
                    clock=self._clock,
                )
                group.create_task(self._visit(index, visit))

    async def _visit(self, index: int, visit: FeedVisit) -> None:
        self.done.put((index, await visit.run()))


def _first(error: BaseException) -> BaseException:
    """The exception itself where a task group wrapped it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
