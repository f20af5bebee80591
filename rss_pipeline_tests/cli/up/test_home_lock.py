"""The lock of `rss-pipeline up` on its home. That a whole `up` holds it is tested in test_up.py."""

import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from rss_pipeline.cli.home_lock import NAME, HomeLock
from rss_pipeline.errors import AlreadyRunning, HomeNotLockable, SettingsError
from rss_pipeline_tests.cli.program import run

HOLDER = """
import subprocess, sys
from pathlib import Path
from rss_pipeline.cli.home_lock import HomeLock
lock = HomeLock(Path(sys.argv[1]), address="http://127.0.0.1:3000")
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
child.wait()
"""


def test_a_folder_in_its_place_is_put_aside_and_one_of_other_bytes_is_used(tmp_path: Path) -> None:
    (tmp_path / NAME / "x").mkdir(parents=True)
    HomeLock(tmp_path, address="x").release()
    assert len([*tmp_path.glob(f"{NAME}.damaged-*")]) == 1
    (tmp_path / NAME).write_bytes(b"\xff\0damaged")
    HomeLock(tmp_path, address="x").release()


@contextmanager
def held(home: Path) -> Iterator[tuple[int, int]]:
    """Another process has the lock, and a child: the ids of both."""
    command = [sys.executable, "-c", HOLDER, str(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, process_group=0) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        try:
            yield process.pid, child
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_a_second_up_in_one_home_says_who_runs_there_whatever_its_port(tmp_path: Path) -> None:
    with held(tmp_path) as (pid, _), socket.create_server(("127.0.0.1", 0)) as taken:
        said = run(tmp_path, "up", env={"RSS_PORT": str(taken.getsockname()[1])})
    assert said.code == 1
    owner = f"(process {pid}, http://127.0.0.1:3000)"
    assert said.err == (
        f"rss-pipeline is already running in {tmp_path} {owner}: use that one, or stop it first. To run a"
        " second installation, set RSS_PIPELINE_HOME to another folder, RSS_PORT and RSS_READER_PORT to"
        " other ports\n"
    )


def test_a_killed_process_holds_nothing_although_its_children_live(tmp_path: Path) -> None:
    with held(tmp_path) as (pid, child):
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert str(pid) in (tmp_path / NAME).read_text()
        os.kill(child, 0)
        lock = HomeLock(tmp_path, address="http://127.0.0.1:3001")
        assert str(os.getpid()) in (tmp_path / NAME).read_text()
        assert str(pid) not in (tmp_path / NAME).read_text()
        lock.release()


def test_two_homes_have_two_locks_and_a_released_one_is_free(tmp_path: Path) -> None:
    first = HomeLock(tmp_path / "new" / "first", address="http://127.0.0.1:3000")
    with closing(_Releasing(tmp_path / "second")):
        first.release()
        with closing(_Releasing(tmp_path / "new" / "first")):
            pass


class _Releasing:
    def __init__(self, home: Path) -> None:
        self._lock = HomeLock(home, address="http://127.0.0.1:3000")

    def close(self) -> None:
        self._lock.release()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"pid": "x", "host": 1, "address": 2}'])
def test_a_process_that_has_not_said_who_it_is_is_named_by_the_home(tmp_path: Path, text: str) -> None:
    with held(tmp_path):
        (tmp_path / NAME).write_text(text, "utf-8")
        with pytest.raises(AlreadyRunning, match=f"is already running in {tmp_path}: use that one"):
            HomeLock(tmp_path, address="")


def test_a_process_of_another_machine_is_named_with_it(tmp_path: Path) -> None:
    """A container has names and process ids of its own."""
    with held(tmp_path):
        own = '{"pid": 7, "host": "elsewhere", "address": "http://127.0.0.1:3000"}'
        (tmp_path / NAME).write_text(own, "utf-8")
        with pytest.raises(AlreadyRunning, match=r"\(process 7 on elsewhere, http://127\.0\.0\.1:3000\)"):
            HomeLock(tmp_path, address="")


def test_a_home_that_cannot_be_written_is_a_mistake_of_its_setting(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        SettingsError, match=r"RSS_PIPELINE_HOME: .*Not a directory; name another folder"
    ) as raised:
        HomeLock(tmp_path / "file" / "var", address="")
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """As on NFS without its lock service."""

    def refused(file: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refused)
    with pytest.raises(HomeNotLockable, match=r"on a file system without locks .*: start only one, or set"):
        HomeLock(tmp_path, address="")
