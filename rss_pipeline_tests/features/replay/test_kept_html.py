"""HTML of stored items, before and after a replay or a repair."""

import pytest

from rss_pipeline.pipeline.session.renew_html import renew
from rss_pipeline_tests.features.replay.replays import replayed
from rss_pipeline_tests.pipeline.visits.test_kept_html import kept, poll, shown
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import FeedServer


@pytest.fixture
def repaired(pipeline: Pipeline, server: FeedServer) -> Pipeline:
    """A feed whose stored items read otherwise now than they do in their backup."""
    poll(pipeline, server, rss("a", "b", image="http://images.example"))
    pipeline.database.query("UPDATE items SET content_html = 'read wrongly', summary = NULL WHERE guid = 'a'")
    renewed(pipeline)
    return pipeline


def renewed(pipeline: Pipeline) -> None:
    pipeline.database.query("DELETE FROM item_html")
    assert renew(pipeline.database, is_over=lambda: False) == 2


def test_a_repair_replaces_html(repaired: Pipeline) -> None:
    assert shown(repaired, "a") == ["read wrongly"]
    repaired.clock.turn(hours=1)
    [one] = replayed(repaired, "feed", repair=True)
    assert one.items_repaired == 1
    assert kept(repaired) == ["a", "b"]
    repaired.database.query("UPDATE items SET content_html = 'another text'")
    assert shown(repaired, "a") == ['<p>Text of a</p><img src="http://images.example/a.png">']


def test_a_replay_without_repair_leaves_html_as_it_is(repaired: Pipeline) -> None:
    repaired.database.query("UPDATE items SET images_extracted_at = NULL")
    repaired.database.query("UPDATE feeds SET images_pending = 1")
    [one] = replayed(repaired, "feed")
    assert (one.items_new, one.items_repaired) == (0, 0)
    assert shown(repaired, "a") == ["read wrongly"]


def test_items_that_a_replay_brings_in_have_html(repaired: Pipeline) -> None:
    repaired.database.query(
        "DELETE FROM image_tasks WHERE item_id IN (SELECT id FROM items WHERE guid = 'b')"
    )
    repaired.database.query("DELETE FROM items WHERE guid = 'b'")
    repaired.database.query("DELETE FROM item_html")
    [one] = replayed(repaired, "feed")
    assert one.items_new == 1
    assert kept(repaired) == ["b"]
