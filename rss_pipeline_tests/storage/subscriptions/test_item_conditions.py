"""A condition that a feature puts on items holds alike in lists, counts, marks and what search shows."""

import random

import pytest

from rss_pipeline.storage.database import Database
from rss_pipeline.storage.subscriptions import item_lists, item_query
from rss_pipeline.storage.subscriptions.chosen import ALL, EVERYTHING, Chosen, Filter, Page, Scope, Shown
from rss_pipeline.storage.subscriptions.item_query import ORDERS, ItemCondition
from rss_pipeline.storage.subscriptions.item_states import mark_shown, note_reading_of_shown, star_items
from rss_pipeline.storage.subscriptions.undo import remember, undo
from rss_pipeline_tests.storage.subscriptions.readers import (
    arrive,
    chosen,
    guids,
    mark,
    numbers,
    subscribe,
    unread,
)
from rss_pipeline_tests.storage.values import HOUR, NOW

HIDDEN = """NOT EXISTS (SELECT 1 FROM items AS h INDEXED BY items_of_feed
  WHERE h.feed_id = {feed} AND h.arrived = {arrived} AND {user} = 'ann' AND h.guid LIKE 'hidden%')"""


@pytest.fixture
def reading(two: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    """Ann, for whom two items of six are hidden, and Bob, for whom none is."""
    monkeypatch.setattr(item_query, "conditions", lambda: (ItemCondition(sql=HIDDEN),))
    subscribe(two, "ann", "a", "b")
    subscribe(two, "bob", "a")
    arrive(two, "a", "1", "hidden 2", "3")
    arrive(two, "b", "hidden 4", "5", "6")
    return two


def test_lists_and_counts_leave_out_what_is_hidden_from_this_user(reading: Database) -> None:
    assert guids(reading, "ann", Filter()) == ["6", "5", "3", "1"]
    assert guids(reading, "bob", Filter()) == ["3", "hidden 2", "1"]
    assert unread(reading, "ann") == {"a": 2, "b": 2}
    assert unread(reading, "bob") == {"a": 3}
    for guid in ("hidden 2", "3"):
        reading.batch(star_items("ann", chosen(reading, "a", [guid]), at=NOW))
    *counts, of_feed = reading.batch(
        [
            item_query.count_items("ann"),
            item_query.count_all_starred("ann"),
            item_query.count_starred("ann", "a"),
            item_lists.read_feed_of_page("ann", "a", Filter(scope=Scope(feed_id="a"))),
        ]
    )
    assert [found.rows[0]["n"] for found in counts] == [4, 1, 1]
    assert of_feed.rows[0]["total"] == 2
    mark(reading, "ann", "a", ["1", "hidden 2"], is_read=True)
    for order in ORDERS:
        for is_read, listed in ((None, 4), (True, 1), (False, 3)):
            page = Page(limit=9, order=order)
            [found] = reading.batch([item_lists.list_items("ann", Filter(is_read=is_read), page)])
            assert len(found.rows) == listed, order


def test_a_mark_of_all_that_is_shown_leaves_what_is_hidden_unread(
    reading: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it is made a second time, and where the first one is undone."""
    shown = Shown(up_to=EVERYTHING)
    for id in ("first", "second"):
        reading.batch(
            [
                *remember("ann", id, shown, until=NOW + HOUR, now=NOW),
                note_reading_of_shown("ann", shown, at=NOW),
                *mark_shown("ann", shown),
            ]
        )
        assert unread(reading, "ann") == {"a": 0, "b": 0}
    monkeypatch.setattr(item_query, "conditions", lambda: ())
    assert unread(reading, "ann") == {"a": 1, "b": 1}
    assert guids(reading, "ann", Filter(is_read=False)) == ["hidden 4", "hidden 2"]
    reading.batch(undo("ann", "first", now=NOW))
    assert unread(reading, "ann") == {"a": 3, "b": 3}


def test_a_hidden_item_is_found_by_its_number_but_not_among_what_lists_show(reading: Database) -> None:
    named = Chosen.by_numbers(sorted(numbers(reading, "a").values()))
    found, shown = reading.batch(
        [item_lists.items_by("ann", named), item_lists.items_by("ann", named, with_hidden=False)]
    )
    assert (len(found.rows), len(shown.rows)) == (3, 2)


def test_a_condition_may_leave_the_list_of_one_feed_alone(
    reading: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = ItemCondition(sql=HIDDEN, is_for_one_feed=False)
    monkeypatch.setattr(item_query, "conditions", lambda: (some,))
    of_a = Scope(feed_id="a")
    assert guids(reading, "ann", Filter()) == ["6", "5", "3", "1"]
    assert guids(reading, "ann", Filter(scope=of_a)) == ["3", "hidden 2", "1"]
    assert unread(reading, "ann") == {"a": 3, "b": 3}
    reading.batch(mark_shown("ann", Shown(up_to=EVERYTHING)))
    assert unread(reading, "ann") == {"a": 1, "b": 1}
    reading.batch(mark_shown("ann", Shown(scope=of_a, up_to=EVERYTHING)))
    assert unread(reading, "ann") == {"a": 0, "b": 1}


def test_marks_in_any_order_agree_with_the_lists(reading: Database) -> None:
    by_chance = random.Random(7)
    for _ in range(20):
        feed = by_chance.choice("ab")
        guid, number = by_chance.choice(sorted(numbers(reading, feed).items()))
        if by_chance.random() < 0.3:
            scope = by_chance.choice((ALL, Scope(feed_id=feed)))
            reading.batch(mark_shown("ann", Shown(scope=scope, up_to=number)))
        else:
            mark(reading, "ann", feed, [guid], is_read=by_chance.random() < 0.5)
        counted = unread(reading, "ann")
        for each in "ab":
            filter = Filter(scope=Scope(feed_id=each), is_read=False)
            assert counted[each] == len(guids(reading, "ann", filter))
