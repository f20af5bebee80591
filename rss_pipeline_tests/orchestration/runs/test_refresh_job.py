"""The job `refresh_feeds` in Dagster: its run, its sensor, and the process of `up` that starts it."""

import os
import signal
import threading
from collections.abc import Callable
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import dagster as dg
import pytest

from rss_pipeline.collector.models.clock import milliseconds, utc_now
from rss_pipeline.orchestration.build_polls import refresh_definitions
from rss_pipeline.orchestration.in_process import refresh_in_process
from rss_pipeline.orchestration.serving.forked import DONE, FAILED, WAITING
from rss_pipeline.orchestration.serving.refresher import LONGEST_WAIT, QUIET_SECONDS, Moment
from rss_pipeline.pipeline.triggers.runs import JobRun, Start, Wait
from rss_pipeline.pipeline.triggers.starts import REFRESH_PATIENCE, decide_refresh
from rss_pipeline.reader.refresh import Queued, RefreshAnswer, Task, VisitRunning
from rss_pipeline.storage.feeds import claims
from rss_pipeline.storage.feeds.claimable import Named
from rss_pipeline.storage.refresh.open_requests import Waiting
from rss_pipeline_tests.reader.requests import read_task, request_refresh, request_search
from rss_pipeline_tests.support import waiting
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import NOON, rss
from rss_pipeline_tests.support.prepared import Prepared, PreparedProcess
from rss_pipeline_tests.support.readers import subscribe
from rss_pipeline_tests.support.server import Answer, FeedServer

JOB = dg.RunsFilter(job_name="refresh_feeds")


@pytest.fixture
def feed(pipeline: DagsterPipeline, server: FeedServer) -> str:
    """A feed with the item a, and since its visit with b; ann subscribes to it."""
    url = server.route("127.0.0.2", "/feed", Answer(body=rss("a")))
    id = pipeline.register(url, "feed", interval="12h")
    pipeline.visit()
    subscribe(pipeline.database, "ann", id)
    server.route("127.0.0.2", "/feed", Answer(body=rss("a", "b")))
    server.forget()
    # A visit by hand comes a minute after the last answer.
    pipeline.clock.turn(minutes=1)
    return id


def request(pipeline: DagsterPipeline, feed_id: str) -> RefreshAnswer:
    return request_refresh(
        pipeline.database, pipeline.settings, user_id="ann", feed_id=feed_id, clock=pipeline.clock
    )


def task(pipeline: DagsterPipeline, id: str) -> Task:
    found = read_task(pipeline.database, "ann", id, now=pipeline.clock())
    assert found is not None
    return found


def tick(pipeline: DagsterPipeline) -> Any:
    definition = pipeline.definitions().resolve_sensor_def("refresh_feeds_when_requested")
    with dg.build_sensor_context(instance=pipeline.instance) as context:
        return definition(context)


@pytest.mark.slow
def test_a_run_shows_its_reason_and_no_user_and_reports_the_new_items(
    pipeline: DagsterPipeline, feed: str, server: FeedServer
) -> None:
    answer = request(pipeline, feed)
    assert isinstance(answer, Queued)
    pipeline.clock.turn(seconds=1)
    definitions = refresh_definitions(pipeline.settings, clock=pipeline.clock)
    reason = "A feed is requested in the reader."
    assert refresh_in_process(definitions, pipeline.instance, reason=reason) is None
    assert pipeline.guids(feed) == ["a", "b"]
    result = task(pipeline, answer.task_id).result
    assert result is not None
    assert (result.outcome, result.items_new) == ("stored", 1)
    [run] = pipeline.instance.get_runs(JOB)
    assert run.status is dg.DagsterRunStatus.SUCCESS
    assert (run.tags["rss_pipeline/reason"], run.tags["dagster/priority"]) == (reason, "10")
    assert "ann" not in " ".join(run.tags.values())
    assert [event["items_new"] for event in pipeline.events(feed)] == [1]


def test_the_sensor_leaves_new_requests_to_up_and_starts_a_run_for_those_that_wait(
    pipeline: DagsterPipeline, feed: str
) -> None:
    assert isinstance(tick(pipeline), dg.SkipReason)
    assert isinstance(request(pipeline, feed), Queued)
    assert "starts a run for them at once" in str(tick(pipeline).skip_message)
    pipeline.clock.now += REFRESH_PATIENCE
    started = tick(pipeline)
    assert isinstance(started, dg.RunRequest)
    assert started.tags == {
        "dagster/priority": "10",
        "rss_pipeline/reason": "A feed is requested in the reader.",
    }


@pytest.mark.parametrize(
    ("made", "starts"), [(-10, True), (-9, False), (9, False), (10, True), (86_400, True)]
)
def test_a_request_from_before_the_clock_was_put_back_does_not_wait_until_then(
    made: int, starts: bool
) -> None:
    waiting = Waiting(count=1, can_begin=1, oldest_ms=milliseconds(NOON + timedelta(seconds=made)))
    assert isinstance(decide_refresh(waiting, [], [], now=NOON), Start if starts else Wait)


def test_no_second_run_starts_while_one_is_alive_or_a_store_fails() -> None:
    now = NOON
    waiting = Waiting(count=2, can_begin=2, oldest_ms=milliseconds(now - timedelta(minutes=1)))
    ago = timedelta(seconds=30)
    running = JobRun(run_id="r" * 12, state="running", started_at=now - ago)
    failed = JobRun(run_id="f" * 12, state="failed", started_at=now - ago, ended_at=now - ago)
    assert isinstance(decide_refresh(waiting, [], [], now=now), Start)
    assert isinstance(decide_refresh(waiting, [running], [], now=now), Wait)
    assert isinstance(decide_refresh(waiting, [failed], [], now=now), Wait)
    held = Waiting(count=2, can_begin=0, oldest_ms=None)
    assert decide_refresh(held, [], [], now=now) == Wait(reason="2 requests wait for other runs.")


@pytest.fixture
def look(pipeline: DagsterPipeline, prepared: Prepared) -> Callable[[], PreparedProcess]:
    """A look at the requests, in a process of its own: a test has threads, and must not fork."""
    settings = pipeline.settings
    environment = {
        **os.environ,
        "DAGSTER_HOME": pipeline.instance.root_directory,
        "RSS_PIPELINE_HOME": str(settings.home),
        "RSS_FEEDS_FILE": str(settings.feeds_file),
        "RSS_HOST_DELAY_SECONDS": "0",
        "RSS_PARSE_WORKERS": "1",
    }
    module = "rss_pipeline_tests.orchestration.looking"
    return lambda: prepared.start(module, folder=settings.home, environment=environment)


@pytest.mark.slow
def test_a_look_starts_no_run_without_requests_nor_while_a_living_one_visits_the_feed(
    pipeline: DagsterPipeline, feed: str, server: FeedServer, look: Callable[[], PreparedProcess]
) -> None:
    assert look().wait() == DONE
    wanted = Named(ids=[feed], now=pipeline.clock())
    claims.claim(pipeline.database, wanted, run_id="elsewhere", lease_seconds=60, limit=1)
    assert isinstance(request(pipeline, feed), VisitRunning)
    assert look().wait() == WAITING
    assert pipeline.instance.get_runs(JOB) == []
    assert server.requests == []


@pytest.mark.slow
def test_a_look_that_is_killed_in_its_request_is_made_good_by_the_next_one(
    pipeline: DagsterPipeline, feed: str, server: FeedServer, look: Callable[[], PreparedProcess]
) -> None:
    """The dead run's leases would keep the feed for as long as they last."""
    pipeline.clock.now = utc_now()
    asked = threading.Event()

    def ask(_: object) -> Answer:
        asked.set()
        return Answer(body=rss("a", "b"), delay=2 * waiting.PATIENCE)

    server.route("127.0.0.2", "/feed", ask)
    answer = request(pipeline, feed)
    assert isinstance(answer, Queued)
    killed = look()
    assert asked.wait(waiting.PATIENCE)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert task(pipeline, answer.task_id).state == "running"
    server.route("127.0.0.2", "/feed", Answer(body=rss("a", "b")))
    assert look().wait() == WAITING, "it ends the leases of the dead run"
    assert look().wait() == DONE
    assert task(pipeline, answer.task_id).state == "done"
    assert pipeline.guids(feed) == ["a", "b"]


def test_a_look_begins_when_no_request_came_for_a_moment_or_the_first_has_waited() -> None:
    moment = Moment()
    assert not moment.is_due(100)
    moment.see(None, 100)
    assert not moment.is_due(110), "nothing was ever requested"
    moment.see(1, 110)
    assert not moment.is_due(110)
    assert moment.is_due(110 + QUIET_SECONDS)
    for number in range(9):
        moment.see(2 + number, 110 + number * 0.3)
    assert moment.is_due(110 + LONGEST_WAIT), "while more come"
    moment.begin()
    assert not moment.is_due(113)
    moment.see(99, 113)
    moment.end(DONE, 113.1)
    assert moment.is_due(113.5), "what came meanwhile"


def test_looks_follow_each_other_soon_while_requests_wait_and_less_and_less_while_a_store_fails() -> None:
    moment = Moment()
    moment.end(WAITING, 100)
    assert (moment.is_due(102.9), moment.is_due(103)) == (False, True)
    moment.begin()
    moment.end(-signal.SIGKILL, 110)
    assert (moment.is_due(112.9), moment.is_due(113)) == (False, True)
    waits = []
    for _ in range(7):
        moment.begin()
        moment.end(FAILED, 0)
        assert moment.again_at is not None
        waits.append(moment.again_at)
    assert waits == [3, 6, 12, 24, 48, 60, 60]
    moment.see(5, 1)
    assert not moment.is_due(59), "a request does not make the store work"
    moment.begin()
    moment.end(DONE, 61)
    assert not moment.is_due(1000)


@pytest.mark.slow
def test_a_run_finds_the_feed_of_an_address_and_reports_its_items(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    url = server.route("127.0.0.2", "/feed", Answer(body=rss("a", "b")))
    pipeline.set(allow_networks=(ip_network("127.0.0.0/8"),), allow_ports=frozenset({server.port}))
    pipeline.write_registry()
    subscribe(pipeline.database, "ann")
    answer = request_search(
        pipeline.database, pipeline.settings, user_id="ann", address=url, clock=pipeline.clock
    )
    assert isinstance(answer, Queued)
    definitions = refresh_definitions(pipeline.settings, clock=pipeline.clock)
    assert refresh_in_process(definitions, pipeline.instance, reason="1 feeds are requested.") is None
    found = task(pipeline, answer.task_id)
    assert found.result is not None
    assert (found.result.outcome, found.result.items_new) == ("subscribed", 2)
    assert [event["items_new"] for event in pipeline.events(str(found.feed_id))] == [2]
