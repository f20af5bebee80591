"""Items with guids that are rewritten, in a replay and after a restore: nothing comes twice."""

from dataclasses import replace

import pytest

from rss_pipeline.storage.feeds import forget
from rss_pipeline_tests.features.replay.replays import collected, drop_database, replayed, restored
from rss_pipeline_tests.pipeline.visits.test_rewritten_guids import Entry, Publisher, entries, feed, retire
from rss_pipeline_tests.support.checked import checked
from rss_pipeline_tests.support.pipeline import NOON, Pipeline
from rss_pipeline_tests.support.places import EVERYWHERE
from rss_pipeline_tests.support.server import FeedServer

__all__ = ["feed"]


@EVERYWHERE
@pytest.mark.slow
def test_items_with_rewritten_guids_come_once_wherever_they_are_stored(
    place: Pipeline, server: FeedServer
) -> None:
    feed = Publisher(place, server)
    before = feed.then(entries(1, 2, 3, 4, 5))
    rows = place.items("feed")
    assert feed.then(entries(6, 5, 4, 3, 2, guids="new")) == sorted([*before, "new-6"])
    assert [row for row in place.items("feed") if row["guid"] in before] == rows, "they are as they were"
    assert place.reports("feed")[0]["items_new"] == 1
    assert feed.then(entries(7, 6, guids="new")) == sorted([*before, "new-6", "new-7"]), "as it goes on"
    assert feed.then(entries(8, 5, 1, guids="old")) == sorted([*before, "new-6", "new-7", "old-8"])
    retire(place, "old-4")
    rest = sorted({*before, "new-6", "new-7", "old-8"} - {"old-4"})
    assert feed.then(entries(7, 4, guids="new")) == rest, "what retention removed stays away"
    for dry_run in (True, False):
        [result] = replayed(place, dry_run=dry_run)
        assert (result.items_new, result.items_gone) == (0, 0)
    assert feed.guids() == rest
    kept = collected(place)
    drop_database(place)
    restored(place)
    assert sorted([*rest, "old-4"]) == feed.guids(), "a restore knows nothing of retention"
    assert [row for row in collected(place)["items"] if row["guid"] != "old-4"] == kept["items"]
    assert feed.then(entries(7, 6, 5, guids="new")) == sorted([*rest, "old-4"])
    forget.begin_forget(place.database, "feed")
    assert place.rows("SELECT * FROM item_aliases") == []


def test_what_retention_removed_before_its_guid_was_rewritten_stays_away(
    place: Pipeline, server: FeedServer
) -> None:
    feed = Publisher(place, server)
    plain = [replace(item, link=None) for item in entries(7, 8, 9)]
    feed.then([*entries(*range(1, 7)), *plain])
    for guid in ("old-1", "old-2", "old-3", "old-9"):
        retire(place, guid)
    rest = feed.guids()
    rewritten = [*entries(*range(1, 7), guids="new"), *(replace(i, guid=f"new{i.day}") for i in plain)]
    assert feed.then(rewritten) == rest
    assert feed.then(rewritten[:2]) == rest
    replayed(place)
    assert feed.guids() == rest


def test_a_feed_that_makes_new_guids_at_every_visit_is_known_as_such(feed: Publisher) -> None:
    before = feed.then(entries(*range(1, 9)))
    feed.then(entries(*range(1, 9), guids="moved"))
    assert feed.warning_kinds() == "", "once is a publisher's new software"
    for visit in range(10):
        assert feed.then(entries(*range(1, 9), guids=f"visit{visit}")) == before
        assert feed.warning_kinds() == '["unstable_guids"]'
        assert "8 of 8 items have new guids again" in feed.pipeline.feed("feed")["warning"]
    assert len(feed.pipeline.rows("SELECT * FROM item_aliases")) <= 3 * 8, "they do not pile up"
    [check] = checked({"guids_stable"}, feed.pipeline.database, now=NOON)
    assert [row["feed"] for row in check.rows] == ["feed"]
    [result] = replayed(feed.pipeline)
    assert result.items_new == 0
    drop_database(feed.pipeline)
    restored(feed.pipeline)
    assert feed.guids() == before
    assert feed.warning_kinds() == '["unstable_guids"]', "also after a restore"
    assert feed.then(entries(*range(1, 10), guids="visit9")) == sorted([*before, "visit9-9"])
    assert feed.warning_kinds() == "", "it stopped"


def test_a_window_that_moves_on_while_its_guids_change_brings_nothing_twice(feed: Publisher) -> None:
    """Each document has some items with guids of its kind that are kept, or were never seen."""
    stored: list[str] = []
    for visit in range(6):
        stored = feed.then(entries(*range(1 + visit, 9 + visit), guids=f"visit{visit}"))
    assert len(stored) == 13
    for dry_run in (True, False):
        assert replayed(feed.pipeline, dry_run=dry_run)[0].items_new == 0
    back = entries(*range(5, 14), guids="visit0")
    assert feed.then(back) == stored, "four of nine guids are stored ones"
    another = replace(entries(13, guids="x")[0], day=20)
    undated = replace(entries(12, guids="x")[0], day=None)
    assert feed.then([*back, another, undated]) == sorted([*stored, "x-12", "x-13"]), "a link alone is not it"


def test_a_window_of_undated_items_with_new_guids_at_every_visit_brings_nothing_twice(
    feed: Publisher,
) -> None:
    """Its guids are never seen again, and an item keeps the newest three of them."""

    def undated(*numbers: int, visit: int) -> list[Entry]:
        return entries(*numbers, guids=f"visit{visit}", day=None)

    stored: list[str] = []
    for visit in range(8):
        stored = feed.then(undated(*range(1 + 2 * visit, 13 + 2 * visit), visit=visit))
    assert len(stored) == 26
    for dry_run in (True, False):
        assert replayed(feed.pipeline, dry_run=dry_run)[0].items_new == 0
    assert len(feed.then(undated(*range(23, 33), visit=8))) == 32, "four of ten are stored ones"
    again = entries(32, guids="new", day=None)
    assert len(feed.then([*undated(*range(23, 32), visit=8), *again])) == 33, "its other guids are known"


def test_a_dry_run_counts_as_the_replay_does(feed: Publisher) -> None:
    feed.then(entries(1, 2, 3, 4))
    feed.then(entries(5, 4, 3, 2, 1, guids="new"))
    feed.then(entries(6, 5, guids="new"))
    feed.pipeline.database.query("DELETE FROM item_aliases")
    feed.pipeline.database.query("DELETE FROM items")
    counts = [replayed(feed.pipeline, dry_run=dry_run)[0].items_new for dry_run in (True, False)]
    assert counts == [6, 6]
    assert feed.guids() == ["new-5", "new-6", *(f"old-{n}" for n in range(1, 5))]
