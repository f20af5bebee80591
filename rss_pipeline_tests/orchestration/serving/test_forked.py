"""Processes that `up` forks: none from a process with threads, and none that outlives its parent."""

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import dagster as dg
import psutil
import pytest
from dagster._core.events import EngineEventData

from rss_pipeline.orchestration.instance.dead_runs import host_tags
from rss_pipeline.orchestration.serving.forked import DONE, WAITING, Forked
from rss_pipeline.orchestration.serving.parsers import IS_POSSIBLE
from rss_pipeline.orchestration.serving.services import prepare
from rss_pipeline.orchestration.upkeep.purge_job import purge_history
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.waiting import PATIENCE, soon

PARENT = """
import os, time
from rss_pipeline.orchestration.serving.forked import Forked

def work():
    print(os.getpid(), flush=True)
    time.sleep(600)

Forked("rss-child", work).wait()
"""
INTERRUPTED = """
import os, signal
from rss_pipeline.orchestration.serving.forked import Forked
# Python leaves it ignored where a shell started the tests in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGINT))
try:
    Forked("rss-child", lambda: 0)
except KeyboardInterrupt:
    print("interrupted")
"""
BUSY = """
from rss_pipeline.orchestration.serving.forked import Forked
from rss_pipeline.orchestration.serving.parsers import fork_parser_server
from rss_pipeline.pipeline.session.parser_pool import ParserPool

def work():
    fork_parser_server()
    pool = ParserPool(processes=1, timeout=60)
    assert list(pool.map(len, ["a"])) == [("a", 1)]
    def interrupted():
        raise KeyboardInterrupt
    pool._pool.join = interrupted
    pool.close()

if __name__ == "__main__":
    print(Forked("rss-child", work).wait())
"""
GARBAGE = """
import gc
from rss_pipeline.orchestration.serving.forked import freeze
gc.set_threshold(50_000, 20, 20)
freeze()
most = 0
for _ in range(20_000):
    circle = []
    circle.append(circle)
    most = max(most, gc.get_count()[0])
print(most)
"""
LIMITED = """
import os, resource
from rss_pipeline.errors import InfrastructureError
from rss_pipeline.orchestration.serving.forked import Forked
# The limit does not hold for root.
if os.getuid() == 0:
    os.setuid(54321)
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
try:
    Forked("rss-child", lambda: 0)
except InfrastructureError as error:
    print(error)
"""
WITHOUT_THREADS = """
import os, resource, threading
from rss_pipeline.orchestration.serving.forked import Forked

def work():
    if os.getuid() == 0:
        os.setuid(54321)
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
    threading.Thread(target=print).start()

assert Forked("rss-child", work).wait() == 1
"""


OPEN = """
import socket, sqlite3, sys
# Output may be a socket of a service manager.
outside = socket.socketpair()
from rss_pipeline.orchestration.serving.forked import Forked
database = sqlite3.connect(sys.argv[1])
try:
    Forked("rss-child", lambda: 0)
except RuntimeError as error:
    print(error)
database.close()
listener = socket.create_server(("127.0.0.1", 0))
try:
    Forked("rss-child", lambda: 0)
except RuntimeError as error:
    print("socket:" in str(error))
Forked.listeners.append(listener)
assert Forked("rss-child", lambda: 3 if listener.fileno() == -1 else 0).wait() == 3
assert Forked("rss-child", lambda: 0 if listener.fileno() == -1 else 3, keeps=[listener]).wait() == 3
assert Forked("rss-child", lambda: 3).wait() == 3
"""


WRITES = """
import sqlite3, sys
from rss_pipeline.orchestration.instance.storages import OPEN_FILES
from rss_pipeline.orchestration.serving.forked import Forked

database = sqlite3.connect(sys.argv[1])
database.execute("PRAGMA journal_mode=WAL")
database.execute("CREATE TABLE alembic_version (version_num)")
database.execute("INSERT INTO alembic_version VALUES ('1')")
database.commit()
database.close()

def work():
    with OPEN_FILES.engine(sys.argv[1]).begin() as connection:
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES ('2')")
    return 0

assert Forked("rss-child", work).wait() == 0
"""


def test_a_process_ends_though_the_end_of_its_parsers_was_interrupted() -> None:
    """It would wait for them, and they for documents."""
    command = [sys.executable, "-c", BUSY]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert done.stdout.strip() == str(WAITING)


def test_a_process_at_rest_keeps_little_garbage() -> None:
    """Daemon and fork server would have 3 MB of it each."""
    done = subprocess.run([sys.executable, "-c", GARBAGE], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 6_000


def test_the_file_of_a_run_has_no_log_beside_it_once_its_process_has_ended(tmp_path: Path) -> None:
    """It stayed, with 2 MB, for each run of a month."""
    file = tmp_path / "run.db"
    subprocess.run([sys.executable, "-c", WRITES, str(file)], check=True, timeout=PATIENCE)
    assert [path.name for path in tmp_path.iterdir()] == ["run.db"]


def test_a_process_with_threads_is_not_forked() -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    with pytest.raises(RuntimeError, match="a process with threads is not forked"):
        Forked("rss-child", lambda: DONE)
    over.set()
    thread.join()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing shows which files are open")
def test_a_process_with_an_open_database_or_socket_is_not_forked(tmp_path: Path) -> None:
    """SQLite's locks are those of a process, and a child would use its parent's file as its own. Of its
    parent's listening sockets it has the one that it is to keep: another would hold a port."""
    path = str(tmp_path / "rss.sqlite")
    done = subprocess.run([sys.executable, "-c", OPEN, path], check=True, capture_output=True, text=True)
    assert done.stdout == f"a process with an open database or socket is not forked: ['{path}']\nTrue\n"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process learns of its parent's end")
def test_a_fork_ends_when_its_parent_is_killed_and_has_a_name_of_its_own() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        assert child.name() == "rss-child"
        parent.send_signal(signal.SIGKILL)
        soon(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


def test_an_interrupt_in_the_middle_of_a_fork_is_not_lost() -> None:
    """Python ignores it there: `up` went on after it."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_where_this_user_may_have_no_more_processes_the_error_says_so() -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED], check=True, capture_output=True, timeout=PATIENCE)
    assert b"no process could be started: this user may have no more processes (`ulimit -u`" in done.stdout


def test_where_this_user_may_have_no_more_threads_it_fails_with_a_sentence() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_THREADS], check=True, capture_output=True)
    assert done.stderr.startswith(b"the process rss-child failed: this user may have no more processes (")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.skipif(not IS_POSSIBLE, reason="elsewhere multiprocessing starts a program of its own")
def test_a_parser_process_is_forked_from_the_run_with_all_that_is_loaded() -> None:
    module = "rss_pipeline_tests.orchestration.serving.a_parsing_run"
    done = subprocess.run(
        [sys.executable, "-m", module], check=True, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.stdout, done.stderr) == (f"{(module, True)}\n", "")


@pytest.mark.slow
def test_what_up_synced_is_registered_once_however_often_its_processes_are_restarted(
    pipeline: DagsterPipeline,
) -> None:
    """A feed that was forgotten may be back by then."""
    pipeline.register("http://127.0.0.2/feed", "feed")
    synced = pipeline.sync()
    pipeline.instance.delete_dynamic_partition("feeds", "feed")
    with tempfile.TemporaryFile() as handed_over:
        pickle.dump(synced, handed_over)
        handed_over.flush()
        assert prepare(pipeline.settings, handed_over.fileno()) == DONE
        assert list(pipeline.instance.get_dynamic_partitions("feeds")) == ["feed"]
        pipeline.instance.delete_dynamic_partition("feeds", "feed")
        assert prepare(pipeline.settings, handed_over.fileno()) == DONE
    assert list(pipeline.instance.get_dynamic_partitions("feeds")) == []


def test_claims_that_a_dead_run_kept_though_it_had_reported_its_end_are_free_at_the_next_start(
    pipeline: DagsterPipeline,
) -> None:
    """Else its feeds wait until they lapse."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        gone = process.pid
    runs = {}
    for pid in (gone, os.getpid()):
        run = pipeline.instance.create_run_for_job(
            purge_history, status=dg.DagsterRunStatus.FAILURE, tags=host_tags()
        )
        pipeline.instance.report_engine_event("Started process", run, EngineEventData.in_process(pid))
        runs[pid] = run.run_id
        pipeline.database.query(
            "INSERT INTO leases (token, run_id, expires_at, feeds, hosts) VALUES (?, ?, ?, '[]', '[]')",
            [f"of {pid}", run.run_id, "2100-01-01T00:00:00Z"],
        )
    with tempfile.TemporaryFile() as handed_over:
        assert prepare(pipeline.settings, handed_over.fileno()) == DONE
    left = pipeline.rows("SELECT run_id FROM leases")
    assert left == [{"run_id": runs[os.getpid()]}]
