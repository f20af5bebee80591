"""`rss-pipeline up` as a person has it: UI, daemon, code server and reader, driven by clicks in the UI, by
GraphQL, and by users who read.

Started once, because that costs more than most checks, which build on each other (support/stages.py). Some
stages are in up_doors.py, those of the UI in up_in_chromium.py, those with kills in up_while_read.py.
"""

import random
import signal
import sqlite3
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner
from playwright.sync_api import expect

from rss_pipeline_tests.cli.up.up_doors import (
    no_client_sends_a_run_to_another_database,
    no_page_of_another_site_starts_a_run,
)
from rss_pipeline_tests.cli.up.up_feeds import ALL_FEEDS, FAILING, ITEMS, PASSWORD, register
from rss_pipeline_tests.cli.up.up_in_chromium import ALL_LOOKS, SHORT_LOOKS
from rss_pipeline_tests.cli.up.up_while_read import (
    Reader,
    no_kill_loses_anything_while_users_read,
    reader_of,
    two_hundred_clicks_on_fifty_feeds_make_few_runs_and_a_request_a_feed,
)
from rss_pipeline_tests.orchestration import desk
from rss_pipeline_tests.orchestration.desk import Desk, browser
from rss_pipeline_tests.soak.reading_up import Publishers, allowed
from rss_pipeline_tests.support.clients.chromium import CHROMIUM, PATIENCE_MS
from rss_pipeline_tests.support.installed import of_features
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.stages import Stages, name_of
from rss_pipeline_tests.support.up import (
    PROGRAM,
    Up,
    free_port,
    location,
    materialize,
    members,
    runs_of,
    started,
)
from rss_pipeline_tests.support.waiting import PATIENCE, soon


@dataclass(slots=True)
class Home:
    """The running command, and who requests something of it: browser and reader stay for the stages after the
    one that first needs them."""

    up: Up
    server: FeedServer
    publishers: Publishers
    all_of_it: bool
    """True for the stages of `make soak`."""
    opened: ExitStack
    browsing: ExitStack
    _ui: Desk | None = None
    _dan: Reader | None = None

    def ui(self) -> Desk:
        if self._ui is None:
            expect.set_options(timeout=PATIENCE_MS)
            self._ui = self.browsing.enter_context(browser(self.up, self.server))
        return self._ui

    def dan(self) -> Reader:
        if self._dan is None:
            self._dan = self.opened.enter_context(reader_of(self.up))
        return self._dan


@contextmanager
def running(folder: Path, *, all_of_it: bool) -> Iterator[Home]:
    """An installation that answers."""
    with FeedServer() as server:
        publishers = Publishers(server, random.Random(1))
        register(folder, server, publishers)
        environment = {"FEED_PASSWORD": PASSWORD, "RSS_UI_HOSTS": "rss.example.org", **allowed(server.port)}
        with started(folder, **environment) as up, ExitStack() as opened, ExitStack() as browsing:
            soon(up.answers)
            yield Home(up, server, publishers, all_of_it, opened, browsing)


def of_up(stage: Callable[[Up], None]) -> Callable[[Home], None]:
    @wraps(stage)
    def reached(home: Home) -> None:
        # A page that is open requests again and again.
        home.browsing.close()
        stage(home.up)

    return reached


def in_ui(look: Callable[[Desk], None]) -> Callable[[Home], None]:
    @wraps(look)
    def reached(home: Home) -> None:
        if CHROMIUM is None:
            pytest.skip("what a person sees and clicks in the UI: no Chromium on this machine")
        ui = home.ui()
        look(ui)
        assert ui.elsewhere == [], "a page asked another machine"
        assert ui.errors == [], "a page's script broke"

    return reached


def the_ui_has_the_asset_with_a_partition_a_feed_and_all_that_starts_runs_is_on(up: Up) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{up.port}/", timeout=PATIENCE) as page:
        assert page.status == 200
        assert b"Dagster" in page.read()
    nodes = up.ask(
        "{ assetNodes { assetKey { path } isPartitioned partitionDefinition { type name } partitionKeys } }"
    )["assetNodes"]
    (node,) = (node for node in nodes if node["assetKey"]["path"] == ["feed_items"])
    assert node["partitionDefinition"] == {"type": "DYNAMIC", "name": "feeds"}
    assert node["partitionKeys"] == ALL_FEEDS, "in the order of the file, before any poll"
    found = up.ask(
        """query($selector: RepositorySelector!) {
        sensorsOrError(repositorySelector: $selector) {
          ... on Sensors { results { name sensorState { status } } } }
        schedulesOrError(repositorySelector: $selector) {
          ... on Schedules { results { name scheduleState { status } } } } }""",
        selector={"repositoryName": "__repository__", "repositoryLocationName": location(up)},
    )
    sensors = {each["name"]: each["sensorState"] for each in found["sensorsOrError"]["results"]}
    schedules = {each["name"]: each["scheduleState"] for each in found["schedulesOrError"]["results"]}
    assert sensors.keys() >= {
        "poll_feeds_when_due",
        "sync_registry",
        "download_images_when_waiting",
        "end_dead_runs",
        "back_up_users",
    }
    assert schedules.keys() >= {"purge_daily"} | of_features(
        health=["check_health_hourly"], retention=["clean_daily", "clean_again"]
    )
    stopped = {name for name, state in (sensors | schedules).items() if state["status"] != "RUNNING"}
    alerts = of_features(health=["alert_run_failed", "alert_check_failed"])
    assert stopped == alerts, "no setting says where alerts go"


def a_poll_starts_by_itself_and_its_items_are_stored(up: Up) -> None:
    soon(lambda: len(up.rows("SELECT id FROM items")) == ITEMS)
    soon(lambda: up.statuses()["green"] == sorted(set(ALL_FEEDS) - set(FAILING)))
    assert up.statuses()["grey"] == sorted(FAILING), "a poll turns no key red"

    def ended() -> Any:
        runs = up.ask(
            """{ runsOrError(filter: {pipelineName: "poll_feeds"}) { ... on Runs {
            results { status tags { key value } } } } }"""
        )["runsOrError"]["results"]
        return runs if all(run["status"] == "SUCCESS" for run in runs) else None

    (run,) = soon(ended)
    tags = {tag["key"]: tag["value"] for tag in run["tags"]}
    assert (tags["dagster/sensor_name"], tags["dagster/priority"]) == ("poll_feeds_when_due", "-1")

    def printed() -> list[str]:
        lines = Path(up.log.name).read_text("utf-8").splitlines()
        return [line for line in lines if " poll: " in line or "poll_feeds" in line]

    (line,) = soon(printed)
    counts, failures = line[9:].split(" failed: ")
    assert counts == f"poll: {len(ALL_FEEDS)} feeds, {ITEMS} new items, 2"
    assert sorted(failures.split(", ")) == [f"{desk.BROKEN} (http_status 404)", f"{desk.GONE} (gone 410)"]


def what_came_is_in_the_search_index(up: Up) -> None:
    """By a fork that ends: beside the reader there is no process for it."""
    pytest.importorskip("rss_pipeline.features.search")
    index = up.home / "search.sqlite"

    def indexed() -> int:
        with closing(sqlite3.connect(index, timeout=PATIENCE)) as found:
            tables = found.execute("SELECT name FROM sqlite_master WHERE name = 'documents_1'").fetchall()
            return found.execute("SELECT count(*) FROM documents_1").fetchone()[0] if tables else 0

    # Whoever opens the reader brings it up to date.
    urllib.request.urlopen(f"http://127.0.0.1:{up.reader_port}/", timeout=PATIENCE).close()
    soon(lambda: index.exists() and indexed() == ITEMS)
    for each in members(up.process.pid):
        with suppress(psutil.NoSuchProcess):
            assert "search-index" not in each.cmdline()


def the_graphql_client_of_the_shell_is_served(up: Up) -> None:
    # Seconds that no other test needs.
    from dagster_graphql.cli import ui as graphql

    done = CliRunner().invoke(graphql, ["--remote", f"http://127.0.0.1:{up.port}", "--text", "{ version }"])
    assert done.exit_code == 0, done.output
    assert "version" in done.output


def of_those_that_fail_only_what_somebody_materialized_is_red(up: Up) -> None:
    run = materialize(up, desk.BROKEN)
    soon(lambda: {each["runId"]: each["status"] for each in runs_of(up, "__ASSET_JOB")}[run] == "FAILURE")
    assert up.statuses()["red"] == [desk.BROKEN]


def two_hundred_clicks_make_few_runs_and_a_request_a_feed(home: Home) -> None:
    for id in FAILING:
        home.server.route(desk.host(id), f"/{id}.xml", Answer(body=rss("mended")))
    two_hundred_clicks_on_fifty_feeds_make_few_runs_and_a_request_a_feed(home.up, home.dan(), home.server)


def no_kill_loses_anything(home: Home) -> None:
    no_kill_loses_anything_while_users_read(
        home.up, home.dan(), home.server, home.publishers, all_of_it=home.all_of_it
    )


def the_next_poll_turned_the_red_keys_green(up: Up) -> None:
    """One that was not in `up`: the command's, when all was killed."""
    soon(up.answers)
    assert up.statuses()["green"] == sorted(ALL_FEEDS)
    assert up.statuses()["red"] == []


def a_second_one_in_the_same_home_says_who_runs_there(up: Up) -> None:
    done = subprocess.run(
        [PROGRAM, "up"],
        env={**up.environment, "RSS_PORT": str(free_port()), "RSS_READER_PORT": str(free_port())},
        check=False,
        capture_output=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 1
    assert f"(process {up.process.pid}, http://127.0.0.1:{up.port})" in done.stderr.decode()


def sigterm_in_a_run_cancels_it_ends_every_process_and_leaves_no_claim(home: Home) -> None:
    up, server = home.up, home.server
    slow = threading.Event()
    server.route(desk.host(desk.BROKEN), f"/{desk.BROKEN}.xml", Answer(body=rss("late"), wait_for=slow))
    before = len(server.asked(desk.host(desk.BROKEN)))
    run = materialize(up, desk.BROKEN)
    soon(lambda: len(server.asked(desk.host(desk.BROKEN))) > before)
    assert len(members(up.process.pid)) >= 3
    printed = len(Path(up.log.name).read_text("utf-8"))
    up.process.send_signal(signal.SIGTERM)
    assert up.process.wait(timeout=PATIENCE) == 0
    slow.set()
    soon(lambda: not members(up.process.pid))
    [history] = up.home.parent.rglob("runs.db")
    with closing(sqlite3.connect(history)) as database:
        ended = database.execute("SELECT status FROM runs WHERE run_id = ?", [run]).fetchall()
        assert ended == [("CANCELED",)], "it would be an alert on the next start"
    assert "Traceback" not in Path(up.log.name).read_text("utf-8")[printed:]
    assert up.rows("SELECT token FROM leases") == []
    assert up.rows("SELECT id FROM feeds WHERE lease_token IS NOT NULL OR unclosed_claims > 0") == []


def no_secret_is_in_any_file(home: Home) -> None:
    up = home.up
    hosts = {desk.host(id) for id in desk.FEEDS}
    asked = [request for request in home.server.requests if request.host in hosts]
    assert asked
    assert all("authorization" in request.headers for request in asked)
    up.log.flush()
    files = [path for path in up.home.parent.rglob("*") if path.is_file()]
    assert any(path.name == "rss.sqlite" for path in files)
    assert [str(path) for path in files if PASSWORD.encode() in path.read_bytes()] == []


_BEGIN = (
    of_up(the_ui_has_the_asset_with_a_partition_a_feed_and_all_that_starts_runs_is_on),
    of_up(a_poll_starts_by_itself_and_its_items_are_stored),
    of_up(what_came_is_in_the_search_index),
    of_up(no_page_of_another_site_starts_a_run),
    of_up(no_client_sends_a_run_to_another_database),
    of_up(the_graphql_client_of_the_shell_is_served),
)
_END = (
    two_hundred_clicks_make_few_runs_and_a_request_a_feed,
    no_kill_loses_anything,
    of_up(the_next_poll_turned_the_red_keys_green),
    of_up(a_second_one_in_the_same_home_says_who_runs_there),
    sigterm_in_a_run_cancels_it_ends_every_process_and_leaves_no_claim,
    no_secret_is_in_any_file,
)
SHORT = (
    *_BEGIN,
    *map(in_ui, SHORT_LOOKS),
    of_up(of_those_that_fail_only_what_somebody_materialized_is_red),
    *_END,
)
ALL = (*_BEGIN, *map(in_ui, ALL_LOOKS), *_END)


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stages[Home]]:
    with running(tmp_path_factory.mktemp("up"), all_of_it=False) as home:
        yield Stages(home, SHORT)


@pytest.mark.minutes
@pytest.mark.timeout(1800)
@pytest.mark.slow
@pytest.mark.parametrize("stage", SHORT, ids=name_of)
def test_up(short: Stages[Home], stage: Callable[[Home], None]) -> None:
    short.reach(stage)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stages[Home]]:
    with running(tmp_path_factory.mktemp("up"), all_of_it=True) as home:
        yield Stages(home, ALL)


@pytest.mark.soak
@pytest.mark.minutes
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("stage", ALL, ids=name_of)
def test_all_of_up(whole: Stages[Home], stage: Callable[[Home], None]) -> None:
    whole.reach(stage)
