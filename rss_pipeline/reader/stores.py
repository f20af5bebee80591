"""The stores of the reader, opened once for the life of its process."""

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar, cast

from rss_pipeline.features import FEATURES
from rss_pipeline.reader.accounts.callers import KeptResults
from rss_pipeline.reader.accounts.tokens import reader_secret
from rss_pipeline.reader.collecting import Collecting
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.backend import REQUEST_SECONDS
from rss_pipeline.storage.backends.connect import open_database, open_objects
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore

T = TypeVar("T")

__all__ = ["REQUEST_SECONDS"]

MAKERS = 2
"""Requests that make bodies at one time. More would not be faster, and all others would wait for them."""

WRITERS = 12
"""Requests that write at one time. They may all wait for one lock: then threads, and connections over the
network, are left for those that read."""
_TOTALS_LAST = 3600.0
"""Seconds; meanwhile retention removes some."""
_TOTALS_LAST_WHERE_READS_COST = 600.0
"""Seconds for which the number also stays when items came in."""
_MOST_USERS = 1_000


@dataclass(frozen=True, slots=True)
class _Total:
    items: int
    seen: tuple[int, int]
    counted_at: float


class ItemTotals:
    """The number of all items of each user's feeds, kept until something comes in: to count them reads an
    index entry of each, which D1 charges for, and every page shows it. Safe to call from several threads."""

    def __init__(self, *, seconds: Callable[[], float] = time.monotonic) -> None:
        """`seconds` is a clock that never goes back (time.monotonic)."""
        self._seconds = seconds
        self._known: OrderedDict[str, _Total] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, user_id: str, seen: tuple[int, int], *, are_reads_charged: bool) -> int | None:
        """The number for this user while `seen` (the newest arrival, a hash of the feeds) is the same; where
        reads are charged, for some minutes more."""
        with self._lock:
            total = self._known.get(user_id)
        if total is None:
            return None
        age = self._seconds() - total.counted_at
        is_same = total.seen == seen or (
            are_reads_charged and total.seen[1] == seen[1] and age < _TOTALS_LAST_WHERE_READS_COST
        )
        return total.items if is_same and age < _TOTALS_LAST else None

    def keep(self, user_id: str, seen: tuple[int, int], items: int) -> int:
        """Keep this number, and return it."""
        with self._lock:
            self._known[user_id] = _Total(items, seen, self._seconds())
            self._known.move_to_end(user_id)
            while len(self._known) > _MOST_USERS:
                self._known.popitem(last=False)
        return items


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """The stores that the routes work with.

    `database` answers short reads on the event loop and all else in threads; where every statement is a
    request over the network, everything in threads.
    """

    settings: Settings
    database: Database
    objects: ObjectStore
    secret: bytes = field(repr=False)
    making: asyncio.Semaphore = field(default_factory=partial(asyncio.Semaphore, MAKERS), repr=False)
    """The places of requests that make bodies, given in the order of arrival."""
    writing: asyncio.Semaphore = field(default_factory=partial(asyncio.Semaphore, WRITERS), repr=False)
    """The places of requests that write."""
    objects_of_features: dict[type[object], object] = field(default_factory=dict, repr=False)
    """By type (`Feature.reader_objects`)."""
    unfinished: set[asyncio.Task[None]] = field(default_factory=set, repr=False)
    """Writes whose requests may be answered already."""
    touched: set[str] = field(default_factory=set, repr=False)
    """Sessions with a last use that is being written: no other request waits for it as well."""
    totals: ItemTotals = field(default_factory=ItemTotals, repr=False)
    """The numbers of items that pages show."""

    kept: KeptResults | None = field(default=None, repr=False)
    """Results that users have read, where reads are paid by the row; else None."""

    collecting: Collecting = field(init=False, repr=False)
    """Its looks at hindrances."""
    is_remote: bool = field(init=False)
    """True if every statement is a request over the network. Each request asks, so that it is found once."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_remote", not self.settings.database.is_here)
        object.__setattr__(self, "collecting", Collecting(self.settings))

    def of(self, kind: type[T]) -> T:
        """The object of this type that a feature keeps while the reader runs."""
        return cast("T", self.objects_of_features[kind])


@contextmanager
def open_stores(settings: Settings, *, is_starting: bool = False) -> Iterator[Stores]:
    """The stores that the settings name, until the end of the block. `is_starting`: the processes of the
    reader (cli/reader.py) start just now, too.

    Raises:
        DatabaseUnavailable: the database cannot be reached, or its schema is not this code's.
        SettingsError, InfrastructureError: there is no key for tokens.
    """
    with ExitStack() as stack:
        database = stack.enter_context(open_database(settings, for_requests=True))
        kept = [
            stack.enter_context(part.load()(settings, is_starting))
            for feature in FEATURES
            for part in feature.reader_objects
        ]
        yield Stores(
            settings=settings,
            database=database,
            objects=open_objects(settings),
            objects_of_features={type(each): each for each in kept},
            secret=reader_secret(settings),
            kept=KeptResults() if settings.pays_by_row else None,
        )
