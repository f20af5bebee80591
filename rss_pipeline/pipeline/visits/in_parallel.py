"""One step applied to many visits in threads: the stores answer several requests at once."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Protocol, TypeVar

from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.outcome import Document, Parsed
from rss_pipeline.progress import Progress

STORE_THREADS = 16


LARGE_BYTES = 1_000_000
"""Documents above it are backed up and stored one after the other: as a string one takes up to four times its
length, and copies of it."""


class HasOutcome(Protocol):
    """A visit, or a backup that is replayed."""

    @property
    def key(self) -> str: ...

    @property
    def feed(self) -> Feed: ...

    @property
    def outcome(self) -> object: ...


Each = TypeVar("Each", bound=HasOutcome)
Ended = TypeVar("Ended")


def in_parallel(
    name: str,
    visits: Sequence[Each],
    kind: type[Ended],
    one: Callable[[Each, Ended], Each],
    *,
    progress: Progress,
    threads: int = STORE_THREADS,
) -> list[Each]:
    """Apply `one` to the visits with such an outcome, in threads: stores answer several requests at once.

    Visits of one feed, as a replay has them, go one after the other in their order, and so do those of all
    feeds with a large document. The first infrastructure failure ends it; what has not begun by then is not
    begun.
    """
    large = {visit.feed.id for visit in visits if _size(visit.outcome) > LARGE_BYTES}
    chosen: dict[str, list[tuple[Each, Ended]]] = {}
    for visit in visits:
        if isinstance(visit.outcome, kind):
            lane = "" if visit.feed.id in large else visit.feed.id
            chosen.setdefault(lane, []).append((visit, visit.outcome))
    progress.begin(name, sum(map(len, chosen.values())))
    done: dict[str, Each] = {}
    over = threading.Event()

    def in_turn(feed: list[tuple[Each, Ended]]) -> list[Each]:
        return [one(visit, outcome) for visit, outcome in feed if not over.is_set()]

    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(in_turn, feed) for feed in chosen.values()]
        try:
            for future in as_completed(futures):
                for visit in future.result():
                    done[visit.key] = visit
                    progress.advance(name)
        except BaseException:
            over.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return [done.get(visit.key, visit) for visit in visits]


def _size(outcome: object) -> int:
    match outcome:
        case Document(body_bytes=size):
            return size
        case Parsed(path=path):
            return path.stat().st_size
        case _:
            return 0
