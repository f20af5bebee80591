"""Items in a clean: those past their time go with their images, nothing else goes, and they stay away.

Every case runs on SQLite and a folder, two of them in all stores, and nearly all by `make soak` on D1 and R2.
"""

import signal
from datetime import timedelta

import pytest

from rss_pipeline.errors import CleanRefused
from rss_pipeline_tests.features.retention.archive import (
    IMAGE,
    NEW,
    OLD,
    add_rest,
    age,
    cleaned,
    interrupt,
    is_clean,
    is_sound,
    let_visited,
    nothing_is_left_to_do,
    visited,
)
from rss_pipeline_tests.features.retention.stocked import pipeline, stocked
from rss_pipeline_tests.pipeline.images.images_of_feeds import document
from rss_pipeline_tests.pipeline.session.test_leftovers import holding, kill
from rss_pipeline_tests.support.pictures import png
from rss_pipeline_tests.support.pipeline import NOON, Pipeline, rss
from rss_pipeline_tests.support.places import EVERYWHERE
from rss_pipeline_tests.support.prepared import Prepared
from rss_pipeline_tests.support.server import Answer, FeedServer

__all__ = ["pipeline", "stocked"]


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
def test_a_dry_run_reports_what_the_real_one_then_does_and_writes_nothing(stocked: Pipeline) -> None:
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


def test_items_wait_while_their_images_are_downloaded(stocked: Pipeline, server: FeedServer) -> None:
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
    add_rest(pipeline)
    total = cleaned(pipeline).total
    assert (total.items, total.images, total.image_bytes) == (1, 3, archived)
    assert list(pipeline.objects.list("images/")) == []
    is_sound(pipeline)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["embedded"], indirect=True)
@pytest.mark.parametrize("after", [0, 1, 4])
def test_a_killed_download_leaves_nothing_behind_once_its_items_are_retired(
    pipeline: Pipeline, server: FeedServer, prepared: Prepared, after: int
) -> None:
    images = [server.route(f"127.0.1.{n + 1}", f"/{n}", Answer(body=png(n))) for n in range(6)]
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=document(*images))), "feed")
    pipeline.poll()
    dying = prepared.start(
        "rss_pipeline_tests.pipeline.images.dying_download", str(pipeline.settings.home), str(after)
    )
    assert dying.wait() == -signal.SIGKILL
    age(pipeline, "feed", 181)
    add_rest(pipeline)
    assert cleaned(pipeline).items_waiting == 1, "its lease has not lapsed yet"
    assert len(list(pipeline.objects.list("images/"))) == after
    pipeline.lapse_leases()
    assert cleaned(pipeline).total.images == after
    assert list(pipeline.objects.list("images/")) == []
    assert pipeline.rows("SELECT id FROM image_tasks") == []
    nothing_is_left_to_do(pipeline)


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


class Ends:
    """A Progress that ends a clean after its first items."""

    def begin(self, step: str, total: int) -> None: ...

    def advance(self, step: str, by: int = 1) -> None:
        if step == "items":
            raise KeyboardInterrupt


def test_what_a_killed_clean_removed_counts_for_the_next_one(pipeline: Pipeline, server: FeedServer) -> None:
    """Else a clean that is killed again and again under a wrong clock removes everything, half by half."""
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss(*NEW))), "one")
    pipeline.poll()
    add_rest(pipeline, 1_500)
    let_visited(pipeline, pipeline.clock())

    def age_rest(below: int) -> None:
        pipeline.database.query("UPDATE feeds SET keep_days = NULL WHERE id = 'rest'")
        pipeline.database.query(
            """UPDATE items SET created_at = '2025-01-01T00:00:00Z', arrived = NULL
            WHERE feed_id = 'rest' AND CAST(guid AS INTEGER) < ?""",
            [below],
        )

    age_rest(700)
    with pytest.raises(KeyboardInterrupt):
        cleaned(pipeline, progress=Ends())
    left = len(pipeline.rows("SELECT id FROM items"))
    assert 900 < left < 1_100
    age_rest(850)
    with pytest.raises(CleanRefused, match="were removed in the last 24 hours"):
        cleaned(pipeline)
    assert len(pipeline.rows("SELECT id FROM items")) == left


@pytest.mark.slow
def test_a_clean_removes_what_a_killed_process_left_and_a_dry_run_does_not(pipeline: Pipeline) -> None:
    with holding(pipeline) as (process, left):
        kill(process)
        dry = cleaned(pipeline, dry_run=True)
        assert [folder.is_dir() for folder in left] == [True, True]
        assert (dry.leftovers, cleaned(pipeline).leftovers) == (1, 1)
        assert [folder.exists() for folder in left] == [False, False]
