"""The machines of a fleet on every database: a name is one machine's, dead ones are known by one clock."""

from dataclasses import replace
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.features.fleet import sql as workers
from rss_pipeline.features.fleet.model import Fleet, FleetMember, SeenMachine
from rss_pipeline.storage.database import Database
from rss_pipeline_tests.storage.conftest import database as database
from rss_pipeline_tests.storage.values import HOUR, NOW, claim, register, spec

SECOND = timedelta(seconds=1)
ONE = FleetMember(
    role="worker",
    name="one",
    incarnation="a",
    host="one.example",
    machine="m",
    pid=7,
    code_version="1",
    schema_version=29,
    queues=("default", "high"),
    runs_at_once=2,
)
MAIN = replace(ONE, role="main", queues=(), runs_at_once=0)


def test_a_machine_is_listed_as_it_joined_and_the_main_one_may_have_a_workers_name(
    database: Database,
) -> None:
    assert workers.fleet(database).machines == ()
    for member in (ONE, MAIN):
        assert workers.join(database, member, clock_offset=-3, now=NOW)
    seen = [
        SeenMachine(member=member, started_at=NOW, seen_at=NOW, steady_since=NOW, clock_offset=-3)
        for member in (MAIN, ONE)
    ]
    assert list(workers.fleet(database).machines) == seen
    workers.leave(database, ONE)
    assert [each.member for each in workers.fleet(database).machines] == [MAIN]


def test_a_machine_is_alive_for_a_minute_after_its_last_beat(database: Database) -> None:
    workers.join(database, ONE, clock_offset=0, now=NOW)
    assert workers.beat(database, ONE, clock_offset=5, now=NOW + HOUR)
    assert workers.fleet(database).machines[0].steady_since == NOW
    assert workers.beat(database, ONE, clock_offset=5, now=NOW + HOUR, steady_since=NOW + HOUR)
    (seen,) = workers.fleet(database).machines
    assert (seen.started_at, seen.seen_at, seen.clock_offset) == (NOW, NOW + HOUR, 5)
    assert seen.steady_since == NOW + HOUR
    assert seen.is_alive(NOW + HOUR + 59 * SECOND)
    assert not seen.is_alive(NOW + HOUR + 60 * SECOND)


def test_the_databases_own_clock_is_used(database: Database) -> None:
    before = utc_now().replace(microsecond=0) - SECOND
    workers.join(database, ONE, clock_offset=0)
    workers.join(database, MAIN, clock_offset=0, now=NOW)
    fleet = workers.fleet(database)
    assert before <= fleet.workers[0].seen_at <= fleet.now <= utc_now() + SECOND
    assert fleet.alive == fleet.workers
    assert fleet.main is None
    workers.beat(database, MAIN, clock_offset=0)
    found = workers.fleet(database).main
    assert found is not None
    assert found.member == MAIN


def test_a_name_is_taken_over_only_from_the_machine_that_was_found_dead(database: Database) -> None:
    workers.join(database, ONE, clock_offset=0, now=NOW)
    new = replace(ONE, incarnation="b", host="two.example")
    assert not workers.join(database, new, clock_offset=0, now=NOW + HOUR)
    dead = _named(workers.fleet(database))
    workers.beat(database, ONE, clock_offset=0, now=NOW + HOUR)
    assert not workers.join(database, new, clock_offset=0, instead_of=dead, now=NOW + HOUR), "it is alive"
    dead = _named(workers.fleet(database))
    assert workers.join(database, new, clock_offset=1, instead_of=dead, now=NOW + 2 * HOUR)
    assert not workers.beat(database, ONE, clock_offset=0, now=NOW + 3 * HOUR)
    workers.leave(database, ONE)
    (seen,) = workers.fleet(database).machines
    later = NOW + 2 * HOUR
    assert seen == SeenMachine(
        member=new, started_at=later, seen_at=later, steady_since=later, clock_offset=1
    )


def test_a_run_is_begun_once_however_often_it_is_delivered(database: Database) -> None:
    def begin(run_id: str, worker: str = "one", at: datetime = NOW, detail: str | None = None) -> bool:
        return workers.begin_run(
            database,
            run_id=run_id,
            worker=worker,
            incarnation="a",
            job="poll_feeds",
            queue="default",
            pid=9,
            detail=detail,
            now=at,
        )

    assert begin("r2", detail="shard 3 of 8")
    assert begin("r1")
    assert not begin("r1", "two", NOW + HOUR)
    runs = workers.fleet(database).runs
    assert [(run.run_id, run.worker, run.detail, run.started_at) for run in runs] == [
        ("r1", "one", None, NOW),
        ("r2", "one", "shard 3 of 8", NOW),
    ]
    workers.disown(database, ["r2"])
    assert [run.incarnation for run in workers.fleet(database).runs] == ["a", ""]
    workers.end_runs(database, ["r1", "unknown"])
    assert [run.run_id for run in workers.fleet(database).runs] == ["r2"]


def test_the_last_renewal_of_a_runs_leases_is_known(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    claim(database, run_id="r", lease_seconds=180, limit=1, lease_now=NOW)
    claim(database, run_id="r", lease_seconds=180, limit=1, lease_now=NOW + HOUR)
    assert workers.last_renewals(database, ["r", "other"]) == {"r": NOW + HOUR}


def _named(fleet: Fleet) -> SeenMachine:
    found = fleet.named("worker", "one")
    assert found is not None
    return found
