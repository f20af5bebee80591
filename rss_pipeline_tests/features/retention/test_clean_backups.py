"""Backups in a clean: the newest and the one of the newest item stay, and each feed has its turn."""

import os
from datetime import timedelta

import pytest

from rss_pipeline.features.retention.service import clean
from rss_pipeline.pipeline.triggers.daily import Allowance
from rss_pipeline.reader.user_backups import RENEWED_AFTER
from rss_pipeline.storage.backups.user_states import user_key
from rss_pipeline_tests.features.retention.archive import cleaned, let_visited, put_backups, visited
from rss_pipeline_tests.features.retention.stocked import pipeline
from rss_pipeline_tests.storage.subscriptions import readers
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

__all__ = ["pipeline"]


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
        if came.backups_renewed and pipeline.settings.objects_server is None:
            # It was put again when the clean believed it to be; a folder can be set so.
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


def test_the_clean_backs_up_what_is_missing_or_old_and_deletes_no_backup(pipeline: Pipeline) -> None:
    database, objects = pipeline.database, pipeline.objects
    for user in ("ann", "bob"):
        readers.add_user(database, user)
    objects.put(user_key("of-a-lost-database"), b"", content_type="application/gzip")

    def cleaned(after: timedelta) -> int:
        written = {info.modified for info in objects.list(user_key("bob"))} or {pipeline.clock()}
        now = max(written) + after
        return clean(database, objects, pipeline.settings, now=now, confirmed=True).users_backed_up

    assert cleaned(timedelta()) == 2
    assert cleaned(timedelta(days=1)) == 0
    objects.delete_many([user_key("ann")])
    assert cleaned(timedelta(days=1)) == 1
    assert cleaned(RENEWED_AFTER + timedelta(days=400)) == 2
    assert [info.key for info in objects.list("state/")] == sorted(
        map(user_key, ("ann", "bob", "of-a-lost-database"))
    )
