"""New items are decided once, by one writer, and stories of two and more are stored with their reasons."""

import gc
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.features.stories import moves, service, sql
from rss_pipeline.features.stories.lease import NewerMethod, StoriesBusy, hold
from rss_pipeline.features.stories.window import VERSION
from rss_pipeline.storage.accounts.user_rows import change_preferences
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.items.stories import stored_stories, stories_by_id, story_named, story_of
from rss_pipeline_tests.features.stories.stored import AGAIN, LANDSLIDE, NOW, OTHER, arrive, decide, together
from rss_pipeline_tests.storage.subscriptions.readers import add_user
from rss_pipeline_tests.support.stored import add_feeds


def test_two_feeds_that_write_of_one_event_make_a_story_that_says_why(
    database: Database, objects: FolderStore, window: Path, three: tuple[str, str, str]
) -> None:
    first, second, third = three
    done = service.catch_up(database, objects, window)
    assert (done.decided, done.joined, done.is_complete) == (3, 1, True)
    [story] = stored_stories(database, since=NOW - timedelta(days=1))
    assert story.id == first
    assert [each.item_id for each in story.members] == [first, second]
    assert [each.kind for each in story.members] == ["first", "event"]
    why = story.members[1]
    assert (why.nearest, why.version) == (first, VERSION)
    assert "Brandt" in why.names
    assert why.score is not None
    assert why.score > 0
    assert story_of(database, third) is None
    assert service.catch_up(database, objects, window).decided == 0


def test_an_item_that_comes_later_joins_the_stored_story_also_without_the_file(
    database: Database, objects: FolderStore, window: Path, three: tuple[str, str, str]
) -> None:
    first, second, _ = three
    service.catch_up(database, objects, window)
    window.unlink()
    late = arrive(database, "c", "2", LANDSLIDE, minutes=-1)
    assert service.catch_up(database, objects, window).decided == 1
    [story] = stories_by_id(database, [first])
    assert {each.item_id for each in story.members} == {first, second, late}
    copy = next(each for each in story.members if each.item_id == late)
    assert copy.kind == "text"


def test_items_that_were_stored_in_another_order_than_fetched_are_decided_once(
    database: Database, objects: FolderStore, window: Path
) -> None:
    add_feeds(database, "a", "b", "c")
    arrive(database, "b", "1", AGAIN, minutes=-20)
    first = arrive(database, "a", "1", LANDSLIDE, minutes=-10, days_ago=0.5)
    arrive(database, "c", "1", OTHER, minutes=-5, days_ago=0.5)
    done = service.catch_up(database, objects, window)
    assert (done.decided, done.joined) == (3, 1)
    [story] = stored_stories(database, since=NOW - timedelta(days=1))
    assert story.id == first


def test_an_item_that_went_and_comes_in_again_joins_again(
    database: Database, objects: FolderStore, window: Path, three: tuple[str, str, str]
) -> None:
    first, second, _ = three
    service.catch_up(database, objects, window)
    database.query("DELETE FROM items WHERE id = ?", [second])
    assert not [*stories_by_id(database, [first])]
    assert arrive(database, "b", "1", AGAIN, minutes=-1) == second
    service.catch_up(database, objects, window)
    [story] = stories_by_id(database, [first])
    assert {each.item_id for each in story.members} == {first, second}


def test_a_window_that_cannot_be_written_keeps_no_story_back(
    database: Database, objects: FolderStore, window: Path, three: tuple[str, str, str]
) -> None:
    # As where the disk is full.
    beside = window.with_name(f"{window.name}.new")
    beside.mkdir()
    done = service.catch_up(database, objects, window)
    assert (done.decided, done.joined, len(done.days)) == (3, 1, 1)
    assert str(window) in (done.not_written or "")
    assert moves.split(database, objects, window, three[1])
    beside.rmdir()
    late = arrive(database, "c", "2", LANDSLIDE, minutes=-1)
    done = service.catch_up(database, objects, window)
    assert (done.decided, done.not_written) == (1, None)
    [story] = stored_stories(database, since=NOW - timedelta(days=1))
    assert {each.item_id for each in story.members} == {three[0], late}


def test_the_same_items_give_the_same_stories_whatever_a_call_takes(
    database: Database,
    objects: FolderStore,
    window: Path,
    three: tuple[str, str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sql, "ITEMS_AT_ONCE", 1)
    looks = iter([False, True, False, True, False, False, False])
    while not service.catch_up(database, objects, window, is_over=lambda: next(looks)).is_complete:
        pass
    [story] = stored_stories(database, since=NOW - timedelta(days=1))
    assert [each.item_id for each in story.members] == [three[0], three[1]]


def test_while_one_writes_another_waits_and_one_that_lost_its_lease_stores_nothing(
    database: Database, objects: FolderStore, window: Path, three: tuple[str, str, str]
) -> None:
    ends = sql.ends(database)
    with hold(database, ends) as slow:
        with pytest.raises(StoriesBusy):
            service.catch_up(database, objects, window)
        # Its lease ran out while it was thinking, and another one has taken over.
        expired = replace(slow.writer, until="2000-01-01T00:00:00Z")
        database.batch([sql.take(slow.stored, expired)])
        assert service.catch_up(database, objects, window).joined == 1
        member = sql.Member(item_id=three[2], story_id=three[0], article=three[2], later=0, evidence=None)
        with pytest.raises(StoriesBusy):
            slow.commit([member], arrived=2**52)
    assert story_of(database, three[2]) is None
    assert sql.ends(database).writer.arrived < 2**52


def test_a_newer_method_is_not_undone_by_an_older_one(
    database: Database, objects: FolderStore, window: Path, three: tuple[str, str, str]
) -> None:
    database.batch([sql.take(None, sql.Writer(version=VERSION + 1))])
    with pytest.raises(NewerMethod):
        service.catch_up(database, objects, window)
    assert list(stored_stories(database, since=NOW - timedelta(days=1))) == []


def test_what_retention_and_forget_remove_leaves_its_story_and_the_rest_keeps_its_name(
    database: Database, objects: FolderStore, window: Path, three: tuple[str, str, str]
) -> None:
    first, second, _ = three
    third = arrive(database, "c", "2", AGAIN, minutes=-5)
    service.catch_up(database, objects, window)
    database.query("DELETE FROM items WHERE id = ?", [first])
    [story] = stories_by_id(database, [first])
    assert {each.item_id for each in story.members} == {second, third}
    # Its name is that of an item that is gone.
    assert story_named(database, first) == story_named(database, first[:12]) == story
    assert story_named(database, second) is None
    assert story_named(database, "") is None
    day = {"since": NOW - timedelta(days=1), "until": NOW + timedelta(days=1)}
    counted = sql.count(database, **day)
    assert (counted.stories, counted.items) == (1, 2)
    database.query("DELETE FROM items WHERE id = ?", [second])
    assert stories_by_id(database, [first]) == []
    assert sql.count(database, **day).stories == 0


def test_what_came_back_is_decided_at_its_day_and_the_first_of_a_story_is_in_it_again(
    database: Database, objects: FolderStore, window: Path, three: tuple[str, str, str]
) -> None:
    first, second, _ = three
    service.catch_up(database, objects, window)
    # Of a backup: of 40 days ago, in another order than then.
    late = arrive(database, "b", "old", AGAIN, minutes=-8, days_ago=40)
    early = arrive(database, "a", "old", LANDSLIDE, minutes=-7, days_ago=41)
    database.query("DELETE FROM items WHERE id = ?", [first])
    assert arrive(database, "a", "1", OTHER, minutes=-6) == first
    while not service.catch_up(database, objects, window).is_complete:
        pass
    then, now = stories_by_id(database, [early]), stories_by_id(database, [first])
    assert [[each.item_id for each in story.members] for story in then] == [[early, late]]
    assert [{each.item_id for each in story.members} for story in now] == [{first, second}]


def test_a_story_with_the_most_members_takes_no_more(
    database: Database,
    objects: FolderStore,
    three: tuple[str, str, str],
    window: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service, "MOST_MEMBERS", 2)
    first, second, other = three
    later = arrive(database, "c", "2", AGAIN, minutes=-5)
    service.catch_up(database, objects, window)
    assert story_of(database, later) is None
    found = story_of(database, first)
    assert found is not None
    assert {each.item_id for each in found.members} == {first, second}
    assert story_of(database, other) is None


def test_polls_decide_for_those_who_read_stories(database: Database) -> None:
    add_user(database, "other")
    assert not sql.ends(database).is_wanted
    add_user(database, "reader")
    database.batch([change_preferences("reader", '{"theme":"dark"}')])
    assert not sql.ends(database).is_wanted
    database.batch([change_preferences("reader", '{"stories":true}')])
    assert sql.ends(database).is_wanted
    database.batch([change_preferences("reader", '{"stories":false}')])
    assert not sql.ends(database).is_wanted


def test_a_topic_with_stories_wants_them_and_is_published_again_with_a_new_one(
    database: Database, objects: FolderStore, three: tuple[str, str, str], window: Path
) -> None:
    stored = pytest.importorskip("rss_pipeline_tests.features.topics.stored")
    stored.set_topics(database, stored.topic("plain", "c"))
    assert not sql.ends(database).is_wanted
    stored.set_topics(database, stored.topic("plain", "c"), stored.topic("once", "a", stories=True))
    assert sql.ends(database).is_wanted
    database.query("UPDATE topics SET stale = 0")
    # Its own item came in before, and is one of two now.
    service.catch_up(database, objects, window)
    stale = database.query("SELECT id FROM topics WHERE stale > 0").rows
    assert [row["id"] for row in stale] == ["once"]


def test_python_looks_for_cycles_again_after_an_error() -> None:
    assert gc.isenabled()
    with suppress(NewerMethod), service.without_collector():
        assert not gc.isenabled()
        raise NewerMethod
    assert gc.isenabled()


@pytest.mark.parametrize("closed", [{"needs_access": 1}, {"allow_private": 1}, {"private_hosts": "[]"}])
def test_an_item_of_a_closed_feed_joins_open_ones_and_nothing_joins_it(
    database: Database, objects: FolderStore, window: Path, closed: dict[str, Any]
) -> None:
    """Items that guess what it says show nothing of it."""
    add_feeds(database, "a", "b")
    add_feeds(database, "closed", **closed)
    secret = arrive(database, "closed", "1", LANDSLIDE, minutes=-30)
    first = arrive(database, "a", "1", LANDSLIDE, minutes=-20)
    decide(database, objects, window)
    assert together(database) == set()
    later = arrive(database, "closed", "2", LANDSLIDE, minutes=-15)
    for lost in (False, True):
        if lost:
            window.unlink()
        decide(database, objects, window)
        assert together(database) == {frozenset((first, later))}
        rows = database.query("SELECT joins FROM story_members WHERE item_id = ?", [later]).rows
        assert [row["joins"] for row in rows] == [f'[["{first}","text"]]']
    last = arrive(database, "b", "3", LANDSLIDE, minutes=-5)
    decide(database, objects, window)
    rows = database.query("SELECT joins FROM story_members WHERE item_id = ?", [last]).rows
    assert [row["joins"] for row in rows] == [f'[["{first}","text"]]']
    assert secret not in {id for story in together(database) for id in story}


def test_a_feed_that_all_users_may_subscribe_to_is_not_closed(
    database: Database, objects: FolderStore, window: Path
) -> None:
    add_feeds(database, "a")
    add_feeds(database, "shared", allow_private=1, listed=1, shared=1)
    first = arrive(database, "shared", "1", LANDSLIDE, minutes=-30)
    second = arrive(database, "a", "1", LANDSLIDE, minutes=-20)
    decide(database, objects, window)
    assert together(database) == {frozenset((first, second))}
