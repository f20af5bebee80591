"""The membership of this machine while it runs: a thread that says each 15 seconds that it is alive.

A database that is away for a while is waited for.
"""

import hashlib
import logging
import os
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import psutil

from rss_pipeline.collector.models.clock import Clock, duration, utc_now
from rss_pipeline.errors import InfrastructureError, JoinRefused
from rss_pipeline.features.fleet import sql as workers
from rss_pipeline.features.fleet.model import (
    BEAT_SECONDS,
    FORGOTTEN,
    GAP,
    Fleet,
    FleetMember,
    Role,
    SeenMachine,
)
from rss_pipeline.features.health.model import SKEW_FAILURE, SKEW_WARNING
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.schema import migrations
from rss_pipeline.storage.sql import new_token

# Joining the fleet: may this machine, by its version, its clock and its name? The row is sql.py's.
#
# The broker is looked at in checks.py, the schema where the database is opened.

LOOK_SECONDS = 5.0
"""Between two looks at a machine of our name, which may be dead."""


def this_machine(
    role: Role, name: str, *, queues: tuple[str, ...] = (), runs_at_once: int = 0, pid: int | None = None
) -> FleetMember:
    """This process as a member of the fleet, with a new incarnation."""
    return FleetMember(
        role=role,
        name=name,
        incarnation=new_token(),
        host=socket.gethostname(),
        machine=_processes_seen_here(),
        pid=pid or os.getpid(),
        code_version=code_version(),
        schema_version=migrations()[-1].version,
        queues=queues,
        runs_at_once=runs_at_once,
    )


def _processes_seen_here() -> str:
    """The boot of this machine, and the container: a host name is not enough, and may be that of two."""
    parts = [socket.gethostname()]
    try:
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    except OSError:
        # Not Linux: nothing is known for sure of a process that is not seen.
        parts.append(new_token())
    return " ".join(parts)


def check_clock_of_joining(database: Database, *, clock: Clock) -> None:
    """Refuse a machine with a clock that is too far off.

    Raises:
        JoinRefused: with a sentence that says what to do.
    """
    offset = clock_offset(clock, workers.fleet(database).now)
    if (sentence := _clock_refusal(offset)) is not None:
        raise JoinRefused(sentence)


def _clock_refusal(offset: timedelta) -> str | None:
    if abs(offset) < SKEW_FAILURE:
        return None
    return f"{clock_sentence(offset)}; a machine that is so far off may not join: set its clock (NTP)"


def refusal(fleet: Fleet, member: FleetMember, *, clock_offset: timedelta) -> str | None:
    """The reason why this machine may not join as it is, with what to do; None if it may."""
    if (sentence := _clock_refusal(clock_offset)) is not None:
        return sentence
    main = fleet.main
    if member.role == "main":
        if main is not None and main.member.name != member.name:
            return (
                f"{described(main)} is the main machine already, and there is one: use that one, or stop it"
                " first (a machine that was killed is forgotten after a minute)"
            )
        return None
    if main is not None:
        return other_version(member, main.member)
    return None


def other_version(member: FleetMember, main: FleetMember) -> str | None:
    """Advice for a worker with other code than the main machine's; None if they are equal."""
    if member.schema_version != main.schema_version:
        newer = member.schema_version > main.schema_version
        behind = "the main machine" if newer else "this worker"
        return (
            f"this worker's code has schema {member.schema_version}, the main machine's"
            f" {main.schema_version}: update {behind}, then start this worker again"
        )
    if member.code_version != main.code_version:
        return (
            f"this worker has rss_pipeline {member.code_version}, the main machine {main.code_version}:"
            " update the one that is older to the same files and packages, then start this worker again"
        )
    return None


def clock_warning(clock_offset: timedelta) -> str | None:
    """A sentence about a clock that is off, but not so far that the machine may not join."""
    if abs(clock_offset) < SKEW_WARNING:
        return None
    return f"{clock_sentence(clock_offset)}: set this machine's clock (NTP), or visits come at wrong times"


def clock_sentence(offset: timedelta) -> str:
    """A sentence that says how far a clock is off."""
    word = "ahead of" if offset > timedelta() else "behind"
    return f"this machine's clock is {duration(abs(offset))} {word} the database's"


def described(seen: SeenMachine) -> str:
    """A machine for people."""
    member = seen.member
    where = "" if member.name == member.host else f" on {member.host}"
    return f"{member.name}{where} (process {member.pid}, since {seen.started_at:%Y-%m-%d %H:%M} UTC)"


def clock_offset(clock: Clock, database_now: datetime) -> timedelta:
    """This machine's clock minus the database's, in whole seconds: the database's has no fractions."""
    return timedelta(seconds=round((clock() - database_now).total_seconds() - 0.5))


def join(
    database: Database,
    member: FleetMember,
    *,
    clock: Clock,
    wait: Callable[[float], object],
    say: Callable[[str], None],
    runs_here: Callable[[int], bool] | None = None,
) -> Fleet:
    """Make this machine part of the fleet; return the fleet as it was.

    A machine of the same name that seems alive is waited for until it beats or a minute is over: it may have
    been killed a moment ago. `wait` takes seconds; `say` is called with sentences that warn.

    Raises:
        JoinRefused: with a sentence that says what to do.
    """
    lives = runs_here or is_running
    found = workers.fleet(database)
    offset = clock_offset(clock, found.now)
    if (sentence := refusal(found, member, clock_offset=offset)) is not None:
        raise JoinRefused(sentence)
    if (sentence := clock_warning(offset)) is not None:
        say(sentence)
    first = found.named(member.role, member.name)
    waits = False
    while True:
        rival = found.named(member.role, member.name)
        if rival is not None and rival.is_alive(found.now) and not _is_gone(rival, member, lives):
            if first is not None and (rival.seen_at, rival.member) != (first.seen_at, first.member):
                raise JoinRefused(_name_taken(rival))
            if not waits:
                say(f"{described(rival)} has this name and was seen lately; waiting whether it is alive")
            waits = True
            wait(LOOK_SECONDS)
            found = workers.fleet(database)
            first = first or rival
            continue
        seconds = round(offset.total_seconds())
        if workers.join(database, member, clock_offset=seconds, instead_of=rival):
            return found
        found = workers.fleet(database)


def long_dead(fleet: Fleet) -> list[FleetMember]:
    """Machines to forget: not seen for a day, and without a run that is to be ended."""
    running = {(run.worker, run.incarnation) for run in fleet.runs}
    return [
        seen.member
        for seen in fleet.machines
        if fleet.now - seen.seen_at >= FORGOTTEN
        and (seen.member.name, seen.member.incarnation) not in running
    ]


def is_running(pid: int) -> bool:
    """True for a living process with this id, other than this one."""
    try:
        return pid != os.getpid() and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _is_gone(rival: SeenMachine, member: FleetMember, lives: Callable[[int], bool]) -> bool:
    """True if the rival's process would be seen here and is not."""
    return rival.member.machine == member.machine and not lives(rival.member.pid)


def _name_taken(rival: SeenMachine) -> str:
    variable = "" if rival.member.role == "main" else ", or set RSS_WORKER_NAME to another name"
    return f"the name {rival.member.name} is taken: {described(rival)} is alive. Stop that one{variable}"


# A check that a worker keeps objects where the main machine does, so that they are not on several machines.
# The main machine leaves a mark in its store; a worker looks for it in its own.

KEY = "probe/main-machine"
"""Below a prefix that is in no copy and no backup."""


def mark(store: ObjectStore, main: FleetMember) -> None:
    """Leave the mark of this start of the main machine."""
    store.put(KEY, main.incarnation.encode(), content_type="text/plain")


def has_mark(store: ObjectStore, main: FleetMember) -> bool:
    """True if it is there."""
    found = store.get(KEY)
    return found is not None and found[0] == main.incarnation.encode()


# The version of the code: equal on two machines only where both run the same.
# The package's own version changes with releases only, and a fleet may be updated from a clone.


@cache
def code_version() -> str:
    """As `0.1.0+3f2a9c04d1be, Dagster 1.13.27`: the package, a hash over its files, and Dagster.

    Cached: a process runs the files that were there when it started, so call this at the start.
    """
    digest = hashlib.sha256()
    for path, content in sorted(_sources("", files("rss_pipeline"))):
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return f"{version('rss_pipeline')}+{digest.hexdigest()[:12]}, Dagster {version('dagster')}"


def _sources(path: str, folder: Traversable) -> list[tuple[str, bytes]]:
    found = []
    for entry in folder.iterdir():
        inner = f"{path}/{entry.name}"
        if entry.is_dir():
            found += [] if entry.name == "__pycache__" else _sources(inner, entry)
        elif entry.name.endswith((".py", ".sql", ".yaml")):
            found.append((inner, entry.read_bytes()))
    return found


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
        member: FleetMember,
        *,
        clock: Clock = utc_now,
        say: Callable[[str], None] = lambda _: None,
        lives: Callable[[int], bool] = is_running,
        before: SeenMachine | None = None,
    ) -> None:
        """`before` had the same name; if its processes would be seen here, runs that it left are looked at,
        too."""
        self._database = database
        self._member = member
        self._before = before
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
        before, member = self._before, self._member
        here = {member.incarnation}
        if before is not None and before.member.machine == member.machine:
            here.add(before.member.incarnation)
        mine = (run for run in fleet.runs if run.incarnation in here)
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
