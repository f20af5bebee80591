"""Several machines on this one: `rss-pipeline up --fleet`, and workers with homes of their own.

No test is in here. Postgres and Redis are the fixtures'; what Redis hears is kept: no secret may be in it.

    with fleet(tmp_path, running_postgres, running_redis, DATABASE) as machines:
        machines.worker("one", runs=2)
"""

import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from rss_pipeline.settings import Settings
from rss_pipeline.storage import schema
from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
from rss_pipeline_tests.support.services.postgres import Postgres
from rss_pipeline_tests.support.services.redis_server import PASSWORD, RedisServer
from rss_pipeline_tests.support.up import PROGRAM, Up, kill_session, started
from rss_pipeline_tests.support.waiting import PATIENCE, soon

_RUN = """query($id: ID!) { runOrError(runId: $id) { ... on Run {
    runId jobName status parentRunId tags { key value } } } }"""
_RUNS = """query($job: String!) { runsOrError(filter: {pipelineName: $job}) { ... on Runs {
    results { runId jobName status parentRunId tags { key value } } } } }"""
_EVENTS = """query($id: ID!) { logsForRun(runId: $id, limit: 1000) { ... on EventConnection {
    events { __typename ... on MessageEvent { message } } } } }"""
_LAUNCH = """mutation($params: ExecutionParams!) { launchPipelineExecution(executionParams: $params) {
    __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
_TERMINATE = """mutation($id: String!) { terminateRun(runId: $id) {
    __typename ... on TerminateRunFailure { message } ... on PythonError { message } } }"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run, as the UI has it."""

    id: str
    status: str
    tags: dict[str, str]
    parent: str | None


@dataclass(slots=True, kw_only=True)
class Machine:
    """A worker."""

    name: str
    home: Path
    log: Path
    process: "subprocess.Popen[bytes]"

    def stop(self) -> int:
        """End it as a service manager does; return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


@dataclass(slots=True, kw_only=True)
class Machines:
    """The main machine, and those that execute its runs."""

    main: Up
    database_url: str
    heard: bytearray
    """All commands that Redis got."""
    _ends: ExitStack
    _location: str | None = None

    def worker(self, name: str, *, runs: int = 1) -> Machine:
        """Start a worker, and wait until it has joined."""
        folder = self.main.home.parent
        home = folder / name
        home.mkdir()
        # As a folder that all machines mount.
        (home / "objects").symlink_to(self.main.home / "objects")
        log = folder / f"{name}.log"
        environment = {
            **self.main.environment,
            "RSS_PIPELINE_HOME": str(home),
            # A worker needs no list of feeds.
            "RSS_FEEDS_FILE": str(home / "none.yaml"),
            "RSS_WORKER_NAME": name,
            "RSS_WORKER_RUNS": str(runs),
        }
        with log.open("wb") as said:
            process = subprocess.Popen(
                [PROGRAM, "worker"],
                cwd=home,
                env=environment,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._ends.callback(kill_session, process)

        def joined() -> bool:
            assert process.poll() is None, log.read_text("utf-8")
            return (name,) in self.rows("SELECT name FROM workers WHERE role = 'worker'")

        soon(joined)
        return Machine(name=name, home=home, log=log, process=process)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The size of our tables, and in the schema `dagster` of Dagster's."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            return connection.execute(sql.encode()).fetchall()

    def launch(
        self,
        job: str,
        *,
        priority: int = 0,
        config: dict[str, Any] | None = None,
        tags: Mapping[str, str] | None = None,
        assets: Sequence[str] = (),
    ) -> str:
        """Start a run in the UI; return its id."""
        if self._location is None:
            nodes = self.main.ask(
                "{ repositoriesOrError { ... on RepositoryConnection { nodes { location { name } } } } }"
            )
            self._location = nodes["repositoriesOrError"]["nodes"][0]["location"]["name"]
        given = {"dagster/priority": str(priority), **(tags or {})}
        selector = {
            "repositoryLocationName": self._location,
            "repositoryName": "__repository__",
            "pipelineName": job,
            "assetSelection": [{"path": [asset]} for asset in assets] or None,
        }
        params = {"selector": selector, "runConfigData": config or {}, "mode": "default"}
        metadata = {"tags": [{"key": key, "value": value} for key, value in given.items()]}
        answer = self.main.ask(_LAUNCH, params={**params, "executionMetadata": metadata})
        assert answer["launchPipelineExecution"]["__typename"] == "LaunchRunSuccess", answer
        id: str = answer["launchPipelineExecution"]["run"]["runId"]
        return id

    def materialize(self, first: str, last: str, *, priority: int) -> str:
        """Start a run over the feeds from one to another, in their order; return its id."""
        of = "dagster/asset_partition_range_"
        return self.launch(
            "__ASSET_JOB",
            priority=priority,
            tags={f"{of}start": first, f"{of}end": last},
            assets=["feed_items"],
        )

    def cancel(self, id: str) -> None:
        """Cancel a run in the UI."""
        answer = self.main.ask(_TERMINATE, id=id)["terminateRun"]
        assert answer["__typename"] == "TerminateRunSuccess", answer

    def run(self, id: str) -> Run:
        return _run(self.main.ask(_RUN, id=id)["runOrError"])

    def runs(self, job: str) -> list[Run]:
        """The runs of a job, the newest first."""
        return [_run(found) for found in self.main.ask(_RUNS, job=job)["runsOrError"]["results"]]

    def until(self, id: str, *statuses: str) -> Run:
        """The run, once its status is one of these."""

        def there() -> Run | None:
            run = self.run(id)
            return run if run.status in statuses else None

        return soon(there)

    def events(self, id: str) -> list[tuple[str, str]]:
        """Kind and message of each event of a run."""
        found = self.main.ask(_EVENTS, id=id)["logsForRun"]["events"]
        return [(event["__typename"], event.get("message") or "") for event in found]

    def deliver(self, id: str, queue: str) -> None:
        """Send a run to the workers once more, as the broker does where it does not know that one has it."""
        from rss_pipeline.features.fleet.launcher import TASK, new_app
        from rss_pipeline.features.fleet.settings import FleetSettings

        settings = Settings.from_environ(self.main.environment, cwd=self.main.home)
        fleet = settings.of(FleetSettings)
        assert fleet is not None
        with new_app(settings, fleet) as app:
            app.send_task(TASK, args=[id], queue=queue)

    def kill_process_of(self, id: str) -> None:
        """Kill the process that executes a run, with all that it has started."""
        [said] = [text for _, text in self.events(id) if text.startswith("Started process for run (pid: ")]
        process = psutil.Process(int(said.split("pid: ")[1].rstrip(").")))
        for each in [process, *process.children(recursive=True)]:
            each.kill()


def _run(found: dict[str, Any]) -> Run:
    tags = {tag["key"]: tag["value"] for tag in found["tags"]}
    return Run(id=found["runId"], status=found["status"], tags=tags, parent=found["parentRunId"])


@contextmanager
def fleet(
    folder: Path, postgres: Postgres, redis: RedisServer, broker: int, **environment: str
) -> Iterator[Machines]:
    """A main machine with a database of its own, with the folder's name, and this database of Redis."""
    pytest.importorskip("rss_pipeline.features.fleet")
    name = folder.name
    postgres.create(name)
    url = postgres.tcp_url(name)
    with ExitStack() as ends:
        settings = {
            "DATABASE_URL": url,
            "RSS_BROKER_URL": redis.url(broker),
            "RSS_READER": "off",
            "RSS_PIPELINE_LEASE_SECONDS": "20",
            **environment,
        }
        # As `rss-pipeline migrate` does it in a process of its own.
        with closing(PostgresDatabase(url, where=name)) as database:
            schema.migrate(database)
        (folder / "home" / "objects").mkdir(parents=True)
        heard = ends.enter_context(_listening(redis))
        main = ends.enter_context(started(folder, options=["--fleet"], **settings))
        machines = Machines(main=main, database_url=url, heard=heard, _ends=ends)
        soon(main.answers)
        yield machines


@contextmanager
def _listening(redis: RedisServer) -> Iterator[bytearray]:
    """All commands that the server gets, of whatever client, until the end of the block."""
    heard = bytearray()
    with socket.create_connection(("127.0.0.1", redis.port)) as monitor:

        def listen() -> None:
            while some := monitor.recv(65_536):
                heard.extend(some)

        monitor.sendall(f"AUTH {PASSWORD}\r\nMONITOR\r\n".encode())
        assert monitor.recv(5) == b"+OK\r\n"
        thread = threading.Thread(target=listen, name="listen to Redis")
        thread.start()
        try:
            yield heard
        finally:
            monitor.shutdown(socket.SHUT_RDWR)
            thread.join()
