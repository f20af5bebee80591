"""The exceptions of this project, as one tree.

A feed's own failure is not here: it is a value (`collector.models.failure.Failure`).

RssPipelineError
 ├ SettingsError            a variable of the environment has a value that cannot be used
 ├ RegistryError            feeds.yaml, or a list to import, has mistakes; carries all of them
 ├ NotAFeed                 bytes that no reading of ours turns into a feed
 ├ BackupUnreadable         an object under backups/ or state/ that cannot be read
 ├ CleanRefused             a clean would remove what is probably not old
 ├ CopyRefused              a copy would lose or mix something
 ├ ExportRefused            a file that cannot be written as requested
 ├ ForgetRefused            a feed that cannot be forgotten now
 ├ AlreadyRunning           another process works in this home
 ├ JoinRefused              a machine that cannot be part of the fleet as it is
 ├ HomeNotLockable          nothing shows whether another process works in this home
 ├ NoSession                no user is logged in with this token
 ├ UserRefused              a user that cannot be added, or that there is not
 ├ PasswordRefused          a text that cannot be a password
 ├ CodeRefused              a text that is not the code for the first user
 ├ AppPasswordRefused       an app password that cannot be added
 ├ HashingBusy              too many passwords are being checked at once
 ├ StorageRejected          one statement's or object's data is refused by the store
 └ InfrastructureError      a store cannot do its work now; the run fails
    ├ DatabaseUnavailable
    │  ├ DatabaseFull         no room is left for rows; a clean or `forget` makes some
    │  ├ TableMissing         it has not this code's tables: it was not migrated
    │  └ DatabaseLost         it is empty, and the object store has its backups
    ├ BrokerUnavailable      Redis, which hands runs to workers
    ├ ObjectStoreUnavailable
    └ NetworkUnavailable    every feed of a round failed at once: our network, not theirs
       └ NothingReached     the same before any feed has ever answered
"""

import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


class RssPipelineError(Exception):
    """Base of every exception this project raises on purpose. Its text is a sentence for a person."""


@dataclass(frozen=True, slots=True)
class SettingMistake:
    """A mistake in the environment: the variables it concerns, and what to write instead."""

    names: tuple[str, ...]
    message: str

    def __str__(self) -> str:
        return f"{', '.join(self.names)}: {self.message}"


class SettingsError(RssPipelineError):
    """The environment is incomplete or contradicts itself. The text has one line for each of `mistakes`."""

    def __init__(self, *mistakes: SettingMistake) -> None:
        self.mistakes = mistakes
        super().__init__(*mistakes)

    def __str__(self) -> str:
        return "\n".join(map(str, self.mistakes))


class RegistryError(RssPipelineError):
    """feeds.yaml, or a list to import into it, is refused.

    `mistakes` has one line of text each: where, what, and what to write.
    """

    def __init__(self, path: str, mistakes: list[str]) -> None:
        self.path = path
        self.mistakes = mistakes
        super().__init__(path, mistakes)

    def __str__(self) -> str:
        head = f"{self.path}: {len(self.mistakes)} mistake(s); nothing was changed."
        return "\n".join([head, *(f"  {mistake}" for mistake in self.mistakes)])


class NotAFeed(RssPipelineError):
    """A document without a feed in it. `kind` is the failure kind a visit ends with."""

    def __init__(self, message: str, kind: str = "not_a_feed") -> None:
        self.kind = kind
        super().__init__(message, kind)

    def __str__(self) -> str:
        return str(self.args[0])


class BackupUnreadable(RssPipelineError):
    """A backup without what a replay or restore needs of it; an error of one backup and no other."""


class CleanRefused(RssPipelineError):
    """A clean would remove what is probably not old, as after a change of the clock; nothing was removed."""


class CopyRefused(RssPipelineError):
    """A copy from one pair of stores to another cannot begin, or did not end alike; nothing was deleted."""


class ExportRefused(RssPipelineError):
    """Items cannot be written as requested: the format's library is missing, or the file cannot be made."""


class ExtraMissing(RssPipelineError):
    """A library of an extra is not installed."""


class ForgetRefused(RssPipelineError):
    """A feed is registered or in use, so that nothing of it was deleted."""


class AlreadyRunning(RssPipelineError):
    """Another `rss-pipeline up` works in the same home."""


class JoinRefused(RssPipelineError):
    """This machine cannot be part of the fleet: its version, its clock or its name do not fit the others."""


class HomeNotLockable(RssPipelineError):
    """The home's file system has no locks, so that a second `rss-pipeline up` would not be noticed."""


class NoSession(RssPipelineError):
    """A token that is none of ours, or of a session that has ended. Nothing was read or written for it."""

    def __init__(self) -> None:
        super().__init__("you are not logged in, or no longer; log in again")


class UserRefused(RssPipelineError):
    """A user cannot be added, or there is none of this name; the text is for an operator."""


class PasswordRefused(RssPipelineError):
    """A text cannot be a user's password."""


class ContactRefused(RssPipelineError):
    """A text cannot be the contact that publishers get."""


class CodeRefused(RssPipelineError):
    """A text is not the code that makes the first user. `retry_after`: seconds in which none is looked at."""

    def __init__(self, message: str, *, retry_after: int | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class AppPasswordRefused(RssPipelineError):
    """An app password cannot be added."""


class HashingBusy(RssPipelineError):
    """So many passwords are being checked that another would have to wait long."""


class StorageRejected(RssPipelineError):
    """The store refuses this data (a constraint, a limit): it ends one visit and no other."""


class InfrastructureError(RssPipelineError):
    """A store or the network is not there. Nothing was half-written; the feeds are due again."""


class DatabaseUnavailable(InfrastructureError):
    """The database is locked, read-only, full, unreachable or answers with a server error."""


class DatabaseFull(DatabaseUnavailable):
    """No room is left for more rows. Rows can be deleted: the next ones take their room."""


class TableMissing(DatabaseUnavailable):
    """A table of a statement is not there."""


class DatabaseLost(DatabaseUnavailable):
    """A database without any table, beside an object store with backups of feeds or users. None was made."""


class BrokerUnavailable(InfrastructureError):
    """The broker is unreachable, refuses us, or takes no messages."""


class ObjectStoreUnavailable(InfrastructureError):
    """The object store is not writable, full, unreachable or answers with a server error."""


class NetworkUnavailable(InfrastructureError):
    """Every visit of a round failed in the network although its hosts answered before."""


class NothingReached(NetworkUnavailable):
    """Every visit of a round failed in the network, and no feed has ever answered: a first start offline."""


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


_LITTLE_BYTES = 1_000_000
"""Less room than this explains an I/O error of SQLite: it needs some room to open a file even for reading."""
ROOM_OF_A_RUN = 5_000_000
"""A run writes its events, a spool and the database's log."""


def disk_is_full(error: BaseException, *, at: Path | None = None) -> bool:
    """True if the error, or one that it followed from, is that of a full disk or a used-up quota.

    Whoever raised it: SQLite, a spool file, Dagster's event log. It counts against no feed. `at` is where the
    files are, if that is known: SQLite reports most full disks as an I/O error.
    """
    met: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in met:
        met.add(id(cause))
        if isinstance(cause, OSError) and cause.errno in _FULL:
            return True
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return True
        if code == sqlite3.SQLITE_IOERR and at is not None and free_bytes(at) < _LITTLE_BYTES:
            return True
        cause = cause.__cause__ or cause.__context__
    return False


_NO_MORE = "this user may have no more processes (`ulimit -u`, or the limit of the container)"


def not_started(error: OSError) -> str:
    """The reason why the system starts no process."""
    return _NO_MORE if error.errno == errno.EAGAIN else error.strerror or str(error)


def sentence_for(error: BaseException, *places: Path) -> str | None:
    """The sentence for an error that a person can do something about; None for any other.

    `places` are the folders whose disks may be full, and whose files this user may not reach.
    """
    if isinstance(error, RssPipelineError):
        return str(error)
    # From a library: Dagster's history, which may have a disk of its own, or a file to be written.
    if isinstance(error, RuntimeError) and str(error) == "can't start new thread":
        return f"{_NO_MORE}, of which each thread is one"
    if isinstance(error, PermissionError) and any(_is_in(error.filename, place) for place in places):
        return (
            f"{error.filename} cannot be reached: {error.strerror}. Give this user the right to it, or set"
            " RSS_PIPELINE_HOME to another folder"
        )
    if not places or not disk_is_full(error, at=(fullest := min(places, key=free_bytes))):
        return None
    # SQLAlchemy says the statement on further lines.
    cause, *_ = str(error).splitlines() or [""]
    return f"{_where(error, fullest)}. Cause: {type(error).__name__}: {cause}"


def _is_in(filename: object, folder: Path) -> bool:
    return isinstance(filename, str) and Path(filename).is_relative_to(folder)


def _where(error: BaseException, folder: Path) -> str:
    """The first words about a full disk: that of the file, or of the command's output, which has no name."""
    if isinstance(error, OSError):
        return "the disk is full" if error.filename is None else disk_full(Path(error.filename).parent)
    return disk_full(folder)


def disk_full(path: Path) -> str:
    """The first words about a full disk: where to make room, and how much is free there."""
    free = free_bytes(path)
    quota = "" if free < ROOM_OF_A_RUN else "; a quota may be used up"
    return f"the disk is full: make room below {path.absolute()} ({free:,} bytes are free{quota})"


def ensure_room(*paths: Path) -> None:
    """Check that a run can begin: without room for its history it would end with other words.

    Raises:
        InfrastructureError: the disk of one of them is full, or nearly.
    """
    for path in paths:
        if free_bytes(path) < ROOM_OF_A_RUN:
            raise InfrastructureError(disk_full(path))


def file_error(what: str, error: OSError, path: Path) -> str:
    """The error of a file or folder for a person, after what failed; a full disk is said first."""
    if disk_is_full(error):
        return f"{disk_full(path)}. {what}"
    return f"{what}: {error.strerror or str(error) or type(error).__name__}"


@contextmanager
def spooling(path: Path) -> Iterator[None]:
    """Raise `InfrastructureError` for an `OSError` of the block: a full disk is not the publisher's fault."""
    try:
        yield
    except OSError as error:
        raise InfrastructureError(
            file_error(f"the spool file {path} cannot be written", error, path.parent)
        ) from error


def free_bytes(path: Path) -> int:
    """The free bytes of the disk of a file or folder, which may not be there yet."""
    there = next((each for each in (path, *path.parents) if os.path.exists(each)), Path("/"))
    return shutil.disk_usage(there).free
