"""Backups read again: what is missing comes in as it would have come, and nothing else is touched."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rss_pipeline.errors import RssPipelineError
from rss_pipeline.features.replay import steps as open_backups
from rss_pipeline.features.replay.service import one_feed
from rss_pipeline_tests.features.replay.replays import (
    all_rows,
    collected,
    poll_over_time,
    replayed,
    replays_of,
    serve,
)
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import FeedServer


@pytest.mark.slow
def test_replay_of_a_full_table_changes_nothing(place: Pipeline, server: FeedServer) -> None:
    serve(place, server, "one", rss("a", "b", image="http://i.example"), rss("b", "c"), rss("d"))
    serve(place, server, "two", b"<rss><channel><title>T</title><item><guid>1</guid></item></channel></rss>")
    serve(place, server, "page", b"<html>no feed</html>")
    poll_over_time(place, 3)
    rows = all_rows(place)
    for dry_run, repair in ((False, False), (True, False), (False, True)):
        done = replayed(place, dry_run=dry_run, repair=repair)
        assert {each.feed.id: (each.backups, each.items_new, each.findings_in_all) for each in done} == {
            "one": (3, 0, 0),
            "two": (1, 0, 0),
            "page": (1, 0, 0),
        }
        assert all_rows(place) == rows


def test_an_emptied_table_is_filled_in_time_order(place: Pipeline, server: FeedServer) -> None:
    serve(place, server, "one", rss("a", "b", image="http://i.example"), rss("c", "b"), rss("a", "d"))
    poll_over_time(place, 3)
    before, feed = collected(place), place.feed("one")
    for table in ("image_tasks", "items"):
        place.database.query(f"DELETE FROM {table}")
    [one] = replayed(place)
    assert (one.items_new, one.backups, one.replayed) == (4, 3, 3)
    assert collected(place) == before
    assert place.feed("one") == feed


def test_what_retention_removed_stays_away(pipeline: Pipeline, server: FeedServer) -> None:
    serve(pipeline, server, "one", rss("a", "b"))
    poll_over_time(pipeline, 1)
    pipeline.database.query("DELETE FROM items WHERE guid = 'a'")
    pipeline.database.query(
        "INSERT INTO expired_items (feed_id, guid, expired_at) VALUES ('one', 'a', '2026-03-02T12:00:00Z')"
    )
    for dry_run in (True, False):
        [one] = replayed(pipeline, dry_run=dry_run)
        assert one.items_new == 0
    assert pipeline.guids("one") == ["b"]


def test_old_backups_are_read_with_the_item_key_of_their_time(pipeline: Pipeline, server: FeedServer) -> None:
    serve(pipeline, server, "one", rss("a"), rss("a", "b"))
    pipeline.poll(all_feeds=True)
    pipeline.feeds[0]["key"] = "link"
    pipeline.write_registry()
    pipeline.clock.turn(hours=3)
    pipeline.poll(all_feeds=True)
    before = pipeline.items("one")
    assert [row["guid"] for row in before] == ["a", "http://example.com/a", "http://example.com/b"]
    replayed(pipeline)
    assert pipeline.items("one") == before
    pipeline.database.query("DELETE FROM items")
    replayed(pipeline)
    again = {"images_extracted_at": "", "arrived": 0}
    assert [{**row, **again} for row in pipeline.items("one")] == [{**row, **again} for row in before]


@pytest.mark.slow
def test_many_backups_of_one_feed_cost_one_insert_an_item_and_little_room(
    pipeline: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_backups, "SLICE_BACKUPS", 5)
    serve(pipeline, server, "one", *(rss(*map(str, range(n, n + 5))) for n in range(12)))
    serve(pipeline, server, "two", rss("z"))
    poll_over_time(pipeline, 12)
    before = collected(pipeline)
    pipeline.database.query("DELETE FROM items")
    sent: list[int] = []
    batch = pipeline.database.batch

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(pipeline.database, name)

        def batch(self, statements: Any) -> Any:
            sent.extend(
                len(json.loads(param))
                for statement in statements
                for param in statement.params
                if statement.sql.startswith("INSERT INTO items") and str(param).startswith("[[")
            )
            return batch(statements)

    most = 0

    class Looking:
        """Looks into the spool whenever a visit is done with a step."""

        def begin(self, step: str, total: int) -> None: ...

        def advance(self, step: str, by: int = 1) -> None:
            nonlocal most
            most = max(most, len(list(pipeline.settings.spool_path.glob("*/*"))))

    with pipeline.session(database=Counting(), progress=Looking()) as opened:
        done = list(replays_of(opened, ["one", "two"]))
    assert [each.items_new for each in done] == [16, 1]
    assert sum(sent) == 17
    assert 0 < most <= 2 * 5
    assert collected(pipeline) == before


def test_a_feed_that_is_not_there_is_reported_with_what_to_do(pipeline: Pipeline) -> None:
    with pytest.raises(RssPipelineError, match="rss-pipeline restore"):
        one_feed(pipeline.database, "unknown")


def test_a_feed_that_is_being_polled_is_replayed_beside(pipeline: Pipeline, server: FeedServer) -> None:
    serve(pipeline, server, "one", rss("a", "b"))
    poll_over_time(pipeline, 1)
    claim = pipeline.hold("one")
    pipeline.database.query("DELETE FROM items WHERE guid = 'b'")
    feed = pipeline.feed("one")
    replayed(pipeline, "one")
    assert pipeline.guids("one") == ["a", "b"]
    assert pipeline.feed("one") == feed
    assert feed["lease_token"] == claim.token


GUIDS = st.lists(st.sampled_from("abcdef"), min_size=0, max_size=5, unique=True)


@pytest.mark.slow
@given(documents=st.lists(GUIDS, min_size=1, max_size=5), kept=st.sets(st.sampled_from("abcdef")))
@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    derandomize=True,
)
def test_a_replay_gives_back_whatever_was_lost(
    documents: list[list[str]],
    kept: set[str],
    tmp_path_factory: pytest.TempPathFactory,
    server: FeedServer,
) -> None:
    pipeline = Pipeline(tmp_path_factory.mktemp("law"))
    serve(pipeline, server, "one", *(rss(*guids, image="http://i.example") for guids in documents))
    poll_over_time(pipeline, len(documents))
    before = collected(pipeline)
    for row in pipeline.rows("SELECT id, guid FROM items"):
        if row["guid"] not in kept:
            pipeline.database.query("DELETE FROM image_tasks WHERE item_id = ?", [row["id"]])
            pipeline.database.query("DELETE FROM items WHERE id = ?", [row["id"]])
    replayed(pipeline)
    assert collected(pipeline) == before
    rows = all_rows(pipeline)
    replayed(pipeline)
    assert all_rows(pipeline) == rows
    pipeline.close()
