"""A fleet in a heap of events: sensor, queue, workers, claims, requests, the writers' lock, deaths.

The rules are those of the code (plan.py takes their numbers from it), the costs are costs.py's. Nothing is
requested and nothing is stored; the same seed gives the same figures.

Simpler than the truth: claims and closes take the mean of their cost; two runs on one core get half of it
each for a whole phase; images, replays and cleans are not there; a feed that failed is due after its
interval; of a dead run's hosts only its feeds wait for the end of the lease.
"""

import heapq
import itertools
import math
import random
from collections import deque
from collections.abc import Callable

from rss_pipeline.collector.models.shard import BUCKETS, shard_of
from rss_pipeline.pipeline.visits.claim import group_size
from rss_pipeline.pipeline.visits.poll import FULL
from rss_pipeline_tests.simulation.due_feeds import DueFeeds, Feed
from rss_pipeline_tests.simulation.figures import Figures
from rss_pipeline_tests.simulation.hosts import hosts
from rss_pipeline_tests.simulation.plan import MINUTE, Plan
from rss_pipeline_tests.simulation.requests import visit

_RESPONSES = 8_192
_SAMPLE = 60.0


class _Shard:
    __slots__ = ("feeds", "run", "suspects")

    def __init__(self, feeds: DueFeeds) -> None:
        self.feeds = feeds
        self.run: _Run | None = None
        self.suspects: deque[tuple[float, int, Feed]] = deque()
        """From when they can be claimed, with how many they were claimed, and the feeds of runs that died."""


class _Run:
    __slots__ = ("claimed", "claimed_at", "is_dead", "place", "shard", "started", "suspects_until")

    def __init__(self, shard: _Shard) -> None:
        self.shard = shard
        self.place = -1
        """The worker that has it."""
        self.started: float | None = None
        self.claimed_at: float | None = None
        self.claimed: dict[int, Feed] = {}
        """Claims that are not closed yet."""
        self.is_dead = False
        self.suspects_until = 0.0


class Lock:
    """One at a time, in the order in which they come."""

    def __init__(self) -> None:
        self._free_at = 0.0
        self.held = 0.0

    def taken(self, now: float, seconds: float) -> tuple[float, float]:
        """The end of this holder's turn, and how long it waited."""
        begins = max(now, self._free_at)
        self._free_at = begins + seconds
        self.held += seconds
        return self._free_at, begins - now


class Fleet:
    """`Fleet(plan).run()` gives the figures."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._costs, self._world = plan.costs, plan.world
        self._random = random.Random(plan.seed)
        self.sizes = hosts(plan.hosts, plan.feeds)
        self._ended = [-math.inf] * len(self.sizes)
        self._shards = [_Shard(DueFeeds(self.sizes, per_host=plan.per_host)) for _ in range(plan.shards)]
        self._shard_of = [
            self._shards[shard_of(self._random.randrange(BUCKETS), plan.shards) - 1] for _ in self.sizes
        ]
        for host, size in enumerate(self.sizes):
            for _ in range(size):
                due = 0.0 if plan.all_due else self._random.random() * plan.interval
                self._shard_of[host].feeds.add(due, host)
        self._response = itertools.cycle(self._responses()).__next__
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._now = 0.0
        self._lock = Lock()
        self._claims = Lock() if plan.costs.claims_beside else self._lock
        self._queued: deque[_Run] = deque()
        self._sent: deque[_Run] = deque()
        self._free: deque[int] = deque(n for _ in range(plan.runs) for n in range(plan.workers))
        self._running: dict[int, set[_Run]] = {worker: set() for worker in range(plan.workers)}
        self._gone: set[int] = set()
        self._in_place = 0
        """Runs that have a place by Dagster's count, those of dead workers among them."""
        self._suspects = 0
        self._left = plan.feeds
        self._shortest = plan.interval * (1 - plan.spread)
        self._apart = plan.interval * 2 * plan.spread
        self.figures = Figures(plan, self.sizes)

    def run(self) -> Figures:
        """Until the end of the plan's hours, or, with `all_due`, until each feed was visited."""
        plan = self._plan
        self._at(0.0, self._tick)
        self._at(0.0, self._dequeue)
        self._at(_SAMPLE, self._sample)
        if plan.dying:
            self._at(plan.dies_at, self._die)
            self._at(plan.back_at, self._come_back)
        end = plan.hours * 3600
        while self._events and (not plan.all_due or self._left > 0):
            self._now, _, event = heapq.heappop(self._events)
            if self._now > end:
                break
            event()
        self.figures.ended(self._now, lock_held=self._lock.held)
        return self.figures

    def _responses(self) -> list[float]:
        world, count = self._world, _RESPONSES
        slow = [world.connect_seconds] * round(count * world.no_connection)
        slow += [world.answer_seconds] * round(count * world.no_answer)
        usual = (
            min(self._random.lognormvariate(math.log(world.response), world.response_sigma), 30.0)
            for _ in range(count - len(slow))
        )
        found = [*slow, *usual]
        self._random.shuffle(found)
        return found

    def _at(self, time: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time, next(self._order), event))

    def _of(self, run: _Run, time: float, event: Callable[[_Run], None]) -> None:
        """An event of a run, unless it is dead by then."""
        self._at(time, lambda: None if run.is_dead else event(run))

    def _slowed(self, run: _Run) -> float:
        """The factor by which work of the processor takes longer beside the other runs of this machine."""
        if self._plan.one_machine:
            running = sum(map(len, self._running.values()))
        else:
            running = len(self._running[run.place])
        return max(1.0, running / self._plan.cores)

    def _write(self, seconds: float) -> float:
        """The end of a batch that writes."""
        ends, waited = self._lock.taken(self._now, seconds + self._costs.commit)
        self.figures.wrote(waited)
        return ends

    def _tick(self) -> None:
        created = self._now
        for shard in self._shards:
            if shard.run is None and self._is_due(shard):
                created += self._costs.create_run
                self._request(shard, created)
        self._at(max(self._now + self._plan.look_every, created), self._tick)

    def _is_due(self, shard: _Shard) -> bool:
        plan, oldest = self._plan, shard.feeds.oldest
        if shard.suspects and shard.suspects[0][0] <= self._now:
            return True
        if oldest is None or oldest > self._now:
            return False
        return (
            plan.all_due
            or self._now - oldest >= plan.patience
            or shard.feeds.due(self._now, plan.many_due) >= plan.many_due
        )

    def _request(self, shard: _Shard, time: float) -> None:
        run = shard.run = _Run(shard)
        self._at(time, lambda: self._queued.append(run))

    def _dequeue(self) -> None:
        costs, plan = self._costs, self._plan
        places = (plan.workers - len(self._gone)) * plan.runs
        sent = self._now
        for number in itertools.count():
            if not self._queued or self._in_place >= places:
                break
            self._in_place += 1
            run = self._queued.popleft()
            sent = self._now + (number // costs.launch_threads + 1) * costs.launch
            self._at(sent, lambda run=run: self._send(run))
        self._at(max(self._now + costs.dequeue_every, sent), self._dequeue)

    def _send(self, run: _Run) -> None:
        self._sent.append(run)
        self._assign()

    def _assign(self) -> None:
        while self._sent and self._free:
            worker = self._free.popleft()
            if worker in self._gone:
                continue
            run = self._sent.popleft()
            run.place, run.started = worker, self._now
            self._running[worker].add(run)
            seconds = self._costs.run_starts + self._costs.registry_feed * self._plan.registry
            self.figures.ran()
            self._of(run, self._now + seconds * self._slowed(run), self._begin)

    def _begin(self, run: _Run) -> None:
        run.suspects_until = self._now + self._plan.suspects_seconds
        if self._suspects:
            self._visit_suspects(run)
        else:
            self._choose(run)

    def _visit_suspects(self, run: _Run) -> None:
        """The feeds of runs that died, one group after the other, each by a claim of its own."""
        suspects = run.shard.suspects
        if self._now >= run.suspects_until or not suspects or suspects[0][0] > self._now:
            self._choose(run)
            return
        free_at, company, _ = suspects[0]
        group: list[Feed] = []
        while suspects and suspects[0][:2] == (free_at, company) and len(group) < group_size(company):
            group.append(suspects.popleft()[2])
        self._suspects -= len(group)
        run.claimed = dict(enumerate(group))
        run.claimed_at, _ = self._claims.taken(self._now, self._costs.claim_lock)
        starts, last = self._visits(run, group, run.claimed_at)
        self._of(run, last, lambda run: self._close(run, starts, self._visit_suspects))

    def _choose(self, run: _Run) -> None:
        claimed = run.shard.feeds.claim(self._now, self._plan.batch_size)
        run.claimed = dict(enumerate(claimed))
        seconds = self._costs.claim_lock * min(1.0, 0.3 + 0.7 * len(claimed) / 500)
        run.claimed_at, waited = self._claims.taken(self._now, seconds)
        self.figures.claimed(len(claimed), waited)
        if not claimed:
            self._of(run, run.claimed_at, self._end)
            return
        starts, last = self._visits(run, claimed, run.claimed_at)
        then = self._go_on if len(claimed) >= FULL * self._plan.batch_size else self._end
        self._of(run, last, lambda run: self._close(run, starts, then))

    def _go_on(self, run: _Run) -> None:
        """After a full claim: a run of a shard claims again, if it is not at work for a round yet."""
        plan = self._plan
        if plan.shards > 1 and self._now - (run.started or 0.0) < plan.round_seconds:
            self._choose(run)
        else:
            self._end(run)

    def _visits(self, run: _Run, feeds: list[Feed], began: float) -> tuple[list[float | None], float]:
        cpu = self._costs.fetch_cpu + self._world.same_bytes * self._costs.body_cpu
        return visit(
            [host for _, host in feeds],
            began=began,
            concurrency=self._plan.concurrency,
            host_delay=self._plan.host_delay,
            round_seconds=self._plan.round_seconds,
            ended=self._ended,
            response=self._response,
            cpu=cpu * self._slowed(run),
        )

    def _close(self, run: _Run, starts: list[float | None], then: Callable[[_Run], None]) -> None:
        """Close what is unchanged in one batch, release what did not begin, then store each document."""
        changed: list[tuple[int, float]] = []
        unchanged = 0
        share = 1.0 if self._plan.every_document_new else self._world.changed
        claimed, run.claimed = run.claimed, {}
        add, dice, visited = run.shard.feeds.add, self._random.random, self.figures.visited
        next_visit = self._next_visit
        for number, started in enumerate(starts):
            due, host = feed = claimed[number]
            if started is None:
                add(due, host)
            elif dice() < share:
                changed.append((number, started))
                run.claimed[number] = feed
            else:
                visited(host, due=due, at=started)
                next_visit(host)
                unchanged += 1
        closed = self._write(unchanged * self._costs.close_lock)
        costs, slowed = self._costs, self._slowed(run)
        puts = len(changed) / costs.store_threads * costs.put
        each = costs.document_cpu * slowed
        time = closed + puts
        for number, started in changed:
            time += each
            self._of(run, time, lambda run, n=number, s=started: self._store(run, n, s))
        self._of(run, time + costs.store_lock, then)

    def _store(self, run: _Run, number: int, started: float) -> None:
        due, host = run.claimed.pop(number)
        self._write(self._costs.store_lock)
        self.figures.stored()
        self.figures.visited(host, due=due, at=started)
        self._next_visit(host)

    def _next_visit(self, host: int) -> None:
        self._left -= 1
        if not self._plan.all_due:
            apart = self._shortest + self._apart * self._random.random()
            self._shard_of[host].feeds.add(self._now + apart, host)

    def _end(self, run: _Run) -> None:
        ends = self._write(0.0) + self._costs.run_ends * self._slowed(run)
        self._of(run, ends, self._over)

    def _over(self, run: _Run) -> None:
        self.figures.busy(self._now - (run.started or 0.0))
        run.shard.run = None
        self._running[run.place].discard(run)
        self._in_place -= 1
        self._free.append(run.place)
        self._assign()

    def _die(self) -> None:
        """Workers are killed with all they run; the daemon ends those runs once the workers were silent."""
        plan = self._plan
        self._gone = set(range(round(plan.workers * plan.dying)))
        for worker in self._gone:
            for run in self._running[worker]:
                self._kill(run)
            self._running[worker].clear()

    def _kill(self, run: _Run) -> None:
        plan = self._plan
        run.is_dead = True
        if run.claimed_at is not None:
            third = plan.lease_seconds / 3
            renewed = run.claimed_at + max(0.0, (self._now - run.claimed_at) // third) * third
            free_at = renewed + plan.lease_seconds
            claimed = run.claimed.values()
            run.shard.suspects.extend((free_at, len(claimed), feed) for feed in claimed)
            self._suspects += len(run.claimed)
            self.figures.lost(len(run.claimed))
        noticed = self._now + self._costs.noticed + self._random.random() * MINUTE
        # Dagster starts a run again after its worker died.
        self._at(noticed, lambda: self._again(run))

    def _again(self, run: _Run) -> None:
        self._in_place -= 1
        self._request(run.shard, self._now)

    def _come_back(self) -> None:
        self._free = deque(worker for worker in self._free if worker not in self._gone)
        self._free.extend(worker for _ in range(self._plan.runs) for worker in self._gone)
        self._gone = set()
        self._assign()

    def _sample(self) -> None:
        waiting = sum(shard.feeds.due(self._now) for shard in self._shards)
        busy = sum(map(len, self._running.values()))
        self.figures.sampled(
            self._now, busy=busy, queued=len(self._queued) + len(self._sent), waiting=waiting
        )
        self._at(self._now + 5 * _SAMPLE, self._sample)

    @property
    def feeds_held(self) -> int:
        """All feeds that wait, are claimed or were claimed by a run that died: none appears or is lost."""
        runs = itertools.chain.from_iterable(self._running.values())
        return sum(shard.feeds.due(math.inf) + len(shard.suspects) for shard in self._shards) + sum(
            len(run.claimed) for run in runs
        )
