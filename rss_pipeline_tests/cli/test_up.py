"""`rss-pipeline up` as a person has it: UI, daemon, code server and reader, driven by the mutations that
the UI sends and by users who read.

One test, because starting them costs ten seconds and the checks build on each other; each stage is a
function that says what it shows. Some are in up_doors.py, and those with kills in up_while_read.py.
"""

import json
import random
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml
from websockets.sync.client import connect

from rss_pipeline_tests.cli import up_while_read
from rss_pipeline_tests.cli.up_doors import (
    GRAPHQL_WS,
    no_client_sends_a_run_to_another_database,
    no_page_of_another_site_starts_a_run,
    websocket_url,
)
from rss_pipeline_tests.cli.up_while_read import (
    no_kill_loses_anything_while_users_read,
    reader_of,
    two_hundred_clicks_on_fifty_feeds_make_few_runs_and_a_request_a_feed,
)
from rss_pipeline_tests.soak import reading_up
from rss_pipeline_tests.soak.reading_up import Publishers, allowed
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.up import PROGRAM, Up, free_port, location, members, started
from rss_pipeline_tests.support.waiting import PATIENCE, soon

PASSWORD = "correct-horse-battery"
FEEDS = ["feed-0", "feed-1", "feed-2", "broken", "feed-4", "feed-5"]
ALL_FEEDS = [*FEEDS, *up_while_read.FEEDS, *reading_up.FEEDS]
"""In the order of the file."""
ITEMS = 2 * 5 + len(up_while_read.FEEDS) + len(reading_up.FEEDS)


@pytest.mark.minutes
@pytest.mark.timeout(1800)
@pytest.mark.slow
def test_up_from_its_first_poll_to_its_last_process(tmp_path: Path, server: FeedServer) -> None:
    publishers = Publishers(server, random.Random(1))
    register(tmp_path, server, publishers)
    environment = {"FEED_PASSWORD": PASSWORD, "RSS_UI_HOSTS": "rss.example.org", **allowed(server.port)}
    with started(tmp_path, **environment) as up:
        soon(up.answers)
        the_ui_has_the_asset_with_a_partition_a_feed_and_all_that_starts_runs_is_on(up)
        a_poll_starts_by_itself_and_its_items_are_stored(up)
        no_page_of_another_site_starts_a_run(up)
        no_client_sends_a_run_to_another_database(up)
        the_graphql_client_of_the_shell_is_served(up)
        one_feed_materialized_by_hand_is_visited_conditionally(up, server)
        a_backfill_of_scattered_keys_ends_green_and_red_exactly(up)
        a_poll_of_the_command_turns_the_red_key_green(up, server)
        with reader_of(up) as dan:
            two_hundred_clicks_on_fifty_feeds_make_few_runs_and_a_request_a_feed(up, dan, server)
            no_kill_loses_anything_while_users_read(up, dan, server, publishers)
        a_second_one_in_the_same_home_says_who_runs_there(up)
        sigterm_ends_every_process_and_no_claim_is_left(up)
        no_secret_is_in_any_file(up, server)


def register(folder: Path, server: FeedServer, publishers: Publishers) -> None:
    entries: list[dict[str, Any]] = []
    for n, id in enumerate(FEEDS, start=2):
        answer = Answer(status=404) if id == "broken" else Answer(body=rss(f"{id}-a", f"{id}-b"), etag='"1"')
        url = server.route(f"127.0.0.{n}", "/feed", answer).replace("//", "//me:${FEED_PASSWORD}@")
        entries.append({"url": url, "id": id, "allow_private": True})
    entries += [*up_while_read.entries(server), *publishers.entries()]
    (folder / "feeds.yaml").write_text(yaml.dump({"feeds": entries}), "utf-8")


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
    assert schedules.keys() >= {"clean_daily", "clean_again", "purge_daily", "check_health_hourly"}
    stopped = {name for name, state in (sensors | schedules).items() if state["status"] != "RUNNING"}
    assert stopped == {"alert_run_failed", "alert_feed_failing"}, "nobody has said where alerts go"


def a_poll_starts_by_itself_and_its_items_are_stored(up: Up) -> None:
    soon(lambda: len(up.rows("SELECT id FROM items")) == ITEMS)
    soon(lambda: up.statuses()["green"] == sorted(set(ALL_FEEDS) - {"broken"}))
    assert up.statuses()["grey"] == ["broken"], "a poll turns no key red"

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
    assert line[9:] == (
        f"poll: {len(ALL_FEEDS)} feeds, {ITEMS} new items, 1 failed: broken (http_status 404)"
    )


def the_graphql_client_of_the_shell_is_served(up: Up) -> None:
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("dagster-graphql")),
            *("--remote", f"http://127.0.0.1:{up.port}", "--text", "{ version }"),
        ],
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )
    assert b"version" in done.stdout


def events_as_they_happen(up: Up, run_id: str) -> list[str]:
    """The events of a run until its end, by the websocket from which the UI has its live log."""
    types: list[str] = []
    with connect(websocket_url(up), subprotocols=[GRAPHQL_WS], open_timeout=PATIENCE) as websocket:
        websocket.send(json.dumps({"type": "connection_init"}))
        query = """subscription($id: ID!) { pipelineRunLogs(runId: $id) {
            ... on PipelineRunLogsSubscriptionSuccess { messages { __typename } } } }"""
        payload = {"query": query, "variables": {"id": run_id}}
        websocket.send(json.dumps({"type": "start", "id": "1", "payload": payload}))
        while not {"RunSuccessEvent", "RunFailureEvent"} & set(types):
            message = json.loads(websocket.recv(timeout=PATIENCE))
            if message["type"] == "data":
                found = message["payload"]["data"]["pipelineRunLogs"]["messages"]
                types += [each["__typename"] for each in found]
    return types


def one_feed_materialized_by_hand_is_visited_conditionally(up: Up, server: FeedServer) -> None:
    launched = up.ask(
        """mutation($params: ExecutionParams!) { launchPipelineExecution(executionParams: $params) {
        __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }""",
        params={
            "mode": "default",
            "runConfigData": {},
            "executionMetadata": {"tags": [{"key": "dagster/partition", "value": "feed-1"}]},
            "selector": {
                "repositoryName": "__repository__",
                "repositoryLocationName": location(up),
                "pipelineName": "__ASSET_JOB",
                "assetSelection": [{"path": ["feed_items"]}],
            },
        },
    )["launchPipelineExecution"]
    assert launched["__typename"] == "LaunchRunSuccess", launched
    assert "RunSuccessEvent" in events_as_they_happen(up, launched["run"]["runId"])

    def ended() -> Any:
        run = up.ask(
            """query($id: ID!) { runOrError(runId: $id) { ... on Run { status stepStats { stepKey } } } }""",
            id=launched["run"]["runId"],
        )["runOrError"]
        return run if run["status"] in ("SUCCESS", "FAILURE") else None

    assert soon(ended)["status"] == "SUCCESS"
    requests = server.asked("127.0.0.3")
    assert [request.headers.get("if-none-match") for request in requests] == [None, '"1"']


def a_backfill_of_scattered_keys_ends_green_and_red_exactly(up: Up) -> None:
    launched = up.ask(
        """mutation($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
        __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }""",
        params={
            "partitionNames": ["feed-0", "broken"],
            "assetSelection": [{"path": ["feed_items"]}],
            "tags": [],
            "fromFailure": False,
        },
    )["launchPartitionBackfill"]
    assert launched["__typename"] == "LaunchBackfillSuccess", launched

    def ended() -> Any:
        found = up.ask(
            """query($id: String!) { partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill {
            status runs(limit: 10) { status tags { key value } } } } }""",
            id=launched["backfillId"],
        )["partitionBackfillOrError"]
        return found if found["status"] not in ("REQUESTED", "CANCELING", "FAILING") else None

    found = soon(ended)
    assert found["status"] == "COMPLETED_FAILED"
    assert sorted(run["status"] for run in found["runs"]) == ["FAILURE", "SUCCESS"]
    assert up.statuses() == {
        "green": sorted(set(ALL_FEEDS) - {"broken"}),
        "red": ["broken"],
        "grey": [],
        "busy": [],
    }


def a_poll_of_the_command_turns_the_red_key_green(up: Up, server: FeedServer) -> None:
    server.route("127.0.0.5", "/feed", Answer(body=rss("mended"), etag='"1"'))
    done = up.command("poll", "broken", "--json")
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["items_new"] == 1
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


def sigterm_ends_every_process_and_no_claim_is_left(up: Up) -> None:
    assert len(members(up.process.pid)) >= 3
    up.process.send_signal(signal.SIGTERM)
    up.process.wait(timeout=PATIENCE)
    soon(lambda: not members(up.process.pid))
    assert up.rows("SELECT token FROM leases") == []
    assert up.rows("SELECT id FROM feeds WHERE lease_token IS NOT NULL OR unclosed_claims > 0") == []


def no_secret_is_in_any_file(up: Up, server: FeedServer) -> None:
    hosts = {f"127.0.0.{n}" for n, _ in enumerate(FEEDS, start=2)}
    asked = [request for request in server.requests if request.host in hosts]
    assert asked
    assert all("authorization" in request.headers for request in asked)
    up.log.flush()
    files = [path for path in up.home.parent.rglob("*") if path.is_file()]
    assert any(path.name == "rss.sqlite" for path in files)
    assert [str(path) for path in files if PASSWORD.encode() in path.read_bytes()] == []
