"""The supervisor of `rss-pipeline up`: a command that ends by itself is restarted until a signal ends it."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.cli.supervisor import LONGEST_WAIT, STEADY_SECONDS, wait_before_restart
from rss_pipeline_tests.support.up import PROGRAM
from rss_pipeline_tests.support.waiting import PATIENCE, PROMPT, soon


@pytest.mark.parametrize(
    ("lives", "pause"),
    [
        ([3], None),  # It never came up: the person who started it reads why.
        ([30], 1),
        ([30, 3], 2),
        ([30, 3, 3, 3], 8),
        ([30, *[3] * 20], LONGEST_WAIT),
        ([30, 3, 3, STEADY_SECONDS], 1),
        ([30, 3, STEADY_SECONDS, 3], 1),
    ],
)
def test_pauses_grow_while_lives_are_short(lives: list[float], pause: float | None) -> None:
    assert wait_before_restart(lives) == pause


@given(st.lists(st.floats(0, 1000), min_size=2))
def test_who_was_up_once_is_started_again_for_ever_within_a_minute(lives: list[float]) -> None:
    pause = wait_before_restart(lives)
    assert pause is not None
    assert 1 <= pause <= LONGEST_WAIT


KEEPER = """
import sys
from rss_pipeline.cli import supervisor as supervising
command = [sys.executable, "-c", sys.argv[1], sys.argv[2]]
sys.exit(supervising.keep_up(command, say=lambda text: print(text, flush=True)))
"""
FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open(sys.argv[1], "a") as file:
    file.write(f"{child.pid}\\n")
time.sleep(600)
"""


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[tuple["subprocess.Popen[bytes]", Path]]:
    """A keeper of a process that has a child, and the file into which each such process writes its child."""
    file = tmp_path / "pids"
    with subprocess.Popen(
        [sys.executable, "-c", KEEPER, FAMILY, str(file)], stdout=subprocess.PIPE
    ) as keeper:
        try:
            soon(lambda: file.exists() and file.read_text())
            yield keeper, file
        finally:
            keeper.kill()
            for pid in map(int, file.read_text().split()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def test_nohup_keeps_it_when_its_terminal_is_closed(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    command = ["nohup", sys.executable, "-c", KEEPER, FAMILY, str(file)]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as keeper:
        try:
            soon(lambda: file.exists() and file.read_text())
            keeper.send_signal(signal.SIGHUP)
            [child] = psutil.Process(keeper.pid).children()
            child.kill()
            soon(lambda: len(file.read_text().split()) == 2)
            keeper.send_signal(signal.SIGTERM)
            assert keeper.wait(PATIENCE) == 128 + signal.SIGTERM
        finally:
            keeper.kill()


def test_killed_it_is_started_again_and_what_it_left_is_ended(
    kept: tuple["subprocess.Popen[bytes]", Path],
) -> None:
    keeper, file = kept
    [child] = psutil.Process(keeper.pid).children()
    grandchild = int(file.read_text())
    child.kill()
    soon(lambda: len(file.read_text().split()) == 2)
    assert not is_alive(grandchild)
    assert keeper.stdout is not None
    assert b"exit code -9" in keeper.stdout.readline()
    keeper.send_signal(signal.SIGTERM)
    assert keeper.wait(timeout=PATIENCE) == 128 + signal.SIGTERM
    assert not any(map(is_alive, map(int, file.read_text().split())))


def test_a_signal_ends_it_although_it_is_waiting_to_start_again(
    kept: tuple["subprocess.Popen[bytes]", Path],
) -> None:
    keeper, _ = kept
    [child] = psutil.Process(keeper.pid).children()
    child.kill()
    assert keeper.stdout is not None
    keeper.stdout.readline()
    began = time.monotonic()
    keeper.send_signal(signal.SIGINT)
    keeper.wait(timeout=PATIENCE)
    assert time.monotonic() - began < PROMPT


def test_without_proc_up_says_so_and_starts_nothing(tmp_path: Path) -> None:
    hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    if shutil.which("unshare") is None or subprocess.run([*hidden, "true"], capture_output=True).returncode:
        pytest.skip("only root may hide a file system")
    environment = {**os.environ, "RSS_PIPELINE_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [*hidden, PROGRAM, "up"],
        check=False,
        capture_output=True,
        cwd=tmp_path,
        env=environment,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"/proc is not mounted")


def test_with_too_few_open_files_up_says_so_and_it_takes_what_it_may(tmp_path: Path) -> None:
    """SQLite only says that it cannot open a file, and each request would say so anew."""
    environment = {**os.environ, "RSS_PIPELINE_HOME": str(tmp_path / "file/var")}
    (tmp_path / "file").touch()
    few, taken = [
        subprocess.run(
            ["sh", "-c", f'ulimit {limit}; exec "$@"', "sh", PROGRAM, "up"],
            check=False,
            capture_output=True,
            cwd=tmp_path,
            env=environment,
            timeout=PATIENCE,
        )
        for limit in ("-n 40", "-S -n 40")
    ]
    assert (few.returncode, few.stdout) == (1, b"")
    assert few.stderr.startswith(b"this user may have only 40 open files at once")
    assert b"up.lock cannot be written" in taken.stderr


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_command_that_cannot_be_started_is_an_error_and_not_tried_again() -> None:
    keep_up = KEEP_UP.replace("sys.executable", "'/nowhere/python'")
    done = subprocess.run([sys.executable, "-c", keep_up, ""], check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (1, b"")
    assert done.stdout == b"Dagster's processes could not be started: No such file or directory.\n"


DIES_ONCE = """
import os, sys
file = sys.argv[1]
if not os.path.exists(file):
    open(file, "w").close()
    sys.exit(137)
print("again", flush=True)
"""


def test_one_of_which_a_part_was_killed_at_the_first_start_is_started_again(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KEEPER, DIES_ONCE, str(tmp_path / "died")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as keeper:
        assert keeper.stdout is not None
        assert b"exit code 137" in keeper.stdout.readline()
        assert keeper.stdout.readline() == b"again\n"
        keeper.terminate()


KEEP_UP = """
import sys
from rss_pipeline.cli.supervisor import keep_up
sys.exit(keep_up([sys.executable, "-c", sys.argv[1]], say=print))
"""
WRITES = """
import os, tempfile, time
tempfile.mkdtemp()
print(os.getpid(), flush=True)
time.sleep(600)
"""


def test_temporary_files_of_a_killed_up_go_at_the_next_start_and_those_of_a_living_one_stay() -> None:
    """Dagster names neither its sockets nor its files: they are in a folder of one start."""
    with tempfile.TemporaryDirectory() as root:
        environ = {**os.environ, "TMPDIR": root}

        def start(command: str) -> "subprocess.Popen[bytes]":
            return subprocess.Popen(
                [sys.executable, "-c", KEEP_UP, command], env=environ, stdout=subprocess.PIPE
            )

        def folders_after_a_start() -> int:
            with start("") as short:
                short.wait(30)
            return len(os.listdir(root))

        killed, living = start(WRITES), start(WRITES)
        assert killed.stdout is not None
        assert living.stdout is not None
        child = int(killed.stdout.readline())
        living.stdout.readline()
        try:
            assert len(os.listdir(root)) == 2
            killed.kill()
            killed.wait()
            assert folders_after_a_start() == 2, "its processes have not ended yet"
            os.kill(child, signal.SIGKILL)
            soon(lambda: folders_after_a_start() == 1)
            living.terminate()
            living.wait(30)
            assert os.listdir(root) == []
        finally:
            for process in (killed, living):
                process.kill()
                process.stdout.close()
                process.wait()
