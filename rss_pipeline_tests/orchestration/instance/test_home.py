"""Dagster's home: which dagster.yaml is the user's, and the order of the queue that it requests."""

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster._core.storage.noop_compute_log_manager import NoOpComputeLogManager

from rss_pipeline.errors import SettingsError
from rss_pipeline.orchestration.instance.home import (
    changed_by_hand,
    is_untouched,
    open_instance,
    open_instance_at_terminal,
    prepare_home,
    stamped,
)
from rss_pipeline.orchestration.instance.storages import OPEN_FILES
from rss_pipeline.orchestration.queueing import BackfillsLastRunCoordinator, missing_priority
from rss_pipeline.orchestration.upkeep.purge_job import purge_history
from rss_pipeline.settings import Settings

RELEASED = """
run_coordinator:
  module: rss_pipeline.orchestration.queueing
  class: BackfillsLastRunCoordinator
  config:
    max_concurrent_runs: 9
    tag_concurrency_limits:
      - key: dagster/backfill
        limit: 2
    dequeue_use_threads: true
    dequeue_num_workers: 4
    max_user_code_failure_retries: 20
    user_code_failure_retry_delay: 15
telemetry:
  enabled: false
"""
"""The dagster.yaml of version 0.1.0 with a number that a person changed. Path and class stay for ever."""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("DAGSTER_HOME", "")
    return Settings(home=tmp_path, feeds_file=tmp_path / "feeds.yaml", user_agent="test")


def configuration(settings: Settings) -> Path:
    return settings.dagster_home / "dagster.yaml"


def test_a_new_home_has_ours_and_it_is_nobodys_work(settings: Settings) -> None:
    prepare_home(settings)
    text = configuration(settings).read_text("utf-8")
    assert yaml.safe_load(text)["run_coordinator"]["class"] == "BackfillsLastRunCoordinator"
    assert is_untouched(text)
    assert changed_by_hand(settings) is None


def test_polls_of_several_shards_leave_room_for_other_runs(settings: Settings) -> None:
    for shards, runs in ((1, 5), (3, 7), (1000, 20), (1, 5)):
        prepare_home(replace(settings, shards=shards))
        written = yaml.safe_load(configuration(settings).read_text("utf-8"))
        assert written["run_coordinator"]["config"]["max_concurrent_runs"] == runs
        assert changed_by_hand(replace(settings, shards=shards)) is None


def test_ours_of_an_older_version_is_replaced_without_a_word(settings: Settings) -> None:
    prepare_home(settings)
    ours = configuration(settings).read_text("utf-8")
    configuration(settings).write_text(stamped("telemetry: {enabled: false}\n"), "utf-8")
    prepare_home(settings)
    assert configuration(settings).read_text("utf-8") == ours
    assert [path.name for path in settings.dagster_home.iterdir()] == ["dagster.yaml"]


def test_one_that_a_person_changed_stays_and_up_says_so(settings: Settings) -> None:
    prepare_home(settings)
    theirs = (
        configuration(settings).read_text("utf-8").replace("max_concurrent_runs: 5", "max_concurrent_runs: 9")
    )
    configuration(settings).write_text(theirs, "utf-8")
    prepare_home(settings)
    assert configuration(settings).read_text("utf-8") == theirs
    assert str(configuration(settings)) in str(changed_by_hand(settings))


def test_one_of_a_persons_own_making_stays(settings: Settings) -> None:
    settings.dagster_home.mkdir(parents=True)
    configuration(settings).write_text("telemetry: {enabled: true}\n", "utf-8")
    prepare_home(settings)
    assert configuration(settings).read_text("utf-8") == "telemetry: {enabled: true}\n"
    assert changed_by_hand(settings) is not None


@pytest.mark.parametrize(
    "text",
    ["run_launcher: [", "run_lancher: {}", "run_storage: {module: nowhere, class: X}"],
)
def test_one_that_dagster_cannot_use_is_named_in_one_line(settings: Settings, text: str) -> None:
    prepare_home(settings)
    configuration(settings).write_text(text, "utf-8")
    for opens in (open_instance, open_instance_at_terminal):
        with pytest.raises(SettingsError) as raised:
            opens(settings)
        [line] = str(raised.value).splitlines()
        assert line.startswith(
            f"{configuration(settings)}: Dagster cannot use it; correct it, or remove it. "
        )


def _make_folder(path: Path) -> None:
    path.unlink()
    (path / "x").mkdir(parents=True)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "random": lambda path: path.write_bytes(random.Random(1).randbytes(20_000)),
    "a folder": _make_folder,
}


@pytest.mark.parametrize("damage", [*DAMAGES, "empty"])
@pytest.mark.parametrize(
    "name",
    ["dagster.yaml", "history/runs.db", "history/runs/index.db", "schedules/schedules.db"],
)
def test_a_damaged_file_is_put_aside_with_a_sentence_and_dagster_begins_a_new_one(
    settings: Settings, name: str, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    with open_instance(settings) as instance:
        instance.create_run_for_job(purge_history)
    # What is in the logs goes into the files; beside a damaged one they would be of another.
    OPEN_FILES.close()
    path = settings.dagster_home / name
    for each in path.parent.glob(f"{path.name}-*"):
        each.unlink()
    path.write_bytes(b"") if damage == "empty" else DAMAGES[damage](path)
    with open_instance(settings) as instance:
        instance.create_run_for_job(purge_history)
        assert instance.get_runs_count() >= 1
        assert instance.all_instigator_state() == []
    assert is_untouched(configuration(settings).read_text("utf-8"))
    found = path.parent.glob(f"{path.name}.damaged-*")
    aside = [each for each in found if not each.name.endswith(("-wal", "-shm"))]
    if damage == "empty" and path.suffix == ".db":
        assert aside == [], "SQLite takes it for a new one"
        return
    [kept] = aside
    [line] = caplog.messages
    assert (str(path) in line, str(kept) in line, "begins a new one" in line) == (True, True, True)


def test_a_value_that_cannot_be_read_is_damage_too(settings: Settings) -> None:
    with open_instance(settings) as instance:
        instance.create_run_for_job(purge_history)
    OPEN_FILES.close()
    path = settings.dagster_home / "history/runs.db"
    with closing(sqlite3.connect(path)) as tables:
        tables.execute("UPDATE runs SET run_body = substr(run_body, 5)")
        tables.commit()
    with open_instance(settings) as instance:
        assert instance.get_runs_count() == 0


def test_a_file_or_a_folder_in_the_place_of_another_is_put_aside(settings: Settings) -> None:
    settings.dagster_home.parent.mkdir(exist_ok=True)
    settings.dagster_home.touch()
    prepare_home(settings)
    for name in ("history", "schedules", "storage"):
        (settings.dagster_home / name).touch()
    with open_instance(settings) as instance:
        assert instance.get_runs_count() == 0
    assert len([*settings.dagster_home.glob("*.damaged-*")]) == 3


def test_a_released_one_that_a_person_changed_still_has_our_queue(settings: Settings) -> None:
    settings.dagster_home.mkdir(parents=True)
    configuration(settings).write_text(RELEASED, "utf-8")
    with open_instance(settings) as instance:
        coordinator = instance.run_coordinator
        assert isinstance(coordinator, BackfillsLastRunCoordinator)
        assert coordinator.get_run_queue_config().max_concurrent_runs == 9


def test_dagster_takes_it_with_our_queue_and_our_retention(settings: Settings) -> None:
    with open_instance(settings) as instance:
        coordinator = instance.run_coordinator
        assert isinstance(coordinator, BackfillsLastRunCoordinator)
        config = coordinator.get_run_queue_config()
        assert config.max_concurrent_runs == 5
        assert coordinator.dequeue_interval_seconds <= 3, "a run of a person begins within 5 s"
        assert {limit["key"]: limit["limit"] for limit in config.tag_concurrency_limits} == {
            "dagster/backfill": 2,
            "rss_pipeline/replay": 2,
        }
        for instigator in (InstigatorType.SENSOR, InstigatorType.SCHEDULE, InstigatorType.AUTO_MATERIALIZE):
            days = instance.get_tick_retention_settings(instigator).values()
            assert (min(days) > 0, max(days)) == (True, 30)


def test_compute_logs_of_a_persons_own_stay_in_use_at_a_terminal(settings: Settings, tmp_path: Path) -> None:
    with open_instance_at_terminal(settings) as instance:
        assert isinstance(instance.compute_log_manager, NoOpComputeLogManager)
    module = LocalComputeLogManager.__module__
    folder = {"base_dir": str(tmp_path / "elsewhere")}
    theirs = {"compute_logs": {"module": module, "class": "LocalComputeLogManager", "config": folder}}
    configuration(settings).write_text(yaml.dump(theirs), "utf-8")
    with open_instance_at_terminal(settings) as instance:
        assert isinstance(instance.compute_log_manager, LocalComputeLogManager)


@pytest.mark.parametrize(
    ("tags", "priority"),
    [
        ({}, None),
        ({"dagster/priority": "-1"}, None),
        ({"dagster/backfill": "abc"}, "-3"),
        ({"dagster/backfill": "abc", "dagster/priority": "4"}, None),
    ],
)
def test_only_a_backfills_run_that_says_nothing_is_given_a_priority(
    tags: dict[str, str], priority: str | None
) -> None:
    assert missing_priority(tags) == priority
