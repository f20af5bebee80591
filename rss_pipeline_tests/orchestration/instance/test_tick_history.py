"""Logs of sensors and schedules do not grow for ever, and a purge takes no one else's files."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.instigation_logger import get_instigation_log_records
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import InProcessCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    ScheduleInstigatorData,
    TickData,
    TickStatus,
)
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline_tests.orchestration.upkeep.test_purge import OLD, purge
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline

YOUNG = timedelta(days=29)


@dataclass(frozen=True)
class Instigator:
    """A sensor or a schedule of a repository, as the daemon knows it that has ticked it."""

    instance: dg.DagsterInstance
    repository: str
    name: str
    type: InstigatorType

    @property
    def state(self) -> InstigatorState:
        target = InProcessCodeLocationOrigin(LoadableTargetOrigin(module_name="somebodys.definitions"))
        origin = RemoteRepositoryOrigin(target, self.repository).get_instigator_origin(self.name)
        data = None if self.type is InstigatorType.SENSOR else ScheduleInstigatorData("0 3 * * *")
        return InstigatorState(origin, self.type, InstigatorStatus.DECLARED_IN_CODE, data)

    def turn_on(self) -> None:
        self.instance.add_instigator_state(self.state)

    def tick(self, age: timedelta) -> Path:
        """A tick that logged a word that long ago; gives the file."""
        at = utc_now() - age
        state = self.state
        tick = self.instance.create_tick(
            TickData(
                state.instigator_origin_id,
                self.name,
                self.type,
                TickStatus.SUCCESS,
                at.timestamp(),
                run_ids=[],
                selector_id=state.selector_id,
            )
        )
        return self.log(str(tick.tick_id), age)

    def log(self, name: str, age: timedelta) -> Path:
        """The file of a tick without a row."""
        key = [self.repository, self.name, name]
        ref = self.instance.get_ref()
        with (
            dg.SensorEvaluationContext(ref, log_key=key)
            if self.type is InstigatorType.SENSOR
            else dg.ScheduleEvaluationContext(ref, datetime.now(UTC), log_key=key)
        ) as context:
            context.log.warning("a word")
        assert get_instigation_log_records(self.instance, key)
        folder = Path(self.instance.root_directory, "storage", self.repository, self.name)
        return aged(folder / f"{name}.err", age)


def aged(path: Path, age: timedelta = OLD) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    at = (utc_now() - age).timestamp()
    os.utime(path, (at, at))
    return path


@pytest.fixture
def sensor(pipeline: DagsterPipeline) -> Instigator:
    pipeline.clock.now = utc_now()
    found = Instigator(pipeline.instance, "__repository__", "when_due", InstigatorType.SENSOR)
    found.turn_on()
    return found


@pytest.fixture
def schedule(pipeline: DagsterPipeline) -> Instigator:
    found = Instigator(pipeline.instance, "somebodys", "daily", InstigatorType.SCHEDULE)
    found.turn_on()
    return found


def there(paths: list[Path]) -> list[bool]:
    return [path.exists() for path in paths]


def test_what_a_tick_logged_goes_with_it(
    pipeline: DagsterPipeline, sensor: Instigator, schedule: Instigator
) -> None:
    old = [sensor.tick(OLD), sensor.tick(OLD), schedule.tick(OLD)]
    kept = [sensor.tick(YOUNG), schedule.tick(OLD)]
    size = sum(path.stat().st_size for path in old)
    foretold = purge(pipeline, dry_run=True)
    assert all(there(old + kept))
    told = purge(pipeline)
    for each in (foretold, told):
        assert (each["ticks_removed"], each["files_removed"], each["bytes_removed"]) == (3, 3, size)
    assert not any(there(old))
    assert all(there(kept)), "each one's newest tick stays, and what it said"


def test_a_tick_without_its_row_leaves_its_file_to_the_purge(
    pipeline: DagsterPipeline, sensor: Instigator
) -> None:
    """Dagster's own retention removes rows only, and a sensor that is tried in the UI has none."""
    old = [sensor.log("7", OLD), sensor.log("20260102_030405", OLD)]
    kept = [sensor.log("8", YOUNG), sensor.log("20260203_040506", YOUNG)]
    assert purge(pipeline)["files_removed"] == 2
    assert (any(there(old)), all(there(kept))) == (False, True)


def test_somebody_elses_files_stay(pipeline: DagsterPipeline, sensor: Instigator) -> None:
    storage = Path(pipeline.instance.root_directory, "storage")
    mine = [
        aged(storage / name)
        for name in (
            "digest/1.err",
            "my/asset/1.err",
            "__repository__/another/1.err",
            "somebodys/when_due/1.err",
            "__repository__/when_due/1",
            "__repository__/when_due/1.pickle",
            "__repository__/when_due/2026-01-02.err",
            "__repository__/when_due/one.err",
            "__repository__/when_due/1.err/1.err",
        )
    ]
    outside = aged(storage.parent / "1.err")
    link = sensor.log("2", OLD).with_name("3.err")
    link.symlink_to(outside)
    assert purge(pipeline)["files_removed"] == 1
    assert all(there([*mine, outside, link]))
