"""The health of several machines: what is wrong with which, and what to add where feeds wait."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rss_pipeline.features.fleet import checks
from rss_pipeline.features.fleet.checks import what_to_add, workers_alive
from rss_pipeline.features.fleet.model import SeenMachine, WorkerRun
from rss_pipeline.features.health import dagster as asset_checks
from rss_pipeline.orchestration import jobs
from rss_pipeline_tests.features.fleet.machines import MINUTE, NOW, a_run, fleet, machine, main, seen

MAIN = seen(main())
ONE, TWO = (seen(machine(name, name, runs_at_once=2)) for name in ("one", "two"))
HOURS = timedelta(hours=1)


def run(number: int, worker: str = "one", job: str = "poll_feeds", queue: str = "default") -> WorkerRun:
    return a_run(worker, worker, run_id=f"{number}", job=job, queue=queue)


@pytest.mark.parametrize(
    ("machines", "state", "said"),
    [
        ([MAIN, ONE, TWO], "ok", "2 workers are alive, with 4 places"),
        ([MAIN], "failure", "No worker is alive: no run begins. Start `rss-pipeline worker`"),
        (
            [MAIN, ONE, replace(TWO, seen_at=NOW - 5 * HOURS)],
            "warning",
            "1 worker was last seen: two 5 h ago. Start",
        ),
        (
            [MAIN, replace(ONE, seen_at=NOW - MINUTE)],
            "failure",
            "No worker is alive: no run begins; 1 worker",
        ),
        ([ONE], "failure", "No main machine is alive: no run begins. Start `rss-pipeline up --fleet` there"),
        (
            [replace(MAIN, seen_at=NOW - MINUTE), ONE],
            "failure",
            "The main machine, main, was last seen 1 min ago: no run begins. Start",
        ),
        (
            [MAIN, ONE, seen(machine("two", code_version="2"))],
            "warning",
            "Their code is not the main machine's: two. They begin no run: update them",
        ),
        ([MAIN, replace(ONE, clock_offset=-61)], "warning", "Clocks differ from the database's: one -61 s"),
        (
            [replace(MAIN, clock_offset=3_600), ONE],
            "failure",
            "Clocks differ from the database's: main +3600 s",
        ),
    ],
    ids=[
        "all well",
        "none",
        "one died",
        "all died",
        "no main machine",
        "dead main machine",
        "other code",
        "a minute",
        "an hour",
    ],
)
def test_what_is_wrong_with_the_machines_is_reported_with_what_to_do(
    machines: list[SeenMachine], state: str, said: str
) -> None:
    check = workers_alive(fleet(*machines))
    assert check.state == state
    assert check.sentences.startswith(said)
    assert [row["name"] for row in check.rows] == [each.member.name for each in machines]


@pytest.mark.parametrize(
    ("machines", "runs", "shards", "said"),
    [
        ([MAIN], [], 2, "No worker is alive: start"),
        (
            [ONE, TWO],
            [run(1), run(2), run(3, "two"), run(4, "two", "download_images")],
            8,
            "4 of 4 places of 2 workers are taken, and 3 of 8 shards are polled: start another worker",
        ),
        (
            [ONE, TWO],
            [run(1), run(2, "two", "check_health"), run(3, "two", "poll_feeds", "high"), run(4, "dead")],
            1,
            "1 of 1 shard is polled, and 1 of 4 places of 2 workers are taken: raise RSS_SHARDS to 4",
        ),
        (
            [ONE],
            [],
            2,
            "0 of 2 places of 1 worker are taken, and 0 of 2 shards are polled: more workers would not help.",
        ),
    ],
    ids=["workers", "places", "shards", "nothing to add"],
)
def test_what_to_add_where_feeds_wait_follows_from_the_figures(
    machines: list[SeenMachine], runs: list[WorkerRun], shards: int, said: str
) -> None:
    assert what_to_add(fleet(*machines, runs=tuple(runs)), shards=shards).startswith(said)


def test_that_others_have_taken_over_is_said_only_once_nothing_waits() -> None:
    dead = replace(TWO, seen_at=NOW - 5 * MINUTE)
    assert "Other workers have taken over" in workers_alive(fleet(MAIN, ONE, dead)).fix
    said = workers_alive(fleet(MAIN, ONE, dead), waiting=616).fix
    assert "616 feeds wait for a visit" in said
    assert "taken over" not in said
    assert "1 run is not ended yet." in workers_alive(fleet(MAIN, ONE, dead, runs=(run(1, "two"),))).fix
    assert "taken over" not in workers_alive(fleet(MAIN, dead)).fix


def test_a_database_with_too_few_connections_for_the_workers_is_a_warning() -> None:
    assert workers_alive(fleet(MAIN, ONE, TWO), connections=32).state == "ok"
    check = workers_alive(fleet(MAIN, ONE, TWO), connections=31)
    assert check.state == "warning"
    assert check.found.endswith("gives 31 connections, and the main machine and 2 workers need up to some 32")
    assert "max_connections" in check.fix


def test_the_checks_know_the_jobs_by_their_names() -> None:
    """They are loaded without Dagster."""
    assert (checks.POLL_FEEDS, checks.CHECK_HEALTH) == (
        jobs.POLL_FEEDS,
        asset_checks.CHECK_HEALTH,
    )
