"""A fetch round for feeds: many visits at the same time, one outcome each; none can stop the others.

Not here: the requests of one feed (`feed_visit.py`), and the use of the outcomes.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from rss_pipeline.collector.fetch.feed_visit import FeedVisit, RequestCheck
from rss_pipeline.collector.fetch.holds import Holds
from rss_pipeline.collector.fetch.loop_thread import Report, run_round
from rss_pipeline.collector.fetch.pacing import HostLeases, Pace, Turns
from rss_pipeline.collector.fetch.shared_answers import SharedAnswers
from rss_pipeline.collector.http.client import Client, FetchPolicy
from rss_pipeline.collector.models.clock import Clock, utc_now
from rss_pipeline.collector.models.feed import Access, Feed
from rss_pipeline.collector.models.outcome import FetchOutcome, NotBegun

CHECK_SECONDS = 3.0
"""Time between two checks for hosts that other runs wait for."""
_IDLE_SECONDS = 0.05


class OtherRuns(HostLeases, Protocol):
    """Other runs that wait for hosts of this round, or may have them.

    Called in threads of the round, `is_leased` before each request and again when its connection is ready;
    raises nothing.
    """

    def is_leased(self) -> bool:
        """False once a lease of this round has lapsed: another run may visit its hosts now."""
        ...

    def awaited_hosts(self) -> Collection[str]:
        """Hosts of this round for which a run with precedence waits."""
        ...

    def release_hosts(self, hosts: Collection[str], unbegun: Collection[str]) -> None:
        """Called once this round makes no more requests to `hosts`; `unbegun` are the ids of all feeds
        that it has not begun so far."""
        ...


class Beginnings(Protocol):
    """A note of the feeds that are begun: where the process dies, only their documents may be the cause."""

    def has_begun(self, feed_id: str) -> bool:
        """True if it is noted. Called before the first request, in the loop."""
        ...

    def begin(self, feed_id: str) -> bool:
        """Note it; False where that cannot be, and no request may be made. Called in a thread."""
        ...


def fetch_feeds(
    jobs: Sequence[tuple[Feed, Access]],
    *,
    policy: FetchPolicy,
    spool: Path,
    clock: Clock = utc_now,
    on_done: Callable[[Feed, FetchOutcome], None] | None = None,
    on_idle: Callable[[], None] | None = None,
    pace: Pace | None = None,
    holds: Holds | None = None,
    other_runs: OtherRuns | None = None,
    beginnings: Beginnings | None = None,
    check_of: Callable[[Feed], RequestCheck | None] = lambda _: None,
) -> list[FetchOutcome]:
    """Visit each feed once, within the policy; one outcome for each job, in the order of the jobs.

    The body of a `Document` is in `spool` (an existing folder) under the feed's id. `on_done` is called in
    the caller's thread as outcomes arrive, `on_idle` there when none is left to be passed on. A process
    passes one `pace` to all its rounds, so that the delay between two requests to a host also holds between
    rounds. `holds` are the back-offs that hosts have requested: no request is made to a host on hold, also
    not by a redirect, and holds of new responses are added. A long round checks now and then for hosts that
    `other_runs` wait for, and begins no more visits there. `beginnings` notes each feed before its first
    request; `check_of` gives a check before each.

    An error of a feed is a `Failure`, never an exception. Raises `InfrastructureError` if the spool cannot
    be written. An exception raised in the caller's thread while it waits (an interrupt, an error in
    `on_done`) ends all requests and is raised again.
    """
    known = holds or Holds(clock)

    async def work(report: Report[FetchOutcome]) -> None:
        turns = Turns(
            pace or Pace(),
            policy=policy,
            holds=known,
            is_leased=(lambda: True) if other_runs is None else other_runs.is_leased,
            leases=other_runs,
            clock=clock,
        )
        answers = SharedAnswers()
        unbegun: set[str] = set()
        noting = asyncio.Lock()

        def beginning(id: str) -> Callable[[], Awaitable[bool]] | None:
            async def begin() -> bool:
                assert beginnings is not None
                if beginnings.has_begun(id):
                    return True
                # One call at a time: each notes the feeds that come next as well.
                async with noting:
                    return beginnings.has_begun(id) or await asyncio.to_thread(beginnings.begin, id)

            return None if beginnings is None else begin

        async def visit(index: int, visit: FeedVisit) -> None:
            outcome = await visit.run()
            if isinstance(outcome, NotBegun):
                unbegun.add(visit.feed.id)
            report(index, outcome)

        async with (
            Client(replace(policy, network=turns.network)) as client,
            _checking(other_runs, turns, unbegun),
            asyncio.TaskGroup() as group,
        ):
            for index, (feed, access) in enumerate(jobs):
                one = FeedVisit(
                    feed=feed,
                    access=access,
                    client=client,
                    turns=turns,
                    holds=known,
                    answers=answers,
                    policy=policy.of_size(feed.max_size),
                    spool=spool,
                    clock=clock,
                    begin=beginning(feed.id),
                    check=check_of(feed),
                )
                group.create_task(visit(index, one))

    def done(job: tuple[Feed, Access], outcome: FetchOutcome) -> None:
        if on_done is not None:
            on_done(job[0], outcome)

    return run_round(work, jobs, done, on_idle)


@asynccontextmanager
async def _checking(
    other_runs: OtherRuns | None, turns: Turns, unbegun: Collection[str]
) -> AsyncIterator[None]:
    """Check for awaited hosts as long as the block runs."""

    async def check(other_runs: OtherRuns) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            hosts = await asyncio.to_thread(other_runs.awaited_hosts)
            for host in hosts:
                turns.begin_no_more(host)
            while any(map(turns.is_busy, hosts)):
                await asyncio.sleep(_IDLE_SECONDS)
            if hosts:
                await asyncio.to_thread(other_runs.release_hosts, hosts, tuple(unbegun))

    checks = None if other_runs is None else asyncio.create_task(check(other_runs))
    try:
        yield
    finally:
        if checks is not None:
            checks.cancel()
            with suppress(asyncio.CancelledError):
                await checks
