"""A year in an hour: does Dagster's home stop growing once runs are purged, and do its processes?

200 feeds on loopback, a real `rss-pipeline up`, polls through its queue and polls in this process on the same
instance, a purge every few minutes with a retention of minutes. Each purge is followed by a look at disk,
rows, memory and the time that ticks take. benchmarks/year.py draws the curves.
"""

import json
import random
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import psutil

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.orchestration.build import build_definitions
from rss_pipeline.orchestration.in_process import poll_in_process
from rss_pipeline.orchestration.instance.home import open_instance
from rss_pipeline.orchestration.registry_partitions import register
from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS
from rss_pipeline.pipeline.registry.sync import sync_registry
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import connect
from rss_pipeline_tests.support.pictures import PNG
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer, Request
from rss_pipeline_tests.support.up import LAUNCH_BACKFILL, LAUNCH_RUN, Up, location, members, started
from rss_pipeline_tests.support.waiting import soon

NEWS = 0.03
"""The share of visits to a feed that bring an item."""
FEEDS_A_POLL = 10
"""In this process; through the daemon a poll visits every feed."""
BACKFILLED = 6
TABLES = {
    "runs": "history/runs.db",
    "run_tags": "history/runs.db",
    "snapshots": "history/runs.db",
    "bulk_actions": "history/runs.db",
    "event_logs": "history/runs/index.db",
    "asset_event_tags": "history/runs/index.db",
    "asset_check_executions": "history/runs/index.db",
    "job_ticks": "schedules/schedules.db",
}
PROCESSES = {
    "webserver": "serving.webserver",
    "daemon": "serving.daemon",
    "services": "serving.services",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The figures after a purge."""

    minutes: float
    daemon_polls: int
    polls: int
    purges: int
    disk_mb: Mapping[str, float]
    files: int
    rows: Mapping[str, int]
    memory_mb: Mapping[str, float]
    """Resident, of the processes of `up`, and of this one, which polls and is the publishers' server."""
    tick_seconds: Mapping[str, float]
    """Median of each sensor's ticks since the look before."""
    poll_ms: float
    """Median of a poll in this process since the look before."""
    green: int
    images_green: bool


@dataclass(slots=True)
class Publishers:
    """Feeds that bring an item now and then."""

    server: FeedServer
    feeds: int
    chance: random.Random = field(default_factory=lambda: random.Random(6))
    versions: dict[int, int] = field(default_factory=dict)

    def register(self, file: Path) -> None:
        """Route every feed and write the registry."""
        self.server.listen("127.0.0.2")
        images = self.server.url("127.0.0.2", "/images")
        entries = []
        for n in range(self.feeds):
            host = f"127.0.{1 + n // 200}.{1 + n % 200}"
            url = self.server.route(host, "/feed", self._answering(n, images))
            entries.append(f"- url: {url}\n  id: feed-{n}\n  allow_private: [127.0.0.0/8]\n  interval: 30m\n")
        file.write_text("feeds:\n" + "".join(entries), "utf-8")

    def _answering(self, n: int, images: str) -> Any:
        def answer(_: Request) -> Answer:
            if self.chance.random() < NEWS:
                self.versions[n] = self.versions.get(n, 0) + 1
            version = self.versions.get(n, 0)
            guids = [f"{n}-{v}" for v in range(max(0, version - 9), version + 1)]
            # Every tenth feed has pictures, so that downloads go on beside.
            image = images if n % 10 == 0 else None
            for guid in guids if image else ():
                self.server.route("127.0.0.2", f"/images/{guid}.png", Answer(body=PNG))
            return Answer(body=rss(*guids, image=image), etag=f'"{version}"')

        return answer


@dataclass(slots=True, kw_only=True)
class Year:
    """The whole of it, under way."""

    up: Up
    instance: dg.DagsterInstance
    publishers: Publishers
    settings: Settings
    definitions: dg.Definitions
    database: Any
    began: float = field(default_factory=time.monotonic)
    daemon_polls: int = 0
    polls: int = 0
    purges: int = 0
    looked_at: float = field(default_factory=time.time)
    poll_ms: list[float] = field(default_factory=list)
    purged: list[dict[str, Any]] = field(default_factory=list)

    @property
    def minutes(self) -> float:
        return (time.monotonic() - self.began) / 60

    def launch(self, job: str, config: Mapping[str, Any]) -> str:
        """A run through the queue, as the launchpad starts it; its id."""
        selector = {
            "repositoryName": "__repository__",
            "repositoryLocationName": location(self.up),
            "pipelineName": job,
        }
        params = {
            "mode": "default",
            "runConfigData": config,
            "executionMetadata": {"tags": []},
            "selector": selector,
        }
        launched = self.up.ask(LAUNCH_RUN, params=params)["launchPipelineExecution"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        id: str = launched["run"]["runId"]
        return id

    def backfill(self) -> None:
        """Some scattered keys, as the dialog does."""
        keys = [f"feed-{n}" for n in range(0, self.publishers.feeds, 2)][:BACKFILLED]
        params = {
            "partitionNames": keys,
            "assetSelection": [{"path": list(FEED_ITEMS.path)}],
            "tags": [],
            "fromFailure": False,
        }
        launched = self.up.ask(LAUNCH_BACKFILL, params=params)["launchPartitionBackfill"]
        assert launched["__typename"] == "LaunchBackfillSuccess", launched

    def poll(self) -> None:
        """One in this process, of some feeds in turn."""
        first = self.polls * FEEDS_A_POLL
        ids = [f"feed-{(first + n) % self.publishers.feeds}" for n in range(FEEDS_A_POLL)]
        began = time.perf_counter()
        for round_ in poll_in_process(
            self.definitions, self.instance, self.database, clock=utc_now, feeds=ids
        ):
            assert round_.error is None, round_.error
        self.poll_ms.append((time.perf_counter() - began) * 1000)
        self.polls += 1
        # The server remembers every request.
        self.publishers.server.forget()

    def poll_by_the_daemon(self) -> None:
        """All feeds, due or not."""
        config = {"ops": {"claim": {"config": {"not_visited_since": utc_now().isoformat()}}}}
        self.launch("poll_feeds", config)
        self.daemon_polls += 1

    def purge(self) -> None:
        """Through the queue, and waited for; polls in this process go on meanwhile."""
        id = self.launch("purge_history", {"ops": {"purge": {"config": {}}}})
        until = time.monotonic() + 900
        while not (run := self.instance.get_run_by_id(id)) or not run.is_finished:
            assert time.monotonic() < until, "no purge within a quarter of an hour"
            self.poll()
        assert run.is_success, id
        for entry in self.instance.all_logs(id, of_type=dg.DagsterEventType.STEP_OUTPUT):
            event = entry.dagster_event
            assert event is not None
            metadata = event.step_output_data.metadata
            self.purged.append({name: value.value for name, value in metadata.items()})
        self.purges += 1

    def look(self) -> Look:
        """Everything, now."""
        home = Path(self.instance.root_directory)
        sizes = {"runs' own files": 0, "index.db": 0, "runs.db": 0, "schedules.db": 0, "logs": 0, "other": 0}
        files = 0
        for path in home.rglob("*"):
            try:
                size = path.stat().st_size if path.is_file() else 0
            except FileNotFoundError:
                continue
            files += path.is_file()
            name = path.name.partition(".db")[0] + ".db"
            part = name if name in sizes else "runs' own files" if path.parent.name == "runs" else "other"
            sizes["logs" if "compute_logs" in path.parts else part] += size
        return Look(
            minutes=round(self.minutes, 2),
            daemon_polls=self.daemon_polls,
            polls=self.polls,
            purges=self.purges,
            disk_mb={name: round(size / 1e6, 3) for name, size in sizes.items()},
            files=files,
            rows={table: count(home / file, table) for table, file in TABLES.items()},
            memory_mb={**self._memory(), "this process": round(psutil.Process().memory_info().rss / 1e6, 1)},
            tick_seconds=self._ticks(home),
            poll_ms=round(statistics.median(self.poll_ms), 1) if self.poll_ms else 0.0,
            green=len(self.instance.get_materialized_partitions(FEED_ITEMS)),
            images_green=self.instance.get_latest_materialization_event(dg.AssetKey("item_images"))
            is not None,
        )

    def _memory(self) -> dict[str, float]:
        found = dict.fromkeys(PROCESSES, 0.0)
        for process in members(self.up.process.pid):
            try:
                command = " ".join(process.cmdline())
                rss = process.memory_info().rss / 1e6
            except psutil.NoSuchProcess:
                continue
            for name, mark in PROCESSES.items():
                if mark in command:
                    # The runner and its runs are forks of the services, with the same command line.
                    found[name] = max(found[name], round(rss, 1))
                    break
        return found

    def _ticks(self, home: Path) -> dict[str, float]:
        since, self.looked_at = self.looked_at, time.time()
        taken: dict[str, list[float]] = {}
        with closing(sqlite3.connect(home / "schedules" / "schedules.db", timeout=30)) as database:
            for (body,) in database.execute("SELECT tick_body FROM job_ticks"):
                tick = json.loads(body)
                if tick.get("end_timestamp") and tick["timestamp"] >= since:
                    taken.setdefault(tick["job_name"], []).append(tick["end_timestamp"] - tick["timestamp"])
        self.poll_ms = self.poll_ms[-200:]
        return {name: round(statistics.median(each), 3) for name, each in sorted(taken.items())}


def count(path: Path, table: str) -> int:
    """Rows of a table."""
    with closing(sqlite3.connect(path, timeout=30)) as database:
        return int(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def live(
    folder: Path,
    *,
    feeds: int,
    minutes: float,
    daemon_polls: int,
    polls: int,
    purges: int,
    retention_minutes: float,
) -> Iterator[Look | dict[str, Any]]:
    """Live through it; a look after each purge and at the end, at last what the purges removed."""
    history_days = str(retention_minutes / 1440)
    with FeedServer() as server:
        publishers = Publishers(server, feeds)
        publishers.register(folder / "feeds.yaml")
        with started(folder, RSS_HISTORY_DAYS=history_days) as up:
            soon(up.answers)
            settings = Settings.from_environ(up.environment, cwd=folder)
            database = connect(settings)
            with closing(database), open_instance(settings) as instance:
                synced = sync_registry(database, settings, now=utc_now())
                register(database, instance, synced)
                year = Year(
                    up=up,
                    instance=instance,
                    publishers=publishers,
                    settings=settings,
                    definitions=build_definitions(
                        settings,
                        # As the command does it: the registry is read once, not in every run.
                        synced=synced,
                        resource_overrides={"database": dg.ResourceDefinition.hardcoded_resource(database)},
                    ),
                    database=database,
                )
                soon(lambda: year.look().green == feeds)
                yield from _pass(year, minutes, daemon_polls, polls, purges)
                yield {"purged": year.purged}


def _pass(year: Year, minutes: float, daemon_polls: int, polls: int, purges: int) -> Iterator[Look]:
    """Spread what is to be done over the time; a machine that cannot do it in that time may take twice."""
    year.began = time.monotonic()

    def all_done() -> bool:
        return year.daemon_polls >= daemon_polls and year.polls >= polls and year.purges >= purges

    while (passed := year.minutes / minutes) < 2.0 and not (passed >= 1.0 and all_done()):
        share = min(passed, 1.0)
        waiting = year.instance.get_runs_count(dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED]))
        if year.daemon_polls < daemon_polls * share and waiting < 3:
            year.poll_by_the_daemon()
        if year.purges < purges * passed:
            if year.purges % 4 == 1:
                year.backfill()
            year.purge()
            yield year.look()
        if year.polls < polls * share:
            year.poll()
        else:
            time.sleep(0.1)
    year.purge()
    yield year.look()


def verdict(looks: Sequence[Look]) -> dict[str, dict[str, float]]:
    """For each quantity, the mean of the second and of the last third, and what the last is of the second."""
    third = max(len(looks) // 3, 1)
    middle, last = looks[third : 2 * third] or looks, looks[-third:]
    found = {}
    for name, of in QUANTITIES.items():
        a, b = (statistics.mean(of(look) for look in some) for some in (middle, last))
        found[name] = {
            "second third": round(a, 3),
            "last third": round(b, 3),
            "ratio": round(b / a, 3) if a else 1,
        }
    return found


def _rows(table: str) -> Callable[[Look], float]:
    return lambda look: look.rows[table]


def _memory(name: str) -> Callable[[Look], float]:
    return lambda look: look.memory_mb[name]


QUANTITIES: dict[str, Callable[[Look], float]] = {
    "disk MB": lambda look: sum(look.disk_mb.values()),
    "files": lambda look: look.files,
    **{f"rows of {table}": _rows(table) for table in TABLES},
    **{f"MB of {name}": _memory(name) for name in [*PROCESSES, "this process"]},
    "seconds a tick": lambda look: max(look.tick_seconds.values(), default=0.0),
    "ms a poll": lambda look: look.poll_ms,
}
