"""Feeds that their last subscriber left: no longer visited, and removed by the clean after a week."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest

from rss_pipeline.storage.feeds import forget
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.subscriptions import subscriptions
from rss_pipeline.storage.subscriptions.subscriptions import Wanted
from rss_pipeline_tests.features.retention.archive import cleaned, is_sound, let_visited, stock
from rss_pipeline_tests.reader.accounts.signed_in import add_user
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import FeedServer


class Denying:
    """The object store, which deletes nothing."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def delete_many(self, keys: Iterable[str]) -> dict[str, str]:
        return dict.fromkeys(keys, "AccessDenied")


WEEK = timedelta(days=7)


@pytest.fixture
def ann(pipeline: Pipeline, server: FeedServer) -> str:
    """A user who was the only one to have the feed `one`, which feeds.yaml had as `two`, too."""
    stock(pipeline, server)
    ann = add_user(pipeline.database, "ann", clock=pipeline.clock)
    pipeline.database.query("UPDATE feeds SET allow_private = 0, private_hosts = NULL")
    subscribe(pipeline, ann)
    pipeline.feeds = [feed for feed in pipeline.feeds if feed["id"] != "one"]
    pipeline.database.query("UPDATE feeds SET listed = 0 WHERE id = 'one'")
    pipeline.write_registry()
    pipeline.sync()
    assert pipeline.feed("one")["registered"] == 1
    return ann


def subscribe(pipeline: Pipeline, user: str) -> None:
    pipeline.database.batch(subscriptions.subscribe(user, [Wanted(feed_id="one")], at=pipeline.clock()))


def leave(pipeline: Pipeline, user: str) -> None:
    pipeline.database.batch(subscriptions.unsubscribe(user, ["one"], at=pipeline.clock()))


def turn(pipeline: Pipeline, by: timedelta) -> None:
    pipeline.clock.turn(seconds=by.total_seconds())
    let_visited(pipeline, pipeline.clock())


def keys(pipeline: Pipeline, prefix: str) -> list[str]:
    return [info.key for info in pipeline.objects.list(prefix)]


def test_a_feed_without_subscribers_is_removed_after_a_week_with_its_items_and_images(
    pipeline: Pipeline, ann: str
) -> None:
    leave(pipeline, ann)
    assert pipeline.feed("one")["registered"] == 0
    turn(pipeline, WEEK - timedelta(seconds=1))
    assert cleaned(pipeline).feeds == 0
    left = len(pipeline.guids("one"))
    turn(pipeline, timedelta(seconds=1))
    would = cleaned(pipeline, dry_run=True)
    assert (would.feeds, len(pipeline.guids("one"))) == (1, left)
    result = cleaned(pipeline)
    assert (result.feeds, result.figures()["feeds_removed"]) == (1, 1)
    assert result.by_feed["one"] == would.by_feed["one"]
    assert (result.by_feed["one"].items, result.by_feed["one"].images) == (left, 2 * left)
    assert (pipeline.guids("one"), keys(pipeline, "images/one/")) == ([], [])
    assert keys(pipeline, "backups/one/"), "as after forget"
    assert pipeline.guids("two")
    is_sound(pipeline)
    assert pipeline.sync().forgotten == ("one",)
    assert cleaned(pipeline).feeds == 0


def test_who_subscribes_within_the_week_finds_everything(pipeline: Pipeline, ann: str) -> None:
    leave(pipeline, ann)
    turn(pipeline, WEEK - timedelta(days=1))
    subscribe(pipeline, ann)
    turn(pipeline, WEEK)
    assert cleaned(pipeline).feeds == 0
    assert pipeline.guids("one")
    assert keys(pipeline, "images/one/")


def test_who_subscribes_while_it_is_removed_keeps_the_items(pipeline: Pipeline, ann: str) -> None:
    leave(pipeline, ann)
    turn(pipeline, WEEK)
    cleaned(pipeline)  # Items past their age.
    subscribe(pipeline, ann)
    assert forget.begin_removal_of_unused(pipeline.database, "one", now=pipeline.clock()) is None
    is_sound(pipeline)


def test_a_feed_that_was_taken_out_of_feeds_yaml_is_not_unused(pipeline: Pipeline, ann: str) -> None:
    pipeline.feeds = []
    pipeline.write_registry()
    pipeline.sync()
    turn(pipeline, 2 * WEEK)
    assert cleaned(pipeline).feeds == 0
    assert pipeline.guids("two")


def test_images_that_the_store_does_not_delete_keep_the_feed_for_the_next_clean(
    pipeline: Pipeline, ann: str
) -> None:
    leave(pipeline, ann)
    turn(pipeline, WEEK)
    refused = cleaned(pipeline, objects=Denying(pipeline.objects))
    assert (refused.feeds, refused.is_unfinished) == (0, True)
    assert pipeline.guids("one")
    assert cleaned(pipeline).feeds == 1
    assert keys(pipeline, "images/one/") == []
