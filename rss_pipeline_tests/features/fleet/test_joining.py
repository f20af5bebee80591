"""Joining a fleet: each refusal is a sentence that says what to do, and no name has two machines."""

import os
from dataclasses import replace
from datetime import timedelta

import pytest

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.errors import JoinRefused
from rss_pipeline.features.fleet import membership as joining
from rss_pipeline.features.fleet import sql as workers
from rss_pipeline.features.fleet.model import Fleet, FleetMember
from rss_pipeline.storage.database import Database
from rss_pipeline_tests.features.fleet.machines import (
    MINUTE,
    NOW,
    a_run,
    fleet,
    machine,
    main,
    put_back,
    seen,
)


@pytest.mark.parametrize(
    ("found", "member", "offset", "said"),
    [
        (fleet(), machine(), timedelta(0), None),
        (fleet(seen(main())), machine(), -14 * MINUTE, None),
        (fleet(seen(main(code_version="2"), NOW - 2 * MINUTE)), machine(), timedelta(0), None),
        (fleet(seen(main())), main(incarnation="b"), timedelta(0), None),
        (
            fleet(seen(main(code_version="2"))),
            machine(),
            timedelta(0),
            "this worker has rss_pipeline 1, the main machine 2: update the one that is older",
        ),
        (
            fleet(seen(main(schema_version=30, code_version="2"))),
            machine(),
            timedelta(0),
            "this worker's code has schema 29, the main machine's 30: update this worker, then start",
        ),
        (
            fleet(seen(main(schema_version=28, code_version="2"))),
            machine(),
            timedelta(0),
            "this worker's code has schema 29, the main machine's 28: update the main machine, then start",
        ),
        (
            fleet(seen(main())),
            machine(),
            60 * MINUTE,
            "this machine's clock is 1 h ahead of the database's; a machine that is so far off may not join",
        ),
        (
            fleet(seen(main())),
            replace(main(), name="other"),
            timedelta(0),
            "main on main.example (process 7, since 2026-02-18 07:30 UTC) is the main machine already",
        ),
    ],
)
def test_a_machine_that_does_not_fit_is_refused_with_what_to_do(
    found: Fleet, member: FleetMember, offset: timedelta, said: str | None
) -> None:
    sentence = joining.refusal(found, member, clock_offset=offset)
    if said is None:
        assert sentence is None
    else:
        assert sentence is not None
        assert sentence.startswith(said)


@pytest.mark.parametrize(
    ("offset", "said"),
    [
        (timedelta(seconds=59), None),
        (-3 * MINUTE, "this machine's clock is 3 min behind the database's: set this machine's clock"),
    ],
)
def test_a_clock_that_is_a_minute_off_is_warned_of(offset: timedelta, said: str | None) -> None:
    sentence = joining.clock_warning(offset)
    assert sentence is said is None or (sentence is not None and said is not None and said in sentence)


class Joiner:
    """Joins, and notes what it was sent; `beats` happen while it waits."""

    def __init__(self, database: Database, *, clock_ahead: timedelta = timedelta(0)) -> None:
        self.database = database
        self.said: list[str] = []
        self.waits = 0
        self._ahead = clock_ahead
        self.beats: list[FleetMember] = []

    def join(self, member: FleetMember, *, runs_here: bool = True) -> Fleet:
        return joining.join(
            self.database,
            member,
            clock=lambda: utc_now() + self._ahead,
            wait=self._wait,
            say=self.said.append,
            runs_here=lambda _: runs_here,
        )

    def _wait(self, seconds: float) -> None:
        self.waits += 1
        rival = machine()
        if rival in self.beats:
            # Its next beat is of another second than the one before.
            self.database.query(
                "UPDATE workers SET seen_at = strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '+1 second')"
            )
        elif self.waits == 3:
            put_back(self.database, rival, MINUTE)


@pytest.fixture
def joiner(database: Database) -> Joiner:
    return Joiner(database)


def test_a_name_that_another_machine_has_is_refused_when_that_one_beats(
    joiner: Joiner, database: Database
) -> None:
    workers.join(database, machine(), clock_offset=0)
    joiner.beats.append(machine())
    with pytest.raises(JoinRefused, match=r"the name one is taken: .* is alive.*RSS_WORKER_NAME"):
        joiner.join(machine(incarnation="b", host="elsewhere", machine="elsewhere"))
    assert joiner.waits == 1
    (found,) = workers.fleet(database).machines
    assert found.member == machine()


def test_the_name_of_a_machine_that_was_killed_is_free_after_a_minute(
    joiner: Joiner, database: Database
) -> None:
    workers.join(database, machine(), clock_offset=0)
    new = machine(incarnation="b", host="elsewhere", machine="elsewhere")
    joiner.join(new)
    assert joiner.waits == 3
    assert len(joiner.said) == 1
    (found,) = workers.fleet(database).machines
    assert found.member == new


def test_a_process_that_was_killed_on_this_machine_is_replaced_at_once(
    joiner: Joiner, database: Database
) -> None:
    workers.join(database, machine(), clock_offset=0)
    joiner.join(machine(incarnation="b"), runs_here=False)
    assert (joiner.waits, joiner.said) == (0, [])


def test_a_machine_with_a_clock_an_hour_off_leaves_no_trace(database: Database) -> None:
    with pytest.raises(JoinRefused, match="ahead of the database's"):
        Joiner(database, clock_ahead=60 * MINUTE).join(machine())
    assert workers.fleet(database).machines == ()


def test_a_clock_two_minutes_off_is_said_and_noted(database: Database) -> None:
    joiner = Joiner(database, clock_ahead=-2 * MINUTE)
    joiner.join(machine())
    (sentence,) = joiner.said
    assert "behind the database's" in sentence
    (found,) = workers.fleet(database).machines
    assert abs(found.clock_offset + 120) <= 2


def test_this_process_is_described_as_a_machine_with_processes_that_are_seen_here() -> None:
    one, two = (joining.this_machine("worker", "n", queues=("high",), runs_at_once=1) for _ in range(2))
    assert one.incarnation != two.incarnation
    assert one.pid == os.getpid()
    assert one.code_version.startswith("0.")
    if os.path.exists("/proc/self/ns/pid"):
        assert one.machine == two.machine


def test_machines_that_were_not_seen_for_a_day_are_forgotten_unless_they_left_a_run() -> None:
    old = seen(machine("old"), NOW - 24 * 60 * MINUTE)
    young = seen(machine("young"), NOW - 23 * 60 * MINUTE)
    busy = seen(machine("busy", "b"), NOW - 48 * 60 * MINUTE)
    run = a_run("busy", "b")
    assert joining.long_dead(fleet(old, young, busy, runs=(run,))) == [old.member]
