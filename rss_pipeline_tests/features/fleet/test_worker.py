"""The processes of a worker: restarted where they end, interrupted by a signal, in peace when outdated."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from rss_pipeline.features.fleet.membership import Over
from rss_pipeline.features.fleet.worker import consumer, keep_consuming
from rss_pipeline_tests.support.waiting import PATIENCE, soon

CONSUMER = """
import os, pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[1])
def end(number, _):
    (folder / f"{os.getpid()}.{signal.Signals(number).name}").touch()
    if "deaf" not in sys.argv:
        sys.exit(0)
signal.signal(signal.SIGINT, end)
signal.signal(signal.SIGTERM, end)
(folder / str(os.getpid())).touch()
while True:
    time.sleep(600)
"""


class Worker:
    """`keep_consuming` in a thread."""

    def __init__(self, folder: Path, *arguments: str, stop: float = PATIENCE) -> None:
        self.folder = folder
        self.over: Over | None = None
        self.signals: list[int] = []
        self.said: list[str] = []
        self.code: int | None = None
        self._command = [sys.executable, "-c", CONSUMER, str(folder), *arguments]
        self.thread = threading.Thread(target=self._work, args=(stop,))

    def _work(self, stop: float) -> None:
        self.code = keep_consuming(
            {"default": self._command}, self, self.signals, say=self.said.append, look=0.02, stop=stop
        )

    def started(self) -> list[int]:
        return [int(path.name) for path in self.folder.iterdir() if path.suffix == ""]

    def ended_by(self) -> list[str]:
        return sorted(path.suffix[1:] for path in self.folder.iterdir() if path.suffix)

    def end(self) -> int | None:
        self.thread.join(PATIENCE)
        assert not any(map(psutil.pid_exists, self.started()))
        return self.code


@contextmanager
def working(worker: Worker) -> Iterator[int]:
    worker.thread.start()
    try:
        [pid] = soon(worker.started)
        yield pid
    finally:
        worker.signals += [signal.SIGTERM] * 2
        worker.thread.join(PATIENCE)


def test_a_signal_interrupts_the_runs_and_ends_the_worker_well(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    with working(worker):
        worker.signals.append(signal.SIGINT)
        assert worker.end() == 0
    assert (worker.ended_by(), worker.said) == (["SIGTERM"], [])


def test_an_outdated_worker_ends_its_runs_in_peace_and_says_what_to_do(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    with working(worker):
        worker.over = Over(reason="update it")
        assert worker.end() == 1
    assert worker.ended_by() == ["SIGINT"]
    assert worker.said == [
        "This worker is over: update it. Now it takes no more runs and ends with those it has."
    ]


def test_a_worker_interrupts_its_runs_once_another_machine_has_its_name(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    with working(worker):
        worker.over = Over(reason="another", is_replaced=True)
        assert worker.end() == 1
    assert worker.ended_by() == ["SIGTERM"]


@pytest.mark.slow
def test_a_consumer_that_was_killed_is_restarted(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    with working(worker) as first:
        os.kill(first, signal.SIGKILL)
        soon(lambda: len(worker.started()) == 2)
        worker.signals.append(signal.SIGTERM)
        assert worker.end() == 0


@pytest.mark.slow
def test_runs_that_do_not_end_are_killed_by_a_second_signal_or_when_their_time_is_over(
    tmp_path: Path,
) -> None:
    for name, stop, signals in (("second", PATIENCE, 2), ("time", 0.2, 1)):
        folder = tmp_path / name
        folder.mkdir()
        worker = Worker(folder, "deaf", stop=stop)
        with working(worker):
            worker.signals += [signal.SIGTERM] * signals
            assert worker.end() == 0, name


def test_the_command_of_a_consumer_has_its_queue_its_places_and_the_tags_of_its_runs() -> None:
    command = consumer("high", 1, {"a": "b"})
    assert command[-5:] == ["rss_pipeline.features.fleet.consumer", str(os.getpid()), "high", "1", "a=b"]


def test_a_consumer_with_a_worker_that_was_killed_meanwhile_takes_no_run(tmp_path: Path) -> None:
    """The worker is a process that has ended, as where it was killed during the imports."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    command = consumer("default", 1, {})
    command[command.index(str(os.getpid()))] = str(gone.pid)
    # A broker to which connections stay open: a consumer that takes runs would wait for it.
    with socket.create_server(("127.0.0.1", 0)) as broker:
        environment = {
            **os.environ,
            "RSS_PIPELINE_HOME": str(tmp_path),
            "DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none",
            "RSS_BROKER_URL": f"redis://127.0.0.1:{broker.getsockname()[1]}/0",
        }
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, timeout=PATIENCE, capture_output=True, text=True
        )
        broker.settimeout(0)
        with pytest.raises(BlockingIOError):
            broker.accept()
    assert done.returncode in (0, -signal.SIGTERM), done.stderr
    assert "the worker was killed" in done.stderr
