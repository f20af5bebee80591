"""`rss-pipeline up` as a person has it, for tests and benchmarks: started, used, and ended for certain.

No test is in here.
"""

import json
import os
import random
import socket
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from rss_pipeline_tests.support.waiting import PATIENCE

PROGRAM = str(Path(sys.executable).with_name("rss-pipeline"))

LAUNCH_RUN = """mutation($params: ExecutionParams!) { launchPipelineExecution(executionParams: $params) {
    __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
LAUNCH_BACKFILL = """mutation($params: LaunchBackfillParams!) {
    launchPartitionBackfill(backfillParams: $params) {
    __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""


class Up:
    """The running command, its home, and its GraphQL."""

    def __init__(self, folder: Path, port: int, *, options: Sequence[str] = (), **environment: str) -> None:
        self.home = folder / "home"
        self.port = port
        self.reader_port = free_port()
        clean = {
            name: value for name, value in os.environ.items() if not name.startswith(("RSS_", "DAGSTER_"))
        }
        self.environment = {
            **clean,
            "RSS_PIPELINE_HOME": str(self.home),
            "RSS_FEEDS_FILE": str(folder / "feeds.yaml"),
            "RSS_HOST_DELAY_SECONDS": "0",
            "RSS_PARSE_WORKERS": "1",
            "RSS_PORT": str(port),
            "RSS_READER_PORT": str(self.reader_port),
            **environment,
        }
        self.log = (folder / "up.log").open("wb")
        self.process = subprocess.Popen(
            [PROGRAM, "up", *options],
            cwd=folder,
            env=self.environment,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """One GraphQL request's data."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/graphql", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            found: dict[str, Any] = json.load(answer)
        assert "errors" not in found, found
        data: dict[str, Any] = found["data"]
        return data

    def answers(self) -> bool:
        """True if the UI answers, with our code loaded."""
        assert self.process.poll() is None, "it ended"
        try:
            nodes = self.ask("{ assetNodes { assetKey { path } } }")["assetNodes"]
        except (urllib.error.URLError, ConnectionError):
            return False
        return bool(nodes)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.home / "rss.sqlite", timeout=PATIENCE)) as database:
            return database.execute(sql).fetchall()

    def statuses(self) -> dict[str, list[str]]:
        """Keys by colour, as the asset's page has them."""
        nodes = self.ask(
            """{ assetNodes { assetKey { path } assetPartitionStatuses { ... on DefaultPartitionStatuses {
            materializedPartitions failedPartitions unmaterializedPartitions materializingPartitions
            } } } }"""
        )["assetNodes"]
        (node,) = (node for node in nodes if node["assetKey"]["path"] == ["feed_items"])
        found = node["assetPartitionStatuses"]
        red = set(found["failedPartitions"])
        return {
            "green": sorted(set(found["materializedPartitions"]) - red),
            "red": sorted(red),
            "grey": sorted(set(found["unmaterializedPartitions"]) - red),
            "busy": sorted(found["materializingPartitions"]),
        }

    def command(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [PROGRAM, *arguments], env=self.environment, check=False, capture_output=True, timeout=PATIENCE
        )


def free_port() -> int:
    """A port that stays free until a slow start takes it: below those that the system gives to clients."""
    for port in random.sample(range(20_000, 32_000), 1_000):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")


@contextmanager
def started(folder: Path, *, options: Sequence[str] = (), **environment: str) -> Iterator[Up]:
    """`up` with these options and settings, ended for certain."""
    up = Up(folder, free_port(), options=options, **environment)
    try:
        yield up
    except BaseException:
        print((folder / "up.log").read_text("utf-8")[-8000:])  # noqa: T201
        raise
    finally:
        kill_session(up.process)
        up.log.close()


def kill_session(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process that leads a session, and all others of that session."""
    for member in members(process.pid):
        # It may have ended since the list was made.
        with suppress(psutil.NoSuchProcess):
            member.kill()
    process.wait()


def members(session: int) -> list[psutil.Process]:
    """The living processes of the command's session, whoever their parent is now."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


def is_part(process: psutil.Process, kind: str) -> bool:
    """True for a process of `up` of this kind: `services`, from which all are forked, or a fork by its name.
    A fork has the command line of the services.

    Raises:
        psutil.NoSuchProcess: it has ended.
    """
    name = process.name()
    if name.startswith("rss-"):
        return name == f"rss-{kind}"
    words = process.cmdline()
    # The supervisor has it behind its own.
    module = words[words.index("-m") + 1] if "-m" in words else ""
    return kind == "services" and module == "rss_pipeline.cli.services"


def materialize(up: Up, id: str) -> str:
    """Start a run of one feed's partition, as its dialog does; the run's id."""
    selector = {
        "repositoryName": "__repository__",
        "repositoryLocationName": location(up),
        "pipelineName": "__ASSET_JOB",
        "assetSelection": [{"path": ["feed_items"]}],
    }
    params = {
        "mode": "default",
        "runConfigData": {},
        "executionMetadata": {"tags": [{"key": "dagster/partition", "value": id}]},
        "selector": selector,
    }
    run_id: str = up.ask(LAUNCH_RUN, params=params)["launchPipelineExecution"]["run"]["runId"]
    return run_id


def location(up: Up) -> str:
    """The code location's name."""
    nodes = up.ask("{ repositoriesOrError { ... on RepositoryConnection { nodes { location { name } } } } }")
    name: str = nodes["repositoriesOrError"]["nodes"][0]["location"]["name"]
    return name


def runs_of(up: Up, job: str) -> list[dict[str, Any]]:
    """A job's runs, the newest first."""
    found = up.ask(
        """query($job: String!) { runsOrError(filter: {pipelineName: $job}) { ... on Runs {
        results { runId status tags { key value } } } } }""",
        job=job,
    )
    results: list[dict[str, Any]] = found["runsOrError"]["results"]
    return results
