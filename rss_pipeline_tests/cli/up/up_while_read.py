"""The work of `rss-pipeline up` for users who wait: one run for many clicks, and nothing lost by a kill while
others read. Stages of test_up.py.

No test is in here.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.reader.refresh import Queued, VisitRunning
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline_tests.reader.requests import read_task, request_refresh
from rss_pipeline_tests.soak.reading_up import (
    Killed,
    Publishers,
    nothing_is_lost,
    users_go_on,
    users_of,
)
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.readers import subscribe
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.up import Up, is_part, members
from rss_pipeline_tests.support.waiting import soon

FEEDS = [f"click-{n}" for n in range(50)]
NETWORK = "127.0.1."
RUNS = """{ runsOrError(filter: {pipelineName: "refresh_feeds"}) { ... on Runs {
  results { status tags { key value } } } } }"""


def entries(server: FeedServer) -> list[dict[str, str]]:
    """The entries of these feeds in feeds.yaml."""
    return [
        {"url": server.route(host(number), "/feed", Answer(body=rss("a"))), "id": id, "interval": "24h"}
        for number, id in enumerate(FEEDS)
    ]


class Reader:
    """The reader's side of the installation: dan subscribes these feeds."""

    def __init__(self, up: Up) -> None:
        self.settings = Settings(home=up.home, feeds_file=up.home / "none.yaml", user_agent="test")
        self.database = SqliteDatabase(self.settings.database_path)

    def click(self, feed: int) -> str:
        """Refresh a feed; the task."""
        answer = request_refresh(
            self.database, self.settings, user_id="dan", feed_id=FEEDS[feed], clock=utc_now
        )
        assert isinstance(answer, Queued | VisitRunning)
        return answer.task_id

    def items_of(self, task: str) -> int | None:
        """The new items that the task counts once it is done; None before."""
        found = read_task(self.database, "dan", task, now=utc_now())
        assert found is not None
        if found.result is None:
            return None
        assert found.result.error is None, found.result
        return found.result.items_new


@contextmanager
def reader_of(up: Up) -> Iterator[Reader]:
    """Dan, who subscribes all of these feeds."""
    reader = Reader(up)
    try:
        subscribe(reader.database, "dan", *FEEDS)
        yield reader
    finally:
        reader.database.close()


def host(number: int) -> str:
    return f"{NETWORK}{number + 2}"


def runs(up: Up) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = up.ask(RUNS)["runsOrError"]["results"]
    return found


def two_hundred_clicks_on_fifty_feeds_make_few_runs_and_a_request_a_feed(
    up: Up, dan: Reader, server: FeedServer
) -> None:
    def asked() -> int:
        return sum(request.host.startswith(NETWORK) for request in server.requests)

    before = asked()
    tasks = {dan.click(click % len(FEEDS)) for click in range(200)}
    assert len(tasks) == len(FEEDS)
    soon(lambda: all(dan.items_of(task) is not None for task in tasks))
    assert asked() - before == len(FEEDS)
    soon(lambda: {run["status"] for run in runs(up)} == {"SUCCESS"})
    assert 1 <= len(runs(up)) <= 3
    for run in runs(up):
        tags = {tag["key"]: tag["value"] for tag in run["tags"]}
        assert "requested in the reader." in tags["rss_pipeline/reason"]
        assert "dan" not in str(tags)


def no_kill_loses_anything_while_users_read(
    up: Up, dan: Reader, server: FeedServer, publishers: Publishers, *, all_of_it: bool
) -> None:
    """`all_of_it`: also kills that leave leases behind, or after which all of `up` starts anew."""
    with users_of(up, publishers) as (killed, users):
        users_go_on(users)
        the_killed_reader_is_restarted_alone(up, killed)
        users_go_on(users)
        if all_of_it:
            a_killed_run_loses_no_click(killed, dan, server)
            users_go_on(users)
            killed_services_lose_no_click(killed, dan, server)
            users_go_on(users)
        nothing_is_lost(killed, users, publishers)


def the_killed_reader_is_restarted_alone(up: Up, killed: Killed) -> None:
    def others() -> set[int]:
        return {process.pid for process in members(up.process.pid) if not is_part(process, "reader")}

    def printed() -> str:
        return Path(up.log.name).read_text("utf-8")

    soon(killed.answers)
    assert f"The reader is at {killed.url}" in printed()
    webserver = [each.pid for each in members(up.process.pid) if is_part(each, "webserver")]
    assert killed.kill("reader")
    soon(lambda: "The reader ended (exit code -9); it is restarted in 1 s" in printed())
    soon(killed.answers)
    assert webserver
    assert others() >= set(webserver)


def a_killed_run_loses_no_click(killed: Killed, reader: Reader, server: FeedServer) -> None:
    runs = []

    def kill(_: object) -> Answer:
        [services] = killed.processes("services")
        # Beside the daemon's runs.
        [run] = [each for each in services.children() if each.name() == "rss-refresh"]
        server.route(host(1), "/feed", Answer(body=rss("a", "run")))
        runs.append(run.pid)
        run.kill()
        killed.note("run")
        return Answer(body=rss("a"))

    server.route(host(1), "/feed", kill)
    is_done_within_two_minutes(reader, reader.click(1))
    assert len(runs) == 1


def killed_services_lose_no_click(killed: Killed, reader: Reader, server: FeedServer) -> None:
    [services] = soon(lambda: killed.processes("services"))
    server.route(host(3), "/feed", Answer(body=rss("a", "services")))
    services.send_signal(signal.SIGSTOP)
    task = reader.click(3)
    services.kill()
    killed.note("services")
    is_done_within_two_minutes(reader, task)


def is_done_within_two_minutes(reader: Reader, task: str) -> None:
    soon(lambda: reader.items_of(task) is not None, seconds=120)
    assert reader.items_of(task) == 1
