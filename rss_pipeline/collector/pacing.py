"""Whose turn it is: one request a host at a time, a pause after each, and so many hosts at once.

No HTTP. A feed that waits for its host holds none of the slots, so that one host with hundreds of
feeds delays its own feeds only.
"""

import asyncio
import heapq
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Pace:
    """A monotonic clock, a sleep, and when each host was last left alone.

    A process passes the same `Pace` to all of its rounds: the pause after the last request of one
    round holds for the first of the next. Tests pass a clock that moves when it is slept on.
    """

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ended: dict[str, float] = field(default_factory=dict)


class NotNow(Exception):
    """No request was or will be made: the round is over, or the host asked for a pause. Says which."""


class _Gate:
    """A lock for one host. Visits under way pass before those that have not begun.

    Sixty feeds behind one http-to-https redirect would otherwise all make their first hop before any
    made its second, and the end of the round would waste sixty requests.
    """

    def __init__(self) -> None:
        self._busy = False
        self._queue: list[tuple[bool, int, asyncio.Future[None]]] = []
        self._arrivals = itertools.count()

    async def enter(self, *, begun: bool) -> None:
        if not self._busy:
            self._busy = True
            return
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self._queue, (not begun, next(self._arrivals), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        while self._queue:
            *_, turn = heapq.heappop(self._queue)
            if not turn.done():
                turn.set_result(None)
                return
        self._busy = False


class Turns:
    """The turns of one round. Seconds throughout; `round_seconds` None sets the round no end."""

    def __init__(
        self, pace: Pace, *, host_delay: float, concurrency: int, round_seconds: float | None
    ) -> None:
        self._pace = pace
        self._host_delay = host_delay
        self._slots = asyncio.Semaphore(concurrency)
        self._gates: dict[str, _Gate] = {}
        self._held: dict[str, str] = {}
        self._over_at = None if round_seconds is None else pace.monotonic() + round_seconds

    def hold(self, host: str, reason: str) -> None:
        """No further request to `host` in this round."""
        self._held[host] = reason

    @asynccontextmanager
    async def turn(self, host: str, *, begun: bool) -> AsyncIterator[None]:
        """Wait for the host, its pause and a slot; the block is one request. Raises `NotNow`.

        Leave one host's turn before asking for the next one's: who waits here holds nothing, so that
        two visits that redirect to each other's hosts cannot block each other.
        """
        gate = self._gates.setdefault(host, _Gate())
        await gate.enter(begun=begun)
        try:
            await self._pause(host)
            async with self._slots:
                self._refuse_when_over(self._pace.monotonic())
                try:
                    yield
                finally:
                    self._pace.ended[host] = self._pace.monotonic()
        finally:
            gate.leave()

    async def _pause(self, host: str) -> None:
        if host in self._held:
            raise NotNow(self._held[host])
        now = self._pace.monotonic()
        ended = self._pace.ended.get(host)
        free_at = now if ended is None else max(now, ended + self._host_delay)
        # A turn that would come after the end is refused at once: nobody waits for nothing.
        self._refuse_when_over(free_at)
        while (wait := free_at - self._pace.monotonic()) > 0:
            await self._pace.sleep(wait)

    def _refuse_when_over(self, at: float) -> None:
        if self._over_at is not None and at >= self._over_at:
            raise NotNow("its turn did not come within the round's time")
