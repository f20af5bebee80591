"""The sensor that starts polls and the one that syncs the registry, over a real instance.

The decision is in pipeline/triggers/test_poll.py.
"""

from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.events import DagsterEvent, DagsterEventType

from rss_pipeline.errors import ObjectStoreUnavailable
from rss_pipeline.orchestration.jobs import POLL_FEEDS
from rss_pipeline.orchestration.recent_runs import RUN_STATES, recent_runs
from rss_pipeline.pipeline.triggers.runs import backoff
from rss_pipeline.storage.feeds import claims
from rss_pipeline.storage.feeds.claimable import Named
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer


def tick(pipeline: DagsterPipeline, sensor: str = "poll_feeds_when_due") -> Any:
    """The answer of the sensor now: a RunRequest or a SkipReason."""
    definition = pipeline.definitions().resolve_sensor_def(sensor)
    with dg.build_sensor_context(instance=pipeline.instance) as context:
        return definition(context)


def says(result: Any) -> str:
    assert isinstance(result, dg.SkipReason), result
    return str(result.skip_message)


@pytest.fixture
def feed(pipeline: DagsterPipeline, server: FeedServer) -> str:
    id = pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a"))), "feed", interval="1h")
    pipeline.sync()
    return id


def test_the_sensors_run_by_default_and_polls_come_after_what_a_person_starts(
    pipeline: DagsterPipeline, feed: str
) -> None:
    definitions = pipeline.definitions()
    for name in ("poll_feeds_when_due", "sync_registry"):
        assert definitions.resolve_sensor_def(name).default_status is dg.DefaultSensorStatus.RUNNING
    request = tick(pipeline)
    assert isinstance(request, dg.RunRequest)
    assert request.tags["dagster/priority"] == "-1"
    assert request.tags["rss_pipeline/reason"] == "1 feeds were never visited."


def test_a_shard_with_due_feeds_begins_its_next_run_within_fifteen_seconds(pipeline: DagsterPipeline) -> None:
    def every() -> int | None:
        return pipeline.definitions().resolve_sensor_def("poll_feeds_when_due").minimum_interval_seconds

    assert every() == 60, "one poll for all goes on by itself"
    pipeline.set(shards=2)
    of_the_queue = 2
    assert (every() or 60) + of_the_queue <= 15


def test_the_sensor_starts_a_poll_for_a_new_feed_then_waits_until_it_has_been_due_for_four_minutes(
    pipeline: DagsterPipeline, feed: str
) -> None:
    assert isinstance(tick(pipeline), dg.RunRequest)
    pipeline.poll()
    assert says(tick(pipeline)) == "No feed is due."
    pipeline.clock.now = datetime.fromisoformat(pipeline.feed(feed)["next_fetch_at"]) + timedelta(seconds=1)
    assert "1 feeds are due, none for 4 minutes yet" in says(tick(pipeline))
    pipeline.clock.turn(minutes=4)
    assert isinstance(tick(pipeline), dg.RunRequest)


def test_an_ordinary_tick_leaves_no_file(pipeline: DagsterPipeline, feed: str) -> None:
    """Each that logs does: hundreds a day of polls, thousands while feeds.yaml has a mistake."""

    def ends(sensor: str) -> type:
        definition = pipeline.definitions().resolve_sensor_def(sensor)
        key = ["__repository__", sensor, "1"]
        with dg.SensorEvaluationContext(pipeline.instance.get_ref(), log_key=key) as context:
            return type(definition(context))

    assert ends("poll_feeds_when_due") is dg.RunRequest
    pipeline.settings.feeds_file.write_text("feeds: [{url: nonsense}]", "utf-8")
    assert ends("sync_registry") is dg.SkipReason
    assert not list(Path(pipeline.instance.root_directory).rglob("*.err"))


def test_the_sensor_and_the_claim_agree_on_what_is_due(pipeline: DagsterPipeline, server: FeedServer) -> None:
    """Else a run would start every minute for a feed that no claim takes."""
    held = pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a"))), "held")
    pipeline.register(server.route("127.0.0.2", "/other", Answer(body=rss("b"))), "same-host")
    pipeline.register(server.route("127.0.0.3", "/feed", Answer(body=rss("c"))), "off", enabled=False)
    pipeline.sync()
    pipeline.hold(held)
    assert says(tick(pipeline)) == "No feed is due."
    pipeline.lapse_leases()
    assert isinstance(tick(pipeline), dg.RunRequest)


def launched(pipeline: DagsterPipeline, **config: Any) -> dg.ExecuteInProcessResult:
    """A run as the launchpad starts it."""
    pipeline.clock.turn(seconds=1)
    return (
        pipeline.definitions()
        .resolve_job_def("poll_feeds")
        .execute_in_process(
            instance=pipeline.instance,
            run_config={"ops": {"claim": {"config": config}}},
            raise_on_error=False,
        )
    )


def seven(pipeline: DagsterPipeline, server: FeedServer) -> list[str]:
    """Feeds on a host each, none of them due."""
    ids = [
        pipeline.register(server.route(f"127.0.0.{n}", "/feed", Answer(body=rss(f"{n}"))), f"feed-{n}")
        for n in range(2, 9)
    ]
    pipeline.visit()
    server.forget()
    return ids


def test_the_daily_poll_of_all_is_off_until_it_has_an_hour_and_goes_on_until_all_were_visited(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    def schedules() -> dict[str, Any]:
        return {each.name: each for each in pipeline.definitions().schedules or ()}

    ids = seven(pipeline, server)
    assert "poll_all_daily" not in schedules()
    pipeline.set(batch_size=4, sweep_at=time(5, 30), timezone="Asia/Tokyo")
    daily = schedules()["poll_all_daily"]
    assert (daily.cron_schedule, daily.execution_timezone) == ("30 5 * * *", "Asia/Tokyo")
    assert daily.default_status is dg.DefaultScheduleStatus.RUNNING
    pipeline.clock.turn(seconds=1)
    with dg.build_schedule_context(instance=pipeline.instance) as context:
        [request] = daily.evaluate_tick(context).run_requests
    assert request.tags["dagster/priority"] == "-1"
    job = pipeline.definitions().resolve_job_def("poll_feeds")
    assert job.execute_in_process(
        instance=pipeline.instance, run_config=request.run_config, tags=request.tags
    ).success
    assert len(server.requests) == 4
    with dg.build_schedule_context(instance=pipeline.instance) as context:
        assert not daily.evaluate_tick(context).run_requests, "the tick of another day that was missed"
    rest = tick(pipeline)
    assert isinstance(rest, dg.RunRequest)
    assert job.execute_in_process(instance=pipeline.instance, run_config=rest.run_config).success
    assert sorted(request.host for request in server.requests) == sorted(
        f"127.0.0.{number}" for number in range(2, 2 + len(ids))
    )
    assert says(tick(pipeline)) == "No feed is due."


def test_a_poll_of_all_goes_on_until_all_were_visited_once(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    ids = seven(pipeline, server)
    pipeline.set(batch_size=3)
    assert launched(pipeline, all=True).success
    assert len(server.requests) == 3
    for visited in (6, 7):
        request = tick(pipeline)
        assert isinstance(request, dg.RunRequest)
        assert request.tags["dagster/priority"] == "-1"
        assert launched(pipeline, **request.run_config["ops"]["claim"]["config"]).success
        assert len(server.requests) == visited
    assert says(tick(pipeline)) == "No feed is due."
    assert sorted(request.host for request in server.requests) == [f"127.0.0.{n}" for n in range(2, 9)]
    assert len(ids) == 7


def test_a_poll_of_all_that_can_visit_no_more_does_not_start_again_and_again(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    """A feed with an unknown password, because feeds.yaml is broken, is left over by every run."""
    seven(pipeline, server)
    url = server.route("127.0.0.9", "/feed", Answer(body=rss("s")))
    pipeline.register(url, "secret", headers={"X-Token": "t"})
    pipeline.sync()
    pipeline.settings.feeds_file.write_text("feeds: [", "utf-8")
    assert launched(pipeline, all=True).success
    request = tick(pipeline)
    assert isinstance(request, dg.RunRequest)
    assert launched(pipeline, **request.run_config["ops"]["claim"]["config"]).success
    assert isinstance(tick(pipeline), dg.SkipReason)
    assert server.asked("127.0.0.9") == []


def test_a_poll_of_named_feeds_says_of_each_that_it_cannot_visit_why(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    first, second, *_ = seven(pipeline, server)
    off = pipeline.register(server.route("127.0.0.9", "/feed", Answer(body=rss("off"))), "off", enabled=False)
    pipeline.sync()
    pipeline.clock.turn(minutes=1)
    result = launched(pipeline, feeds=[first, "http://no.such/feed", off, first])
    assert not result.success
    assert [request.host for request in server.requests] == ["127.0.0.2"]
    (event,) = [event for event in result.all_events if event.event_type_value == "STEP_FAILURE"]
    failure = event.step_failure_data.user_failure_data
    assert failure is not None
    assert "2 of 3 feeds were not collected" in str(failure.description)
    table = failure.metadata["failed"]
    assert isinstance(table, dg.MarkdownMetadataValue)
    unknown, disabled = (table.md_str or "").splitlines()[2:]
    assert unknown.startswith("| [http://no.such/feed]")
    assert "add it to feeds.yaml" in unknown
    assert disabled.startswith(f"| [{off}](/assets/feed_items?view=events&partitions%5B0%5D={off})")
    assert "enabled: false" in disabled
    server.forget()
    assert launched(pipeline, feeds=[second]).success
    assert [request.host for request in server.requests] == ["127.0.0.3"]


def test_a_named_feed_of_a_host_on_hold_is_reported_with_its_end(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    id = pipeline.register(server.route("127.0.0.2", "/feed", Answer(status=429)), "feed")
    pipeline.visit()
    server.forget()
    result = launched(pipeline, feeds=[id])
    assert result.success
    assert server.requests == []
    (output,) = [event for event in result.events_for_node("report") if event.is_successful_output]
    table = output.step_output_data.metadata["failed_feeds"]
    assert isinstance(table, dg.MarkdownMetadataValue)
    assert [line.split(" | ")[3] for line in (table.md_str or "").splitlines()[2:]] == ["host_on_hold"]


def test_an_instant_without_a_zone_is_utc_and_one_that_is_none_is_a_sentence(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    seven(pipeline, server)
    result = launched(pipeline, not_visited_since="yesterday")
    assert not result.success
    (event,) = [event for event in result.all_events if event.event_type_value == "STEP_FAILURE"]
    assert "'yesterday' is not an instant; write it like" in str(event.step_failure_data.user_failure_data)
    since = (pipeline.clock() + timedelta(seconds=1)).replace(tzinfo=None)
    assert launched(pipeline, not_visited_since=since.isoformat()).success
    assert len(server.requests) == 7


class FullStore:
    """An ObjectStore that is found full before any request."""

    def probe(self) -> None:
        raise ObjectStoreUnavailable("object folder: [Errno 28] No space left on device; make room")


def test_the_sensor_backs_off_while_polls_fail_and_no_publisher_is_requested_meanwhile(
    pipeline: DagsterPipeline, feed: str, server: FeedServer
) -> None:
    full = {"objects": dg.ResourceDefinition.hardcoded_resource(FullStore())}
    pipeline.clock.now = datetime.now(UTC)
    for minutes in (1, 2, 4, 8, 16, 30, 30):
        (round_,) = pipeline.try_poll(resources=full)
        assert round_.error is not None
        ended = recent_runs(pipeline.instance, POLL_FEEDS)[0].ended_at
        assert ended is not None
        pipeline.clock.now = ended + timedelta(minutes=minutes, seconds=-1)
        assert "runs failed because a store or our network did not work" in says(tick(pipeline))
        pipeline.clock.now = ended + timedelta(minutes=minutes, seconds=1)
        assert isinstance(tick(pipeline), dg.RunRequest)
    assert server.requests == []
    pipeline.poll()
    assert backoff(recent_runs(pipeline.instance, POLL_FEEDS)) == (0, None)
    assert pipeline.guids(feed) == ["a"]


def _report(pipeline: DagsterPipeline, kind: DagsterEventType | None) -> dg.DagsterRun:
    """A poll run in the instance as a daemon or a run worker leaves it."""
    job = pipeline.definitions().resolve_job_def("poll_feeds")
    run = pipeline.instance.create_run_for_job(job)
    if kind is not None:
        event = DagsterEvent(event_type_value=kind.value, job_name="poll_feeds")
        pipeline.instance.report_dagster_event(event, run_id=run.run_id)
    return run


@pytest.mark.parametrize("kind", [None, DagsterEventType.RUN_STARTING], ids=["created", "starting"])
def test_a_run_that_has_not_started_yet_is_in_flight(
    kind: DagsterEventType | None, pipeline: DagsterPipeline, feed: str
) -> None:
    run = _report(pipeline, kind)
    assert says(tick(pipeline)) == f"Run {run.run_id[:8]} is about to start."
    assert RUN_STATES[dg.DagsterRunStatus.QUEUED] == "waiting"


def test_a_started_run_is_in_flight_as_long_as_its_lease_lives(
    pipeline: DagsterPipeline, server: FeedServer, feed: str
) -> None:
    """Its process may have died together with its code server: then STARTED it stays, for hours."""
    pipeline.register(server.route("127.0.0.3", "/feed", Answer(body=rss("b"))), "other")
    pipeline.sync()
    started = _report(pipeline, DagsterEventType.RUN_START)
    pipeline.clock.now = datetime.now(UTC) + timedelta(minutes=2)
    assert says(tick(pipeline)) == f"Run {started.run_id[:8]} is still running.", (
        "it may not have claimed yet"
    )
    wanted = Named(ids=[feed], now=pipeline.clock())
    claims.claim(pipeline.database, wanted, run_id=started.run_id, lease_seconds=180, limit=1)
    pipeline.clock.turn(minutes=20)
    assert says(tick(pipeline)) == f"Run {started.run_id[:8]} is still running."
    pipeline.lapse_leases()
    assert isinstance(tick(pipeline), dg.RunRequest)


def test_a_database_that_cannot_be_read_is_a_skip_with_a_sentence(
    pipeline: DagsterPipeline, tmp_path: Path
) -> None:
    (tmp_path / "broken" / "rss.sqlite").mkdir(parents=True)
    pipeline.register("https://news.example/feed", "feed")
    pipeline.set(home=tmp_path / "broken")
    assert says(tick(pipeline)).startswith("The database cannot be read: ")
    assert "check the path" in says(tick(pipeline))
    assert "check the path" in says(tick(pipeline, "sync_registry"))


def test_a_mistake_in_feeds_yaml_comes_to_the_terminal_once(
    pipeline: DagsterPipeline, feed: str, caplog: pytest.LogCaptureFixture
) -> None:
    definition = pipeline.definitions().resolve_sensor_def("sync_registry")

    def logged(text: str) -> list[str]:
        pipeline.settings.feeds_file.write_text(text, "utf-8")
        caplog.clear()
        for _ in range(2):
            definition(context)
        return [record.getMessage() for record in caplog.records if record.name.startswith("rss_pipeline")]

    good = pipeline.settings.feeds_file.read_text("utf-8")
    with dg.build_sensor_context(instance=pipeline.instance) as context:
        assert logged(good) == []
        (line,) = logged("feeds: [")
        assert line.startswith(f"sync_registry: {pipeline.settings.feeds_file}: ")
        assert logged(good) == []
        assert len(logged("feeds: [")) == 1, "the mistake is new again"


def test_a_run_of_the_daemon_leaves_its_events_out_of_the_terminal(
    pipeline: DagsterPipeline, feed: str
) -> None:
    request = tick(pipeline)
    assert isinstance(request, dg.RunRequest)
    assert request.run_config["loggers"]["console"]["config"] == {"log_level": "CRITICAL"}


def test_the_registry_sensor_takes_changes_over_and_says_what_it_did(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a"))), "feed")
    assert "1 new, 0 changed, 0 no longer scheduled" in says(tick(pipeline, "sync_registry"))
    assert pipeline.instance.get_dynamic_partitions("feeds") == ["feed"]
    assert says(tick(pipeline, "sync_registry")) == "feeds.yaml has not changed."
    pipeline.settings.feeds_file.write_text("feeds: [", "utf-8")
    assert "nothing was changed" in says(tick(pipeline, "sync_registry"))
    assert pipeline.feed("feed")["registered"] == 1
