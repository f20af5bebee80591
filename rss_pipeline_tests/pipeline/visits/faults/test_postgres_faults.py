"""Faults of Postgres amid a poll: the run fails with a sentence, and the next poll completes it."""

from collections.abc import Iterator

import pytest

from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
from rss_pipeline_tests.pipeline.visits.faults.test_faults import (
    assert_complete,
    assert_nothing_lost_yet,
    serve,
)
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import FeedServer
from rss_pipeline_tests.support.services.cut_network import Cut, CutNetwork
from rss_pipeline_tests.support.services.postgres import Postgres
from rss_pipeline_tests.support.services.postgres_database import SHARED

PLACES = {"amid its items": b"0490-xxx", "its closing": b'"id":"big"'}
"""Bytes that the statements of one feed have there, and none before."""


@pytest.fixture
def feeds(on_postgres: Pipeline, server: FeedServer) -> Pipeline:
    serve(on_postgres, server)
    return on_postgres


@pytest.fixture
def network(running_postgres: Postgres) -> Iterator[CutNetwork]:
    with CutNetwork(running_postgres.port) as network:
        yield network


@pytest.mark.slow
@pytest.mark.parametrize("after_commit", [False, True], ids=["before the commit", "its answer"])
@pytest.mark.parametrize("place", PLACES)
def test_a_connection_that_is_cut_amid_a_poll_fails_the_run_and_no_feed(
    feeds: Pipeline, network: CutNetwork, running_postgres: Postgres, place: str, *, after_commit: bool
) -> None:
    url = running_postgres.tcp_url(SHARED, port=network.port)
    network.cut(Cut(at=PLACES[place], after_commit=after_commit))
    (round_,) = feeds.try_poll(all_feeds=True, database=lambda: PostgresDatabase(url, where="there"))
    assert network.cuts == 1
    assert round_.error is not None
    assert "the connection was lost; the next run tries again" in round_.error
    assert_nothing_lost_yet(feeds)
    assert feeds.rows("SELECT token FROM leases") == [], "a new connection releases what was claimed"
    feeds.clock.turn(minutes=10)
    feeds.poll(all_feeds=True)
    assert_complete(feeds)


@pytest.mark.slow
def test_a_full_disk_of_the_server_is_said_and_nothing_is_lost(
    feeds: Pipeline, running_postgres: Postgres
) -> None:
    """The server's words and code, as it has them where a table cannot grow."""
    running_postgres.execute(
        SHARED,
        """CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
        $$BEGIN RAISE disk_full USING MESSAGE = 'could not extend file: No space left on device'; END$$;
CREATE TRIGGER full_disk BEFORE INSERT ON items EXECUTE FUNCTION full_disk()""",
    )
    try:
        (round_,) = feeds.try_poll(all_feeds=True)
    finally:
        running_postgres.execute(SHARED, "DROP FUNCTION full_disk CASCADE")
    assert round_.error is not None
    assert "the server's disk is full: run `rss-pipeline clean`" in round_.error
    assert "(53100)" in round_.error
    assert_nothing_lost_yet(feeds)
    feeds.clock.turn(minutes=10)
    feeds.poll(all_feeds=True)
    assert_complete(feeds)
