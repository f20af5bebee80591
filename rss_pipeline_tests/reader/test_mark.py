"""Marks as acts of a user: all that was shown, and that taken back, on every database."""

import pytest

from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.mark import (
    UNDONE_WITHIN,
    ItemMarks,
    mark_items,
    mark_numbers,
    mark_shown,
    undo_mark,
    undoable,
)
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.subscriptions.chosen import EVERYTHING, Filter, Scope, Shown
from rss_pipeline.storage.subscriptions.subscriptions import unsubscribe
from rss_pipeline_tests.reader.accounts.signed_in import signed_in
from rss_pipeline_tests.storage.subscriptions import readers
from rss_pipeline_tests.storage.values import NOW, register, spec
from rss_pipeline_tests.support.pipeline import Clock

ALL = Shown(up_to=EVERYTHING)
READ = ItemMarks(is_read=True)
UNREAD = ItemMarks(is_read=False)


@pytest.fixture
def ann(database: Database, clock: Clock) -> Caller:
    """Ann, who subscribes a (1, 2, 3, 4) and b (5, 6)."""
    register(database, spec("a"), spec("b"))
    caller = signed_in(database, "ann", clock=clock)
    readers.subscribe(database, caller.user_id, "a")
    readers.subscribe(database, caller.user_id, "b", folder="News")
    for guid in "1234":
        readers.arrive(database, "a", guid)
    for guid in "56":
        readers.arrive(database, "b", guid)
    return caller


def unread(caller: Caller) -> str:
    return "".join(readers.guids(caller.database, caller.user_id, Filter(is_read=False), oldest=True))


def numbers(caller: Caller, guids: str) -> list[int]:
    known = readers.numbers(caller.database, "a") | readers.numbers(caller.database, "b")
    return [known[guid] for guid in guids]


def mark(caller: Caller, shown: Shown = ALL) -> str:
    """The mark's id."""
    found = mark_shown(caller, shown).undoable
    assert found is not None
    return found.id


def test_a_mark_is_answered_as_it_is_listed(ann: Caller) -> None:
    mark(ann, Shown(scope=Scope(feed_id="a"), up_to=EVERYTHING))
    readers.arrive(ann.database, "a", "7")
    assert mark_shown(ann, ALL).undoable in ann.ask(undoable(ann.user_id, now=ann.clock()))
    assert sorted(each.items for each in ann.ask(undoable(ann.user_id, now=ann.clock()))) == [3, 4]


def test_a_mark_of_all_is_undone_whole(ann: Caller) -> None:
    before = readers.state_rows(ann.database, ann.user_id)
    id = mark(ann)
    assert unread(ann) == ""
    assert undo_mark(ann, id) == 6
    assert unread(ann) == "123456"
    assert readers.state_rows(ann.database, ann.user_id) == before


def test_what_was_read_before_stays_read(ann: Caller) -> None:
    mark_numbers(ann, numbers(ann, "24"), READ)
    assert undo_mark(ann, mark(ann)) == 4
    assert unread(ann) == "1356"


def test_what_was_kept_unread_below_a_read_feed_is_unread_again(ann: Caller) -> None:
    mark(ann)
    mark_numbers(ann, numbers(ann, "2"), UNREAD)
    readers.arrive(ann.database, "a", "7")
    assert undo_mark(ann, mark(ann)) == 2
    assert unread(ann) == "27"


def test_what_came_since_and_what_of_it_was_read_stays_as_it_is(ann: Caller) -> None:
    id = mark(ann)
    readers.arrive(ann.database, "a", "7", "8")
    mark_numbers(ann, numbers(ann, "7"), READ)
    assert undo_mark(ann, id) == 6
    assert unread(ann) == "1234568"


def test_what_is_read_of_it_since_stays_read(ann: Caller) -> None:
    id = mark(ann)
    mark_numbers(ann, numbers(ann, "3"), READ)
    [known] = ann.database.query("SELECT id FROM items WHERE guid = '5'").rows
    assert mark_items(ann, [known["id"], "unknown"], READ) == {known["id"]}
    assert undo_mark(ann, id) == 4
    assert unread(ann) == "1246"


def test_what_is_unread_since_stays_unread(ann: Caller) -> None:
    id = mark(ann)
    mark_numbers(ann, numbers(ann, "3"), UNREAD)
    assert undo_mark(ann, id) == 6
    assert unread(ann) == "123456"


def test_what_another_mark_marks_since_is_undone_by_that_one(ann: Caller, clock: Clock) -> None:
    first = mark(ann, Shown(scope=Scope(feed_id="a"), up_to=EVERYTHING))
    clock.turn(seconds=1)
    mark_numbers(ann, numbers(ann, "12"), UNREAD)
    second = mark(ann)
    assert [each.items for each in ann.ask(undoable(ann.user_id, now=ann.clock()))] == [4, 2]
    assert undo_mark(ann, first) == 2
    assert unread(ann) == "34"
    assert undo_mark(ann, second) == 4
    assert unread(ann) == "123456"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_marks_are_undone_in_any_order(ann: Caller, order: tuple[int, int]) -> None:
    ids = [mark(ann)]
    readers.arrive(ann.database, "a", "7")
    ids.append(mark(ann))
    for place, left in zip(order, (("123456", "7")[order[0]], "1234567"), strict=True):
        undo_mark(ann, ids[place])
        assert unread(ann) == left


def test_a_folder_is_marked_and_undone_alone(ann: Caller) -> None:
    id = mark(ann, Shown(scope=Scope(folder="News"), up_to=EVERYTHING))
    assert unread(ann) == "1234"
    assert undo_mark(ann, id) == 2
    assert unread(ann) == "123456"


def test_feeds_that_were_shown_by_themselves_have_numbers_of_their_own(ann: Caller) -> None:
    one, five = numbers(ann, "15")
    mark(ann, Shown(up_to=one, of_feeds={"b": five, "unknown": five}))
    assert unread(ann) == "2346"


def test_a_mark_is_undone_once(ann: Caller) -> None:
    id = mark(ann)
    assert undo_mark(ann, id) == 6
    mark_numbers(ann, numbers(ann, "1"), READ)
    assert undo_mark(ann, id) == 0
    assert unread(ann) == "23456"
    assert ann.ask(undoable(ann.user_id, now=ann.clock())) == []


def test_the_same_mark_again_marks_nothing_and_leaves_the_first_to_undo(ann: Caller) -> None:
    id = mark(ann)
    assert mark_shown(ann, ALL).undoable is None
    assert [each.id for each in ann.ask(undoable(ann.user_id, now=ann.clock()))] == [id]


def test_a_mark_is_for_good_after_its_time(ann: Caller, clock: Clock) -> None:
    id = mark(ann)
    clock.turn(seconds=UNDONE_WITHIN.total_seconds() - 1)
    assert [each.id for each in ann.ask(undoable(ann.user_id, now=ann.clock()))] == [id]
    clock.turn(seconds=2)
    assert ann.ask(undoable(ann.user_id, now=ann.clock())) == []
    assert undo_mark(ann, id) == 0
    assert unread(ann) == ""


def test_what_is_remembered_goes_with_the_next_mark_after_its_time(ann: Caller, clock: Clock) -> None:
    mark(ann)
    clock.turn(seconds=2 * UNDONE_WITHIN.total_seconds())
    readers.arrive(ann.database, "a", "7")
    mark(ann)
    assert len(ann.database.query("SELECT 1 FROM undoable_marks").rows) == 1


def test_no_one_undoes_another_s_mark(ann: Caller, clock: Clock) -> None:
    bob = signed_in(ann.database, "bob", clock=clock)
    readers.subscribe(ann.database, bob.user_id, "a", "b")
    mark(bob)
    id = mark(ann)
    assert undo_mark(bob, id) == 0
    assert (unread(ann), unread(bob)) == ("", "")
    assert [each.id for each in ann.ask(undoable(ann.user_id, now=ann.clock()))] == [id]


def test_a_subscription_that_ends_takes_its_part_of_a_mark_with_it(ann: Caller) -> None:
    id = mark(ann)
    ann.write(*unsubscribe(ann.user_id, ["a"], at=NOW))
    assert undo_mark(ann, id) == 2
    assert unread(ann) == "56"


def test_a_star_stays_through_a_mark_and_its_undoing(ann: Caller) -> None:
    mark_numbers(ann, numbers(ann, "25"), ItemMarks(is_starred=True))
    undo_mark(ann, mark(ann))
    assert unread(ann) == "123456"
    starred = readers.guids(ann.database, ann.user_id, Filter(is_starred=True), oldest=True)
    assert starred == ["2", "5"]
