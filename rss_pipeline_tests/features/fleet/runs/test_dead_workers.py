"""Runs at workers: each has a place, an outdated worker begins none, and those of dead workers are ended."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest

from rss_pipeline.collector.models.clock import instant, utc_now
from rss_pipeline.errors import JoinRefused
from rss_pipeline.features.fleet import sql as workers
from rss_pipeline.features.fleet.dagster import end_lost_runs
from rss_pipeline.features.fleet.execute_run import run_place
from rss_pipeline.features.fleet.membership import code_version
from rss_pipeline.features.fleet.model import INCARNATION_TAG
from rss_pipeline.features.fleet.settings import FleetSettings
from rss_pipeline.features.health.dagster import build_watches
from rss_pipeline.orchestration.queueing import QUEUE_TAG, WORKER_TAG
from rss_pipeline.orchestration.upkeep.purge_job import purge_history
from rss_pipeline.pipeline.triggers.starts import SHARD_TAG
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database
from rss_pipeline_tests.features.fleet.machines import machine, main, put_back
from rss_pipeline_tests.storage.values import claim, register, spec
from rss_pipeline_tests.support.databases import migrated

TAGS = {WORKER_TAG: "one", INCARNATION_TAG: "a"}
STARTING, STARTED = dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    fleet = FleetSettings(broker_url="redis://127.0.0.1/0", dagster_url="", worker_name="one")
    return replace(
        Settings.from_environ({"RSS_PIPELINE_HOME": str(tmp_path)}, cwd=tmp_path), of_features=(fleet,)
    )


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    database = migrated(settings.database_path)
    workers.join(database, machine(code_version=code_version()), clock_offset=0)
    yield database
    database.close()


def new_run(
    instance: dg.DagsterInstance, status: dg.DagsterRunStatus = STARTED, tags: Mapping[str, str] | None = None
) -> dg.DagsterRun:
    return instance.create_run_for_job(
        purge_history, status=status, tags={QUEUE_TAG: "default", **(tags or {})}
    )


def test_a_run_has_a_place_while_it_lasts_and_no_other_process_gets_it(
    instance: dg.DagsterInstance, settings: Settings, database: Database
) -> None:
    run = new_run(instance, tags={SHARD_TAG: "3 of 8"})
    with run_place(settings, run, TAGS) as is_first:
        assert is_first
        (found,) = workers.fleet(database).runs
        assert (found.run_id, found.worker, found.incarnation, found.job, found.queue, found.detail) == (
            run.run_id,
            "one",
            "a",
            "purge_history",
            "default",
            "shard 3 of 8",
        )
        with run_place(settings, run, {**TAGS, WORKER_TAG: "two"}) as is_second:
            assert not is_second
        assert workers.fleet(database).runs == (found,)
    assert workers.fleet(database).runs == ()
    with run_place(settings, run, {}) as is_first:
        assert is_first, "no worker of a fleet"
        assert workers.fleet(database).runs == ()


def test_a_worker_with_other_code_than_the_main_machine_begins_no_run(
    instance: dg.DagsterInstance, settings: Settings, database: Database
) -> None:
    workers.join(database, main(code_version="2"), clock_offset=0)
    with pytest.raises(JoinRefused, match="the main machine has rss_pipeline 2"), _place(settings, instance):
        pytest.fail("it began")
    workers.leave(database, main())
    database.query("INSERT INTO schema_migrations (version, name, applied_at) VALUES (9999, 'later', '')")
    with pytest.raises(JoinRefused, match="update rss_pipeline"), _place(settings, instance):
        pytest.fail("it began")
    assert workers.fleet(database).runs == ()


def _place(settings: Settings, instance: dg.DagsterInstance) -> AbstractContextManager[bool]:
    return run_place(settings, new_run(instance), TAGS)


def _ended(instance: dg.DagsterInstance, database: Database) -> list[str]:
    return [run.run_id for run in end_lost_runs(instance, database, host_delay=0)]


@pytest.mark.slow
def test_the_runs_of_a_dead_worker_are_ended_and_no_others(
    instance: dg.DagsterInstance, database: Database
) -> None:
    workers.join(database, machine("two", "b"), clock_offset=0)
    killed, begun, elsewhere = new_run(instance), new_run(instance, STARTING), new_run(instance)
    for run, worker, incarnation in ((killed, "one", "a"), (begun, "one", "a"), (elsewhere, "two", "b")):
        workers.begin_run(
            database,
            run_id=run.run_id,
            worker=worker,
            incarnation=incarnation,
            job=run.job_name,
            queue="default",
            pid=1,
        )
    assert _ended(instance, database) == []
    put_back(database, machine(), timedelta(seconds=61))
    assert _ended(instance, database) == [], "nobody knows whether the database was there"
    workers.join(database, main(), clock_offset=0, now=utc_now() - timedelta(hours=1))
    workers.beat(database, main(), clock_offset=0)
    assert {*_ended(instance, database)} == {killed.run_id, begun.run_id}
    statuses = [instance.get_run_by_id(run.run_id) for run in (killed, begun, elsewhere)]
    assert [run.status.value for run in statuses if run is not None] == ["FAILURE", "FAILURE", "STARTED"]
    assert [run.run_id for run in workers.fleet(database).runs] == [elsewhere.run_id]
    assert _ended(instance, database) == []

    put_back(database, machine("two", "b"), timedelta(minutes=5))
    now = utc_now()
    register(database, spec("a"), now=now)
    claim(database, now=now, run_id=elsewhere.run_id)
    assert _ended(instance, database) == [], "it has renewed its lease since its worker was seen"
    assert [feed.id for feed in claim(database, now=now).feeds] == []
    # It is cut off from the database for a minute, and by now it makes no more requests.
    database.query(
        "UPDATE leases SET expires_at = ?, seconds = 180", [instant(utc_now() + timedelta(seconds=118))]
    )
    assert _ended(instance, database) == [elsewhere.run_id]
    [feed] = database.query("SELECT lease_token FROM feeds").rows
    assert feed["lease_token"] is None, "nobody waits for its lease"


def test_the_check_of_the_workers_is_evaluated_when_one_comes_or_goes_also_without_any(
    instance: dg.DagsterInstance, settings: Settings, database: Database
) -> None:
    workers.join(database, main(code_version=code_version()), clock_offset=0)
    (watch,), cursor = build_watches(settings, clock=utc_now), None

    def look() -> list[tuple[bool, str]]:
        nonlocal cursor
        context = dg.build_sensor_context(instance=instance, cursor=cursor)
        result = watch.evaluate_tick(context)
        cursor = result.cursor
        return [(event.passed, event.description) for event in result.asset_events]

    assert look() == [(True, "1 worker is alive, with 0 places.")]
    assert look() == []
    put_back(database, machine(), timedelta(hours=3))
    ((passed, said),) = look()
    assert not passed
    assert said.startswith("No worker is alive: no run begins")
    assert look() == []
