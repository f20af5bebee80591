"""Code servers of others' locations: one that lost its child is killed, so that it is started again."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

from rss_pipeline.orchestration.serving.code_servers import CODE_SERVER, kill_childless
from rss_pipeline_tests.support.waiting import PATIENCE, soon

FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open(sys.argv[1], "a") as file:
    file.write(f"{child.pid}\\n")
time.sleep(600)
"""
WATCHER = """
import os, subprocess, sys, time
from rss_pipeline.orchestration.serving import code_servers
server = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", code_servers.CODE_SERVER])
look = code_servers.watched(os.getpid(), every=0)
look()
server.kill()
server.wait()
while True:
    look()
    time.sleep(0.01)
"""


def test_the_processes_end_where_a_code_server_stays_away() -> None:
    """Dagster's manager gives up on restarts if a server is killed while it starts; `up` starts all again."""
    with subprocess.Popen([sys.executable, "-c", WATCHER]) as watcher:
        try:
            assert watcher.wait(PATIENCE) == -signal.SIGTERM
        finally:
            watcher.kill()


def test_a_code_server_that_lost_its_child_is_killed_and_no_other(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    command = [sys.executable, "-c", FAMILY, str(pids), CODE_SERVER]
    with subprocess.Popen(command) as server:
        starting: dict[int, int] = {}
        for _ in range(3):
            kill_childless(os.getpid(), starting)
        assert server.poll() is None, "it may have no child yet"
        child = int(soon(lambda: pids.read_text() if pids.exists() else ""))
        seen: dict[int, int] = {}
        kill_childless(os.getpid(), seen)
        assert seen == {server.pid: 0}
        os.kill(child, signal.SIGKILL)
        soon(lambda: not is_alive(child))
        kill_childless(os.getpid(), seen)
        assert server.poll() is None, "it may be changing it for another"
        kill_childless(os.getpid(), seen)
        assert server.wait(timeout=PATIENCE) == -signal.SIGKILL


def test_one_that_has_had_no_child_for_long_is_killed_too() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", CODE_SERVER]) as server:
        looks: dict[int, int] = {}
        kill_childless(os.getpid(), looks, starting=0)
        assert server.poll() is None
        kill_childless(os.getpid(), looks, starting=0)
        assert server.wait(timeout=PATIENCE) == -signal.SIGKILL


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
