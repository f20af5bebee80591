"""A machine while it runs: its beat outlives a database that is away, and it sees when its time is over."""

import subprocess
import sys
from collections.abc import Sequence
from datetime import timedelta

import pytest

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.features.fleet import sql as workers
from rss_pipeline.features.fleet.membership import Membership, beating
from rss_pipeline.features.fleet.model import DISOWNED, of_dead_workers
from rss_pipeline.storage.database import Database, Result, Statement, Value
from rss_pipeline_tests.features.fleet.machines import machine, main, put_back
from rss_pipeline_tests.support.waiting import soon

DAY = timedelta(days=1)


class Away(Database):
    """A database that does not answer while `is_away`."""

    def __init__(self, inner: Database) -> None:
        self.inner = inner
        self.is_away = False

    def query(self, sql: str, params: Sequence[Value] = (), *, name: str = "") -> Result:
        self._look()
        return self.inner.query(sql, params, name=name)

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        self._look()
        return self.inner.batch(statements)

    def close(self) -> None: ...

    def _look(self) -> None:
        if self.is_away:
            raise DatabaseUnavailable("it restarts")


def test_a_database_that_is_away_for_a_while_is_said_once_and_waited_for(database: Database) -> None:
    away, said = Away(database), list[str]()
    workers.join(database, machine(), clock_offset=0)
    membership = Membership(away, machine(), say=said.append)
    membership.beat()
    away.is_away = True
    membership.beat()
    membership.beat()
    put_back(database, machine(), DAY)
    away.is_away = False
    membership.beat()
    membership.beat()
    assert [sentence.split(".")[0] for sentence in said] == [
        "The database does not answer, runs cannot begin or end; trying again",
        "The database answers again",
    ]
    assert membership.over is None
    fleet = workers.fleet(database)
    assert fleet.alive == fleet.machines
    assert fleet.now - fleet.machines[0].steady_since < timedelta(minutes=1), "there was a gap"


def test_a_machine_that_was_forgotten_meanwhile_is_there_again(database: Database) -> None:
    Membership(database, machine()).beat()
    (found,) = workers.fleet(database).alive
    assert found.member == machine()


def test_a_machine_with_a_name_that_another_one_took_takes_no_more_runs(database: Database) -> None:
    workers.join(database, machine(incarnation="b", host="elsewhere"), clock_offset=0)
    membership = Membership(database, machine())
    membership.beat()
    assert membership.over is not None
    assert membership.over.is_replaced
    assert "one on elsewhere (process 7" in membership.over.reason
    membership.leave()
    (found,) = workers.fleet(database).machines
    assert found.member.incarnation == "b", "the other one stays"


def test_a_worker_takes_no_more_runs_once_the_main_machine_was_updated(database: Database) -> None:
    workers.join(database, machine(), clock_offset=0)
    workers.join(database, main(), clock_offset=0)
    membership = Membership(database, machine())
    membership.beat()
    assert membership.over is None
    workers.leave(database, main())
    workers.join(database, main(code_version="2"), clock_offset=0)
    membership.beat()
    assert membership.over is not None
    assert not membership.over.is_replaced
    assert "this worker has rss_pipeline 1, the main machine 2" in membership.over.reason


def test_a_clock_that_goes_wrong_is_said_once_and_noted(database: Database) -> None:
    said: list[str] = []
    workers.join(database, machine(), clock_offset=0)
    membership = Membership(
        database, machine(), clock=lambda: utc_now() + timedelta(hours=1), say=said.append
    )
    membership.beat()
    membership.beat()
    assert len(said) == 1
    assert abs(workers.fleet(database).workers[0].clock_offset - 3_600) <= 2


def test_a_run_with_a_process_that_was_killed_alone_is_no_run_of_the_worker_any_more(
    database: Database,
) -> None:
    said: list[str] = []
    workers.join(database, machine(), clock_offset=0)
    workers.join(database, main(), clock_offset=0, now=utc_now() - DAY)
    workers.beat(database, main(), clock_offset=0)
    for run_id, pid in (("lives", 1), ("killed", 2)):
        workers.begin_run(
            database, run_id=run_id, worker="one", incarnation="a", job="poll_feeds", queue="default", pid=pid
        )
    membership = Membership(database, machine(), say=said.append, lives=lambda pid: pid == 1)
    membership.beat()
    assert of_dead_workers(workers.fleet(database)) == [], "it may be about to end"
    membership.beat()
    assert [run.run_id for run in of_dead_workers(workers.fleet(database))] == ["killed"]
    assert said == ["The processes of 1 runs were killed: killed"]


@pytest.mark.parametrize("other", [{}, {"machine": "another"}], ids=["here", "elsewhere"])
def test_a_worker_that_is_started_again_sees_which_runs_its_killed_one_left(
    database: Database, other: dict[str, str]
) -> None:
    workers.join(database, main(), clock_offset=0, now=utc_now() - DAY)
    workers.beat(database, main(), clock_offset=0)
    workers.join(database, machine(incarnation="killed", **other), clock_offset=0)
    [before] = workers.fleet(database).workers
    workers.begin_run(
        database, run_id="r", worker="one", incarnation="killed", job="j", queue="default", pid=2
    )
    workers.join(database, machine(), clock_offset=0, instead_of=before)
    membership = Membership(database, machine(), lives=lambda _: False, before=before)
    membership.beat()
    membership.beat()
    [run] = workers.fleet(database).runs
    assert run.incarnation == ("killed" if other else DISOWNED), "processes of others are not seen here"


def test_the_main_machine_forgets_those_that_were_not_seen_for_a_day(database: Database) -> None:
    for member in (main(), machine("one"), machine("two")):
        workers.join(database, member, clock_offset=0)
    put_back(database, machine("one"), DAY)
    Membership(database, main()).beat()
    assert [found.member.name for found in workers.fleet(database).machines] == ["main", "two"]


def test_a_beat_that_fails_in_whatever_way_is_followed_by_others(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Membership):
        beats = 0

        def beat(self) -> None:
            self.beats += 1
            if self.beats == 1:
                raise RuntimeError("a driver's")
            super().beat()

    with beating(Broken(database, machine()), every=0.01):
        soon(lambda: workers.fleet(database).alive)
    assert "could not say that it is alive" in caplog.text


def test_a_machine_beats_until_the_end_of_the_block_and_leaves(database: Database) -> None:
    with beating(Membership(database, machine()), every=0.01):
        soon(lambda: workers.fleet(database).alive)
    assert workers.fleet(database).machines == ()


HURRIED = """
import signal
from rss_pipeline.features.fleet.membership import Membership

membership, handled = Membership(None, None), []

def handler(*_):
    membership.hurry()
    handled.append(1)

signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
while len(handled) < 100:
    membership.hurry()
signal.setitimer(signal.ITIMER_REAL, 0)
membership.wait(60)
"""


def test_a_worker_that_is_hurried_while_it_is_hurried_goes_on() -> None:
    subprocess.run([sys.executable, "-c", HURRIED], check=True, timeout=30)
