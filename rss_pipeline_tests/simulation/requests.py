"""The requests of one run: which feeds are visited when, by the rules of collector.fetch.pacing.

A host has one request at a time and rests after it, all hosts together have `concurrency`; a visit that waits
for its host holds no place, and none begins after the end of the round.
"""

import heapq
from collections import deque
from collections.abc import Callable, Sequence


def visit(
    claimed: Sequence[int],
    *,
    began: float,
    concurrency: int,
    host_delay: float,
    round_seconds: float,
    ended: list[float],
    response: Callable[[], float],
    cpu: float,
) -> tuple[list[float | None], float]:
    """The start of each request, None where its turn did not come, and the end of the last one.

    `claimed` has the host of each feed, oldest first; `ended` the end of the last request to each host, which
    changes. `cpu` is the processor time of a request: one process makes them all, so it comes one after the
    other.
    """
    starts: list[float | None] = [None] * len(claimed)
    waiting: dict[int, deque[int]] = {}
    at_once: deque[int] = deque()
    rested: list[tuple[float, int]] = []
    for number, host in enumerate(claimed):
        if host in waiting:
            waiting[host].append(number)
            continue
        waiting[host] = deque()
        if (at := ended[host] + host_delay) <= began:
            at_once.append(number)
        else:
            rested.append((at, number))
    heapq.heapify(rested)
    slots = [began] * concurrency
    over, free, last = began + round_seconds, began, began
    while at_once or rested:
        # Those that need no rest are ready from the beginning, so they come first.
        start = slots[0] if at_once else max(rested[0][0], slots[0])
        if start >= over:
            break
        number = at_once.popleft() if at_once else heapq.heappop(rested)[1]
        # The processor's part comes first: a slow answer must not hold up what is ready meanwhile.
        free = (free if free > start else start) + cpu
        done = free + response()
        heapq.heapreplace(slots, done)
        starts[number] = start
        host = claimed[number]
        ended[host] = done
        if done > last:
            last = done
        if others := waiting[host]:
            heapq.heappush(rested, (done + host_delay, others.popleft()))
    return starts, last
