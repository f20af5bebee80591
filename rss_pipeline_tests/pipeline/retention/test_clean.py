"""Retention, whole: items past their time go with their images, whatever happens meanwhile, and stay away.

Every case runs on SQLite and a folder, and on D1 and R2 in workerd.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.errors import DatabaseUnavailable, InfrastructureError, ObjectStoreUnavailable
from rss_pipeline.pipeline.retention.result import Allowance
from rss_pipeline.server_settings import S3Settings
from rss_pipeline.storage.backends.connect import connect, open_objects
from rss_pipeline.storage.database import Database, Result, Statement, Value
from rss_pipeline.storage.items import retention
from rss_pipeline_tests.pipeline.images.test_download import document
from rss_pipeline_tests.pipeline.retention.archive import (
    IMAGE,
    NEW,
    OLD,
    age,
    archive_images,
    cleaned,
    is_sound,
    let_visited,
    nothing_is_left_to_do,
    stock,
)
from rss_pipeline_tests.support.pictures import png
from rss_pipeline_tests.support.pipeline import NOON, Pipeline, on_cloudflare, rss
from rss_pipeline_tests.support.places import EVERYWHERE
from rss_pipeline_tests.support.prepared import Prepared
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.services.cloudflare import Cloudflare
from rss_pipeline_tests.support.services.faults import FaultProxy, Refuse, Reset, number


@pytest.fixture
def pipeline(place: Pipeline) -> Pipeline:
    """An installation of each kind. Not that of conftest.py, which is embedded."""
    return place


@pytest.fixture
def stocked(pipeline: Pipeline, server: FeedServer) -> Pipeline:
    stock(pipeline, server)
    return pipeline


def poll_anew(pipeline: Pipeline, server: FeedServer) -> None:
    """The feeds are asked once more, and their documents have changed, though not in what they list."""
    for place, id in enumerate(("one", "two"), start=2):
        body = rss(*OLD, *NEW, title="Another title")
        server.route(f"127.0.0.{place}", "/feed", Answer(body=body))
        assert pipeline.feed(id) is not None
    pipeline.poll(all_feeds=True)
    assert pipeline.feed("one")["title"] == "Another title"


def is_clean(pipeline: Pipeline, server: FeedServer) -> None:
    """What was due is gone and nothing else is; it stays gone, though its feeds still list it."""
    for _ in range(2):
        for id in ("one", "two"):
            assert pipeline.guids(id) == sorted(NEW)
        assert len(pipeline.rows("SELECT id FROM image_tasks")) == 8
        tombstones = pipeline.rows("SELECT feed_id, guid FROM expired_items ORDER BY feed_id, guid")
        assert [tuple(row.values()) for row in tombstones] == [(id, g) for id in ("one", "two") for g in OLD]
        is_sound(pipeline)
        assert len(list(pipeline.objects.list("images/"))) == 8
        nothing_is_left_to_do(pipeline)
        poll_anew(pipeline, server)


@EVERYWHERE
def test_what_is_past_its_time_goes_and_does_not_come_back(stocked: Pipeline, server: FeedServer) -> None:
    came = cleaned(stocked)
    assert came.figures() == {
        "dry_run": False,
        "unfinished": False,
        "items_removed": 6,
        "item_versions_removed": 0,
        "image_tasks_removed": 12,
        "images_removed": 12,
        "image_bytes_removed": 12 * len(IMAGE),
        "backups_removed": 0,
        "backup_bytes_removed": 0,
        "backups_renewed": 0,
        "users_backed_up": 0,
        "leftovers_removed": 0,
        "items_waiting": 0,
        "items_left": 0,
        "keys_refused": 0,
    }
    assert came.by_feed["two"].items == 3
    is_clean(stocked, server)
    assert stocked.reports("one")[0]["items_new"] == 5, "nothing new since"


@EVERYWHERE
def test_a_dry_run_tells_what_the_real_one_then_does_and_writes_nothing(stocked: Pipeline) -> None:
    stocked.database.query(
        """INSERT INTO item_versions (item_id, replaced_at, pub_date, categories, enclosures, guid_source,
        pub_date_source) SELECT id, 'then', pub_date, '[]', '[]', 'guid', 'feed' FROM items""",
    )
    interrupt(stocked)
    for id in ("one", "two"):
        age(stocked, id, 0, *NEW)
    later = visited(stocked, days=24)
    before = contents(stocked)
    dry = cleaned(stocked, now=later, dry_run=True)
    assert contents(stocked) == before
    real = cleaned(stocked, now=later)
    assert {**dry.figures(), "dry_run": False} == real.figures()
    assert (dry.by_feed, real.by_feed["one"].item_versions) == (real.by_feed, 5)
    assert (real.backups_renewed, real.total.images) == (2, 20)
    assert list(stocked.objects.list("images/")) == []


def visited(pipeline: Pipeline, *, days: float) -> datetime:
    """The instant so many days after the last backup was put, when each feed was visited."""
    later = max(info.modified for info in pipeline.objects.list("backups/")) + timedelta(days=days)
    let_visited(pipeline, later)
    return later


def interrupt(pipeline: Pipeline) -> None:
    """A download that was killed between its object and its row: its lease is long over."""
    changed = pipeline.database.query(
        """UPDATE image_tasks SET status = 'pending', r2_key = NULL, bytes = NULL, lease_token = 'gone'
        WHERE id IN (SELECT min(t.id) FROM image_tasks AS t JOIN items ON items.id = item_id
          WHERE guid = 'old-1')"""
    ).changes
    assert changed == 1


def contents(pipeline: Pipeline) -> object:
    tables = ("feeds", "items", "image_tasks", "item_versions", "expired_items", "leases")
    rows = {name: pipeline.rows(f"SELECT * FROM {name} ORDER BY 1, 2") for name in tables}
    return rows, [(info.key, info.size, info.modified) for info in pipeline.objects.list("")]


def test_what_a_killed_download_left_without_saying_so_goes_too(
    stocked: Pipeline, server: FeedServer
) -> None:
    interrupt(stocked)
    assert cleaned(stocked).total.images == 12
    is_clean(stocked, server)


def test_an_object_of_another_task_under_that_key_stays(stocked: Pipeline) -> None:
    interrupt(stocked)
    (row,) = stocked.rows(
        """SELECT t.id, position, feed_id FROM image_tasks AS t JOIN items ON items.id = item_id
        WHERE t.lease_token = 'gone'"""
    )
    key = next(
        info.key
        for info in stocked.objects.list(f"images/{row['feed_id']}/")
        if (found := stocked.objects.head(info.key)) and found.metadata["task-id"] == row["id"]
    )
    stocked.objects.put(key, b"theirs", content_type="image/png", metadata={"task-id": "another"})
    cleaned(stocked)
    assert stocked.objects.get(key) is not None


def test_keep_of_a_feed_forever_and_a_feed_that_left_the_registry(
    stocked: Pipeline, server: FeedServer
) -> None:
    stocked.feeds[0]["keep"] = "forever"
    stocked.feeds[1]["keep"] = "200d"
    stocked.write_registry()
    stocked.sync()
    assert cleaned(stocked).total.items == 0
    age(stocked, "one", 30_000, *OLD)
    age(stocked, "two", 201, "old-1")
    del stocked.feeds[1]
    stocked.write_registry()
    stocked.sync()
    came = cleaned(stocked)
    assert {id: removed.items for id, removed in came.by_feed.items()} == {"two": 1}
    stocked.database.query("UPDATE feeds SET keep_days = NULL WHERE id = 'two'")
    assert {id: removed.items for id, removed in cleaned(stocked).by_feed.items()} == {"two": 2}
    assert len(stocked.guids("one")) == 5


def test_an_item_of_exactly_its_age_stays_and_goes_a_second_later(stocked: Pipeline) -> None:
    age(stocked, "one", 180, *OLD)
    age(stocked, "two", 0)
    assert cleaned(stocked).total.items == 0
    stocked.clock.turn(seconds=1)
    assert cleaned(stocked).total.items == 3


def test_items_whose_images_are_being_downloaded_wait(stocked: Pipeline, server: FeedServer) -> None:
    stocked.database.query(
        "INSERT INTO leases (token, run_id, expires_at, feeds, hosts)"
        " VALUES ('live', 'r', '2999-01-01T00:00:00Z', '[]', '[]')"
    )
    stocked.database.query(
        """UPDATE image_tasks SET lease_token = 'live' WHERE id IN (SELECT max(t.id) FROM image_tasks AS t
        JOIN items ON items.id = item_id WHERE guid = 'old-2' AND feed_id = 'one')"""
    )
    for dry_run in (True, False):
        came = cleaned(stocked, dry_run=dry_run)
        assert (came.total.items, came.items_waiting, came.is_unfinished) == (5, 1, True)
    assert stocked.guids("one") == ["new-1", "new-2", "old-2"]
    is_sound(stocked)
    stocked.lapse_leases()
    assert cleaned(stocked).total.items == 1
    is_clean(stocked, server)


def test_what_the_download_job_archived_goes_with_its_items(pipeline: Pipeline, server: FeedServer) -> None:
    pipeline.set(image_host_delay_seconds=0.0)
    images = [server.route("127.0.1.1", f"/{n}", Answer(body=png(n))) for n in range(3)]
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=document(*images))), "feed")
    pipeline.poll()
    assert pipeline.download().archived == 3
    archived = sum(info.size for info in pipeline.objects.list("images/"))
    age(pipeline, "feed", 181)
    total = cleaned(pipeline).total
    assert (total.items, total.images, total.image_bytes) == (1, 3, archived)
    assert list(pipeline.objects.list("images/")) == []
    is_sound(pipeline)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["embedded"], indirect=True)
@pytest.mark.parametrize("after", [0, 1, 4])
def test_a_killed_download_leaves_nothing_behind_once_its_items_are_retired(
    pipeline: Pipeline, server: FeedServer, after: int
) -> None:
    images = [server.route(f"127.0.1.{n + 1}", f"/{n}", Answer(body=png(n))) for n in range(6)]
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=document(*images))), "feed")
    pipeline.poll()
    command = [sys.executable, "-W", "ignore", "-m", "rss_pipeline_tests.pipeline.images.dying_download"]
    killed = subprocess.run(
        [*command, str(pipeline.settings.home), str(after)], cwd=Path(__file__).parents[3], check=False
    )
    assert killed.returncode == -signal.SIGKILL
    age(pipeline, "feed", 181)
    assert cleaned(pipeline).items_waiting == 1, "its lease has not lapsed yet"
    assert len(list(pipeline.objects.list("images/"))) == after
    pipeline.lapse_leases()
    assert cleaned(pipeline).total.images == after
    assert list(pipeline.objects.list("images/")) == []
    assert pipeline.rows("SELECT id FROM image_tasks") == []
    nothing_is_left_to_do(pipeline)


class Faulty:
    """A store with faults, made on purpose: at its so-manieth call, before it is applied or after."""

    def __init__(self, real: Any, calls: "Calls", error: type[Exception]) -> None:
        self._real = real
        self._calls = calls
        self._error = error

    def _do(self, call: Callable[[], Any]) -> Any:
        self._calls.made += 1
        fails = self._calls.made == self._calls.failing
        if fails and not self._calls.applied:
            raise self._error("down")
        result = call()
        if fails:
            raise self._error("the answer got lost")
        return result


class Calls:
    def __init__(self, failing: int, *, applied: bool) -> None:
        self.made, self.failing, self.applied = 0, failing, applied


class FaultyDatabase(Faulty):
    def query(self, sql: str, params: Sequence[Value] = (), *, name: str = "") -> Result:
        result: Result = self._do(lambda: self._real.query(sql, params, name=name))
        return result

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        results: list[Result] = self._do(lambda: self._real.batch(statements))
        return results


class FaultyObjects(Faulty):
    def list(self, prefix: str, *, after: str = "") -> Any:
        return iter(self._do(lambda: tuple(self._real.list(prefix, after=after))))

    def head(self, key: str) -> Any:
        return self._do(lambda: self._real.head(key))

    def copy(self, source: str, target: str) -> None:
        self._do(lambda: self._real.copy(source, target))

    def delete_many(self, keys: Iterable[str]) -> Any:
        return self._do(lambda: self._real.delete_many(keys))


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


class Refusing:
    """An object store that will not delete some keys."""

    def __init__(self, real: Any, refused: Callable[[str], bool]) -> None:
        self._real = real
        self._refused = refused

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def delete_many(self, keys: Iterable[str]) -> dict[str, str]:
        keys = list(keys)
        refused = {key: "AccessDenied: no" for key in keys if self._refused(key)}
        return refused | self._real.delete_many([key for key in keys if key not in refused])


def test_an_item_one_of_whose_keys_is_refused_stays_for_the_next_time(
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
    environment = {
        **{name: text for name, text in os.environ.items() if not name.startswith("RSS_")},
        **stores(pipeline),
        "RSS_PIPELINE_HOME": str(pipeline.settings.home),
        "CLEAN_NOW": now.isoformat(),
    }
    module = "rss_pipeline_tests.pipeline.retention.dying_clean"
    return prepared.start(module, place, environment=environment).wait()


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
    with FaultProxy(cloudflare.url) as proxy:
        through = replace(
            pipeline.settings,
            d1=replace(pipeline.settings.d1, url=proxy.url),  # type: ignore[type-var]
            s3=replace(_r2(pipeline), endpoint_url=proxy.s3_endpoint),
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
            assert pipeline.rows("SELECT id FROM items") == []
            assert list(pipeline.objects.list("images/")) == []
            nothing_is_left_to_do(pipeline)
        database.close()
        objects.client.close()
    assert failing >= 6
    pipeline.close()


def _r2(pipeline: Pipeline) -> S3Settings:
    assert pipeline.settings.s3 is not None
    return pipeline.settings.s3


def stores(pipeline: Pipeline) -> dict[str, str]:
    """The variables that name the pipeline's stores in Cloudflare to a process of its own."""
    d1, r2 = pipeline.settings.d1, pipeline.settings.s3
    if d1 is None or r2 is None:
        return {}
    return {
        "D1_PROXY_URL": d1.url,
        "D1_PROXY_TOKEN": d1.token,
        "R2_ENDPOINT_URL": r2.endpoint_url,
        "R2_BUCKET": r2.bucket,
        "R2_ACCESS_KEY_ID": r2.access_key_id,
        "R2_SECRET_ACCESS_KEY": r2.secret_access_key,
    }


def put_backups(pipeline: Pipeline, feed_id: str, *names: str) -> None:
    for name in names:
        key = f"backups/{feed_id}/{name}.xml"
        pipeline.objects.put(key, b"<rss/>", content_type="application/xml", metadata={"rss-pipeline": "{}"})


@pytest.mark.slow
def test_a_feed_that_answers_304_for_a_year_keeps_its_backup(pipeline: Pipeline, server: FeedServer) -> None:
    pipeline.set(keep_days=36_500)
    url = server.route("127.0.0.2", "/feed", Answer(body=rss("a"), etag='"1"'))
    pipeline.register(url, "silent")
    pipeline.poll()
    put_backups(pipeline, "silent", "2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z")
    put_backups(pipeline, "unknown", "2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z")
    put_at = max(info.modified for info in pipeline.objects.list("backups/"))
    [newest] = pipeline.backups("silent")[-1:]
    body, described = pipeline.objects.get(newest) or (b"", None)
    renewals = 0
    for day in range(0, 366, 5):
        pipeline.clock.turn(days=5)
        if day % 20 == 0:
            pipeline.poll(all_feeds=True)
        now = put_at + timedelta(days=day)
        let_visited(pipeline, now)
        came = cleaned(pipeline, now=now)
        renewals += came.backups_renewed
        if came.backups_renewed and pipeline.settings.s3 is None:
            # It was put again when the clean believed it to be; a folder can be told so.
            os.utime(pipeline.settings.objects_path / newest, (now.timestamp(), now.timestamp()))
    assert server.requests[1].headers["if-none-match"] == '"1"'
    assert pipeline.backups("silent") == [newest]
    assert len(pipeline.backups("unknown")) == 2, "after a lost database they are the archive"
    again, as_it_is = pipeline.objects.get(newest) or (b"", None)
    assert (again, as_it_is and as_it_is.metadata) == (body, described and described.metadata)
    assert renewals >= 366 // 30, "R2 believes its own clock only, and is asked at every clean"


def test_the_backup_that_the_newest_item_came_from_stays_though_junk_came_after_it(
    pipeline: Pipeline, server: FeedServer
) -> None:
    url = server.route("127.0.0.2", "/feed", Answer(body=rss("a")))
    pipeline.register(url, "broken")
    pipeline.poll()
    [good] = pipeline.backups("broken")
    put_backups(pipeline, "broken", "2027-01-01T00:00:00Z", "2027-02-01T00:00:00Z")
    later = visited(pipeline, days=31)
    came = cleaned(pipeline, now=later)
    assert (came.total.backups, came.backups_renewed) == (1, 2)
    assert pipeline.backups("broken") == [good, "backups/broken/2027-02-01T00:00:00Z.xml"]


def test_cleans_that_have_no_time_come_to_the_backups_of_each_feed_in_turn(
    pipeline: Pipeline, server: FeedServer
) -> None:
    ids = ["a", "a-b", "b", "c"]
    for place, id in enumerate(ids, start=2):
        pipeline.register(server.route(f"127.0.0.{place}", "/feed", Answer(body=rss("x"))), id)
    pipeline.poll()
    for id in ids:
        put_backups(pipeline, id, "2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z")
    later = visited(pipeline, days=31)
    through: str | None = ""
    for cleans, id in enumerate(["a-b", "a", "b", "c"], start=1):
        assert through is not None
        came = cleaned(pipeline, now=later, allowance=Allowance(0), backups_after=through)
        assert {feed: removed.backups for feed, removed in came.by_feed.items()} == {id: 2}
        through = came.backups_through
        assert (through is None) == (cleans == len(ids))
    assert {id: len(pipeline.backups(id)) for id in ids} == dict.fromkeys(ids, 1)


def test_a_tombstone_goes_when_the_feed_has_long_ceased_to_list_its_item(
    stocked: Pipeline, server: FeedServer
) -> None:
    retire_long_ago(stocked)
    for days, kept in ((1, OLD), (30, OLD), (60, OLD), (61, ["old-1"])):
        serve_at(stocked, server, days, rss("old-1", *NEW, title=f"Two are gone, day {days}"))
        assert tombstones(stocked) == sorted(kept), f"after {days} days"
    assert stocked.guids("one") == sorted(NEW)


def test_one_empty_document_brings_nothing_back_as_news(stocked: Pipeline, server: FeedServer) -> None:
    """Nor do two that list a part, whatever time has passed."""
    retire_long_ago(stocked)
    for days, guids in ((61, ()), (70, NEW), (130, NEW), (200, ()), (201, (*OLD, *NEW))):
        serve_at(stocked, server, days, rss(*guids, title=f"Day {days}"))
        assert tombstones(stocked) == sorted(OLD), f"after {days} days"
    assert stocked.guids("one") == sorted(NEW)
    assert sum(report["items_new"] for report in stocked.reports("one")) == 5, "nothing came as news"


def retire_long_ago(pipeline: Pipeline) -> None:
    """Retire what is old, in a feed that has been there for years; by the clock of the tests."""
    cleaned(pipeline)
    pipeline.database.query("UPDATE feeds SET created_at = '2020-01-01T00:00:00Z'")
    pipeline.database.query("UPDATE expired_items SET expired_at = '2020-01-01T00:00:00Z'")


def serve_at(pipeline: Pipeline, server: FeedServer, days: int, body: bytes) -> None:
    """The feed's document so many days after noon, and a poll then."""
    pipeline.clock.now = NOON + timedelta(days=days, hours=1)
    server.route("127.0.0.2", "/feed", Answer(body=body))
    pipeline.poll(all_feeds=True)


def tombstones(pipeline: Pipeline) -> list[str]:
    rows = pipeline.rows("SELECT guid FROM expired_items WHERE feed_id = 'one' ORDER BY guid")
    return [row["guid"] for row in rows]
