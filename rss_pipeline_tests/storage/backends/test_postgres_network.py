"""A network to Postgres that is cut, or goes silent, amid a batch: the batch is whole or not at all."""

from collections.abc import Iterator

import pytest

from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
from rss_pipeline.storage.database import Statement
from rss_pipeline_tests.support.services.cut_network import Cut, CutNetwork
from rss_pipeline_tests.support.services.postgres import Postgres

SILENT_SECONDS = 2.0
WANTED = [f"{n}" for n in range(300)]


@pytest.fixture
def network(running_postgres: Postgres) -> Iterator[CutNetwork]:
    with CutNetwork(running_postgres.port) as network:
        yield network


@pytest.fixture
def near(empty_postgres: PostgresDatabase) -> PostgresDatabase:
    """A database with the table `t`, with nothing between."""
    empty_postgres.query("CREATE TABLE t (a TEXT PRIMARY KEY)")
    return empty_postgres


@pytest.fixture
def far(
    running_postgres: Postgres, near: PostgresDatabase, network: CutNetwork
) -> Iterator[PostgresDatabase]:
    """The same behind that network."""
    url = running_postgres.tcp_url("empty", port=network.port)
    database = PostgresDatabase(url, where="there", silent_seconds=SILENT_SECONDS)
    yield database
    database.close()


def batch() -> list[Statement]:
    """More than a packet of it, so that the cut is amid what is sent."""
    rows = (Statement("INSERT INTO t (a) VALUES (?)", [text], name="insert") for text in WANTED)
    return [*rows, Statement("UPDATE t SET a = a || ?", ["-last"], name="update")]


@pytest.mark.slow
@pytest.mark.parametrize("is_silent", [False, True], ids=["closed", "silent"])
@pytest.mark.parametrize("after_commit", [False, True], ids=["before the commit", "its answer"])
def test_a_batch_with_a_connection_that_is_cut_is_whole_or_not_at_all_and_the_next_one_works(
    far: PostgresDatabase, near: PostgresDatabase, network: CutNetwork, *, after_commit: bool, is_silent: bool
) -> None:
    far.query("SELECT a FROM t")
    network.cut(Cut(at=b"-last", after_commit=after_commit, is_silent=is_silent))
    with pytest.raises(DatabaseUnavailable) as caught:
        far.batch(batch())
    assert "the connection was lost; the next run tries again. there: " in str(caught.value)
    assert (f"no answer for {SILENT_SECONDS:g} s" in str(caught.value)) == is_silent
    assert network.cuts == 1
    # It waits for the lock of writers, as long as the server has not noticed.
    near.query("DELETE FROM t WHERE a = 'no such row'")
    found = [row["a"] for row in near.query("SELECT a FROM t").rows]
    assert sorted(found) == sorted(f"{text}-last" for text in WANTED if after_commit)
    assert far.query("SELECT count(*) AS n FROM t").rows == [{"n": len(found)}], "a new connection is made"
