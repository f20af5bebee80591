"""Processes of `up` that are started again where they end, or when somebody connects. Those of a real one are
tested in cli/up/test_up.py and test_killed_parts.py."""

import errno
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest

from rss_pipeline.errors import InfrastructureError, not_started
from rss_pipeline.orchestration.serving.forked import AGAIN, DONE
from rss_pipeline.orchestration.serving.front import Front
from rss_pipeline.orchestration.serving.kept import Follower, Kept
from rss_pipeline.orchestration.serving.restarted import next_wait
from rss_pipeline.web.on_demand import HEAD_SECONDS
from rss_pipeline_tests.support.waiting import PATIENCE, soon

STARTED = """
import os, pathlib, signal, sys, time
if "polite" in sys.argv:
    signal.signal(signal.SIGUSR1, lambda *_: sys.exit(int(sys.argv[3])))
folder = pathlib.Path(sys.argv[1])
(folder / f"{os.getpid()}.new").touch()
(folder / f"{os.getpid()}.new").rename(folder / str(os.getpid()))
if "fails" in sys.argv:
    sys.exit(1)
if "ends" not in sys.argv:
    time.sleep(600)
"""


class Seconds:
    """A clock of seconds that a test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def started(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.iterdir() if path.suffix == ""]


def has_ended(pid: int) -> bool:
    return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    """Starts a process that notes its id in the folder, and is ended after the test."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str) -> "subprocess.Popen[bytes]":
        processes.append(subprocess.Popen([sys.executable, "-c", STARTED, str(tmp_path), *arguments]))
        return processes[-1]

    yield start
    for each in processes:
        with suppress(ProcessLookupError):
            each.kill()
        each.wait()


def test_the_wait_grows_to_a_minute_and_shrinks_after_a_long_life() -> None:
    waits = [0.0]
    for _ in range(8):
        waits.append(next_wait(5.0, waits[-1]))
    assert waits == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert next_wait(61.0, 60.0) == 1.0


def test_one_that_was_killed_is_started_again_when_its_wait_is_over(
    tmp_path: Path, process: Callable[[], "subprocess.Popen[bytes]"]
) -> None:
    clock = Seconds()
    kept = Kept("It", process, clock=clock)
    kept.look()
    [first] = soon(lambda: started(tmp_path))
    kept.look()
    assert started(tmp_path) == [first]
    os.kill(first, signal.SIGKILL)
    soon(lambda: has_ended(first))
    kept.look()
    clock.now += 0.9
    kept.look()
    assert kept.process is None, "not before its wait is over"
    assert kept.is_missing
    clock.now += 0.2
    kept.look()
    soon(lambda: len(started(tmp_path)) == 2)


def test_one_that_no_one_needs_is_started_for_who_connects(
    tmp_path: Path, process: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    clock = Seconds()
    with socket.create_server(("127.0.0.1", 0)) as door:
        kept = Kept(
            "It", lambda: process("ends"), front=Front(door, hands_over=False), at_once=False, clock=clock
        )
        kept.look()
        assert kept.process is None
        assert kept.awaited == [door]
        kept.heard(door)
        assert kept.awaited == [], "the process has the socket now"
        [first] = soon(lambda: started(tmp_path))
        soon(lambda: has_ended(first))
        assert not kept.is_missing, "a health check between two looks"
        clock.now += 600
        kept.look()
        assert kept.process is None
        assert not kept.is_missing
        assert kept.awaited == [door], "it has ended by itself"


def test_one_at_rest_awaits_its_silent_clients_and_has_all_of_them_once_it_is_started(
    tmp_path: Path, process: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    clock = Seconds()
    with socket.create_server(("127.0.0.1", 0)) as door, ExitStack() as stack:
        front = Front(door, clock=clock)
        kept = Kept("It", process, front=front, at_once=False, clock=clock)

        def client() -> socket.socket:
            found = socket.create_connection(door.getsockname(), timeout=PATIENCE)
            soon(lambda: select.select([door], [], [], 0)[0])
            kept.heard(door)
            return stack.enter_context(found)

        silent = client()
        assert kept.awaited == [door, *front.clients]
        assert len(front.clients) == 1
        clock.now += HEAD_SECONDS + 1
        kept.look()
        assert silent.recv(1) == b""
        assert (kept.process, kept.awaited) == (None, [door])
        client()
        client().sendall(b"GET / HTTP/1.1\r\n\r\n")
        _, asking = front.clients
        soon(lambda: select.select([asking], [], [], 0)[0])
        kept.heard(asking)
        assert kept.process is not None
        assert (kept.awaited, front.clients) == ([], {})
        soon(lambda: started(tmp_path))


def test_one_that_is_renewed_ends_and_the_next_is_started_for_who_connects(
    tmp_path: Path, process: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        kept = Kept("It", lambda: process("polite", str(DONE)), front=Front(door, hands_over=False))
        kept.renew()
        kept.look()
        [first] = soon(lambda: started(tmp_path))
        kept.renew()
        soon(lambda: has_ended(first))
        kept.look()
        assert (kept.process, kept.awaited) == (None, [door])
        kept.heard(door)
        soon(lambda: len(started(tmp_path)) == 2)


def test_one_that_is_needed_without_clients_is_renewed_at_once(
    tmp_path: Path, process: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        kept = Kept(
            "It", lambda: process("polite", str(AGAIN)), front=Front(door, hands_over=False), clock=Seconds()
        )
        kept.look()
        [first] = soon(lambda: started(tmp_path))
        kept.renew()
        soon(lambda: has_ended(first))
        kept.look()
        soon(lambda: len(started(tmp_path)) == 2)


def test_one_for_which_there_can_be_no_process_is_tried_again() -> None:
    clock = Seconds()
    tried: list[float] = []

    def start() -> "subprocess.Popen[bytes]":
        tried.append(clock.now)
        raise InfrastructureError(not_started(OSError(errno.EAGAIN, "")))

    kept = Kept("It", start, clock=clock)
    for _ in range(8):
        kept.look()
        clock.now += 1
    assert tried == [100, 101, 103, 107]


def test_one_that_follows_is_started_for_each_change_and_after_a_failure_while_the_other_runs(
    tmp_path: Path, process: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    clock, changes, said = Seconds(), [True], []
    other = Kept("The other", process, clock=clock)

    def start(is_said: bool) -> "subprocess.Popen[bytes]":
        said.append(is_said)
        return process("fails" if len(said) == 2 else "ends")

    def looked(seconds: float, *, has_runs: bool = False) -> int:
        """The number of starts after a look so many seconds later, once what it started has ended."""
        clock.now += seconds
        follower.look(has_runs=has_runs)
        if follower.process is not None:
            follower.process.wait()
            follower.look()
        return len(said)

    follower = Follower("It", start, lambda: bool(changes and changes.pop()), beside=other, clock=clock)
    assert looked(600) == 0, "nobody reads"
    other.look()
    assert looked(0) == 0, "the first answer goes first"
    assert looked(1) == 1
    changes.append(True)
    assert looked(4) == 1
    assert looked(1) == 2
    assert looked(9) == 2, "a failure waits for longer"
    assert looked(1) == 3
    assert looked(600) == 3, "nothing has changed"
    changes.append(True)
    assert looked(6, has_runs=True) == 3
    assert looked(119, has_runs=True) == 3, "two at once take much memory"
    assert looked(1, has_runs=True) == 4, "a long run is not waited for"
    changes.append(True)
    assert looked(6, has_runs=True) == 4
    assert looked(1) == 5
    assert said == [True, True, False, True, True]
