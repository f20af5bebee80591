"""Read marks, stars and unread counts: exact whatever comes in, is marked and is repeated."""

from dataclasses import replace

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.subscriptions import item_lists
from rss_pipeline.storage.subscriptions.chosen import (
    EVERYTHING,
    MAX_CHOSEN,
    Chosen,
    Filter,
    Page,
    Scope,
    Shown,
)
from rss_pipeline.storage.subscriptions.item_states import (
    mark_items,
    mark_shown,
    note_reading,
    note_reading_of_shown,
    star_items,
    unstar_items,
)
from rss_pipeline_tests.storage.subscriptions.readers import (
    arrive,
    chosen,
    guids,
    mark,
    numbers,
    state_rows,
    subscribe,
    unread,
    version,
)
from rss_pipeline_tests.storage.values import HOUR, NOW

UNREAD = Filter(is_read=False)
STARRED = Filter(is_starred=True)


@pytest.fixture
def reading(two: Database) -> Database:
    """Ann has both feeds, Bob has a; three items in a and one in b, all unread."""
    subscribe(two, "ann", "a", "b")
    subscribe(two, "bob", "a")
    arrive(two, "a", "1", "2", "3")
    arrive(two, "b", "4")
    return two


def test_what_comes_after_the_subscription_is_unread(reading: Database) -> None:
    assert unread(reading, "ann") == {"a": 3, "b": 1}
    assert unread(reading, "bob") == {"a": 3}
    assert guids(reading, "ann", UNREAD) == ["4", "3", "2", "1"]
    assert guids(reading, "ann", UNREAD, oldest=True, size=1) == ["1", "2", "3", "4"]


def test_a_feed_says_how_much_a_filter_lists_and_when_an_item_was_read(
    reading: Database,
) -> None:
    def seen(filter: Filter, user: str = "ann") -> tuple[int, int, str | None]:
        filter = replace(filter, scope=Scope(feed_id="a"))
        [found] = reading.batch([item_lists.read_feed_of_page(user, "a", filter)])
        feed = item_lists.feed_of_page(found)
        assert feed is not None
        return int(feed.total), int(feed.unread), feed.read_at

    assert seen(Filter()) == seen(UNREAD) == (3, 1, None)
    one, at = chosen(reading, "a", ["2"]), NOW + HOUR
    for hours in range(1, 4):
        note = note_reading("ann", one, at=NOW + hours * HOUR)
        reading.batch([note, *mark_items("ann", one, is_read=True), *star_items("ann", one, at=NOW)])
    assert seen(UNREAD) == (2, 1, instant(at)), "it was read once"
    assert seen(STARRED) == seen(Filter(is_read=True)) == (1, 1, instant(at))
    assert seen(Filter(is_read=False, is_starred=True))[0] == 0
    for hours in range(4, 7):
        shown = Shown(up_to=numbers(reading, "a")["3"])
        note = note_reading_of_shown("ann", shown, at=NOW + hours * HOUR)
        reading.batch([note, *mark_shown("ann", shown)])
    assert seen(Filter()) == (3, 0, instant(NOW + 4 * HOUR))
    mark(reading, "ann", "a", ["1"], is_read=False)
    reading.batch([note_reading_of_shown("ann", shown, at=NOW + 9 * HOUR), *mark_shown("ann", shown)])
    assert seen(UNREAD) == (0, 0, instant(NOW + 9 * HOUR)), "one that was kept unread below the number"
    assert seen(UNREAD, "bob") == (3, 1, None)
    rows = reading.query("SELECT last_read_at FROM subscriptions WHERE feed_id = 'b'").rows
    assert rows == [{"last_read_at": None}], "its item came later"


@pytest.mark.parametrize("by_ids", [False, True])
def test_one_user_s_marks_are_not_another_s(reading: Database, by_ids: bool) -> None:
    mark(reading, "ann", "a", ["2"], is_read=True, by_ids=by_ids)
    assert unread(reading, "ann") == {"a": 2, "b": 1}
    assert guids(reading, "ann", Filter(is_read=True)) == ["2"]
    assert unread(reading, "bob") == {"a": 3}


def test_an_item_of_a_feed_that_is_not_subscribed_is_neither_marked_nor_starred_nor_seen(
    reading: Database,
) -> None:
    mark(reading, "bob", "b", ["4"], is_read=True)
    reading.batch(star_items("bob", chosen(reading, "b", ["4"]), at=NOW))
    assert state_rows(reading, "bob") == 0
    assert guids(reading, "bob", STARRED) == []
    subscribe(reading, "bob", "b")
    assert unread(reading, "bob") == {"a": 3, "b": 1}


def test_who_reads_in_order_has_no_states_left(reading: Database) -> None:
    mark(reading, "ann", "a", ["1"], is_read=True)
    assert state_rows(reading, "ann") == 0
    mark(reading, "ann", "a", ["3"], is_read=True)
    assert state_rows(reading, "ann") == 1
    mark(reading, "ann", "a", ["2"], is_read=True)
    assert state_rows(reading, "ann") == 0
    assert unread(reading, "ann") == {"a": 0, "b": 1}


def test_an_item_is_kept_unread_until_it_is_marked_read_itself_or_with_its_feed(reading: Database) -> None:
    reading.batch(mark_shown("ann", Shown(scope=Scope(feed_id="a"), up_to=EVERYTHING)))
    mark(reading, "ann", "a", ["2"], is_read=False)
    assert guids(reading, "ann", Filter(scope=Scope(feed_id="a"), is_read=False)) == ["2"]
    mark(reading, "ann", "a", ["2"], is_read=True)
    assert (unread(reading, "ann")["a"], state_rows(reading, "ann")) == (0, 0)
    mark(reading, "ann", "a", ["2"], is_read=False)
    reading.batch(mark_shown("ann", Shown(scope=Scope(feed_id="a"), up_to=version(reading, "ann", "a"))))
    assert (unread(reading, "ann")["a"], state_rows(reading, "ann")) == (0, 0)


def test_what_came_after_the_listing_stays_unread_when_the_feed_is_marked(reading: Database) -> None:
    seen = version(reading, "ann", "a")
    arrive(reading, "a", "5")
    for _ in range(2):
        reading.batch(mark_shown("ann", Shown(scope=Scope(feed_id="a"), up_to=seen)))
        assert guids(reading, "ann", UNREAD) == ["5", "4"]
    assert unread(reading, "ann") == {"a": 1, "b": 1}


def test_a_number_beyond_all_items_marks_nothing_that_comes_later(reading: Database) -> None:
    reading.batch(mark_shown("ann", Shown(up_to=EVERYTHING)))
    assert unread(reading, "ann") == {"a": 0, "b": 0}
    arrive(reading, "a", "5")
    assert unread(reading, "ann") == {"a": 1, "b": 0}


def test_an_older_version_does_not_make_read_items_unread(reading: Database) -> None:
    known = numbers(reading, "a")
    reading.batch(mark_shown("ann", Shown(scope=Scope(feed_id="a"), up_to=known["3"])))
    reading.batch(mark_shown("ann", Shown(scope=Scope(feed_id="a"), up_to=known["1"])))
    assert unread(reading, "ann")["a"] == 0


def test_a_folder_is_marked_and_other_feeds_are_not(two: Database) -> None:
    subscribe(two, "ann", "a", folder="News")
    subscribe(two, "ann", "b")
    arrive(two, "a", "1", "2")
    arrive(two, "b", "3")
    two.batch(mark_shown("ann", Shown(scope=Scope(folder="News"), up_to=numbers(two, "b")["3"])))
    assert unread(two, "ann") == {"a": 0, "b": 1}


def test_a_star_survives_every_mark_and_goes_only_when_it_is_taken(reading: Database) -> None:
    starred = chosen(reading, "a", ["2"])
    reading.batch(star_items("ann", starred, at=NOW))
    reading.batch(star_items("ann", starred, at=NOW + HOUR))
    for is_read in (True, False, True):
        mark(reading, "ann", "a", ["1", "2", "3"], is_read=is_read)
        assert guids(reading, "ann", STARRED) == ["2"]
        assert guids(reading, "ann", Filter(is_starred=True, is_read=is_read)) == ["2"]
        assert guids(reading, "ann", Filter(is_starred=True, is_read=not is_read)) == []
    times = reading.query("SELECT starred_at FROM item_states").rows
    assert times == [{"starred_at": "2026-02-18T08:30:00Z"}], "the first time counts"
    assert guids(reading, "bob", STARRED) == []
    for _ in range(2):
        reading.batch(unstar_items("ann", starred))
        assert (guids(reading, "ann", STARRED), state_rows(reading, "ann")) == ([], 0)


def test_marks_between_two_pages_lose_no_item(reading: Database) -> None:
    first = Page(limit=2)
    page = item_lists.numbers_of(reading.batch([item_lists.list_numbers("ann", UNREAD, first)])[0], first)
    mark(reading, "ann", "b", ["4"], is_read=True)
    mark(reading, "ann", "a", ["3"], is_read=True)
    second = Page(limit=2, after=page.next_key)
    rest = item_lists.numbers_of(reading.batch([item_lists.list_numbers("ann", UNREAD, second)])[0], second)
    known = numbers(reading, "a")
    assert rest.numbers == (known["2"], known["1"])
    assert rest.next_key is None


def test_items_by_name_are_those_of_the_user_alone(reading: Database) -> None:
    every = [*numbers(reading, "a").values(), *numbers(reading, "b").values(), 5, 5]
    for user, feeds in (("ann", {"a", "b"}), ("bob", {"a"}), ("nobody", set())):
        found = item_lists.named_items(
            reading.batch([item_lists.items_by(user, Chosen.by_numbers(every * 2))])[0]
        )
        assert {one.feed_id for one in found} == feeds
        assert len({one.id for one in found}) == len(found)


def test_too_many_names_at_once_are_refused() -> None:
    Chosen.by_ids(["0" * 32] * MAX_CHOSEN)
    with pytest.raises(ValueError, match="at most 20,000"):
        Chosen.by_ids(["0" * 32] * (MAX_CHOSEN + 1))


def test_the_newest_item_is_read_with_its_feed_though_it_was_kept_unread(reading: Database) -> None:
    mark(reading, "ann", "a", ["1", "2", "3"], is_read=True)
    mark(reading, "ann", "a", ["3"], is_read=False)
    reading.batch(mark_shown("ann", Shown(scope=Scope(feed_id="a"), up_to=version(reading, "ann", "a"))))
    assert (unread(reading, "ann")["a"], state_rows(reading, "ann")) == (0, 0)


def test_what_one_user_keeps_unread_stays_so_when_another_marks_the_feed(reading: Database) -> None:
    for user in ("ann", "bob"):
        mark(reading, user, "a", ["1", "2", "3"], is_read=True)
        mark(reading, user, "a", ["2"], is_read=False)
    reading.batch(mark_shown("ann", Shown(scope=Scope(feed_id="a"), up_to=EVERYTHING)))
    assert (unread(reading, "ann")["a"], unread(reading, "bob")["a"]) == (0, 1)
    assert guids(reading, "bob", UNREAD) == ["2"]


def test_a_mark_up_to_an_item_moves_on_over_what_was_read_above_it(reading: Database) -> None:
    mark(reading, "ann", "a", ["2"], is_read=True)
    assert state_rows(reading, "ann") == 1
    reading.batch(mark_shown("ann", Shown(scope=Scope(feed_id="a"), up_to=numbers(reading, "a")["1"])))
    assert (unread(reading, "ann")["a"], state_rows(reading, "ann")) == (1, 0)
