"""The first moments of `up`: the process that it keeps running begins early, and waits for its command."""

import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from rss_pipeline.cli.early import EARLY, begun_at_start, taken
from rss_pipeline.cli.up import FILES
from rss_pipeline_tests.support.up import PROGRAM, Up, free_port, members, started
from rss_pipeline_tests.support.waiting import PATIENCE, soon

WAITING = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
from rss_pipeline.cli.early import EARLY, received
early, how, here = EARLY in sys.argv, sys.argv[1:], {}
if early:
    if (said := received(int(sys.argv[-1]))) is None:
        sys.exit()
    command, here = said
    how = command[command.index("-c") + 2 :]
file = int(how[0])
os.write(here.get(file, file), f"{os.getpid()} {early} {os.environ['UP_SENT']}\\n".encode())
time.sleep(600)
"""
KEEPING = """
import os, signal, subprocess, sys
from rss_pipeline.cli.early import Early
from rss_pipeline.cli.supervisor import become
command = [sys.executable, "-c", sys.argv[1]]
early = Early.begun(command)
print(early.pid, flush=True)
# A number that the other one has not.
files = [os.dup2(os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND), 77)]
os.environ["UP_SENT"] = "since it began"
if input() == "kill":
    os.kill(early.pid, signal.SIGKILL)
become([*command, str(files[0])], early=early, files=files, kept=[])
"""


class Kept:
    """A supervisor in place of the program that began its command early."""

    def __init__(self, folder: Path, **environ: str) -> None:
        self.written = folder / "written"
        self.written.touch()
        self.process = subprocess.Popen(
            [sys.executable, "-c", KEEPING, WAITING, str(self.written)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environ},
        )
        assert self.process.stdout is not None
        self.early = psutil.Process(int(self.process.stdout.readline()))

    def go_on(self, how: str) -> list[list[str]]:
        """The lines of its command: its id, whether it began early, and the environment."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{how}\n")
        self.process.stdin.flush()
        soon(self.lines)
        return self.lines()

    def lines(self) -> list[list[str]]:
        return [line.split(" ", 2) for line in self.written.read_text("utf-8").splitlines()]

    def end(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=PATIENCE)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    """One of which nothing is left, however its test ends."""
    kept = Kept(tmp_path)
    yield kept
    kept.process.kill()
    for pid in {kept.early.pid, *(int(line[0]) for line in kept.lines())}:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    kept.process.communicate()


def test_it_receives_command_environment_and_files_and_the_next_one_has_them_too(kept: Kept) -> None:
    pid = kept.early.pid
    assert kept.go_on("go on") == [[str(pid), "True", "since it began"]]
    kept.early.kill()
    soon(lambda: len(kept.lines()) == 2)
    after, is_early, said = kept.lines()[1]
    assert (is_early, said) == ("False", "since it began")
    kept.end()
    assert kept.process.returncode == 128 + signal.SIGTERM
    assert not psutil.pid_exists(int(after))


AT_ITS_START = """
import os, sys
if "rss_pipeline.cli.supervisor" in sys.orig_argv:
    os.mkfifo(os.environ["WAITING"])
    open(os.environ["WAITING"]).close()
"""


def test_up_is_interrupted_before_its_next_program_has_begun(tmp_path: Path) -> None:
    """The program waits before its imports until the test lets it go on."""
    (tmp_path / "sitecustomize.py").write_text(AT_ITS_START, "utf-8")
    waiting = tmp_path / "waiting"
    kept = Kept(tmp_path, PYTHONPATH=str(tmp_path), WAITING=str(waiting))
    try:
        assert kept.process.stdin is not None
        kept.process.stdin.write("go on\n")
        kept.process.stdin.flush()
        soon(waiting.exists)
        kept.process.send_signal(signal.SIGINT)
        waiting.open("w").close()
        _, said = kept.process.communicate(timeout=PATIENCE)
        assert (kept.process.returncode, said) == (128 + signal.SIGINT, "")
        assert not kept.early.is_running()
    finally:
        kept.process.kill()
        kept.process.communicate()


def test_up_starts_where_the_ends_of_children_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "feeds.yaml").write_text("feeds: []\n", "utf-8")
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with started(tmp_path) as up:
            signal.signal(signal.SIGCHLD, before)
            soon(lambda: up.process.poll() is not None or "Dagster's UI is at" in log(up))
            assert up.process.poll() is None
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_killed_before_it_receives_them_it_is_started_again(kept: Kept) -> None:
    [[_, is_early, _]] = kept.go_on("kill")
    assert is_early == "False"
    kept.end()


def test_where_up_is_killed_before_it_sends_them_it_ends(kept: Kept) -> None:
    kept.process.kill()
    kept.process.communicate(timeout=PATIENCE)
    soon(lambda: not kept.early.is_running())
    assert kept.lines() == []


IMPORTED = """
import os
os.mkfifo(f"{os.environ['WAITING']}/{os.getpid()}")
open(f"{os.environ['WAITING']}/{os.getpid()}").close()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it begins early on Linux alone")
def test_it_begins_before_up_has_imported_what_it_needs(tmp_path: Path) -> None:
    """Each of the two waits at an import until the test lets it go on."""
    modules, waiting = tmp_path / "modules", tmp_path / "waiting"
    modules.mkdir()
    waiting.mkdir()
    (modules / "dotenv").mkdir()
    (modules / "dotenv" / "__init__.py").write_text(IMPORTED, "utf-8")
    environ = {**os.environ, "PYTHONPATH": str(modules), "WAITING": str(waiting)}
    up = subprocess.Popen([PROGRAM, "up"], env=environ, cwd=tmp_path, start_new_session=True)
    try:
        soon(lambda: len(list(waiting.iterdir())) == 2)
        assert {each.pid for each in members(up.pid)} == {int(each.name) for each in waiting.iterdir()}
    finally:
        os.killpg(up.pid, signal.SIGKILL)
        for each in members(up.pid):
            each.kill()
        up.wait()


def _ended(folder: Path, **environ: str) -> tuple[str, list[psutil.Process]]:
    """The words of an `up` that did not start, and the processes that it left."""
    environ = {
        **os.environ,
        "RSS_PIPELINE_HOME": str(folder / "home"),
        "RSS_FEEDS_FILE": str(folder / "feeds.yaml"),
        **environ,
    }
    # A pipe would stay open for as long as one that is left.
    with (folder / "said").open("w+b") as said:
        up = subprocess.Popen([PROGRAM, "up"], env=environ, stderr=said, cwd=folder, start_new_session=True)
        assert up.wait(PATIENCE) == 1
        left = members(up.pid)
        said.seek(0)
        return said.read().decode(), left


def test_an_up_that_does_not_start_leaves_none(tmp_path: Path) -> None:
    """Its port is taken, which it finds once that one has begun."""
    with socket.create_server(("127.0.0.1", free_port())) as taken:
        said, left = _ended(tmp_path, RSS_PORT=str(taken.getsockname()[1]))
    assert "is in use" in said
    assert left == []


def test_an_up_with_invalid_settings_leaves_none(tmp_path: Path) -> None:
    said, left = _ended(tmp_path, RSS_PORT="many")
    assert "RSS_PORT" in said
    assert left == []


def test_without_a_reader_nothing_is_left_of_it(tmp_path: Path) -> None:
    (tmp_path / "feeds.yaml").write_text("feeds: []\n", "utf-8")
    with started(tmp_path, RSS_READER="off") as up:
        soon(lambda: "Dagster's UI is at" in log(up))
        soon(lambda: "rss_pipeline.cli.supervisor" in psutil.Process(up.process.pid).cmdline())
        assert [each for each in members(up.process.pid) if each.status() == psutil.STATUS_ZOMBIE] == []
        command = [each.cmdline() for each in members(up.process.pid) if each.pid != up.process.pid]
        assert not any(EARLY in each for each in command)


def _early_of(up: Up) -> psutil.Process:
    """Its process that began early, or one that was forked from that."""
    soon(lambda: "Dagster's UI is at" in log(up))
    return next(each for each in members(up.process.pid) if EARLY in each.cmdline())


def test_it_has_the_files_that_up_takes_and_writes_for_this_user_alone(tmp_path: Path) -> None:
    """`up` raises its limit after that one has begun."""
    (tmp_path / "feeds.yaml").write_text("feeds: []\n", "utf-8")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1_000, most[1]))
    try:
        with started(tmp_path) as up:
            services = _early_of(up)
            assert services.rlimit(psutil.RLIMIT_NOFILE)[0] == min(FILES, most[1])
            assert "Umask:\t0077" in Path(f"/proc/{services.pid}/status").read_text("utf-8")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, most)


def test_it_begins_with_what_an_env_file_says(tmp_path: Path) -> None:
    """A program reads its time zone, for one, when it begins."""
    (tmp_path / "feeds.yaml").write_text("feeds: []\n", "utf-8")
    (tmp_path / ".env").write_text("SAID_BY_FILE=yes\n", "utf-8")
    with started(tmp_path) as up:
        assert _early_of(up).environ()["SAID_BY_FILE"] == "yes"


@pytest.mark.parametrize(
    "arguments", [[], ["status"], ["user", "add", "up"], ["up", "--help"], ["up", "--yes", "-h"]]
)
def test_it_begins_with_no_other_command(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with begun_at_start(arguments):
        early = taken()
    if early is not None:
        early.cancel()
    assert early is None


@pytest.mark.skipif(sys.platform != "linux", reason="it is forked on Linux alone")
def test_a_sync_that_is_killed_begins_again(tmp_path: Path) -> None:
    """It waits until it can read feeds.yaml."""
    os.mkfifo(tmp_path / "feeds.yaml")
    with started(tmp_path) as up:

        def sync() -> psutil.Process | None:
            assert up.process.poll() is None, log(up)
            for each in members(up.process.pid):
                with suppress(psutil.NoSuchProcess):
                    if each.name() == "rss-sync":
                        return each
            return None

        first = soon(sync)
        first.kill()
        soon(lambda: (found := sync()) is not None and found.pid != first.pid)
        (tmp_path / "feeds.yaml").write_text("feeds: []\n", "utf-8")
        soon(lambda: up.process.poll() is not None or "Dagster's UI is at" in log(up))
        assert "was killed (signal 9)" in log(up)


def log(up: Up) -> str:
    return Path(up.log.name).read_text("utf-8")
