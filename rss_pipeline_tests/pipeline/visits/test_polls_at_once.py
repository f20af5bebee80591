"""Three polls at once on one database, two of a shard and one of all feeds, by the publishers' own log."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from rss_pipeline.collector.models.shard import shards
from rss_pipeline.storage.backends.postgres.backend import PostgresBackend
from rss_pipeline_tests.pipeline.visits.polls_at_once import QuickClock, judge, poll_until_visited, register
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import FeedServer
from rss_pipeline_tests.support.services.postgres import Postgres

PACE = 0.1
HOSTS = [f"127.0.0.{n}" for n in range(2, 10)]


@pytest.fixture(params=["sqlite", "postgres"])
def pipelines(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Pipeline]]:
    """Three of one database, each with a connection of its own."""
    postgres = None
    if request.param == "postgres":
        server: Postgres = request.getfixturevalue("running_postgres")
        server.create("polls_at_once")
        postgres = PostgresBackend(url=server.url("polls_at_once"))
    with ExitStack() as stack:
        found = [
            stack.enter_context(
                closing(Pipeline(tmp_path, host_delay_seconds=PACE, shards=2, database_server=postgres))
            )
            for _ in range(3)
        ]
        clock = QuickClock()
        for each in found:
            each.clock = clock
        yield found


@pytest.mark.slow
def test_no_host_is_requested_by_two_polls_at_once_nor_faster_than_its_pace(
    pipelines: list[Pipeline], server: FeedServer
) -> None:
    register(pipelines[0], server, hosts=HOSTS, feeds=4, gone=True)
    with ThreadPoolExecutor(3) as threads:
        for done in [
            threads.submit(poll_until_visited, pipeline, lambda shard=shard: shard, seconds=120)
            for pipeline, shard in zip(pipelines, [*shards(2), None], strict=True)
        ]:
            done.result()
    found = judge(server)
    assert found.hosts == len(HOSTS)
    assert found.most_at_once == 1
    assert found.shortest >= PACE
    assert found.documents_twice == []
