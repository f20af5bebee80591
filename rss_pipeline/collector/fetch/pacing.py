"""Turns: limits on the requests to one host at a time and in total, and a delay after each request.

No HTTP. A visit that waits for a host holds no slot, so a host with hundreds of feeds or images delays only
its own visits. Users share the slots, and the lanes of a host: who has brought a hundred slow feeds delays
nobody else's.
"""

import asyncio
import heapq
import itertools
import math
import time
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Protocol

from rss_pipeline.collector.fetch.holds import DEFAULT_HOLD, Holds
from rss_pipeline.collector.http.client import FetchPolicy
from rss_pipeline.collector.http.guarded_transport import NamesOfRound
from rss_pipeline.collector.models.clock import Clock, duration, utc_now, whole_second
from rss_pipeline.collector.models.hold import FeedHold, HostHold


@dataclass(slots=True)
class Pace:
    """A monotonic clock, a sleep, and the end of the last request to each host.

    A process passes the same `Pace` to all of its rounds: the delay after the last request of one round
    also holds for the first request of the next. Tests pass a clock that a sleep moves forward.
    """

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ended: dict[tuple[str, int], float] = field(default_factory=dict)
    """By host and lane: a host with two connections at the same time has the lanes 0 and 1."""
    ended_elsewhere: dict[str, float] = field(default_factory=dict)
    """By host: when other processes' requests to it had ended at the latest, by this clock."""

    def requested_elsewhere(self, hosts: Iterable[str]) -> None:
        """Note that other runs made requests to these hosts until just now."""
        self.ended_elsewhere.update(dict.fromkeys(hosts, self.monotonic()))

    def recent_hosts(self, seconds: float) -> list[str]:
        """The hosts with a request that ended less than so many seconds ago."""
        # Not by a loop over the dict itself: a round may be writing into it.
        since = self.monotonic() - seconds
        return sorted({host for (host, _), ended in list(self.ended.items()) if ended > since})


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTaken:
    """The answer to a run that needs one more host."""

    is_ours: bool
    requested_elsewhere: bool = False
    """Another run made requests to it until just now."""


class HostLeases(Protocol):
    """The hosts that the leases of a round hold. Raises nothing."""

    def has_host(self, host: str) -> bool:
        """True if a lease of this run holds the host. Called before each request: it needs no database."""
        ...

    def take_host(self, host: str) -> HostTaken:
        """Hold one more host, to which a redirect leads, unless another run does. Called in a thread."""
        ...


BUSY_SECONDS = timedelta(minutes=2)
"""A visit that meets another run at its host comes after it: a round has so long for its requests."""
DAILY_GAP = timedelta(minutes=1)
LAPSED = "this run was stopped for so long that another one may visit its host"


class TurnRefused(Exception):
    """No request is made in this round; the text is the reason."""


class HoldActive(Exception):
    """No request is made: the host, or the feed, is on hold, or another run requests from the host."""

    def __init__(self, hold: HostHold | FeedHold) -> None:
        self.hold = hold
        super().__init__(hold)


class _Gate:
    """The lanes of one host. Visits that have begun pass before those that have not; of those, the first ones
    of each user before the second ones.

    Sixty feeds behind one http-to-https redirect would otherwise all make their first request before any
    made its second, and the end of the round would waste sixty requests.
    """

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._free = list(range(lanes))
        self._queue: list[tuple[bool, int, int, asyncio.Future[int]]] = []
        self._arrivals = itertools.count()
        self._of_user: Counter[str] = Counter()

    @property
    def is_awaited(self) -> bool:
        return bool(self._queue)

    @property
    def is_busy(self) -> bool:
        return bool(self._queue) or len(self._free) < self._lanes

    async def enter(self, *, begun: bool, user: str, rested: Callable[[int], float]) -> int:
        """A lane for a request: of several free ones the one that was idle longest."""
        self._of_user[user] += 1
        if self._free:
            lane = min(self._free, key=rested)
            self._free.remove(lane)
            return lane
        turn: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._queue, (not begun, self._of_user[user], next(self._arrivals), turn))
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


class _Slots:
    """The slots of a round. A free one is for the user with the fewest at that moment, then for whom they
    were taken the shortest time so far; nobody's is kept free for others."""

    def __init__(self, count: int, monotonic: Callable[[], float]) -> None:
        self._free = count
        self._monotonic = monotonic
        self._taken: Counter[str] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def slot(self, user: str) -> AsyncIterator[None]:
        """Wait for a slot; the block has it."""
        await self._enter(user)
        began = self._monotonic()
        try:
            yield
        finally:
            self._seconds[user] += self._monotonic() - began
            self._leave(user)

    async def _enter(self, user: str) -> None:
        if self._free:
            self._free -= 1
            self._taken[user] += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(user, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(user)
            raise

    def _leave(self, user: str) -> None:
        self._taken[user] -= 1
        while self._queues:
            next_ = min(self._queues, key=lambda each: (self._taken[each], self._seconds[each]))
            queue = self._queues[next_]
            turn = queue.popleft()
            if not queue:
                del self._queues[next_]
            if not turn.done():
                self._taken[next_] += 1
                turn.set_result(None)
                return
        self._free += 1


@dataclass(frozen=True, slots=True)
class _AtAddress:
    """A lane at an address that several hosts may have."""

    address: str
    gate: _Gate
    lane: int


class Turn:
    """A host's lane and a slot. The lane can be released before the slot, once no request is left but other
    work is; the host's delay begins then."""

    def __init__(self, leave: Callable[[], None], unused: Callable[[], None] | None = None) -> None:
        self._leave: Callable[[], None] | None = leave
        self._unused = unused or leave

    def release_host(self) -> None:
        """Release the lane after the request; a second call does nothing."""
        if self._leave is not None:
            self._leave()
            self._leave = None

    def release_unused(self) -> None:
        """Release the lane where no request was made: the next one need not wait."""
        if self._leave is not None:
            self._leave = self._unused
            self.release_host()


class Turns:
    """The turns of one round, within the policy: delay, connections, concurrency, seconds of the round."""

    def __init__(
        self,
        pace: Pace,
        *,
        policy: FetchPolicy,
        holds: Holds,
        is_leased: Callable[[], bool] = lambda: True,
        leases: HostLeases | None = None,
        clock: Clock = utc_now,
    ) -> None:
        self._leases = leases
        """None: there is no other run beside this one."""
        self._clock = clock
        self._pace = pace
        self.is_leased = is_leased
        """False once another run may visit the hosts of this round."""
        self._names = None if policy.proxy is not None else NamesOfRound(policy.network.resolve)
        self.network = policy.network if self._names is None else replace(policy.network, resolve=self._names)
        """The policy's, with names that a turn looks up for the connection in it."""
        self._host_delay = policy.host_delay
        self._lanes = policy.connections_per_host
        self._slots = _Slots(policy.concurrency, pace.monotonic)
        self._gates: dict[str, _Gate] = {}
        self._holds = holds
        self._left_to_others: set[str] = set()
        seconds = policy.round_seconds
        self._over_at = None if seconds is None else pace.monotonic() + seconds

    def is_awaited(self, host: str) -> bool:
        """True if a visit waits for `host` at this moment."""
        return host in self._gates and self._gates[host].is_awaited

    async def pause(self, seconds: float) -> None:
        """Wait between two requests of a visit, which holds nothing meanwhile."""
        await self._pace.sleep(seconds)

    def begin_no_more(self, host: str) -> None:
        """Begin no more visits at `host`: a refresh by hand has precedence."""
        self._left_to_others.add(host)

    def is_busy(self, host: str) -> bool:
        """True if a visit makes a request to `host` or waits for it."""
        return host in self._gates and self._gates[host].is_busy

    @asynccontextmanager
    async def turn(
        self, host: str, *, begun: bool, url: str = "", user: str = "", is_daily: bool = False
    ) -> AsyncIterator[Turn]:
        """Wait for the host, its delay and a slot; the block is one request, of `url`, for `user`.

        `is_daily`: the feed was not visited for a day, and does not wait for more than `DAILY_GAP` because of
        other names of its domain.

        Raises `TurnRefused`, `HoldActive`.

        End one host's turn before waiting for the next: a waiting visit holds nothing, so two visits that
        redirect to each other's hosts cannot block each other.
        """
        gate, lane = await self._enter(host, begun=begun, user=user)
        turn = Turn(lambda: gate.leave(lane))
        at_address: _AtAddress | None = None
        try:
            self._refuse_when_left_to_others(host, begun)
            self._refuse_when_held(host, url)
            await self._take(host)
            await self._delay(host, lane, begun=begun, is_daily=is_daily)
            at_address = await self._enter_address(host, begun=begun, user=user)
            async with self._slots.slot(user):
                self._refuse_when_left_to_others(host, begun)
                self._refuse_when_held(host, url)
                self._refuse_when_over(host, self._pace.monotonic(), begun=begun)
                if not self.is_leased():
                    raise TurnRefused(LAPSED)
                own, at_address = at_address, None
                turn = Turn(lambda: self._ended(host, gate, lane, own), lambda: self._leave(gate, lane, own))
                try:
                    yield turn
                finally:
                    turn.release_host()
        finally:
            turn.release_host()
            if at_address is not None:
                at_address.gate.leave(at_address.lane)

    async def _enter(self, host: str, *, begun: bool, user: str) -> tuple["_Gate", int]:
        """A lane at the gate of the host, or of all hosts that share a learned gap with it."""
        ended = self._pace.ended
        while True:
            learned = self._holds.gaps.of(host)
            # One at a time, in place of the lanes that the host has otherwise.
            name = host if learned is None else f"{learned.host} one by one"
            gate = self._gates.setdefault(name, _Gate(self._lanes if learned is None else 1))
            lane = await gate.enter(
                begun=begun, user=user, rested=lambda lane: ended.get((host, lane), -math.inf)
            )
            now_learned = self._holds.gaps.of(host)
            if (learned and learned.host) == (now_learned and now_learned.host):
                return gate, lane
            gate.leave(lane)

    async def _enter_address(self, host: str, *, begun: bool, user: str) -> "_AtAddress | None":
        """A lane at the one address of a host, after the delay that all names there share."""
        address = None if self._names is None else await self._names.only_address(host)
        if address is None:
            return None
        ended = self._pace.ended
        gate = self._gates.setdefault(address, _Gate(self._lanes))
        lane = await gate.enter(
            begun=begun, user=user, rested=lambda lane: ended.get((address, lane), -math.inf)
        )
        try:
            while (at := self._free_at(address, lane)) > self._pace.monotonic():
                self._refuse_when_over(host, at, begun=begun)
                await self._pace.sleep(at - self._pace.monotonic())
        except BaseException:
            gate.leave(lane)
            raise
        return _AtAddress(address, gate, lane)

    def _free_at(self, name: str, lane: int) -> float:
        """The time from which on a lane may have another request, by the delay of hosts."""
        ended = [self._pace.ended.get((name, lane)), self._pace.ended_elsewhere.get(name)]
        return max((at + self._host_delay for at in ended if at is not None), default=-math.inf)

    def _ended(self, host: str, gate: "_Gate", lane: int, at_address: "_AtAddress | None") -> None:
        self._pace.ended[host, lane] = self._pace.monotonic()
        if at_address is not None:
            self._pace.ended[at_address.address, at_address.lane] = self._pace.monotonic()
        self._holds.gaps.asked(host, now=self._clock())
        self._leave(gate, lane, at_address)

    def _leave(self, gate: "_Gate", lane: int, at_address: "_AtAddress | None") -> None:
        gate.leave(lane)
        if at_address is not None:
            at_address.gate.leave(at_address.lane)

    async def _take(self, host: str) -> None:
        """Hold a host that no lease of this run has: other runs may request from it, on any machine."""
        if self._leases is None or self._leases.has_host(host):
            return
        taken = await asyncio.to_thread(self._leases.take_host, host)
        if taken.requested_elsewhere:
            self._pace.requested_elsewhere([host])
        if not taken.is_ours:
            until = whole_second(self._clock() + BUSY_SECONDS)
            hold = HostHold(host=host, until=until, reason="another run requests from it at this moment")
            raise HoldActive(hold)

    async def _delay(self, host: str, lane: int, *, begun: bool, is_daily: bool) -> None:
        now = self._pace.monotonic()
        free_at = max(now, self._free_at(host, lane))
        if (learned := self._holds.gaps.of(host)) is not None:
            # A clock that was put back makes the time since negative.
            since = max(self._clock() - learned.asked_at, timedelta(0))
            gap = min(learned.gap, DAILY_GAP) if is_daily and learned.is_shared else learned.gap
            free_at = max(free_at, now + (gap - since).total_seconds())
        # A turn that would come after the end of the round is refused at once: the wait would be in vain.
        self._refuse_when_over(host, free_at, begun=begun)
        while (wait := free_at - self._pace.monotonic()) > 0:
            await self._pace.sleep(wait)

    def _refuse_when_held(self, host: str, url: str) -> None:
        if (hold := self._holds.active_at(host, url)) is not None:
            raise HoldActive(hold)

    def _refuse_when_left_to_others(self, host: str, begun: bool) -> None:
        if not begun and host in self._left_to_others:
            raise TurnRefused("a refresh by hand has precedence at its host")

    def _refuse_when_over(self, host: str, at: float, *, begun: bool) -> None:
        if self._over_at is None or at < self._over_at:
            return
        if begun and (learned := self._holds.gaps.of(host)) is not None:
            # Whatever led there would otherwise be requested again in each round, in vain.
            wait = max(timedelta(seconds=at - self._pace.monotonic()), DEFAULT_HOLD)
            until = whole_second(self._clock() + wait)
            reason = f"its requests are {duration(learned.gap)} apart, for it limits their rate"
            raise HoldActive(HostHold(host=host, until=until, reason=reason))
        raise TurnRefused("its turn did not come within the round's time")
