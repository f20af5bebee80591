"""A process that is forked from this one: it has everything imported, and shares nearly all memory with it.

A process with threads, or with an open database or socket, cannot be forked safely: `Forked` refuses it.
"""

import ctypes
import gc
import logging
import multiprocessing
import os
import random
import signal
import socket
import sys
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from multiprocessing import util
from types import ModuleType
from typing import ClassVar, NoReturn

from rss_pipeline.errors import InfrastructureError, not_started, sentence_for
from rss_pipeline.orchestration.serving.child import Child

_ENDING = {signal.SIGINT, signal.SIGTERM}
DONE, WAITING, AGAIN, FAILED = 0, 3, 4, 1
"""Exit codes: all is done; requests are left; the next one goes on; it could not be done."""
_SET_PARENTS_DEATH_SIGNAL, _SET_NAME = 1, 15
"""prctl(2), which only Linux has."""
_prctl = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None
_STORAGES = "rss_pipeline.orchestration.instance.storages"
"""Not imported here: the reader is forked before Dagster is there."""

_logger = logging.getLogger(__name__)


class Forked(Child):
    """A forked process. It gets SIGTERM when its parent is killed (on Linux), and has this name in `top`. Of
    the sockets of its parent it `keeps` these.

    Raises:
        InfrastructureError: there can be no more processes now.
    """

    listeners: ClassVar[list[socket.socket]] = []
    """The sockets at which this process listens, and connections there. A fork that had them all would keep a
    port from the next `up`, and a client waiting."""

    def __init__(self, name: str, work: Callable[[], int], *, keeps: Collection[socket.socket] = ()) -> None:
        if threading.active_count() > 1:
            raise RuntimeError(f"a process with threads is not forked: {threading.enumerate()}")
        if found := self._open():
            raise RuntimeError(f"a process with an open database or socket is not forked: {found}")
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        # Python loses an interrupt in the middle of a fork, and `up` would go on.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        try:
            pid = os.fork()
            if pid == 0:
                _exit_after(name, parent, work, keeps, before)
            super().__init__(pid)
        except OSError as error:
            raise InfrastructureError(f"no process could be started: {not_started(error)}") from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    @classmethod
    def _open(cls) -> list[str]:
        """The databases and sockets that a fork would use as its own, where the system shows them."""
        closed = {str(each.fileno()) for each in cls.listeners}
        return [
            path
            for number, path in _open_files().items()
            if path.endswith((".db", ".sqlite", "-wal", "-shm"))
            or (path.startswith("socket:") and number not in closed and path not in _FROM_OUTSIDE)
        ]


def _open_files() -> dict[str, str]:
    """The open files of this process by number; none where the system does not show them."""
    found = {}
    with suppress(OSError):
        for number in os.listdir("/proc/self/fd"):
            # The listing itself is among them.
            with suppress(OSError):
                found[number] = os.readlink(f"/proc/self/fd/{number}")
    return found


_FROM_OUTSIDE = frozenset(_open_files().values())
"""Files of whoever started this process: the output of a service is a socket."""


def freeze() -> None:
    """Let the collector leave alone what there is: its pages stay shared with the processes forked later.

    It looks at what comes after that more often than at imports, which leave no garbage: a process at rest
    would have 50,000 objects of it, 3 MB.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 10, 10)


def expect_objects() -> None:
    """Let the collector look seldom, in a process that makes many objects that stay, or ends soon."""
    gc.set_threshold(50_000, 20, 20)


def _exit_after(
    name: str,
    parent: int,
    work: Callable[[], int],
    keeps: Collection[socket.socket],
    mask: set[int | signal.Signals],
) -> NoReturn:
    # Not sys.exit: what the parent has registered for its own end is not ours to do.
    code = FAILED
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for listener in Forked.listeners:
            if listener not in keeps:
                listener.close()
        if _prctl is not None:
            _prctl(_SET_PARENTS_DEATH_SIGNAL, signal.SIGTERM)
            _prctl(_SET_NAME, name.encode()[:15])
        if os.getppid() != parent:
            os._exit(FAILED)
        # Parser processes would import the parent's program once more, with all of Dagster.
        sys.modules["__main__"] = ModuleType("__main__")
        random.seed()
        code = work()
    except KeyboardInterrupt:
        code = WAITING
    except BaseException as error:
        sentence = sentence_for(error)
        _logger.error("the process %s failed: %s", name, sentence or error, exc_info=sentence is None)
    finally:
        try:
            _tidy_up()
        finally:
            # Also if it is interrupted once more: its parent's work, of which it is a copy, must not go on.
            os._exit(code)


def _tidy_up() -> None:
    with suppress(Exception):
        # Workers of a pool whose end was interrupted would be waited for, and they wait for tasks.
        for worker in multiprocessing.active_children():
            worker.kill()
    with suppress(Exception):
        # The folder of the parsers' sockets goes.
        util._exit_function()  # type: ignore[attr-defined]
    with suppress(Exception):
        # A run's file would keep a log of 2 MB beside it for as long as it is there.
        if (storages := sys.modules.get(_STORAGES)) is not None:
            storages.OPEN_FILES.close()
    with suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
