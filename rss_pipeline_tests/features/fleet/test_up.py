"""A fleet as a person has it: `up --fleet`, and workers with homes of their own, on Postgres and Redis.

Started once, and everything is looked at in it (support/stages.py). What kills do to it is the soak's.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from rss_pipeline_tests.support.fleet import Machine, Machines, fleet
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.services.postgres import PASSWORD as DATABASE_PASSWORD
from rss_pipeline_tests.support.services.postgres import Postgres
from rss_pipeline_tests.support.services.redis_server import PASSWORD as BROKER_PASSWORD
from rss_pipeline_tests.support.services.redis_server import RedisServer
from rss_pipeline_tests.support.stages import Stages, name_of
from rss_pipeline_tests.support.waiting import PATIENCE, soon

BROKER = 1
FEEDS = 30
ALL = {"ops": {"claim": {"config": {"all": True}}}}


@dataclass(slots=True)
class Fleet:
    """The machines, their publishers, and the runs that stages leave to those after them."""

    machines: Machines
    server: FeedServer
    gate: threading.Event
    folder: Path
    one: Machine
    held: str = ""
    """Waits for its publisher."""
    waiting: str = ""
    """Has no place."""
    ended: str = ""

    def hold_a_run(self) -> None:
        """A run that waits for its publisher, in the only place for runs for which no one waits."""
        self.gate.clear()
        self.server.forget()
        self.held = self.machines.materialize("feed-1", f"feed-{FEEDS - 1}", priority=-1)
        soon(lambda: self.server.asked("127.0.0.3"))


def _serve(server: FeedServer, folder: Path, gate: threading.Event) -> None:
    """Feeds of two hosts. Those of the second answer while the gate is open; they are requested one by one,
    and each is given up after 30 seconds."""
    lines = ["feeds:"]
    for n in range(FEEDS):
        host = "127.0.0.2" if n == 0 else "127.0.0.3"
        answer = Answer(body=rss(f"{n}-a"), wait_for=None if n == 0 else gate)
        lines += [
            f"  - url: {server.route(host, f'/feed-{n}', answer)}",
            f"    id: feed-{n}",
            "    allow_private: [127.0.0.0/8]",
        ]
    (folder / "feeds.yaml").write_text("\n".join(lines), "utf-8")


def the_daemon_s_poll_is_executed_by_the_worker(fleet: Fleet) -> None:
    machines = fleet.machines
    soon(lambda: machines.rows("SELECT count(*) FROM items") == [(FEEDS,)])
    [run] = [machines.until(run.id, "SUCCESS") for run in machines.runs("poll_feeds")]
    assert run.tags["dagster-celery/queue"] == "default"
    assert run.tags["rss_pipeline/worker"] == "one"
    assert run.tags["dagster/sensor_name"] == "poll_feeds_when_due"


def a_person_s_run_overtakes_polls(fleet: Fleet) -> None:
    """All places for polls are taken, and each worker has one for what a person waits for."""
    fleet.hold_a_run()
    machines = fleet.machines
    fleet.waiting = machines.launch("check_health", priority=-1)
    fleet.ended = machines.launch("check_health")
    run = machines.until(fleet.ended, "SUCCESS", "FAILURE")
    assert (run.status, run.tags["dagster-celery/queue"]) == ("SUCCESS", "high")


def a_run_without_a_place_waits_in_the_queue_and_is_canceled_there(fleet: Fleet) -> None:
    """The daemon has seen it: one that came later has ended."""
    machines, id = fleet.machines, fleet.waiting
    assert machines.run(id).status == "QUEUED"
    machines.cancel(id)
    machines.until(id, "CANCELED")
    assert "RunStartEvent" not in {kind for kind, _ in machines.events(id)}


def a_run_that_is_delivered_again_runs_once(fleet: Fleet) -> None:
    machines, held, ended = fleet.machines, fleet.held, fleet.ended
    for id in (held, ended):
        machines.deliver(id, "high")
    # It comes behind both.
    machines.until(machines.launch("check_health"), "SUCCESS")
    for id in (held, ended):
        assert [kind for kind, _ in machines.events(id)].count("RunStartEvent") == 1
    assert machines.run(held).status == "STARTED"


def a_run_is_canceled_at_its_worker_and_releases_its_claims(fleet: Fleet) -> None:
    machines, held = fleet.machines, fleet.held
    assert machines.rows("SELECT count(*) FROM leases") == [(1,)]
    machines.cancel(held)
    machines.until(held, "CANCELED")
    soon(lambda: machines.rows(f"SELECT count(*) FROM leases WHERE run_id = '{held}'") == [(0,)])


def a_run_whose_process_was_killed_is_started_again(fleet: Fleet) -> None:
    machines, server = fleet.machines, fleet.server
    server.forget()
    killed = machines.launch("poll_feeds", config=ALL)
    soon(lambda: server.asked("127.0.0.3"))
    machines.kill_process_of(killed)
    fleet.gate.set()
    machines.until(killed, "FAILURE")

    def again() -> bool:
        return any(run.parent == killed and run.status == "SUCCESS" for run in machines.runs("poll_feeds"))

    soon(again)


def a_worker_that_is_stopped_leaves_its_run_to_another(fleet: Fleet) -> None:
    fleet.hold_a_run()
    machines, held, one = fleet.machines, fleet.held, fleet.one
    assert one.stop() == 0, one.log.read_text("utf-8")
    assert machines.rows("SELECT name FROM workers WHERE role = 'worker'") == []
    soon(lambda: machines.rows(f"SELECT count(*) FROM leases WHERE run_id = '{held}'") == [(0,)])
    assert machines.run(held).status == "FAILURE"
    # No one has a place for the next one.
    soon(
        lambda: [run for run in machines.runs("__ASSET_JOB") if (run.parent, run.status) == (held, "QUEUED")]
    )


def a_worker_of_other_code_begins_no_run_and_ends(fleet: Fleet) -> None:
    """As after an update of the main machine alone."""
    fleet.gate.set()
    machines = fleet.machines
    two = machines.worker("two")
    machines.rows("UPDATE workers SET code_version = 'another' WHERE role = 'main' RETURNING name")
    given_back = machines.launch("check_health")
    assert two.process.wait(PATIENCE) == 1
    assert "This worker is over: this worker has rss_pipeline" in two.log.read_text("utf-8")
    assert "RunStartEvent" not in {kind for kind, _ in machines.events(given_back)}


def no_secret_is_in_a_message_a_file_or_the_ui(fleet: Fleet) -> None:
    machines, folder = fleet.machines, fleet.folder
    assert b"rss_pipeline.execute_run" in machines.heard
    ui = str(machines.main.ask("{ instance { info runQueueConfig { tagConcurrencyLimitsYaml } } }"))
    assert "FleetRunLauncher" in ui
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name == "dagster.yaml" for path in files)
    for secret in (DATABASE_PASSWORD, BROKER_PASSWORD):
        assert secret.encode() not in machines.heard
        assert secret not in ui
        assert not [str(path) for path in files if secret.encode() in path.read_bytes()]


ALL_STAGES = (
    the_daemon_s_poll_is_executed_by_the_worker,
    a_person_s_run_overtakes_polls,
    a_run_without_a_place_waits_in_the_queue_and_is_canceled_there,
    a_run_that_is_delivered_again_runs_once,
    a_run_is_canceled_at_its_worker_and_releases_its_claims,
    a_run_whose_process_was_killed_is_started_again,
    a_worker_that_is_stopped_leaves_its_run_to_another,
    a_worker_of_other_code_begins_no_run_and_ends,
    no_secret_is_in_a_message_a_file_or_the_ui,
)
LONG = {
    a_run_that_is_delivered_again_runs_once,
    a_run_whose_process_was_killed_is_started_again,
    a_worker_of_other_code_begins_no_run_and_ends,
}
"""Each takes a run or two more; what they show of one part alone is in features/fleet/ and
test_worker.py."""
SHORT = tuple(stage for stage in ALL_STAGES if stage not in LONG)


@contextmanager
def fleet_of_one(folder: Path, postgres: Postgres, redis: RedisServer) -> Iterator[Fleet]:
    """A main machine, and a worker with one place for runs."""
    gate = threading.Event()
    gate.set()
    with FeedServer() as server:
        _serve(server, folder, gate)
        with fleet(folder, postgres, redis, BROKER) as machines:
            yield Fleet(machines, server, gate, folder, machines.worker("one"))
            # Whoever still waits for an answer gets it.
            gate.set()


@pytest.fixture(scope="module")
def short(
    tmp_path_factory: pytest.TempPathFactory, running_postgres: Postgres, running_redis: RedisServer
) -> Iterator[Stages[Fleet]]:
    with fleet_of_one(tmp_path_factory.mktemp("fleet"), running_postgres, running_redis) as found:
        yield Stages(found, SHORT)


@pytest.mark.slow
@pytest.mark.minutes
@pytest.mark.parametrize("stage", SHORT, ids=name_of)
def test_a_fleet(short: Stages[Fleet], stage: Callable[[Fleet], None]) -> None:
    short.reach(stage)


@pytest.fixture(scope="module")
def whole(
    tmp_path_factory: pytest.TempPathFactory, running_postgres: Postgres, running_redis: RedisServer
) -> Iterator[Stages[Fleet]]:
    with fleet_of_one(tmp_path_factory.mktemp("whole"), running_postgres, running_redis) as found:
        yield Stages(found, ALL_STAGES)


@pytest.mark.soak
@pytest.mark.parametrize("stage", ALL_STAGES, ids=name_of)
def test_all_of_a_fleet(whole: Stages[Fleet], stage: Callable[[Fleet], None]) -> None:
    whole.reach(stage)
