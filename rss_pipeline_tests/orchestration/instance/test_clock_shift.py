"""Sensors after the clock was put back: they tick again at once, and the others stay as they are."""

from datetime import timedelta

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.scheduler.instigation import SensorInstigatorData
from dagster._daemon.sensor import get_elapsed

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.orchestration.instance.clock_shift import WallClock, heal_ticks
from rss_pipeline.orchestration.serving.daemon import healed
from rss_pipeline_tests.orchestration.instance.test_tick_history import Instigator
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline

HOURS = {"ahead": 20, "just": 0, "before": -1}


@pytest.fixture
def ticked(pipeline: DagsterPipeline) -> dg.DagsterInstance:
    """Sensors with their last tick that many hours from now, one without a tick, and a schedule."""
    instance = pipeline.instance
    for name, hours in HOURS.items():
        at = (utc_now() + timedelta(hours=hours)).timestamp()
        data = SensorInstigatorData(last_tick_timestamp=at, last_tick_start_timestamp=at, cursor="here")
        state = Instigator(instance, "r", name, InstigatorType.SENSOR).state
        instance.add_instigator_state(state.with_data(data))
    for name, type_ in (("new", InstigatorType.SENSOR), ("daily", InstigatorType.SCHEDULE)):
        Instigator(instance, "r", name, type_).turn_on()
    return instance


def elapsed(instance: dg.DagsterInstance) -> dict[str, float | None]:
    """Seconds since the last tick, as Dagster's daemon compares them with a sensor's interval."""
    states = instance.all_instigator_state(instigator_type=InstigatorType.SENSOR)
    return {state.instigator_name: get_elapsed(state) for state in states}


def test_sensors_with_a_tick_in_the_future_go_on_as_if_that_were_now(ticked: dg.DagsterInstance) -> None:
    before = elapsed(ticked)
    assert (before["ahead"] or 0) < -70_000
    assert heal_ticks(ticked, now=utc_now()) == 1
    after = elapsed(ticked)
    assert 0 <= (after["ahead"] or -1) < 60
    assert (before["before"] or 0) <= (after["before"] or 0)
    assert after["new"] is None
    [data] = [
        state.instigator_data
        for state in ticked.all_instigator_state(instigator_type=InstigatorType.SENSOR)
        if state.instigator_name == "ahead"
    ]
    assert isinstance(data, SensorInstigatorData)
    assert data.cursor == "here"
    assert heal_ticks(ticked, now=utc_now()) == 0


def test_a_clock_that_is_put_back_is_seen_and_one_that_is_set_forward_or_drifts_is_not() -> None:
    """Against a clock that no one sets; also while the machine slept, when that one stops."""
    walls, steady = iter([1000, 1005, 1004, 5000, 2000, 2005]), iter([10, 15, 20, 25, 30, 35])
    clock = WallClock(wall=lambda: next(walls), steady=lambda: next(steady))
    assert [clock.was_put_back() for _ in range(5)] == [False, False, False, True, False]


def test_a_daemon_ends_when_the_clock_is_put_back_and_its_sensors_tick(ticked: dg.DagsterInstance) -> None:
    """Its run queue would wait until it is that late again."""
    walls, steady = iter([1000, 1005, 500, 505]), iter([10, 15, 20, 25])
    ends: list[float | None] = []
    look = healed(
        ticked,
        clock=WallClock(wall=lambda: next(walls), steady=lambda: next(steady)),
        end=lambda: ends.append(elapsed(ticked)["ahead"]),
    )
    for _ in range(3):
        look()
    [ahead] = ends
    assert 0 <= (ahead or -1) < 60
