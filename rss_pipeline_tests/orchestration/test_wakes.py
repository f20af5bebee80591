"""Sensors with long intervals: what happens lets them tick within seconds, and at rest nothing is read."""

from datetime import datetime, timedelta

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus, SensorInstigatorData
from dagster._daemon.sensor import get_elapsed

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.orchestration.wakes import WOKEN_SECONDS, Files, Wakes, longer_intervals, wake
from rss_pipeline_tests.orchestration.instance.test_tick_history import Instigator
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline

SENSORS = {
    "poll_feeds_when_due": 60,
    "refresh_feeds_when_requested": 30,
    "download_images_when_waiting": 60,
    "publish_when_changed": 60,
    "sync_registry": 30,
    "end_dead_runs": 30,
    "back_up_users": 600,
}
WOKEN = {name for name, seconds in SENSORS.items() if name not in ("poll_feeds_when_due", "back_up_users")}


class Daemon:
    """The sensors of an instance as Dagster's daemon ticks them, on a clock of ours."""

    def __init__(self, pipeline: DagsterPipeline) -> None:
        self.instance = pipeline.instance
        self.now = utc_now()
        for name in SENSORS:
            Instigator(self.instance, "r", name, InstigatorType.SENSOR).turn_on()
            self.tick(name)

    def clock(self) -> datetime:
        return self.now

    def tick(self, name: str) -> None:
        [state] = [each for each in self.states() if each.instigator_name == name]
        at = self.now.timestamp()
        data = SensorInstigatorData(last_tick_timestamp=at, last_tick_start_timestamp=at, cursor="here")
        self.instance.update_instigator_state(state.with_data(data))

    def due(self) -> set[str]:
        """The sensors that would tick now, though their intervals are not over; then they have ticked."""
        due = {each.instigator_name for each in self.states() if (get_elapsed(each) or 0) > WOKEN_SECONDS}
        for name in due:
            self.tick(name)
        return due

    def states(self) -> list[InstigatorState]:
        return list(self.instance.all_instigator_state(instigator_type=InstigatorType.SENSOR))


@pytest.fixture
def daemon(pipeline: DagsterPipeline) -> Daemon:
    pipeline.settings.feeds_file.touch()
    return Daemon(pipeline)


@pytest.fixture
def wakes(pipeline: DagsterPipeline, daemon: Daemon) -> Wakes:
    wakes = Wakes(pipeline.instance, pipeline.settings, clock=daemon.clock)
    wakes.look()
    return wakes


def seconds_later(daemon: Daemon, wakes: Wakes, seconds: int) -> set[str]:
    """The sensors that are woken within so many seconds, with a look in each."""
    woken: set[str] = set()
    for _ in range(seconds):
        daemon.now += timedelta(seconds=1)
        wakes.look()
        woken |= daemon.due()
    return woken


def test_nothing_is_woken_and_nothing_is_read_while_nothing_happens(
    daemon: Daemon, wakes: Wakes, pipeline: DagsterPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds_later(daemon, wakes, 10)
    monkeypatch.setattr(pipeline.instance, "get_runs_count", None)
    monkeypatch.setattr(pipeline.instance, "all_instigator_state", None)
    for _ in range(600):
        daemon.now += timedelta(seconds=1)
        wakes.look()


def test_a_saved_feeds_yaml_is_read_within_seconds(
    daemon: Daemon, wakes: Wakes, pipeline: DagsterPipeline
) -> None:
    pipeline.settings.feeds_file.write_text("feeds: []\n", "utf-8")
    assert seconds_later(daemon, wakes, 1) == {"sync_registry"}
    assert seconds_later(daemon, wakes, 10) == set()


def test_a_tick_that_was_in_progress_takes_no_wake_away(daemon: Daemon, pipeline: DagsterPipeline) -> None:
    asked = daemon.now
    daemon.now -= timedelta(seconds=1)
    daemon.tick("sync_registry")
    daemon.now += timedelta(seconds=2)
    assert wake(pipeline.instance, {"sync_registry": asked}, now=daemon.now) == []
    # Such a tick writes the time of its begin.
    daemon.now -= timedelta(seconds=2)
    daemon.tick("sync_registry")
    daemon.now += timedelta(seconds=7)
    assert wake(pipeline.instance, {"sync_registry": asked}, now=daemon.now) == []
    assert daemon.due() == {"sync_registry"}
    assert wake(pipeline.instance, {"sync_registry": asked}, now=daemon.now) == ["sync_registry"]


def test_a_topic_that_changed_is_looked_at_each_minute_until_it_is_published(
    daemon: Daemon, wakes: Wakes, pipeline: DagsterPipeline
) -> None:
    pipeline.database.query(
        "INSERT INTO topics (id, definition) VALUES ('news', '{}')", name="a topic changed"
    )
    assert seconds_later(daemon, wakes, 6) == {"publish_when_changed"}
    assert seconds_later(daemon, wakes, 50) == set()
    assert seconds_later(daemon, wakes, 15) == {"publish_when_changed"}
    pipeline.database.query("UPDATE topics SET stale = 0", name="it is published")
    seconds_later(daemon, wakes, 6)
    assert seconds_later(daemon, wakes, 120) == set()


def test_a_run_that_is_in_progress_is_looked_at_each_half_a_minute_and_no_longer(
    daemon: Daemon, wakes: Wakes, pipeline: DagsterPipeline
) -> None:
    seconds_later(daemon, wakes, 10)
    run = pipeline.instance.create_run_for_job(dg.GraphDefinition("one").to_job())
    pipeline.instance.report_dagster_event(dg.DagsterEvent("PIPELINE_START", "one"), run.run_id)
    assert seconds_later(daemon, wakes, 6) == {"end_dead_runs"}
    assert seconds_later(daemon, wakes, 20) == set()
    assert seconds_later(daemon, wakes, 15) == {"end_dead_runs"}
    pipeline.instance.report_run_failed(pipeline.instance.get_run_by_id(run.run_id) or run)
    seconds_later(daemon, wakes, 31)
    assert seconds_later(daemon, wakes, 120) == set()


def test_a_sensor_that_a_person_switched_off_is_not_evaluated_forever(
    daemon: Daemon, pipeline: DagsterPipeline
) -> None:
    [state] = [each for each in daemon.states() if each.instigator_name == "sync_registry"]
    pipeline.instance.update_instigator_state(state.with_status(InstigatorStatus.STOPPED))
    daemon.now += timedelta(seconds=1)
    assert wake(pipeline.instance, {"sync_registry": daemon.now}, now=daemon.now) == ["sync_registry"]


def test_files_that_cannot_be_seen_have_always_changed(pipeline: DagsterPipeline) -> None:
    gone = Files(pipeline.settings.home / "gone")
    assert (gone.have_changed(), gone.have_changed()) == (True, True)
    there = Files(pipeline.settings.feeds_file, pipeline.settings.home / "gone")
    pipeline.settings.feeds_file.write_text("a", "utf-8")
    assert (there.have_changed(), there.have_changed()) == (True, False)


def intervals(pipeline: DagsterPipeline) -> dict[str, int | None]:
    pipeline._built = None
    definitions = pipeline.definitions()
    return {name: definitions.resolve_sensor_def(name).minimum_interval_seconds for name in SENSORS}


def test_sensors_have_long_intervals_where_they_are_woken_and_short_ones_elsewhere(
    pipeline: DagsterPipeline,
) -> None:
    assert intervals(pipeline) == SENSORS
    with longer_intervals(pipeline.settings):
        assert intervals(pipeline) == SENSORS | dict.fromkeys(WOKEN, WOKEN_SECONDS)
    assert intervals(pipeline) == SENSORS
