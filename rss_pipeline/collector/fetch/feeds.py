"""A round: many feeds asked politely, each with an outcome, none able to stop the others.

Not here: what happens to one feed (`fetch_one.py`), and what becomes of the outcomes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol

from rss_pipeline.collector.fetch.feed import FeedVisit
from rss_pipeline.collector.fetch.holds import Holds
from rss_pipeline.collector.fetch.loop_thread import Tell, run_round
from rss_pipeline.collector.fetch.pacing import Pace, Turns
from rss_pipeline.collector.http.client import Client, FetchPolicy
from rss_pipeline.collector.models.clock import Clock, utc_now
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Access, Feed
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.collector.models.outcome import Document, GivenBack, NotModified

FetchOutcome = NotModified | Document | Failure | GivenBack | OnHold
OnDone = Callable[[Feed, FetchOutcome], None]

LOOK_SECONDS = 10.0
"""How often a round that lasts looks around."""
_IDLE_SECONDS = 0.05


class OtherRuns(Protocol):
    """Tells a round of what happens outside of it. Called in threads of the round; raises nothing."""

    def awaited_hosts(self) -> Collection[str]:
        """Hosts of this round that somebody waits for who goes first."""
        ...

    def release_hosts(self, hosts: Collection[str], given_back: Collection[str]) -> None:
        """Nobody of this round is at these hosts any more; ids of the feeds that were not begun so far."""
        ...


def fetch_feeds(
    jobs: Sequence[tuple[Feed, Access]],
    *,
    policy: FetchPolicy,
    spool: Path,
    clock: Clock = utc_now,
    on_done: OnDone | None = None,
    pace: Pace | None = None,
    holds: Holds | None = None,
    other_runs: OtherRuns | None = None,
) -> list[FetchOutcome]:
    """Ask every feed once, within the policy; one outcome a job, in the order of the jobs.

    A `Document`'s body lies in `spool` (an existing folder) under the feed's id. `on_done` is called in
    the caller's thread as outcomes come. A process passes one `pace` to all its rounds, so that the
    pause a host is given holds from one round to the next. `holds` are the pauses that hosts asked for: no
    request is made to a host that is held, by whatever way a feed leads there, and what answers ask for is
    added. A round that lasts asks the `other_runs` now and then for which hosts it is to make way.

    A feed's trouble is a `Failure`, never an exception. Raises `InfrastructureError` where the spool
    cannot be written. Whatever is raised in the caller's thread while it waits (an interrupt, an error
    in `on_done`) ends all requests and goes on up.
    """
    outcomes: dict[int, FetchOutcome] = {}

    known = holds or Holds(clock)

    async def ask(tell: Tell[tuple[int, FetchOutcome]]) -> None:
        turns = Turns(
            pace or Pace(),
            holds=known,
            host_delay=policy.host_delay,
            concurrency=policy.concurrency,
            round_seconds=policy.round_seconds,
        )

        given_back: set[str] = set()

        async def visit(index: int, visit: FeedVisit) -> None:
            outcome = await visit.run()
            if isinstance(outcome, GivenBack):
                given_back.add(visit.feed.id)
            tell((index, outcome))

        async with (
            Client(policy) as client,
            _watch(other_runs, turns, given_back),
            asyncio.TaskGroup() as group,
        ):
            for index, (feed, access) in enumerate(jobs):
                one = FeedVisit(
                    feed=feed,
                    access=access,
                    client=client,
                    turns=turns,
                    holds=known,
                    policy=policy,
                    spool=spool,
                    clock=clock,
                )
                group.create_task(visit(index, one))

    def told(done: tuple[int, FetchOutcome]) -> None:
        index, outcome = done
        outcomes[index] = outcome
        if on_done is not None:
            on_done(jobs[index][0], outcome)

    run_round(ask, told)
    return [outcomes[index] for index in range(len(jobs))]


@asynccontextmanager
async def _watch(
    other_runs: OtherRuns | None, turns: Turns, given_back: Collection[str]
) -> AsyncIterator[None]:
    """Look around while the block lasts."""

    async def watch(other_runs: OtherRuns) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            hosts = await asyncio.to_thread(other_runs.awaited_hosts)
            for host in hosts:
                turns.leave_to_others(host)
            while any(map(turns.is_busy, hosts)):
                await asyncio.sleep(_IDLE_SECONDS)
            if hosts:
                await asyncio.to_thread(other_runs.release_hosts, hosts, tuple(given_back))

    watching = None if other_runs is None else asyncio.create_task(watch(other_runs))
    try:
        yield
    finally:
        if watching is not None:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
