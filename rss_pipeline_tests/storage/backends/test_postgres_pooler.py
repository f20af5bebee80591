"""A pooler in transaction mode before Postgres: it works and leaves nothing, or a sentence refuses it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import psycopg
import pytest

from rss_pipeline.collector.models.feed import FeedSpec
from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.storage.backends.postgres.backend import PostgresBackend
from rss_pipeline.storage.backends.postgres.connection import check_options
from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
from rss_pipeline.storage.feeds import claims, leases, registered
from rss_pipeline.storage.feeds.claimable import Due
from rss_pipeline_tests.support.services.pooler import TransactionPooler
from rss_pipeline_tests.support.services.postgres import Postgres
from rss_pipeline_tests.support.services.postgres_database import SHARED

NOW = datetime(2026, 2, 18, 8, 30, tzinfo=UTC)
MACHINES, CLAIMS = 6, 4


@pytest.fixture
def pooled(running_postgres: Postgres, migrated_postgres: PostgresDatabase) -> Iterator[str]:
    """The address of a migrated database behind one, with fewer sessions than machines."""
    with TransactionPooler(running_postgres, SHARED, sessions=3) as pooler:
        yield running_postgres.tcp_url(SHARED, port=pooler.port)


def test_every_claim_of_several_machines_works_and_no_session_keeps_a_setting_of_ours(
    running_postgres: Postgres, migrated_postgres: PostgresDatabase, pooled: str
) -> None:
    feeds = [FeedSpec(url=f"http://h{n}.example/feed", id=f"f{n}", host=f"h{n}.example") for n in range(60)]
    registered.apply(migrated_postgres, registered.RegistryChanges(added=tuple(feeds)), now=NOW)

    def claimed(machine: int) -> int:
        database = PostgresDatabase(pooled, where="behind a pooler")
        found = 0
        try:
            for _ in range(CLAIMS):
                taken = claims.claim(database, Due(now=NOW), run_id=f"{machine}", lease_seconds=60, limit=5)
                found += len(taken.feeds)
                leases.end(database, taken.token, forgive=True)
            settings = database.query(
                "SELECT current_setting('TimeZone') AS zone, current_setting('jit') AS jit"
            )
            assert settings.rows == [{"zone": "UTC", "jit": "off"}]
        finally:
            database.close()
        return found

    with ThreadPoolExecutor(MACHINES) as machines:
        assert list(machines.map(claimed, range(MACHINES))) == MACHINES * [CLAIMS * 5]
    with psycopg.connect(pooled, autocommit=True, prepare_threshold=None) as other:
        for _ in range(3):
            assert other.execute("SHOW lock_timeout").fetchone() == ("0",)
            assert other.execute("SHOW TimeZone").fetchone() == ("Asia/Tokyo",), "the server's own"


def test_dagster_s_connections_need_their_options_and_a_pooler_that_refuses_them_is_named(
    running_postgres: Postgres, pooled: str
) -> None:
    options = "?options=-ctimezone%3DUTC%20-csearch_path%3Ddagster"
    check_options(f"{running_postgres.tcp_url(SHARED)}{options}", schema="dagster")
    for url in (f"{pooled}{options}", running_postgres.tcp_url(SHARED)):
        # The second is a pooler with the setting to ignore `options`: tables would be made among ours.
        with pytest.raises(DatabaseUnavailable) as caught:
            check_options(url, schema="dagster")
        assert "name the server itself in DAGSTER_DATABASE_URL" in str(caught.value)
        assert "?options=-csearch_path%3Ddagster" in str(caught.value)
        assert PostgresBackend(url=url).where in str(caught.value)
