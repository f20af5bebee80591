"""A process beside Dagster's ends and is restarted alone. That the reader is one: cli/up/test_up.py."""

import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from rss_pipeline.orchestration.serving.restarted import next_wait, restarted
from rss_pipeline_tests.support.waiting import soon

STARTED = """
import os, pathlib, signal, sys, time
if "deaf" in sys.argv:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
folder = pathlib.Path(sys.argv[1])
(folder / f"{os.getpid()}.new").touch()
(folder / f"{os.getpid()}.new").rename(folder / str(os.getpid()))
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


def test_the_wait_grows_to_a_minute_and_shrinks_after_a_long_life() -> None:
    waits = [0.0]
    for _ in range(8):
        waits.append(next_wait(5.0, waits[-1]))
    assert waits == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert next_wait(61.0, 60.0) == 1.0


def test_it_is_restarted_when_its_wait_is_over_and_ended_with_the_block(tmp_path: Path) -> None:
    clock = Seconds()
    with restarted("It", [sys.executable, "-c", STARTED, str(tmp_path)], clock=clock) as look:
        [first] = soon(lambda: started(tmp_path))
        look()
        assert started(tmp_path) == [first]
        os.kill(first, signal.SIGKILL)
        soon(lambda: has_ended(first))
        look()
        look()
        clock.now += 0.9
        look()
        assert started(tmp_path) == [first], "not before its wait is over"
        clock.now += 0.2
        look()
        soon(lambda: len(started(tmp_path)) == 2)
        look()
    assert [pid for pid in started(tmp_path) if psutil.pid_exists(pid)] == []


@pytest.mark.slow
def test_one_that_does_not_end_by_itself_is_killed(tmp_path: Path) -> None:
    with restarted("It", [sys.executable, "-c", STARTED, str(tmp_path), "deaf"], stop=0.3):
        [pid] = soon(lambda: started(tmp_path))
    assert not psutil.pid_exists(pid)


def test_nothing_is_left_to_end_while_it_waits(tmp_path: Path) -> None:
    with restarted("It", [sys.executable, "-c", STARTED, str(tmp_path), "ends"], clock=Seconds()) as look:
        [pid] = soon(lambda: started(tmp_path))
        soon(lambda: has_ended(pid))
        look()
    assert started(tmp_path) == [pid]
