"""A pool of parser processes with limits of time and memory: a hostile document costs its own visit only.

A worker that was killed proves nothing against its document: a kernel without memory kills too, and a person.
Only a document that ends a worker twice, each time alone in a fresh one, has failed; where something else may
have ended both, only this time. The tasks of the workers are parser_tasks.py's.
"""

import contextlib
import itertools
import logging
import multiprocessing
import os
import resource
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from multiprocessing import forkserver, util
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from pebble import ProcessExpired, ProcessPool

from rss_pipeline.collector.models.feed import USUAL_BYTES
from rss_pipeline.errors import InfrastructureError, NotAFeed, StorageRejected, file_error
from rss_pipeline.held_folders import SOCKETS, HeldFolder, socket_root

_MEMORY_BYTES = 1 << 30
"""Size of the address space for documents of the usual size. Those of 20 MB took up to 650 MB, most of it for
detecting a charset."""
_OUT_OF_MEMORY = 77
"""The exit code of a worker without memory left."""
_MOST_SAID = 2_000
_TASKS_A_WORKER = 2_000
_POOLS_TRIED = 3
_TIMES_ALONE = 2
"""Ends of a worker, each with one document alone, that count as the document's own failure."""
_PATIENCE = 5
"""A task may take that many times its limit of processor time by the clock: on a busy machine a sound
document does."""
_GRACE_SECONDS = 5.0
_LOOK_SECONDS = 1.0
"""Interval of checks of the pool while its tasks are waited for."""

PRELOADED = [
    "rss_pipeline.pipeline.session.parser_tasks",
    "rss_pipeline.collector.images.find",
    "rss_pipeline.collector.parse.document",
    "rss_pipeline.collector.sanitize.simple",
    "rss_pipeline.pipeline.session.renew_html",
]
"""Modules that the server imports once for all workers. By name: this process needs no parser."""


@runtime_checkable
class Measured(Protocol):
    """A task that knows how many bytes it reads."""

    def size(self) -> int: ...


T = TypeVar("T")
R = TypeVar("R")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerFailure:
    """The failure of a task that gave no value: its kind and a sentence."""

    kind: str
    message: str
    may_pass: bool = False
    """The machine may have caused it, and not what the task reads: the same may well be read another time."""


@dataclass(frozen=True, slots=True)
class _Limits:
    """The most that a task may take: seconds of processor time, bytes of address space."""

    seconds: float
    memory: int


@dataclass(frozen=True, slots=True)
class _Ended:
    """A worker ended with a task under way; the failure that this is if it is the task's own."""

    failure: WorkerFailure


class ParserPool:
    """A pool of parser processes, started at the first task."""

    def __init__(self, *, processes: int, timeout: float) -> None:
        self._processes = processes
        self._timeout = timeout
        self._pool: ProcessPool | None = None
        self._starting = threading.Lock()

    def map(
        self, function: Callable[[T], R], tasks: Iterable[T], *, timeout: float | None = None
    ) -> Iterator[tuple[T, R | WorkerFailure]]:
        """Run each task in a worker, each under the limit of seconds of processor time; pairs come as they
        are done. Tasks with a worker that ended come last, each alone in a fresh worker.

        A task that reads more bytes than a document usually has may take as many times the time and memory.

        Raises:
            InfrastructureError: a file of the spool cannot be read or written, or no worker stays alive.
        """

        def limit(task: T) -> _Limits:
            return _limits(task, timeout or self._timeout)

        suspects: list[T] = []
        for task, result in self._run_all(function, list(tasks), limit):
            if isinstance(result, _Ended):
                suspects.append(task)
            else:
                yield task, result
        for task in suspects:
            yield task, self._run_alone(function, task, limit)

    def attempt(self, function: Callable[[T], object], task: T) -> None:
        """Run a task in a worker, whatever becomes of it, beside calls of other threads."""
        limits = _limits(task, self._timeout)
        try:
            pool = self._started()
            pool.schedule(
                _bounded, args=[function, limits, task], timeout=limits.seconds * _PATIENCE
            ).result()
        except Exception as error:  # noqa: BLE001 - foreign parsers raise anything; `map` says what of it matters
            logger.debug("a task that was begun early did not end: %s", error)

    def _run_alone(
        self, function: Callable[[T], R], task: T, limit: Callable[[T], _Limits]
    ) -> R | WorkerFailure:
        for left in reversed(range(_TIMES_ALONE)):
            # A fresh worker: what earlier tasks left in the old ones counts against their memory.
            self.close()
            [(_, result)] = self._run_all(function, [task], limit)
            if not isinstance(result, _Ended):
                return result
            if not left:
                return result.failure
        raise AssertionError

    def _run_all(
        self, function: Callable[[T], R], tasks: list[T], limit: Callable[[T], _Limits]
    ) -> Iterator[tuple[T, R | WorkerFailure | _Ended]]:
        for _ in range(_POOLS_TRIED):
            broken: list[T] = []
            for task, result in self._run(function, tasks, limit):
                if isinstance(result, BrokenProcessPool):
                    broken.append(task)
                else:
                    yield task, result
            if not broken:
                return
            # All workers were killed while none had a task, which the pool does not survive.
            self.close()
            tasks = broken
        raise InfrastructureError(
            f"the parser processes were killed, or could not start, {_POOLS_TRIED} times in a row; check this"
            " machine's memory"
        )

    def _run(
        self, function: Callable[[T], R], tasks: Sequence[T], limit: Callable[[T], _Limits]
    ) -> Iterator[tuple[T, R | WorkerFailure | _Ended | BrokenProcessPool]]:
        """Two tasks for each worker are under way: their results wait in memory until they are taken."""
        futures: dict[Future[R], T] = {}
        waiting = iter(tasks)
        try:
            while True:
                for task in itertools.islice(waiting, 2 * self._processes - len(futures)):
                    try:
                        limits = limit(task)
                        future = self._started().schedule(
                            _bounded, args=[function, limits, task], timeout=limits.seconds * _PATIENCE
                        )
                    except RuntimeError as error:
                        yield task, BrokenProcessPool(str(error))
                    else:
                        futures[future] = task
                if not futures:
                    return
                done, _ = wait(futures, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)
                if not done and not self._started().active:
                    # A pool that breaks fails the tasks that it knows. One that came into its queue in that
                    # moment is never begun, and never done.
                    for future in [future for future in futures if not future.done()]:
                        future.cancel()
                        yield futures.pop(future), BrokenProcessPool("the pool broke before it took the task")
                for future in done:
                    task = futures.pop(future)
                    result: R | WorkerFailure | _Ended | BrokenProcessPool = _settle(future, limit(task))
                    yield task, result
        finally:
            for future in futures:
                future.cancel()

    def close(self) -> None:
        """End the worker processes at once."""
        if self._pool is not None:
            self._pool.stop()  # type: ignore[no-untyped-call]
            self._pool.join()
            self._pool = None

    def _started(self) -> Any:
        # Several threads begin tasks early; a second pool would be ended by nobody.
        with self._starting:
            if self._pool is None:
                # Not fork: the run's process has threads. The server imports the parsers once, and a worker
                # that was killed is replaced in milliseconds.
                self._pool = ProcessPool(
                    max_workers=self._processes,
                    max_tasks=_TASKS_A_WORKER,
                    initializer=_limit_memory,
                    context=_context(),
                )
            return self._pool


def begin_server() -> None:
    """Let the server import the parsers while this process does something else: the first pool waits for it.
    What fails is said by the pool."""
    with contextlib.suppress(OSError, InfrastructureError):
        _context()
        forkserver.ensure_running()


def _context() -> Any:
    put_sockets(os.getpid())
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *PRELOADED])
    return context


def _limits(task: object, seconds: float) -> _Limits:
    times = max(1.0, task.size() / USUAL_BYTES) if isinstance(task, Measured) else 1.0
    return _Limits(seconds * times, int(_MEMORY_BYTES * times))


@cache
def put_sockets(pid: int) -> None:  # noqa: ARG001 - a child process has sockets of its own
    """Let the server's sockets be in a folder of this process, for as long as it lives.

    In the usual one, which only this process knows, a killed process would leave them for ever.
    """
    try:
        held = HeldFolder(socket_root(), prefix=SOCKETS)
    except OSError as error:
        what = "the parser processes have no folder for their sockets"
        raise InfrastructureError(file_error(what, error, Path(tempfile.gettempdir()))) from error
    multiprocessing.current_process()._config["tempdir"] = str(held.path)  # type: ignore[attr-defined]
    util.Finalize(None, held.remove, exitpriority=-100)


def _settle(future: "Future[R]", limits: _Limits) -> R | WorkerFailure | _Ended | BrokenProcessPool:
    try:
        return future.result()
    except NotAFeed as error:
        return WorkerFailure(error.kind, str(error)[:_MOST_SAID])
    except StorageRejected as error:
        return WorkerFailure("storage_rejected", str(error))
    except TimeoutError:
        return _Ended(_too_slow(limits))
    except BrokenProcessPool as error:
        return error
    except ProcessExpired as error:
        return _expired(error.exitcode, limits)
    except OSError as error:
        # Parsers open no file: what failed is the spool, or the start of a process.
        where = Path(tempfile.gettempdir()) if error.filename is None else Path(error.filename).parent
        what = "a parser process could not work (check the spool folder, the disk and the memory)"
        raise InfrastructureError(file_error(what, error, where)) from error
    except Exception as error:  # noqa: BLE001 - foreign parsers raise anything; one document fails
        return WorkerFailure(
            "crashed", f"the parser failed on this document: {type(error).__name__}: {error}"[:500]
        )


def _expired(exit_code: int, limits: _Limits) -> WorkerFailure | _Ended:
    match -exit_code:
        case signal.SIGPROF:
            # The kernel counted the processor time: that is the document's own.
            return _overran(limits)
        case signal.SIGALRM:
            return _Ended(_too_slow(limits))
        case signal.SIGKILL | signal.SIGTERM as number:
            # No parser sends these to itself.
            return _Ended(
                WorkerFailure(
                    "crashed",
                    f"the parser process was killed, {_TIMES_ALONE} times alone with this document"
                    f" ({signal.Signals(number).name}): this machine may lack memory",
                    may_pass=True,
                )
            )
    if exit_code == _OUT_OF_MEMORY:
        return _Ended(
            WorkerFailure(
                "parse_memory",
                f"parsing took more than {limits.memory >> 20:,} MB of memory and was stopped",
            )
        )
    return _Ended(
        WorkerFailure(
            "crashed",
            f"the parser process died of this document, {_TIMES_ALONE} times alone (exit code {exit_code})",
        )
    )


def _overran(limits: _Limits) -> WorkerFailure:
    return WorkerFailure("parse_timeout", f"parsing took more than {limits.seconds:g} s and was stopped")


def _too_slow(limits: _Limits) -> WorkerFailure:
    """By the clock: the worker, this process or the machine may have slept, or was busy."""
    message = f"parsing took more than {limits.seconds * _PATIENCE:g} s by the clock and was stopped"
    return WorkerFailure("parse_timeout", message, may_pass=True)


def _bounded(function: Callable[[T], R], limits: _Limits, task: T) -> R:
    """Run a task. The kernel ends a task that overruns, also where the process waiting for it was killed."""
    _limit_memory(limits.memory)
    signal.setitimer(signal.ITIMER_PROF, limits.seconds)
    signal.setitimer(signal.ITIMER_REAL, limits.seconds * _PATIENCE + _GRACE_SECONDS)
    try:
        return function(task)
    except MemoryError:
        # Unfinished objects fill this process; the next document gets a fresh one.
        os._exit(_OUT_OF_MEMORY)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _limit_memory(most: int = _MEMORY_BYTES) -> None:
    with contextlib.suppress(OSError, ValueError):
        # The hard limit stays: a later task may be larger.
        limits = most + _at_start(os.getpid()), resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, limits)


@cache
def _at_start(pid: int) -> int:  # noqa: ARG001 - each worker has its own
    """The size of this worker's address space before its first task: below `up` it begins with all that the
    processes there share."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    except OSError:
        return 0
