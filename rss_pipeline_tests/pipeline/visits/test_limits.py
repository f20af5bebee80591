"""Limits of what one feed may store: images of an item, new items and bytes of images of a day."""

from datetime import datetime, timedelta
from ipaddress import ip_network

import pytest

from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.errors import ObjectStoreUnavailable
from rss_pipeline.pipeline.images.download import require_room
from rss_pipeline.reader.refresh import Held
from rss_pipeline.storage.subscriptions.listing import feed_rows, list_feeds
from rss_pipeline_tests.reader.requests import request_refresh
from rss_pipeline_tests.support.pictures import png
from rss_pipeline_tests.support.pipeline import NOON, Pipeline, rss
from rss_pipeline_tests.support.readers import subscribe
from rss_pipeline_tests.support.server import Answer, FeedServer, Request

HOST, IMAGES = "127.0.0.2", "127.0.0.3"
PICTURE = png(padded_to=400_000)


def with_images(*counts: int, server: FeedServer) -> bytes:
    """A document with an item for each count, which has that many images."""
    items = ""
    for n, count in enumerate(counts):
        shown = "".join(
            f"<img src='{server.route(IMAGES, f'/{n}-{m}.png', Answer(body=PICTURE))}'>" for m in range(count)
        )
        items += f"<item><guid>{n}</guid><description><![CDATA[{shown}]]></description></item>"
    return f"<rss version='2.0'><channel><title>t</title>{items}</channel></rss>".encode()


def test_an_item_has_its_most_images_and_a_warning_counts_the_others(
    pipeline: Pipeline, server: FeedServer
) -> None:
    pipeline.set(images_per_item=3)
    pipeline.register(server.route(HOST, "/feed", Answer(body=with_images(5, 2, 4, server=server))), "a")
    pipeline.poll()
    shown = [url.partition(IMAGES)[2].partition("/")[2] for url in pipeline.tasks()]
    assert shown == ["0-0.png", "0-1.png", "0-2.png", "1-0.png", "1-1.png", "2-0.png", "2-1.png", "2-2.png"]
    feed = pipeline.feed("a")
    assert "3 images were skipped: at most 3 are archived per item" in feed["warning"]
    assert feed["warning_kinds"] == '["too_many_images"]'


def test_a_feed_has_its_most_new_items_of_a_day_and_nothing_is_lost(
    pipeline: Pipeline, server: FeedServer
) -> None:
    pipeline.set(items_per_day=4)
    documents = [rss("1", "2", "3"), rss("5", "4", "3", "2", "1"), rss("6", "5", "4", "3"), rss("9", "8")]
    url = server.route(HOST, "/feed", *(Answer(body=document) for document in documents))
    pipeline.register(url, "a")
    pipeline.register(server.route("127.0.0.4", "/feed", Answer(body=rss(*map(str, range(4))))), "b")
    pipeline.poll()
    assert pipeline.guids("a") == ["1", "2", "3"]
    assert pipeline.feed("a")["warning"] is None
    pipeline.poll(all_feeds=True)
    # What is known does not count; what is new is taken in the order of the document.
    assert pipeline.guids("a") == ["1", "2", "3", "5"]
    feed = pipeline.feed("a")
    assert feed["warning"].startswith("1 new items are not stored: the feed had 4 on 2026-03-02")
    assert feed["warning_kinds"] == '["day_full"]'
    assert (feed["consecutive_failures"], int(feed["day_items"])) == (0, 4)
    assert len(pipeline.guids("b")) == 4, "its neighbour is not concerned"
    pipeline.poll(all_feeds=True)
    assert pipeline.guids("a") == ["1", "2", "3", "5"]

    health = pytest.importorskip("rss_pipeline.features.health.checks")
    busiest = health.tables.busiest
    found = busiest(pipeline.database, since="2026-03-02", items=4, image_bytes=10**9, backup_bytes=10**9)
    assert (health.no_feed_fills_the_disk(found).state, found.count) == ("warning", 2)
    assert found.rows[0] == {
        "feed": "a",
        "title": "A feed",
        "day": "2026-03-02",
        "items": 4,
        "image_mb": 0,
        "backup_mb": 0,
    }
    found = busiest(pipeline.database, since="2026-03-02", items=5, image_bytes=1, backup_bytes=10**9)
    assert health.no_feed_fills_the_disk(found).state == "ok"

    # The next day counts from the beginning.
    pipeline.clock.turn(days=1)
    pipeline.poll(all_feeds=True)
    assert pipeline.guids("a") == ["1", "2", "3", "5", "8", "9"]
    assert pipeline.feed("a")["warning"] is None


@pytest.mark.slow
def test_images_beyond_a_feeds_megabytes_of_a_day_wait_for_the_next_one(
    pipeline: Pipeline, server: FeedServer
) -> None:
    pipeline.set(image_mb_per_day=1, image_concurrency=1, images_per_host=1)
    pipeline.register(server.route(HOST, "/feed", Answer(body=with_images(8, server=server))), "a")
    pipeline.poll()
    done = pipeline.download()
    # Three of 0.4 MB are more than one; the others are not even requested.
    assert (done.archived, done.waiting, done.failed_attempts) == (3, 5, 0)
    assert len(server.asked(IMAGES)) == 3
    assert int(pipeline.feed("a")["day_image_bytes"]) == 3 * len(PICTURE)
    waiting = pipeline.rows("SELECT * FROM image_tasks WHERE status = 'pending'")
    assert {row["next_attempt_at"] for row in waiting} == {"2026-03-03T00:00:00Z"}
    assert {row["last_error_kind"] for row in waiting} == {"day_full"}
    assert {int(row["attempts"]) for row in waiting} == {0}
    assert "RSS_IMAGE_MB_PER_DAY" in waiting[0]["last_error"]
    health = pytest.importorskip("rss_pipeline.features.health.checks")
    busiest = health.tables.busiest
    found = busiest(
        pipeline.database, since="2026-03-02", items=99, image_bytes=1_000_000, backup_bytes=10**9
    )
    assert (found.count, found.rows[0]["feed"]) == (1, "a")

    for day in range(1, 3):
        pipeline.clock.turn(days=1)
        pipeline.download()
        assert len(server.asked(IMAGES)) == min(8, 3 + 3 * day)
    pipeline.clock.turn(days=1)
    pipeline.download()
    assert len(pipeline.rows("SELECT id FROM image_tasks WHERE status = 'success'")) == 8


def test_a_feed_that_differs_at_each_visit_waits_once_it_has_written_its_most_backups_of_a_day(
    pipeline: Pipeline, server: FeedServer
) -> None:
    pipeline.set(backup_mb_per_day=1)

    def other_each_time(request: Request) -> Answer:
        body = rss(str(request.arrived)) if request.host == HOST else str(request.arrived).encode()
        return Answer(body=body.ljust(300_000))

    unreadable, neighbour = "127.0.0.5", "127.0.0.4"
    pipeline.register(server.route(HOST, "/feed", other_each_time), "a", interval="15m")
    pipeline.register(server.route(unreadable, "/feed", other_each_time), "html", interval="15m")
    pipeline.register(server.route(neighbour, "/feed", Answer(body=rss("1"))), "b", interval="15m")

    visited: list[datetime] = []
    while pipeline.clock() < NOON + timedelta(hours=11):
        before = len(server.asked(HOST))
        pipeline.poll()
        if len(visited) >= 2:
            # A person insists.
            pipeline.poll("a")
        visited += [pipeline.clock()] * (len(server.asked(HOST)) - before)
        pipeline.clock.turn(hours=1)
    assert len(server.asked(neighbour)) == 11
    assert len(visited) == 4, "the fourth document of 0.3 MB makes more than 1 MB"
    # Not at once: the bytes that are left are for the rest of the day.
    assert visited[1] - visited[0] > timedelta(hours=4)
    # Also documents that cannot be read have a backup, and there the back-off is shorter.
    assert int(pipeline.feed("html")["day_backup_bytes"]) == 300_000 * len(server.asked(unreadable))
    assert 2 <= len(server.asked(unreadable)) <= 4
    backups = [info.key for info in pipeline.objects.list("backups/a/")]
    assert len(backups) == 4, "what was fetched is backed up, also what came last"
    feed = pipeline.feed("a")
    assert int(feed["day_backup_bytes"]) == 1_200_000
    assert "at most 1 MB of new documents a day" in feed["schedule_reason"]
    assert "2026-03-03T00:00:00Z" <= feed["next_fetch_at"] < "2026-03-03T00:10:00Z"
    outcome = pipeline.refresh("a")["a"].outcome
    assert str(outcome) == (
        "this feed is on hold until 2026-03-03T00:00:00Z"
        " (its new documents of today have reached the limit of 1 MB)"
    )
    subscribe(pipeline.database, "ann", "a")
    answer = request_refresh(
        pipeline.database, pipeline.settings, user_id="ann", feed_id="a", clock=pipeline.clock
    )
    assert isinstance(answer, Held)
    assert "visited again tomorrow" in answer.reason

    # The next day counts from the beginning; an hour after midnight the last one is still named.
    pipeline.clock.turn(hours=2)
    pipeline.poll()
    assert len(server.asked(HOST)) == 5
    assert int(pipeline.feed("a")["day_backup_bytes"]) == 300_000
    health = pytest.importorskip("rss_pipeline.features.health.checks")
    busiest = health.tables.busiest
    found = busiest(pipeline.database, since="2026-03-02", items=99, image_bytes=10**9, backup_bytes=300_000)
    check = health.no_feed_fills_the_disk(found)
    assert (check.state, found.count) == ("warning", 2)
    assert "A feed [a] (1 items, 0.3 MB of backups)" in check.found


def test_images_stop_before_the_disk_is_full_and_polls_do_not(pipeline: Pipeline, server: FeedServer) -> None:
    pipeline.register(server.route(HOST, "/feed", Answer(body=with_images(1, server=server))), "a")
    pipeline.set(image_free_gb=1_000_000.0)
    pipeline.poll()
    assert pipeline.guids("a") == ["0"]
    with pytest.raises(ObjectStoreUnavailable, match="no images are downloaded, so that polls go on"):
        pipeline.download()
    pipeline.set(image_free_gb=0.0, image_free_percent=100.0)
    with pytest.raises(ObjectStoreUnavailable, match="RSS_IMAGE_FREE_PERCENT"):
        pipeline.download()
    [task] = pipeline.rows("SELECT * FROM image_tasks")
    assert (task["status"], int(task["attempts"]), task["lease_token"]) == ("pending", 0, None)
    assert server.asked(IMAGES) == []
    pipeline.set(image_free_percent=0.0)
    require_room(pipeline.settings)
    assert pipeline.download().archived == 1


def test_the_feeds_of_a_user_share_a_budget_of_backups_and_what_is_beyond_it_waits_unread(
    pipeline: Pipeline, server: FeedServer
) -> None:
    """A feed counts to its first subscriber, one of feeds.yaml to none; small documents always come."""
    pipeline.set(
        user_backup_mb_per_day=1,
        allow_networks=(ip_network("127.0.0.0/8"),),
        allow_ports=frozenset({server.port}),
    )
    sizes = {"a": 600_000, "b": 600_000, "c": 600_000, "small": 90_000, "of-bob": 600_000, "listed": 600_000}
    for number, (id, size) in enumerate(sizes.items()):
        answer = Answer(body=rss(id).ljust(size), etag=f'"{id}"')
        pipeline.register(server.route(f"127.0.0.{number + 10}", "/feed", answer), id, allow_private=False)
    pipeline.sync()
    subscribe(pipeline.database, "ann", "a", "b", "c", "small", "listed")
    subscribe(pipeline.database, "bob", "a", "b", "of-bob")
    pipeline.feeds = [feed for feed in pipeline.feeds if feed["id"] == "listed"]
    pipeline.write_registry()
    pipeline.sync(yes=True)
    ids = list(sizes)
    pipeline.refresh("a", "small", "of-bob", "listed")
    pipeline.refresh("b")
    outcome = pipeline.refresh("c")["c"].outcome
    assert isinstance(outcome, OnHold)
    assert "had their 1 MB of new documents of today; this one has 0.6 MB" in outcome.hold.reason
    assert [pipeline.guids(id) for id in ids] == [["a"], ["b"], [], ["small"], ["of-bob"], ["listed"]]
    assert pipeline.backups("c") == []
    feed = pipeline.feed("c")
    assert (feed["last_etag"], feed["content_hash"], feed["consecutive_failures"]) == (None, None, 0)
    assert (feed["lease_token"], int(feed["unclosed_claims"])) == (None, 0)
    assert "2026-03-03T00:00:00Z" <= feed["next_fetch_at"] < "2026-03-03T00:30:00Z"
    [listed] = feed_rows(pipeline.database.batch([list_feeds("ann", "c")])[0])
    assert "new documents of today" in (listed.visit_reason or "")
    asked = len(server.asked("127.0.0.12"))
    assert isinstance(pipeline.refresh("c")["c"].outcome, OnHold), "also by hand"
    assert len(server.asked("127.0.0.12")) == asked

    pipeline.clock.turn(hours=13)
    pipeline.refresh("c")
    assert pipeline.guids("c") == ["c"]
