"""The requests of one run: which feeds are visited when, by the rules of collector.fetch.pacing.

A host has one request at a time and rests after it, all hosts together have `concurrency`; a visit that waits
for its host holds no place, and none begins after the end of the round.
"""

import heapq
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
    waiting: dict[int, list[int]] = {}
    ready: list[tuple[float, int]] = []
    for number, host in enumerate(claimed):
        if (others := waiting.get(host)) is None:
            waiting[host] = []
            ready.append((max(began, ended[host] + host_delay), number))
        else:
            others.append(number)
    heapq.heapify(ready)
    slots = [began] * concurrency
    over, free, last = began + round_seconds, began, began
    turns = dict.fromkeys(waiting, 0)
    while ready:
        at, number = ready[0]
        start = max(at, slots[0])
        if start >= over:
            break
        # The processor's part comes first: a slow answer must not hold up what is ready meanwhile.
        free = max(free, start) + cpu
        done = free + response()
        heapq.heapreplace(slots, done)
        starts[number] = start
        host = claimed[number]
        ended[host] = done
        last = max(last, done)
        turn, others = turns[host], waiting[host]
        if turn < len(others):
            turns[host] = turn + 1
            heapq.heapreplace(ready, (done + host_delay, others[turn]))
        else:
            heapq.heappop(ready)
    return starts, last
