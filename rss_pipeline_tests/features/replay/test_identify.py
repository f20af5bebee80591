"""Items without guid, stored by this version or an earlier one, in a replay, a repair and after a restore."""

import pytest

from rss_pipeline_tests.features.replay.replays import drop_database, replayed, restored
from rss_pipeline_tests.pipeline.visits.test_identify import (
    FIRST,
    NEWS,
    PAGE,
    SECOND,
    Serves,
    as_by_an_earlier_version,
    document,
    md5,
    of_rdf,
    retire,
)
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import FeedServer


@pytest.mark.parametrize("by", ["visit", "replay"])
def test_what_an_earlier_version_stored_of_a_link_stays_and_the_others_come(
    by: str, place: Pipeline, server: FeedServer
) -> None:
    feed = Serves(place, server, document(*NEWS))
    first = as_by_an_earlier_version(place)
    assert feed.stored() == {first: PAGE}
    [before] = place.items("feed")
    if by == "visit":
        feed.then(*NEWS[::-1])
    else:
        [dry] = replayed(place, dry_run=True)
        [done] = replayed(place)
        assert dry.counts["items_new"] == done.counts["items_new"] == 19
        assert done.counts["items_differ"] == done.counts["items_gone"] == 0
    assert feed.stored() == {title: md5(title + date) for title, date in NEWS} | {first: PAGE}
    assert [row for row in place.items("feed") if row["guid"] == PAGE] == [before]
    [again] = replayed(place, repair=True)
    assert (again.counts["items_new"], again.counts["items_gone"]) == (0, 0)
    assert len(place.tasks()) == 20, "those of the new items, and the one that the repair found"


def test_a_restore_gives_back_the_guids_of_an_earlier_version(pipeline: Pipeline, server: FeedServer) -> None:
    feed = Serves(pipeline, server, document(*NEWS))
    as_by_an_earlier_version(pipeline)
    before = feed.then(("News 21", "21 Jan 2026"), *NEWS)
    drop_database(pipeline)
    restored(pipeline)
    assert feed.stored() == before


def test_what_was_stored_by_an_rdf_about_that_is_a_link_stays_and_the_others_come(
    pipeline: Pipeline, server: FeedServer
) -> None:
    feed = Serves(pipeline, server, of_rdf(*NEWS))
    assert feed.stored() == {title: md5(title + date) for title, date in NEWS}
    first = as_by_an_earlier_version(pipeline, "shared_abouts", "guid")
    [before] = pipeline.items("feed")
    [dry] = replayed(pipeline, dry_run=True)
    assert (dry.items_new, dry.items_gone) == (19, 0)
    found = feed.then_body(of_rdf(("News 21", "21 Jan 2026"), *NEWS[::-1]))
    assert len(found) == 21
    assert found[first] == PAGE
    assert [row for row in pipeline.items("feed") if row["guid"] == PAGE] == [before]
    assert feed.then_body(of_rdf(*[each for each in NEWS if each[0] == first])) == found, "alone"
    assert feed.then_body(of_rdf(NEWS[3])) == found, "another one alone"
    assert feed.then_body(of_rdf(*NEWS, ("News 21", "21 Jan 2026"))) == found
    [again] = replayed(pipeline)
    assert (again.items_new, again.items_gone) == (0, 0)
    drop_database(pipeline)
    restored(pipeline)
    assert feed.stored() == found


def test_items_that_each_have_their_own_rdf_about_keep_it(pipeline: Pipeline, server: FeedServer) -> None:
    one, two = of_rdf(("a", FIRST), link=f"{PAGE}/1"), of_rdf(("b", FIRST), link=f"{PAGE}/2")
    feed = Serves(pipeline, server, one)
    assert feed.then_body(two) == {"a": f"{PAGE}/1", "b": f"{PAGE}/2"}
    assert feed.then_body(one) == {"a": f"{PAGE}/1", "b": f"{PAGE}/2"}
    assert {row["guid_source"] for row in pipeline.items("feed")} == {"guid"}
    assert [each.items_differ for each in replayed(pipeline, repair=True)] == [0]


def test_a_backup_with_another_reading_of_a_title_is_repaired_and_doubles_nothing(
    pipeline: Pipeline, server: FeedServer
) -> None:
    feed = Serves(pipeline, server, document(("b", FIRST), ("não", FIRST)))
    as_by_an_earlier_version(pipeline)
    pipeline.database.query("UPDATE items SET title = 'năo'")
    replayed(pipeline, repair=True)
    assert feed.stored() == {"não": PAGE, "b": md5("b" + FIRST)}


def test_a_retired_item_does_not_come_back_under_its_other_identity(
    place: Pipeline, server: FeedServer
) -> None:
    feed = Serves(place, server, document(("a", FIRST)))
    feed.then(("b", SECOND), ("a", FIRST))
    retire(place, PAGE)
    assert list(feed.then(("b", SECOND), ("a", FIRST))) == ["b"]
    retire(place, md5("b" + SECOND))
    assert feed.then(("b", SECOND)) == {}, "alone it would have its link"
    assert feed.then(("b", SECOND), ("a", FIRST)) == {}
    replayed(place)
    assert feed.stored() == {}
    place.clock.turn(days=3)
    assert feed.then(("c", "4 Mar 2026"), ("b", SECOND), ("a", FIRST)) == {"c": md5("c4 Mar 2026")}
    assert place.feed("feed")["warning"] is None
