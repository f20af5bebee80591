"""Whose turn it is: so many requests a host at a time, a pause after each, and so many in all.

No HTTP. Who waits for a host holds none of the slots, so that one host with hundreds of feeds or
images delays its own only.
"""

import asyncio
import heapq
import itertools
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from rss_pipeline.collector.fetch.holds import Holds
from rss_pipeline.collector.models.hold import FeedHold, HostHold


@dataclass(slots=True)
class Pace:
    """A monotonic clock, a sleep, and when each host was last left alone.

    A process passes the same `Pace` to all of its rounds: the pause after the last request of one
    round holds for the first of the next. Tests pass a clock that moves when it is slept on.
    """

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ended: dict[tuple[str, int], float] = field(default_factory=dict)
    """By host and lane: a host that is asked on two connections at once has lanes 0 and 1."""


class TurnRefused(Exception):
    """No request was or will be made in this round. Says why."""


class HoldActive(Exception):
    """No request was made: the host asked for a pause."""

    def __init__(self, hold: HostHold | FeedHold) -> None:
        self.hold = hold
        super().__init__(hold)


class _Gate:
    """The lanes of one host. Visits under way pass before those that have not begun.

    Sixty feeds behind one http-to-https redirect would otherwise all make their first hop before any
    made its second, and the end of the round would waste sixty requests.
    """

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._free = list(range(lanes))
        self._queue: list[tuple[bool, int, asyncio.Future[int]]] = []
        self._arrivals = itertools.count()

    @property
    def is_awaited(self) -> bool:
        return bool(self._queue)

    @property
    def is_busy(self) -> bool:
        return bool(self._queue) or len(self._free) < self._lanes

    async def enter(self, *, begun: bool, rested: Callable[[int], float]) -> int:
        """The lane to ask on: of several free ones that which rested longest."""
        if self._free:
            lane = min(self._free, key=rested)
            self._free.remove(lane)
            return lane
        turn: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._queue, (not begun, next(self._arrivals), turn))
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(turn.result())
            raise

    def leave(self, lane: int) -> None:
        while self._queue:
            *_, turn = heapq.heappop(self._queue)
            if not turn.done():
                turn.set_result(lane)
                return
        self._free.append(lane)


class Turn:
    """A host's lane and a slot. The lane may be left before the slot, by who has something left to do
    that is no request: the host's pause begins then."""

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave: Callable[[], None] | None = leave

    def leave_host(self) -> None:
        """To be called once the request has ended; again does nothing."""
        if self._leave is not None:
            self._leave()
            self._leave = None


class Turns:
    """The turns of one round. Seconds throughout; `round_seconds` None sets the round no end."""

    def __init__(
        self,
        pace: Pace,
        *,
        holds: Holds,
        host_delay: float,
        concurrency: int,
        round_seconds: float | None,
        lanes: int = 1,
    ) -> None:
        self._pace = pace
        self._host_delay = host_delay
        self._lanes = lanes
        self._slots = asyncio.Semaphore(concurrency)
        self._gates: dict[str, _Gate] = {}
        self._holds = holds
        self._left_to_others: set[str] = set()
        self._over_at = None if round_seconds is None else pace.monotonic() + round_seconds

    def is_awaited(self, host: str) -> bool:
        """Whether somebody waits for `host` at this moment."""
        return host in self._gates and self._gates[host].is_awaited

    def leave_to_others(self, host: str) -> None:
        """Begin no visit there any more: a refresh by hand goes first."""
        self._left_to_others.add(host)

    def is_busy(self, host: str) -> bool:
        """Whether somebody is at `host` or waits for it."""
        return host in self._gates and self._gates[host].is_busy

    @asynccontextmanager
    async def turn(self, host: str, *, begun: bool) -> AsyncIterator[Turn]:
        """Wait for the host, its pause and a slot; the block is one request.

        Raises `TurnRefused`, `HoldActive`.

        Leave one host's turn before asking for the next one's: who waits here holds nothing, so that
        two visits that redirect to each other's hosts cannot block each other.
        """
        gate = self._gates.setdefault(host, _Gate(self._lanes))
        ended = self._pace.ended
        lane = await gate.enter(begun=begun, rested=lambda lane: ended.get((host, lane), -math.inf))
        turn = Turn(lambda: gate.leave(lane))
        try:
            self._refuse_when_left_to_others(host, begun)
            await self._pause(host, lane)
            async with self._slots:
                self._refuse_when_left_to_others(host, begun)
                self._refuse_when_held(host)
                self._refuse_when_over(self._pace.monotonic())
                turn = Turn(lambda: self._ended(host, lane))
                try:
                    yield turn
                finally:
                    turn.leave_host()
        finally:
            turn.leave_host()

    def _ended(self, host: str, lane: int) -> None:
        self._pace.ended[host, lane] = self._pace.monotonic()
        self._gates[host].leave(lane)

    async def _pause(self, host: str, lane: int) -> None:
        self._refuse_when_held(host)
        now = self._pace.monotonic()
        ended = self._pace.ended.get((host, lane))
        free_at = now if ended is None else max(now, ended + self._host_delay)
        # A turn that would come after the end is refused at once: nobody waits for nothing.
        self._refuse_when_over(free_at)
        while (wait := free_at - self._pace.monotonic()) > 0:
            await self._pace.sleep(wait)

    def _refuse_when_held(self, host: str) -> None:
        if (hold := self._holds.active(host)) is not None:
            raise HoldActive(hold)

    def _refuse_when_left_to_others(self, host: str, begun: bool) -> None:
        if not begun and host in self._left_to_others:
            raise TurnRefused("a refresh by hand goes first at its host")

    def _refuse_when_over(self, at: float) -> None:
        if self._over_at is not None and at >= self._over_at:
            raise TurnRefused("its turn did not come within the round's time")
