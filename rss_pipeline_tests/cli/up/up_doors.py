"""The doors by which a run starts in `rss-pipeline up`: none for pages of other sites, and none to a database
of a client's own. Stages of test_up.py.

No test is in here.
"""

import json
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlencode

from websockets import InvalidStatus, Origin, Subprotocol
from websockets.sync.client import connect

from rss_pipeline_tests.support.up import LAUNCH_RUN, Up, location
from rss_pipeline_tests.support.waiting import PATIENCE

GRAPHQL_WS = Subprotocol("graphql-ws")


def launch_of_a_run(up: Up, door: str, **run_config: Any) -> dict[str, Any]:
    """A GraphQL request that starts a run of `download_images`, with the door by which it came as a tag."""
    params = {
        "mode": "default",
        "runConfigData": run_config,
        "executionMetadata": {"tags": [{"key": "door", "value": door}]},
        "selector": {
            "repositoryName": "__repository__",
            "repositoryLocationName": location(up),
            "pipelineName": "download_images",
        },
    }
    return {"query": LAUNCH_RUN, "variables": {"params": params}}


def no_page_of_another_site_starts_a_run(up: Up) -> None:
    """Each of these started one when the webserver was Dagster's alone, or connected."""
    evil, own = "https://evil.example", f"http://127.0.0.1:{up.port}"
    json_type = {"Content-Type": "application/json"}
    statuses = {}
    for door, method, headers in (
        ("image", "GET", {"Accept": "image/*"}),
        ("form", "POST", {"Content-Type": "application/x-www-form-urlencoded"}),
        ("text", "POST", {"Content-Type": "text/plain"}),
        ("origin", "POST", {**json_type, "Origin": evil}),
        ("sandbox", "POST", {**json_type, "Origin": "null"}),
        ("rebinding", "POST", {**json_type, "Host": f"evil.example:{up.port}"}),
        ("fetch metadata", "POST", {**json_type, "Origin": own, "Sec-Fetch-Site": "cross-site"}),
    ):
        body = launch_of_a_run(up, door)
        in_url = urlencode({"query": body["query"], "variables": json.dumps(body["variables"])})
        statuses[door] = answered(up, method, f"/graphql?{in_url}", headers, json.dumps(body).encode())
    report = "/report_asset_materialization/feed_items?partition=feed-0"
    statuses["report"] = answered(up, "POST", report, {"Origin": evil}, b"")
    statuses["websocket"] = opened(up, Origin(evil))
    statuses["rebound page"] = answered(up, "GET", "/", {"Host": "evil.example"}, b"")
    assert statuses == {
        "image": 405,
        "form": 415,
        "text": 415,
        "origin": 403,
        "sandbox": 403,
        "rebinding": 421,
        "fetch metadata": 403,
        "report": 403,
        "websocket": 403,
        "rebound page": 421,
    }
    assert answered(up, "GET", "/server_info", {"Host": "rss.example.org"}, b"") == 200
    assert opened(up, None) == opened(up, Origin(own)) == 101
    runs = up.ask(
        """{ runsOrError(filter: {pipelineName: "download_images"}) { ... on Runs { results {
        tags { key value } } } } }"""
    )["runsOrError"]["results"]
    assert [run for run in runs if "door" in {tag["key"] for tag in run["tags"]}] == []


def answered(up: Up, method: str, path: str, headers: dict[str, str], body: bytes) -> int:
    connection = HTTPConnection("127.0.0.1", up.port, timeout=PATIENCE)
    with closing(connection):
        connection.request(method, path, body, headers)
        return connection.getresponse().status


def opened(up: Up, origin: Origin | None) -> int:
    """The status with which a websocket is answered."""
    try:
        with connect(websocket_url(up), origin=origin, subprotocols=[GRAPHQL_WS], open_timeout=PATIENCE):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


def websocket_url(up: Up) -> str:
    return f"ws://127.0.0.1:{up.port}/graphql"


def no_client_sends_a_run_to_another_database(up: Up) -> None:
    """Its file was made, or a server got a request, when the database's resource took its place from run
    config."""
    elsewhere = up.home / "elsewhere.sqlite"
    resources = {"database": {"config": {"path": str(elsewhere)}}}
    body = launch_of_a_run(up, "run config", resources=resources)
    found = up.ask(body["query"], **body["variables"])["launchPipelineExecution"]
    assert found["__typename"] == "RunConfigValidationInvalid"
    assert not elsewhere.exists()
