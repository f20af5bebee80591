"""The membership of this machine while it runs: a thread that says each 15 seconds that it is alive.

A database that is away for a while is waited for. Joining is joining.py's.
"""

import logging
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rss_pipeline.collector.models.clock import Clock, utc_now
from rss_pipeline.errors import InfrastructureError
from rss_pipeline.features.fleet import workers
from rss_pipeline.features.fleet.joining import (
    clock_offset,
    clock_warning,
    described,
    is_running,
    long_dead,
    other_version,
)
from rss_pipeline.features.fleet.machines import BEAT_SECONDS, GAP, Fleet, Member
from rss_pipeline.storage.database import Database

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """This machine takes no more runs, and why."""

    reason: str
    is_replaced: bool = False
    """True if another machine has its name now: what this one still runs is no longer seen."""


class Membership:
    """A machine that has joined."""

    def __init__(
        self,
        database: Database,
        member: Member,
        *,
        clock: Clock = utc_now,
        say: Callable[[str], None] = lambda _: None,
        lives: Callable[[int], bool] = is_running,
    ) -> None:
        self._database = database
        self._member = member
        self._clock = clock
        self._say = say
        self._lives = lives
        self._unseen: frozenset[str] = frozenset()
        self._is_away = False
        self._is_warned = False
        # Not an Event: set by a handler of signals in the middle of its own `set`, it waits for itself.
        self._next = queue.SimpleQueue[None]()
        self.over: Over | None = None
        """Set once, when the machine is to take no more runs."""
        self.on_over: Callable[[Over], object] = lambda _: None
        """Called when it is set."""

    def beat(self) -> None:
        """Note that this machine is alive, and look at the others. A database that is away is said once."""
        was_over = self.over
        try:
            self._beat()
        except InfrastructureError as error:
            if not self._is_away:
                self._say(f"The database does not answer, runs cannot begin or end; trying again. {error}")
            self._is_away = True
            return
        if self._is_away:
            self._say("The database answers again.")
        self._is_away = False
        if self.over is not None and was_over is None:
            self.on_over(self.over)

    def _beat(self) -> None:
        fleet = workers.fleet(self._database)
        offset = clock_offset(self._clock, fleet.now)
        member, seconds = self._member, round(offset.total_seconds())
        mine = fleet.named(member.role, member.name)
        had_gap = mine is not None and fleet.now - mine.seen_at > GAP
        steady_since = fleet.now if had_gap else None
        if not workers.beat(self._database, member, clock_offset=seconds, steady_since=steady_since):
            if mine is not None and mine.member.incarnation != member.incarnation:
                reason = f"{described(mine)} has the name {member.name} now: each machine needs its own"
                self.over = self.over or Over(reason=reason, is_replaced=True)
                return
            # Forgotten, while it was away for long: the same process comes back.
            workers.join(self._database, member, clock_offset=seconds)
        warning = clock_warning(offset)
        if warning is not None and not self._is_warned:
            self._say(warning)
        self._is_warned = warning is not None
        if member.role == "main":
            workers.leave(self._database, *long_dead(fleet))
            return
        self._disown(fleet)
        if self.over is None and fleet.main is not None:
            outdated = other_version(member, fleet.main.member)
            self.over = None if outdated is None else Over(reason=outdated)

    def _disown(self, fleet: Fleet) -> None:
        """Give up runs of this worker if their processes alone were killed. Those that just end have a beat's
        time to take their rows out."""
        mine = (run for run in fleet.runs if run.incarnation == self._member.incarnation)
        unseen = frozenset(run.run_id for run in mine if not self._lives(run.pid))
        if killed := unseen & self._unseen:
            workers.disown(self._database, killed)
            self._say(f"The processes of {len(killed)} runs were killed: {', '.join(sorted(killed))}")
        self._unseen = unseen

    def wait(self, seconds: float) -> None:
        """Wait so long, or until `hurry`."""
        with suppress(queue.Empty):
            self._next.get(timeout=seconds)
            while True:
                self._next.get_nowait()

    def hurry(self) -> None:
        """Let the next beat be now. A handler of signals may call it at any moment."""
        self._next.put(None)

    def leave(self) -> None:
        """Take this machine out of the fleet; a database that is away will find it dead in a minute."""
        try:
            workers.leave(self._database, self._member)
        except InfrastructureError as error:
            _logger.warning("this machine could not leave the fleet and will count as dead: %s", error)


@contextmanager
def beating(membership: Membership, *, every: float = BEAT_SECONDS) -> Iterator[None]:
    """Beat in a thread until the end of the block; then leave."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            membership.wait(every)
            if over.is_set():
                return
            try:
                membership.beat()
            # A machine that works and beats no more would count as dead, and its runs would be ended.
            except Exception:
                _logger.exception("this machine could not say that it is alive; trying again")

    thread = threading.Thread(target=work, name="beat of this machine", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        membership.hurry()
        thread.join()
        membership.leave()
