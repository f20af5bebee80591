"""Which runs of workers are dead: by the database's clock, the worker's incarnation, and the run's leases."""

from dataclasses import replace
from datetime import datetime

import pytest

from rss_pipeline.features.fleet.model import DISOWNED, SeenMachine, is_lost, of_dead_workers
from rss_pipeline_tests.features.fleet.machines import MINUTE, NOW, SECOND, a_run, fleet, machine, main, seen

RUN = a_run()
UNSEEN = seen(machine(), NOW - 61 * SECOND)
MAIN = seen(main(incarnation="a"))


@pytest.mark.parametrize(
    ("machines", "is_dead"),
    [
        ([seen(machine(), NOW - 59 * SECOND)], False),
        ([UNSEEN], True),
        ([seen(machine(incarnation="b"))], True),
        ([], True),
        ([seen(machine("two"))], True),
    ],
    ids=["seen lately", "not seen for a minute", "started anew", "has left", "others are alive"],
)
def test_a_worker_is_dead_when_it_was_not_seen_or_is_another(
    machines: list[SeenMachine], is_dead: bool
) -> None:
    assert of_dead_workers(fleet(MAIN, *machines, runs=(RUN,))) == ([RUN] if is_dead else [])


def test_no_worker_is_dead_because_the_database_was_away() -> None:
    back = replace(MAIN, steady_since=NOW - 39 * SECOND)
    assert of_dead_workers(fleet(back, UNSEEN, runs=(RUN,))) == []
    assert of_dead_workers(fleet(UNSEEN, runs=(RUN,))) == [], "the main machine is not seen either"
    assert of_dead_workers(fleet(replace(MAIN, steady_since=NOW - 40 * SECOND), UNSEEN, runs=(RUN,))) == [RUN]


_ANEW = seen(machine(incarnation="b"))


@pytest.mark.parametrize(
    ("machines", "renewed", "lost"),
    [
        ([UNSEEN], None, True),
        ([UNSEEN], NOW - 62 * SECOND, True),
        ([UNSEEN], NOW - 61 * SECOND, False),
        ([], None, True),
        ([], NOW - 5 * SECOND, False),
        ([_ANEW], NOW - 5 * SECOND, False),
        ([_ANEW], NOW - 62 * SECOND, True),
        ([replace(_ANEW, started_at=NOW - 59 * SECOND)], None, False),
        ([replace(_ANEW, started_at=NOW - MINUTE)], None, True),
    ],
    ids=[
        "no lease",
        "cut off",
        "renewed lately",
        "its worker has left",
        "its worker has left, it ends",
        "its worker was started anew, it ends",
        "its worker was started anew, cut off",
        "its worker was started anew just now",
        "its worker was started anew",
    ],
)
def test_a_run_that_renewed_a_lease_lately_is_alive_or_ends(
    machines: list[SeenMachine], renewed: datetime | None, lost: bool
) -> None:
    renewals = {} if renewed is None else {"r": renewed}
    assert is_lost(RUN, fleet(*machines, now=NOW), renewals) is lost


def test_a_run_without_a_process_is_lost_at_once() -> None:
    assert is_lost(replace(RUN, incarnation=DISOWNED), fleet(_ANEW, now=NOW), {"r": NOW})
