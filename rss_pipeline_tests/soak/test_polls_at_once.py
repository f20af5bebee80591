"""Three processes poll 300 feeds on 60 hosts at once, at the usual pace, while the number of shards changes.

The long form of pipeline/visits/test_polls_at_once.py, with processes and parsers of their own.
"""

import multiprocessing
import sys
import time
from pathlib import Path

import pytest

from rss_pipeline.collector.models.shard import Shard, shards
from rss_pipeline.storage.backends.postgres.backend import PostgresBackend
from rss_pipeline_tests.pipeline.visits.polls_at_once import (
    QuickClock,
    judge,
    poll_until_visited,
    register,
)
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import FeedServer
from rss_pipeline_tests.support.services.postgres import Postgres

PACE = 1.0
HOSTS = [f"127.0.1.{n}" for n in range(1, 61)]
CHANGES_AFTER = 20.0
SECONDS = 600.0


def _poll(home: Path, postgres: PostgresBackend | None, began: float, number: int) -> None:
    """One of three: of two shards and of all feeds at first, then of three shards."""
    pipeline = Pipeline(home, host_delay_seconds=PACE, database_server=postgres)
    pipeline.clock = QuickClock(began)

    def shard() -> Shard | None:
        if time.time() - began > CHANGES_AFTER:
            return shards(3)[number]
        return [*shards(2), None][number]

    poll_until_visited(pipeline, shard, seconds=SECONDS)
    pipeline.close()


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_three_processes_are_as_polite_as_one(
    store: str, tmp_path: Path, server: FeedServer, request: pytest.FixtureRequest
) -> None:
    postgres = None
    if store == "postgres":
        running: Postgres = request.getfixturevalue("running_postgres")
        running.create("three_processes")
        postgres = PostgresBackend(url=running.url("three_processes"))
    clock = QuickClock()
    pipeline = Pipeline(tmp_path, database_server=postgres)
    pipeline.clock = clock
    register(pipeline, server, hosts=HOSTS, feeds=5)
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=_poll, args=(tmp_path, postgres, clock.began, number)) for number in range(3)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    found = judge(server)
    sys.stdout.write(f"{store}: {found}\n")
    assert [process.exitcode for process in processes] == [0, 0, 0]
    [row] = pipeline.rows("SELECT count(*) AS n FROM items")
    pipeline.close()
    assert (found.hosts, row["n"]) == (len(HOSTS), 5 * len(HOSTS))
    assert found.most_at_once == 1
    assert found.shortest >= PACE
    assert found.documents_twice == []
