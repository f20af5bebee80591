"""Partition keys of the registry's feeds, and secrets of the registry in a run.

What becomes of the feeds table is in pipeline/registry/test_sync.py.
"""

import base64
import os
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.test_utils import create_run_for_test

from rss_pipeline.collector.models.clock import instant
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer

HOST = "127.0.0.2"


def keys(pipeline: DagsterPipeline) -> list[str]:
    return list(pipeline.instance.get_dynamic_partitions("feeds"))


def sentence_of(result: Any) -> str:
    """The message of a failed run."""
    (failure,) = [event for event in result.all_node_events if event.is_step_failure]
    return str(failure.event_specific_data.error)


def test_a_new_url_is_a_row_that_is_due_now_and_a_partition_key(pipeline: DagsterPipeline) -> None:
    id = pipeline.register("http://example.com/feed", "feed", title="Mine", interval="2h")
    synced = pipeline.sync()
    assert ([spec.id for spec in synced.changes.added], pipeline.keys_added) == ([id], 1)
    feed = pipeline.feed(id)
    assert (feed["url"], feed["title"], feed["interval"]) == ("http://example.com/feed", "Mine", 7200)
    assert feed["next_fetch_at"] == feed["created_at"] == instant(pipeline.clock())
    assert keys(pipeline) == [id]

    again = pipeline.sync()
    assert (again.changes.is_empty, pipeline.keys_added) == (True, 0)


def test_a_key_that_a_crash_kept_from_being_added_is_added_by_the_next_sync(
    pipeline: DagsterPipeline,
) -> None:
    """Rows first, then keys: in between the process may die."""
    id = pipeline.register("http://example.com/feed", "feed")
    pipeline.sync()
    pipeline.instance.delete_dynamic_partition("feeds", id)
    pipeline.sync()
    assert pipeline.keys_added == 1
    assert keys(pipeline) == [id]


def test_a_feed_that_is_gone_keeps_its_key_and_its_place(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    for n, id in enumerate(("first", "second", "third"), start=2):
        pipeline.register(server.route(f"127.0.0.{n}", "/feed", Answer(body=rss(id), etag='"1"')), id)
    pipeline.poll()
    gone = pipeline.feeds.pop(0)
    pipeline.write_registry()
    pipeline.poll(all_feeds=True)
    assert keys(pipeline) == ["first", "second", "third"]
    result = pipeline.materialize("first")
    assert not result.success
    assert "no longer in feeds.yaml, so it is not fetched; add it there again to do so" in sentence_of(result)
    assert len(pipeline.events("first")) == 1
    pipeline.feeds.append(gone)
    pipeline.write_registry()
    pipeline.sync()
    assert keys(pipeline) == ["first", "second", "third"], "a key keeps its place"


def test_a_feed_that_is_gone_and_never_brought_anything_has_neither_row_nor_key(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    pipeline.register(server.route(HOST, "/fine", Answer(body=rss("a"))), "fine")
    dead = {
        "not-found": server.route(HOST, "/404", Answer(status=404)),
        "unanswered": "http://127.0.0.2:1/feed",
    }
    for id, url in dead.items():
        pipeline.register(url, id)
    pipeline.visit()
    pipeline.feeds = pipeline.feeds[:1]
    pipeline.write_registry()
    synced = pipeline.sync(yes=True)
    assert (synced.removed, keys(pipeline)) == (("not-found", "unanswered"), ["fine"])
    assert pipeline.rows("SELECT id FROM feeds") == [{"id": "fine"}]
    assert str(synced).endswith("2 no longer scheduled, 2 removed (nothing was collected)")
    again = pipeline.sync()
    assert (again.removed, again.forgotten) == ((), ())
    assert "removed" not in str(again)


def test_the_removal_waits_for_the_end_of_a_backfill_and_a_feed_added_again_begins_anew(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    pipeline.register(server.route(HOST, "/fine", Answer(body=rss("a"))), "fine")
    pipeline.register(server.route(HOST, "/404", Answer(status=404)), "dead")
    pipeline.visit()
    dead = pipeline.feeds.pop()
    pipeline.write_registry()
    run = create_run_for_test(pipeline.instance, job_name="__ASSET_JOB", status=dg.DagsterRunStatus.STARTED)
    assert pipeline.sync().removed == ("dead",)
    assert keys(pipeline) == ["fine", "dead"], "a key that is deleted under a run fails that run"
    pipeline.feeds.append(dead)
    pipeline.write_registry()
    pipeline.sync()
    pipeline.instance.report_run_canceled(run)
    pipeline.sync()
    assert keys(pipeline) == ["fine", "dead"]
    feed = pipeline.feed("dead")
    assert (feed["registered"], feed["forgotten"], feed["consecutive_failures"]) == (1, 0, 0)


def test_keys_are_in_the_order_of_the_file_and_new_ones_come_last(pipeline: DagsterPipeline) -> None:
    for id in ("m", "z", "a"):
        pipeline.register(f"http://example.com/{id}", id)
    pipeline.sync()
    pipeline.feeds.insert(0, {"url": "http://example.com/new", "id": "new"})
    pipeline.feeds.reverse()
    pipeline.write_registry()
    pipeline.sync()
    assert keys(pipeline) == ["m", "z", "a", "new"]


def test_twelve_hundred_feeds_sync_and_sync_again(pipeline: DagsterPipeline) -> None:
    """SQLite's instance storage binds a variable a key, the database takes a megabyte a parameter."""
    ids = [f"feed-{n:04}" for n in range(1200)]
    pipeline.feeds = [
        {"url": f"http://example.com/{id}/{'p' * 400}", "id": id, "title": "t" * 500} for id in ids
    ]
    pipeline.write_registry()
    pipeline.sync()
    assert pipeline.keys_added == 1200
    assert keys(pipeline) == ids
    assert len(pipeline.rows("SELECT id FROM feeds WHERE registered = 1")) == 1200
    assert pipeline.sync().changes.is_empty


PASSWORD = "correct-horse-battery"
TOKEN = "staple-0123456789"
SECRETS = [
    PASSWORD.encode(),
    TOKEN.encode(),
    base64.b64encode(f"me:{PASSWORD}".encode()),
]


def _leaks(folder: Path) -> list[str]:
    """Files below a folder that hold a secret."""
    return [
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and any(secret in path.read_bytes() for secret in SECRETS)
    ]


def test_a_run_by_hand_writes_no_secret_either(
    pipeline: DagsterPipeline, server: FeedServer, tmp_path: Path
) -> None:
    url = server.route(HOST, "/refused", Answer(status=401))
    id = pipeline.register(
        url.replace("//", f"//me:{PASSWORD}@"), "refused", headers={"X-Token": "${HEADER}"}
    )
    os.environ["HEADER"] = TOKEN
    try:
        pipeline.sync()
        result = pipeline.materialize(id)
    finally:
        del os.environ["HEADER"]
    assert server.requests[-1].headers["x-token"] == TOKEN
    assert not any(secret.decode() in sentence_of(result) for secret in SECRETS)
    pipeline.settings.feeds_file.unlink()
    assert _leaks(tmp_path) == []
