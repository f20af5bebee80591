"""A lost database comes back from feeds.yaml and the objects: the same items, without a request."""

import hashlib
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.features.replay.restore_sql import REASON
from rss_pipeline_tests.features.replay.replays import all_rows, collected, drop_database, restored
from rss_pipeline_tests.pipeline.visits.test_cloudflare import HOSTS, serve
from rss_pipeline_tests.support.pictures import png
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.places import EVERYWHERE
from rss_pipeline_tests.support.prepared import Prepared
from rss_pipeline_tests.support.server import Answer, FeedServer, etag_of

VALIDATORS = (
    "last_etag, last_modified, validators_url, content_hash, charset, title, link, language, rhythm, ttl"
)
WINDOWS = (
    "<rss version='2.0'><channel><title>Ж</title><item><guid>1</guid><title>%s</title></item></channel></rss>"
)
UNDATED = b"<rss version='2.0'><channel><title>T</title>%b</channel></rss>"


def _register_documents(pipeline: Pipeline, server: FeedServer) -> None:
    serve(server)
    for id, host in HOSTS.items():
        pipeline.register(server.url(host, "/feed"), id)


def changing(pipeline: Pipeline, server: FeedServer) -> None:
    """Feeds with documents that change: items come, go, change, lose their date and their charset."""
    answers = {
        "growing": [rss(*"abc", image="http://i.example"), rss(*"bcd"), rss(*"ad", "e" * 70)],
        "undated": [
            UNDATED % b"<item><guid>1</guid></item>",
            UNDATED % b"<item><guid>1</guid></item><item><guid>2</guid><pubDate>soon</pubDate></item>",
        ],
        "edited": [rss("x", title="Before"), rss("x", title="After").replace(b"Text of", b"Edited text of")],
    }
    for number, (id, bodies) in enumerate(answers.items(), start=40):
        route = [Answer(body=body, etag=etag_of(body)) for body in bodies]
        pipeline.register(server.route(f"127.0.0.{number}", "/feed", *route), id)
    header = WINDOWS.encode() % "Привет, мир".encode("cp1251")
    pipeline.register(
        server.route(
            "127.0.0.50",
            "/feed",
            Answer(body=header, headers={"Content-Type": "text/xml; charset=windows-1251"}),
        ),
        "by-header",
    )
    first = "<?xml version='1.0' encoding='shift_jis'?>" + WINDOWS % "日本語の見出し"
    then = WINDOWS.replace("<guid>1", "<guid>2") % "ｱｲ"
    pipeline.register(
        server.route(
            "127.0.0.51", "/feed", Answer(body=first.encode("cp932")), Answer(body=then.encode("cp932"))
        ),
        "by-hint",
    )


def _poll_over_time(pipeline: Pipeline, times: int = 3) -> None:
    for _ in range(times):
        pipeline.poll(all_feeds=True)
        pipeline.clock.turn(hours=3)


@pytest.mark.slow
@EVERYWHERE
def test_after_the_database_is_lost_restore_gives_back_the_same_items(
    place: Pipeline, server: FeedServer
) -> None:
    _register_documents(place, server)
    changing(place, server)
    _poll_over_time(place)
    before = collected(place)
    stood = place.rows(f"SELECT id, {VALIDATORS} FROM feeds ORDER BY id")
    assert {row["charset"] for row in stood} >= {"cp1251", "cp932", "gb18030", "utf-8"}
    assert len({row["created_at"] for row in before["items"]}) == 3

    drop_database(place)
    result = restored(place)

    assert result.is_whole, result
    assert collected(place) == before
    assert place.rows(f"SELECT id, {VALIDATORS} FROM feeds ORDER BY id") == stood
    assert result.items_new == len(before["items"])
    assert {row["images_pending"] for row in place.rows("SELECT images_pending FROM feeds")} == {0}
    assert place.rows("SELECT id FROM items WHERE images_extracted_at IS NULL") == []
    for row in place.items("undated"):
        assert row["images_extracted_at"] == row["created_at"], "items without images were not looked at"


@pytest.mark.slow
def test_the_next_poll_sends_the_validators_of_the_last_stored_document(
    place: Pipeline, server: FeedServer
) -> None:
    changing(place, server)
    body = rss("a")
    url = server.route(
        "127.0.0.60", "/feed", Answer(body=body, last_modified="Sun, 01 Mar 2026 00:00:00 GMT", etag='W/"é"')
    )
    place.register(url, "byte-exact")
    _poll_over_time(place)
    before = place.rows("SELECT * FROM items ORDER BY id")
    drop_database(place)
    assert restored(place).is_whole
    assert {row["schedule_reason"] for row in place.rows("SELECT schedule_reason FROM feeds")} == {REASON}

    server.requests.clear()
    rounds = place.poll()

    asked = {request.host: request.headers for request in server.requests}
    assert asked["127.0.0.60"]["if-none-match"] == 'W/"é"'
    assert asked["127.0.0.60"]["if-modified-since"] == "Sun, 01 Mar 2026 00:00:00 GMT"
    assert asked["127.0.0.40"]["if-none-match"] == etag_of(rss(*"ad", "e" * 70))
    ends = {visit.feed.id: type(visit.outcome).__name__ for round_ in rounds for visit in round_.visits}
    assert set(ends.values()) == {"NotModified"}
    assert len(ends) == len(place.feeds)
    assert [row["id"] for row in place.rows("SELECT * FROM items ORDER BY id")] == [r["id"] for r in before]
    assert len(place.reports("byte-exact")) == 2, "the first visit after a restore is reported"


def test_validators_are_those_of_the_last_document_that_could_be_stored(
    pipeline: Pipeline, server: FeedServer
) -> None:
    page = Answer(body=b"<html>down for maintenance</html>", etag='"down"')
    good = Answer(body=rss("a"), etag='"good"')
    pipeline.register(server.route("127.0.0.2", "/feed", good, page), "one")
    pipeline.register(server.route("127.0.0.3", "/feed", page), "never")
    pipeline.poll(all_feeds=True)
    pipeline.clock.turn(hours=3)
    pipeline.poll(all_feeds=True)
    before = {id: pipeline.feed(id) for id in ("one", "never")}
    drop_database(pipeline)
    result = restored(pipeline)
    assert result.is_whole
    assert result.backups_without_feed == 2
    for id, row in before.items():
        now = pipeline.feed(id)
        names = (
            "last_etag",
            "content_hash",
            "failed_hash",
            "last_error_kind",
            "last_success_at",
        )
        assert {name: now[name] for name in names} == {name: row[name] for name in names}
        assert "web page, not a feed" in now["last_error"]
    server.requests.clear()
    pipeline.clock.turn(hours=3)
    pipeline.poll(all_feeds=True)
    assert len(pipeline.backups("one")) == 2, "the same bad bytes are not backed up again"
    headers = {request.host: request.headers for request in server.requests}
    assert headers["127.0.0.2"]["if-none-match"] == '"good"'
    assert "if-none-match" not in headers["127.0.0.3"]


@pytest.mark.slow
def test_feeds_that_left_the_registry_come_back_unregistered(place: Pipeline, server: FeedServer) -> None:
    changing(place, server)
    place.poll(all_feeds=True)
    before = collected(place)
    gone = place.feeds.pop(0)
    place.write_registry()
    drop_database(place)
    result = restored(place)
    assert (result.is_whole, result.unregistered) == (True, ["growing"])
    assert collected(place) == before
    row = place.feed("growing")
    assert (row["registered"], row["url"], row["host"], row["title"]) == (
        0,
        gone["url"],
        "127.0.0.40",
        "A feed",
    )
    server.requests.clear()
    place.clock.turn(hours=3)
    place.poll(all_feeds=True)
    assert "127.0.0.40" not in {request.host for request in server.requests}

    place.feeds.append(gone)
    place.write_registry()
    server.requests.clear()
    place.poll("growing")
    [request] = server.requests
    assert request.headers["if-none-match"] == etag_of(rss(*"abc", image="http://i.example"))


@pytest.mark.slow
@pytest.mark.parametrize("registry", [None, "feeds: [{url: 7"], ids=["missing", "broken"])
def test_without_a_registry_all_comes_from_the_objects_and_that_is_said(
    registry: str | None, pipeline: Pipeline, server: FeedServer
) -> None:
    changing(pipeline, server)
    pipeline.poll(all_feeds=True)
    before = collected(pipeline)
    drop_database(pipeline)
    if registry is None:
        pipeline.settings.feeds_file.unlink()
    else:
        pipeline.settings.feeds_file.write_text(registry)
    result = restored(pipeline)
    assert not result.is_whole
    assert "feeds.yaml" in str(result.registry_error)
    assert len(result.unregistered) == 5
    assert collected(pipeline) == before

    pipeline.write_registry()
    again = restored(pipeline)
    assert (again.is_whole, again.items_new, again.unregistered) == (True, 0, [])
    assert [row["registered"] for row in pipeline.rows("SELECT registered FROM feeds")] == [1] * 5
    assert collected(pipeline) == before


def test_two_feeds_of_one_url_are_both_kept_and_distinguished(pipeline: Pipeline, server: FeedServer) -> None:
    url = server.route("127.0.0.2", "/feed", Answer(body=rss("a")))
    pipeline.register(url, "old")
    pipeline.poll(all_feeds=True)
    drop_database(pipeline)
    pipeline.feeds[:] = []
    pipeline.register(url, "new")
    pipeline.poll(all_feeds=True)
    drop_database(pipeline)
    result = restored(pipeline)
    assert result.is_whole
    assert {row["id"]: row["url"] for row in pipeline.rows("SELECT id, url FROM feeds")} == {
        "new": url,
        "old": f"{url}#old",
    }
    [sentence] = result.renamed
    assert "rss-pipeline forget old" in sentence
    assert pipeline.guids("old") == pipeline.guids("new") == ["a"]


@pytest.mark.slow
def test_what_cannot_be_restored_is_named_and_stops_nothing(place: Pipeline, server: FeedServer) -> None:
    changing(place, server)
    _poll_over_time(place, 2)
    before = collected(place)
    body = rss("stray")
    place.objects.put("backups/growing/0.xml", body, content_type="text/xml")
    place.objects.put("backups/stranger/2026-03-01T00:00:00Z.xml", body, content_type="text/xml")
    place.objects.put("backups/No Feed/1.xml", body, content_type="text/xml")
    place.objects.put("backups/stray.xml", body, content_type="text/xml")
    drop_database(place)
    result = restored(place)
    assert not result.is_whole
    assert [(each.backup_key, each.kind) for each in result.problems] == [
        ("backups/growing/0.xml", "unreadable")
    ]
    assert {name for name, _ in result.lost_feeds} == {
        "stranger",
        "backups/No Feed/1.xml",
        "backups/stray.xml",
    }
    assert all(reason for _, reason in result.lost_feeds)
    lost = result.as_json()["lost_feeds"]
    assert [each["feed_id"] for each in lost if "feed_id" in each] == ["stranger"]
    assert {each["backup_key"] for each in lost if "backup_key" in each} == {
        "backups/No Feed/1.xml",
        "backups/stray.xml",
    }
    assert not {"troubles", "stood"} & set(result.as_json())
    assert collected(place) == before


@pytest.mark.slow
def test_restore_on_a_full_database_changes_nothing(place: Pipeline, server: FeedServer) -> None:
    _register_documents(place, server)
    changing(place, server)
    _poll_over_time(place)
    before = all_rows(place)
    result = restored(place)
    assert (result.is_whole, result.items_new, result.with_state, result.images_adopted) == (True, 0, 0, 0)
    assert all_rows(place) == before


@pytest.mark.slow
def test_what_was_polled_meanwhile_stays_and_the_rest_comes_in(
    pipeline: Pipeline, server: FeedServer
) -> None:
    changing(pipeline, server)
    _poll_over_time(pipeline, 2)
    old = {row["id"]: row for row in pipeline.items("growing")}
    drop_database(pipeline)
    pipeline.poll("growing")
    polled = pipeline.feed("growing")
    assert restored(pipeline).is_whole
    assert pipeline.feed("growing") == polled, "its own validators, counts and schedule stand"
    now = {row["id"]: row for row in pipeline.items("growing")}
    assert set(now) > set(old)
    lost = [row for id, row in old.items() if row["guid"] in {"b", "c"}]
    again = {"images_extracted_at": "", "arrived": 0}
    for row in lost:
        assert {**now[row["id"]], **again} == {**row, **again}


# Images


def _archive(pipeline: Pipeline) -> list[dict[str, Any]]:
    """Put an object for every task but the last, as a download does, and say so in its row."""
    tasks = pipeline.rows(
        """SELECT t.id, t.position, items.guid, items.feed_id FROM image_tasks AS t
        JOIN items ON items.id = t.item_id ORDER BY t.id"""
    )
    for task in tasks[:-1]:
        folder = hashlib.md5(task["guid"].encode(), usedforsecurity=False).hexdigest()[:8]
        key = f"images/{task['feed_id']}/{folder}/{int(task['position'])}.png"
        body = b"\x89PNG" + task["id"].encode()
        pipeline.objects.put(key, body, content_type="image/png", metadata={"task-id": task["id"]})
        pipeline.database.query(
            "UPDATE image_tasks SET status = 'success', r2_key = ?, bytes = ? WHERE id = ?",
            [key, len(body), task["id"]],
        )
    return tasks


@pytest.mark.slow
@EVERYWHERE
def test_images_that_are_there_are_adopted_and_orphans_counted(place: Pipeline, server: FeedServer) -> None:
    changing(place, server)
    _poll_over_time(place)
    tasks = _archive(place)
    assert len(tasks) > 2
    before = collected(place)
    stray = {"no metadata": {}, "another task": {"task-id": "f" * 32}, "twice": {"task-id": tasks[0]["id"]}}
    for number, metadata in enumerate(stray.values()):
        place.objects.put(
            f"images/growing/ffffffff/{number}.png", b"x", content_type="image/png", metadata=metadata
        )
    place.objects.put(
        "images/nobody/00000000/0.png", b"x", content_type="image/png", metadata={"task-id": "1"}
    )
    drop_database(place)

    result = restored(place)
    assert (result.images_adopted, result.images_orphaned, result.images_known) == (len(tasks) - 1, 4, 0)
    assert collected(place) == before
    assert place.rows("SELECT count(*) AS n FROM image_tasks WHERE status = 'pending'")[0]["n"] == 1

    rows = all_rows(place)
    again = restored(place)
    assert (again.images_adopted, again.images_orphaned, again.images_known) == (0, 4, len(tasks) - 1)
    assert all_rows(place) == rows


def test_downloaded_images_are_not_requested_again(place: Pipeline, server: FeedServer) -> None:
    place.set(image_host_delay_seconds=0.0)
    host = "127.0.0.80"
    for name in ("a", "b"):
        server.route(host, f"/{name}.png", Answer(body=png(ord(name)), headers={"Content-Type": "image/png"}))
    server.route(host, "/c.png", Answer(status=404))
    body = rss(*"abc", image=server.url(host, ""))
    place.register(server.route("127.0.0.2", "/feed", Answer(body=body, etag='"1"')), "one")
    place.poll()
    place.download()
    before = place.rows(
        "SELECT id, r2_key, bytes, width, position FROM image_tasks WHERE status = 'success' ORDER BY id"
    )
    assert sorted(row["width"] for row in before) == [ord("a"), ord("b")]
    drop_database(place)

    assert restored(place).images_adopted == 2
    server.requests.clear()
    place.download()
    assert [request.target for request in server.requests if request.host == host] == ["/c.png"]
    after = place.rows(
        "SELECT id, r2_key, bytes, width, position FROM image_tasks WHERE status = 'success' ORDER BY id"
    )
    assert after == before


def test_an_image_that_is_being_downloaded_is_left_to_its_run(pipeline: Pipeline, server: FeedServer) -> None:
    changing(pipeline, server)
    pipeline.poll(all_feeds=True)
    _archive(pipeline)
    pipeline.database.query("UPDATE image_tasks SET status = 'pending', r2_key = NULL, lease_token = 'x'")
    before = pipeline.rows("SELECT * FROM image_tasks ORDER BY id")
    assert restored(pipeline).images_adopted == 0
    assert pipeline.rows("SELECT * FROM image_tasks ORDER BY id") == before


# Killed half-way

PLACES = [
    ("find_backups",),
    ("feeds",),
    ("parse",),
    ("parse", "3"),
    ("store",),
    ("store", "1"),
    ("store", "6"),
    ("extract_images",),
    ("extract_images", "2"),
    ("feeds", "2"),
    ("images",),
    ("images", "1"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "place",
    [pytest.param(place, marks=() if len(place) == 1 else pytest.mark.soak) for place in PLACES],
    ids=" ".join,
)
def test_a_restore_killed_anywhere_is_completed_by_the_next_one(
    place: tuple[str, ...], tmp_path: Path, pipeline: Pipeline, server: FeedServer, prepared: Prepared
) -> None:
    changing(pipeline, server)
    relative = rss("r").replace(
        b"Text of", b"&lt;img src='/relative.png'&gt;".join([b"<img src='/x.png'>", b""])
    )
    pipeline.register(server.route("127.0.0.70", "/feed", Answer(body=relative, etag='"r"')), "relative")
    _poll_over_time(pipeline)
    _archive(pipeline)
    left = pipeline.feeds.pop(0)
    pipeline.write_registry()
    before = collected(pipeline)
    stood = pipeline.rows(f"SELECT id, {VALIDATORS} FROM feeds ORDER BY id")
    drop_database(pipeline)

    later = {**os.environ, "RESTORE_HOURS": "20"}
    module = "rss_pipeline_tests.features.replay.dying_restore"
    died = prepared.start(module, str(tmp_path), *place, environment=later)
    assert died.wait() == -signal.SIGKILL
    for row in pipeline.rows("SELECT id, content_hash FROM feeds"):
        if row["content_hash"] is not None:
            expected = [item["id"] for item in before["items"] if item["feed_id"] == row["id"]]
            assert [item["id"] for item in pipeline.items(row["id"])] == expected, "validators before items"

    pipeline.clock.turn(hours=30)
    assert restored(pipeline).is_whole
    assert collected(pipeline) == before
    assert pipeline.rows(f"SELECT id, {VALIDATORS} FROM feeds ORDER BY id") == stood
    assert pipeline.feed(left["id"])["registered"] == 0
    assert pipeline.rows("SELECT id FROM items WHERE images_extracted_at IS NULL") == []
    assert pipeline.rows("SELECT id FROM feeds WHERE images_pending = 1") == []
