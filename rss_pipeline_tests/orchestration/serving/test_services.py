"""The processes below `up` live and end together. That a real one serves is tested in cli/up/test_up.py."""

import os
import signal
import threading
from pathlib import Path

import psutil
import pytest

from rss_pipeline.orchestration.serving.services import until_one_ends
from rss_pipeline_tests.support.waiting import soon

SLEEPER = """
import os, pathlib, signal, sys, time
# Python leaves it ignored where a shell started the tests in the background.
signal.signal(signal.SIGINT, signal.SIG_IGN if "deaf" in sys.argv else signal.default_int_handler)
path = pathlib.Path(sys.argv[1])
try:
    path.with_suffix(".new").write_text(str(os.getpid()))
    path.with_suffix(".new").rename(path)
    time.sleep(600)
except KeyboardInterrupt:
    path.with_suffix(".interrupted").touch()
"""


@pytest.mark.parametrize("is_deaf", [False, True])
def test_when_one_process_is_killed_the_other_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_deaf: bool
) -> None:
    (tmp_path / "sleeper.py").write_text(SLEEPER, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    files = {name: tmp_path / name for name in ("webserver", "daemon")}
    option = ["deaf"] if is_deaf else []
    modules = {name: ["sleeper", str(path), *option] for name, path in files.items()}
    killer = threading.Thread(target=lambda: os.kill(soon(lambda: pid(files, "webserver")), signal.SIGKILL))
    killer.start()
    stop = 0.5 if is_deaf else 60
    assert until_one_ends(modules, parent=os.getppid(), look=0.05, seconds=stop) == 1
    killer.join()
    assert not psutil.pid_exists(int(files["daemon"].read_text()))
    assert (tmp_path / "daemon.interrupted").exists() is not is_deaf


def test_when_their_parent_is_gone_the_processes_are_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed `up` has no lock on its home any more: its daemon would poll beside that of the next one."""
    (tmp_path / "sleeper.py").write_text(SLEEPER, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    path = tmp_path / "daemon"
    others = {process.pid for process in psutil.Process().children()}
    assert until_one_ends({"daemon": ["sleeper", str(path)]}, parent=os.getpid(), look=0.05, seconds=60) == 1
    assert {process.pid for process in psutil.Process().children()} <= others


def pid(files: dict[str, Path], name: str) -> int:
    """The process's id, once all have started."""
    return int(files[name].read_text()) if all(path.exists() for path in files.values()) else 0
