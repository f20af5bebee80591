"""Cleans that are cut short: whatever fails, refuses or dies, the next clean completes the work.

Every case runs on SQLite and a folder or on D1 and R2, and by `make soak` nearly all on both.
"""

import os
import signal
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.errors import DatabaseUnavailable, InfrastructureError, ObjectStoreUnavailable
from rss_pipeline.features.retention import sql as retention
from rss_pipeline.pipeline.triggers.daily import Allowance
from rss_pipeline.storage.backends.connect import connect, open_objects
from rss_pipeline.storage.backends.d1.backend import D1Backend
from rss_pipeline.storage.backends.postgres.backend import PostgresBackend
from rss_pipeline.storage.backends.s3.backend import S3Backend
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.feeds.forget import begin_forget, end_forget
from rss_pipeline_tests.features.retention.archive import (
    NEW,
    OLD,
    add_rest,
    archive_images,
    cleaned,
    forget_cleans,
    interrupt,
    is_clean,
    is_sound,
    let_visited,
    nothing_is_left_to_do,
    stock,
    visited,
)
from rss_pipeline_tests.features.retention.stocked import pipeline, stocked
from rss_pipeline_tests.support.faulty_stores import Calls, FaultyDatabase, FaultyObjects, Refusing
from rss_pipeline_tests.support.pipeline import Pipeline, on_cloudflare
from rss_pipeline_tests.support.prepared import Prepared, PreparedProcess
from rss_pipeline_tests.support.server import FeedServer
from rss_pipeline_tests.support.services.cloudflare import Cloudflare
from rss_pipeline_tests.support.services.faults import FaultProxy, Refuse, Reset, number
from rss_pipeline_tests.support.waiting import soon

__all__ = ["pipeline", "stocked"]


@pytest.mark.slow
@pytest.mark.parametrize("applied", [False, True], ids=["before", "after"])
def test_a_store_that_fails_at_any_call_is_made_good_by_the_next_clean(
    stocked: Pipeline, server: FeedServer, applied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "SLICE_ITEMS", 1)
    interrupt(stocked)
    due = {id: set(OLD) for id in ("one", "two")}
    failing = 0
    while True:
        failing += 1
        calls = Calls(failing, applied=applied)
        try:
            cleaned(
                stocked,
                database=FaultyDatabase(stocked.database, calls, DatabaseUnavailable),
                objects=FaultyObjects(stocked.objects, calls, ObjectStoreUnavailable),
            )
        except InfrastructureError:
            for id in due:
                assert set(NEW) <= set(stocked.guids(id)), "what was not due is there"
            if failing % 3:
                continue  # The next one may fail, too.
            monkeypatch.setattr(retention, "SLICE_ITEMS", 1)
            cleaned(stocked)
            is_sound(stocked)
            for id in due:
                assert stocked.guids(id) == sorted(NEW)
            restock(stocked, failing)
        else:
            break
    assert failing > 10
    is_clean_after_restocking(stocked)


def restock(pipeline: Pipeline, round_: int) -> None:
    """Old items again, as if they had never gone."""
    pipeline.database.query("DELETE FROM expired_items")
    forget_cleans(pipeline)
    for id in ("one", "two"):
        for guid in OLD:
            item = f"{id}-{guid}-{round_}"
            stored = instant(pipeline.clock() - timedelta(days=181))
            pipeline.database.batch(
                [
                    Statement(
                        """INSERT INTO items (id, feed_id, guid, pub_date, created_at, guid_source,
                        pub_date_source) VALUES (?, ?, ?, ?, ?, 'guid', 'feed')""",
                        [item, id, guid, stored, stored],
                    ),
                    Statement(
                        """INSERT INTO image_tasks (id, item_id, original_url, created_at, updated_at, host,
                        position) VALUES (?, ?, 'http://x/', ?, ?, 'x', 0)""",
                        [f"t-{item}", item, stored, stored],
                    ),
                ]
            )
        archive_images(pipeline.database, pipeline.objects, id)


def is_clean_after_restocking(pipeline: Pipeline) -> None:
    for id in ("one", "two"):
        assert pipeline.guids(id) == sorted(NEW)
    is_sound(pipeline)
    nothing_is_left_to_do(pipeline)


def test_an_item_with_a_key_that_is_refused_stays_for_the_next_time(
    stocked: Pipeline, server: FeedServer
) -> None:
    (kept,) = stocked.rows(
        """SELECT r2_key, item_id FROM image_tasks AS t JOIN items ON items.id = item_id
        WHERE feed_id = 'one' AND guid = 'old-2' AND position = 0"""
    )
    refusing: Any = Refusing(stocked.objects, lambda key: key == kept["r2_key"])
    for removed in (5, 0):
        came = cleaned(stocked, objects=refusing)
        assert (came.total.items, came.refused, came.is_unfinished) == (removed, 1, True)
        assert came.refusals == {kept["r2_key"]: "AccessDenied: no"}
        is_sound(stocked)
        assert stocked.guids("one") == ["new-1", "new-2", "old-2"]
    assert cleaned(stocked).total.items == 1
    is_clean(stocked, server)


def test_a_clean_out_of_time_says_so_and_the_next_one_goes_on(
    stocked: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "SLICE_ITEMS", 2)
    seconds = iter(range(1_000))
    came = cleaned(stocked, allowance=Allowance(5, clock=lambda: next(seconds)))
    assert (came.out_of_time, came.is_unfinished, came.items_left) == (True, True, 6 - came.total.items)
    assert 0 < came.total.items < 6
    is_sound(stocked)
    cleaned(stocked)
    is_clean(stocked, server)


PLACES = ["objects", "key 1", "key 3", "objects+", "rows", "rows+"]


def _die(prepared: Prepared, pipeline: Pipeline, place: str, now: datetime) -> int:
    return _started(prepared, pipeline, now, place).wait()


def _started(prepared: Prepared, pipeline: Pipeline, now: datetime, *arguments: str) -> PreparedProcess:
    environment = {
        **{name: text for name, text in os.environ.items() if not name.startswith("RSS_")},
        **stores(pipeline),
        "RSS_PIPELINE_HOME": str(pipeline.settings.home),
        "CLEAN_NOW": now.isoformat(),
    }
    module = "rss_pipeline_tests.features.retention.dying_clean"
    return prepared.start(module, *arguments, environment=environment)


@pytest.mark.slow
@pytest.mark.parametrize("death", PLACES)
def test_a_clean_killed_anywhere_is_completed_by_the_next_one(
    stocked: Pipeline, server: FeedServer, prepared: Prepared, death: str
) -> None:
    assert _die(prepared, stocked, death, stocked.clock()) == -signal.SIGKILL
    for id in ("one", "two"):
        assert set(NEW) <= set(stocked.guids(id))
    cleaned(stocked)
    is_clean(stocked, server)


@pytest.mark.soak
def test_a_clean_and_a_forget_killed_while_postgres_deletes_are_whole_or_not_begun_and_are_completed(
    on_postgres: Pipeline, postgres_url: str, server: FeedServer, prepared: Prepared
) -> None:
    """Their server works on after their end, and the next one waits for it."""
    stock(on_postgres, server)

    def killed(guid: str, *arguments: str) -> None:
        with psycopg.connect(postgres_url) as other, psycopg.connect(postgres_url, autocommit=True) as looks:
            other.execute("SELECT id FROM items WHERE feed_id = 'one' AND guid = %s FOR UPDATE", [guid])
            process = _started(prepared, on_postgres, on_postgres.clock(), *arguments)
            waiting = """SELECT pid FROM pg_stat_activity
                WHERE datname = current_database() AND wait_event_type = 'Lock'"""
            soon(lambda: looks.execute(waiting).fetchall())
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL

    killed("old-2", "never")
    assert on_postgres.guids("one") in (sorted(NEW), sorted([*NEW, *OLD]))
    cleaned(on_postgres)
    is_clean(on_postgres, server)
    killed("new-1", "forget", "one")
    begin_forget(on_postgres.database, "one")
    assert (on_postgres.guids("one"), on_postgres.guids("two")) == ([], sorted(NEW))
    assert end_forget(on_postgres.database, "one") == 1


@pytest.mark.slow
def test_a_clean_killed_before_a_backup_was_put_again_is_made_good_by_the_next_one(
    stocked: Pipeline, prepared: Prepared
) -> None:
    before = [info.key for info in stocked.objects.list("backups/")]
    later = visited(stocked, days=24)
    assert _die(prepared, stocked, "renew", later) == -signal.SIGKILL
    assert cleaned(stocked, now=later).backups_renewed == 2
    assert [info.key for info in stocked.objects.list("backups/")] == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Refuse(500), marks=pytest.mark.soak),
        pytest.param(Reset(), marks=pytest.mark.soak),
        Reset(applied=True),
    ],
    ids=str,
)
def test_a_cloudflare_that_fails_at_any_request(
    tmp_path: Path,
    cloudflare: Cloudflare,
    fault: Refuse | Reset,
) -> None:
    pipeline = Pipeline(tmp_path, **on_cloudflare(cloudflare))
    for id in ("one", "two"):
        pipeline.register(f"http://{id}.example/", id)
    pipeline.sync()
    let_visited(pipeline, pipeline.clock())
    add_rest(pipeline)
    with FaultProxy(cloudflare.url) as proxy:
        through = replace(
            pipeline.settings,
            database_server=replace(_d1(pipeline), url=proxy.url),
            objects_server=replace(_r2(pipeline), endpoint_url=proxy.s3_endpoint),
        )
        database: Database = connect(through)
        objects: Any = open_objects(through)
        failing = 0
        while not failing or proxy.made:
            failing += 1
            restock(pipeline, failing)
            proxy.heal()
            proxy.fault(fault, at=number(failing))
            try:
                cleaned(pipeline, database=database, objects=objects)
            except InfrastructureError:
                cleaned(pipeline)
            assert pipeline.rows("SELECT id FROM items WHERE feed_id <> 'rest'") == []
            assert list(pipeline.objects.list("images/")) == []
            nothing_is_left_to_do(pipeline)
        database.close()
        objects.client.close()
    assert failing >= 6
    pipeline.close()


def _r2(pipeline: Pipeline) -> S3Backend:
    assert isinstance(pipeline.settings.objects, S3Backend)
    return pipeline.settings.objects


def _d1(pipeline: Pipeline) -> D1Backend:
    assert isinstance(pipeline.settings.database, D1Backend)
    return pipeline.settings.database


def stores(pipeline: Pipeline) -> dict[str, str]:
    """The variables that name the pipeline's stores elsewhere to a process of its own."""
    if isinstance(pipeline.settings.database, PostgresBackend):
        return {"DATABASE_URL": pipeline.settings.database.url}
    if pipeline.settings.database.is_here:
        return {}
    d1, r2 = _d1(pipeline), _r2(pipeline)
    return {
        "D1_PROXY_URL": d1.url,
        "D1_PROXY_TOKEN": d1.token,
        "R2_ENDPOINT_URL": r2.endpoint_url,
        "R2_BUCKET": r2.bucket,
        "R2_ACCESS_KEY_ID": r2.access_key_id,
        "R2_SECRET_ACCESS_KEY": r2.secret_access_key,
    }
