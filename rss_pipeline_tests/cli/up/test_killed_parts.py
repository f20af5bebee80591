"""Each process of `rss-pipeline up` killed once: what comes back, and what goes on meanwhile.

Many kills are in soak/test_killing.py and soak/test_killing_reader.py.
"""

import json
import signal
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil
import pytest

from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.up import Up, is_part, materialize, members, runs_of, started
from rss_pipeline_tests.support.waiting import PATIENCE, soon, times_as_long

FIRST_PAGE_SECONDS = 0.3

pytestmark = [pytest.mark.slow, pytest.mark.minutes, pytest.mark.timeout(900)]


class Home:
    """A running command. Its only feed answers when the test says so."""

    def __init__(self, up: Up, over: threading.Event) -> None:
        self.up = up
        self.over = over

    def part(self, kind: str) -> psutil.Process:
        """The living process of this kind, once there is one alone: a fork has its name a moment later."""
        [process] = soon(lambda: found if len(found := self.parts(kind)) == 1 else [])
        return process

    def parts(self, kind: str) -> list[psutil.Process]:
        """The living processes of this kind."""
        found = []
        for process in members(self.up.process.pid):
            with suppress(psutil.NoSuchProcess):
                found += [process] if is_part(process, kind) else []
        return found

    def runs(self) -> dict[str, str]:
        """The state of each run by its id."""
        jobs = ("poll_feeds", "__ASSET_JOB")
        return {run["runId"]: run["status"] for job in jobs for run in runs_of(self.up, job)}

    def page(self, port: int) -> int:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=PATIENCE) as answer:
            return int(answer.status)

    def is_back(self, killed: psutil.Process, kind: str) -> bool:
        return self.part(kind).pid != killed.pid


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    folder, over = tmp_path_factory.mktemp("killed"), threading.Event()
    with FeedServer() as server:
        url = server.route("127.0.0.2", "/feed", Answer(body=rss("a"), wait_for=over))
        entry = f"feeds:\n- url: {url}\n  id: feed\n  allow_private: [127.0.0.0/8]\n"
        (folder / "feeds.yaml").write_text(entry, "utf-8")
        with started(folder) as up:
            yield Home(up, over)
            over.set()


@contextmanager
def nobody_refused(*ports: int) -> Iterator[None]:
    """Connections to these ports again and again, as long as the block."""
    over, refused = threading.Event(), []

    def connect() -> None:
        while not over.wait(0.05):
            for port in ports:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
                except OSError as error:
                    refused.append(error)

    thread = threading.Thread(target=connect)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert refused == []


def test_there_is_neither_webserver_nor_reader_before_somebody_looks(home: Home) -> None:
    home.part("daemon")

    def are_at_rest() -> bool:
        names = {each.name() for each in members(home.up.process.pid)}
        return {"rss-webserver", "rss-reader"}.isdisjoint(names)

    # The one that served before Dagster was imported ends.
    soon(are_at_rest)
    for port in (home.up.port, home.up.reader_port):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=PATIENCE) as answer:
            assert json.loads(answer.read()) == {"ok": True, "missing": []}
    assert are_at_rest()
    assert home.up.answers()
    assert home.part("webserver")


@pytest.mark.parametrize("kind", ["reader", "webserver", "daemon"])
def test_one_that_was_killed_comes_back_alone_and_its_clients_wait(home: Home, kind: str) -> None:
    kinds = {"services", "reader", "webserver", "daemon"}
    soon(home.up.answers)
    assert home.page(home.up.reader_port) == home.page(home.up.port) == 200
    others = {each: home.part(each).pid for each in kinds - {kind}}
    process = home.part(kind)
    with nobody_refused(home.up.port, home.up.reader_port):
        process.kill()
        soon(lambda: home.is_back(process, kind))
        assert home.page(home.up.reader_port) == home.page(home.up.port) == 200
    assert {each: home.part(each).pid for each in others} == others


def test_the_first_page_after_a_rest_is_there_at_once(home: Home) -> None:
    """The reader has ended as it does when no one came for a time; what it takes on a busy machine is no
    measure, but the processor time of the new one is."""
    took: list[tuple[float, float]] = []
    soon(home.up.answers)

    def is_at_once() -> bool:
        """Others may have had the processors while the page was made: then another one is requested."""
        assert home.page(home.up.reader_port) == 200
        home.part("reader").send_signal(signal.SIGINT)
        soon(lambda: home.parts("reader") == [])
        began = time.monotonic()
        assert home.page(home.up.reader_port) == 200
        seconds = time.monotonic() - began
        took.append((sum(home.part("reader").cpu_times()[:2]), seconds))
        return len(took) >= 3 and min(seconds for _, seconds in took) < FIRST_PAGE_SECONDS * times_as_long()

    soon(is_at_once, seconds=30)
    assert min(processor for processor, _ in took[:3]) < FIRST_PAGE_SECONDS


def test_when_all_start_anew_a_run_ends_its_claims_are_free_and_no_one_is_refused(home: Home) -> None:
    up = home.up
    soon(up.answers)
    services = home.part("services")
    run = materialize(up, "feed")
    soon(lambda: home.runs()[run] == "STARTED")
    # The feed is this run's or the first poll's, for which this run waits.
    claims = soon(lambda: up.rows("SELECT token FROM leases WHERE feeds <> '[]'"))
    before, runs = home.runs(), home.parts("run")
    with nobody_refused(up.port, up.reader_port):
        services.kill()
        soon(lambda: not any(each.is_running() for each in runs))
        # The next poll begins at once, with a claim of its own.
        soon(lambda: not set(claims) & set(up.rows("SELECT token FROM leases")))
        home.over.set()
        assert home.page(up.reader_port) == 200
        for kind in ("services", "reader", "daemon"):
            soon(lambda kind=kind: home.is_back(services, kind))
        assert up.answers()
    assert before[run] == "STARTED"
    assert home.runs()[run] in ("FAILURE", "CANCELED")


def test_when_the_supervisor_is_killed_nothing_is_left_and_its_ports_are_free(home: Home) -> None:
    home.part("daemon")
    home.up.process.kill()
    home.up.process.wait()
    soon(lambda: members(home.up.process.pid) == [])
    for port in (home.up.port, home.up.reader_port):
        socket.create_server(("127.0.0.1", port)).close()
