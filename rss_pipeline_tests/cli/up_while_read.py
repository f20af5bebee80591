"""What `rss-pipeline up` does for users who wait: one run for many clicks, and none lost by a kill."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.pipeline.reading.refresh import Queued, VisitRunning, read_task, request_refresh
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.sqlite import SqliteDatabase
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.readers import subscribe
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.up import Up, started
from rss_pipeline_tests.support.waiting import soon

FEEDS = 50
SERVICES = "rss_pipeline.orchestration.serving.services"
RUNS = """{ runsOrError(filter: {pipelineName: "refresh_feeds"}) { ... on Runs {
  results { status tags { key value } } } } }"""


class Reader:
    """The reader's side of the installation: ann subscribes all feeds."""

    def __init__(self, up: Up) -> None:
        self.settings = Settings(home=up.home, feeds_file=up.home / "none.yaml", user_agent="test")
        self.database = SqliteDatabase(self.settings.database_path)

    def click(self, feed: int) -> str:
        """Refresh a feed; the task."""
        answer = request_refresh(
            self.database, self.settings, user_id="ann", feed_id=f"f{feed}", clock=utc_now
        )
        assert isinstance(answer, Queued | VisitRunning)
        return answer.task_id

    def items_of(self, task: str) -> int | None:
        """The new items that the task counts once it is done; None before."""
        found = read_task(self.database, "ann", task, now=utc_now())
        assert found is not None
        if found.result is None:
            return None
        assert found.result.error is None, found.result
        return found.result.items_new


@pytest.fixture
def up(tmp_path: Path, server: FeedServer) -> Iterator[Up]:
    feeds = []
    for number in range(FEEDS):
        url = server.route(host(number), "/feed", Answer(body=rss("a")))
        feeds.append({"url": url, "id": f"f{number}", "allow_private": ["127.0.0.0/8"], "interval": "24h"})
    (tmp_path / "feeds.yaml").write_text(yaml.dump({"feeds": feeds}), "utf-8")
    with started(tmp_path) as up:
        soon(up.answers)
        soon(lambda: up.rows("SELECT count(*) FROM items")[0][0] == FEEDS)
        yield up


@pytest.fixture
def reader(up: Up, server: FeedServer) -> Iterator[Reader]:
    reader = Reader(up)
    subscribe(reader.database, "ann", *(f"f{number}" for number in range(FEEDS)))
    server.forget()
    yield reader
    reader.database.close()


def host(number: int) -> str:
    return f"127.0.1.{number + 2}"


def runs(up: Up) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = up.ask(RUNS)["runsOrError"]["results"]
    return found


def refresher(up: Up) -> psutil.Process | None:
    """The process that waits for requests: a child of the services without a command of its own."""
    for process in psutil.Process(up.process.pid).children(recursive=True):
        # One that ended meanwhile.
        with suppress(psutil.NoSuchProcess):
            parent = process.parent()
            if parent is not None and all(SERVICES in each.cmdline() for each in (process, parent)):
                return process
    return None


@pytest.mark.minutes
@pytest.mark.slow
def test_clicks_share_runs_and_none_is_lost_by_a_kill(up: Up, reader: Reader, server: FeedServer) -> None:
    two_hundred_clicks_on_fifty_feeds_make_few_runs_and_one_request_a_feed(up, reader, server)
    a_killed_run_loses_no_click(up, reader, server)
    the_killed_refresher_loses_no_click(up, reader, server)
    killed_services_lose_no_click(up, reader, server)


def two_hundred_clicks_on_fifty_feeds_make_few_runs_and_one_request_a_feed(
    up: Up, reader: Reader, server: FeedServer
) -> None:
    tasks = {reader.click(click % FEEDS) for click in range(200)}
    assert len(tasks) == FEEDS
    soon(lambda: all(reader.items_of(task) is not None for task in tasks))
    assert len(server.requests) == FEEDS
    soon(lambda: {run["status"] for run in runs(up)} == {"SUCCESS"})
    assert 1 <= len(runs(up)) <= 3
    for run in runs(up):
        tags = {tag["key"]: tag["value"] for tag in run["tags"]}
        assert "requested in the reader." in tags["rss_pipeline/reason"]
        assert "ann" not in str(tags)


def a_killed_run_loses_no_click(up: Up, reader: Reader, server: FeedServer) -> None:
    killed = []

    def kill(_: object) -> Answer:
        parent = refresher(up)
        assert parent is not None
        [run] = [child for child in parent.children() if SERVICES in " ".join(child.cmdline())]
        server.route(host(1), "/feed", Answer(body=rss("a", "run")))
        killed.append(run.pid)
        run.kill()
        return Answer(body=rss("a"))

    server.route(host(1), "/feed", kill)
    is_done_within_two_minutes(reader, reader.click(1))
    assert len(killed) == 1


def the_killed_refresher_loses_no_click(up: Up, reader: Reader, server: FeedServer) -> None:
    process = soon(lambda: refresher(up))
    server.route(host(2), "/feed", Answer(body=rss("a", "refresher")))
    process.send_signal(signal.SIGSTOP)
    task = reader.click(2)
    process.kill()
    is_done_within_two_minutes(reader, task)


def killed_services_lose_no_click(up: Up, reader: Reader, server: FeedServer) -> None:
    process = soon(lambda: refresher(up))
    server.route(host(3), "/feed", Answer(body=rss("a", "services")))
    services = process.ppid()
    process.send_signal(signal.SIGSTOP)
    task = reader.click(3)
    os.kill(services, signal.SIGKILL)
    process.send_signal(signal.SIGCONT)
    is_done_within_two_minutes(reader, task)


def is_done_within_two_minutes(reader: Reader, task: str) -> None:
    soon(lambda: reader.items_of(task) is not None, seconds=120)
    assert reader.items_of(task) == 1
