"""Which runs of workers are dead: by the database's clock, the worker's incarnation, and the run's leases."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rss_pipeline.features.fleet.model import SeenMachine, is_lost, of_dead_workers
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


@pytest.mark.parametrize(
    ("machines", "renewed", "lost"),
    [
        ([UNSEEN], None, True),
        ([UNSEEN], UNSEEN.seen_at - MINUTE, True),
        ([UNSEEN], UNSEEN.seen_at + 14 * SECOND, True),
        ([UNSEEN], UNSEEN.seen_at + 40 * SECOND, False),
        ([seen(machine(incarnation="b"))], NOW, True),
        ([], NOW, True),
    ],
    ids=["no lease", "before", "between two beats", "since", "its worker was started anew", "it has left"],
)
def test_a_run_that_renewed_a_lease_since_its_worker_was_seen_is_alive(
    machines: list[SeenMachine], renewed: object, lost: bool
) -> None:
    renewals = {} if renewed is None else {"r": renewed}
    assert is_lost(RUN, fleet(*machines, now=NOW + timedelta(0)), renewals) is lost  # type: ignore[arg-type]
