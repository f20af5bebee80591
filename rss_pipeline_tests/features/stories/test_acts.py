"""The choices of a user hold for them alone, for what comes later, and for a lost database."""

import gzip
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

import pytest

from rss_pipeline.errors import BackupUnreadable
from rss_pipeline.features.stories import acts, service, sql
from rss_pipeline.features.stories.lease import hold
from rss_pipeline.features.stories.model import Join
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.feed_queries import hidden_unread
from rss_pipeline.reader.item_queries import Filter, Fold, Order, Page, Scope, Shown, items, together
from rss_pipeline.reader.mark import mark_shown, undo_mark, undoable
from rss_pipeline.reader.user_backups import back_up_user
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.backups.user_states import KeptRows, Part, list_states, load_state, parts_of
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.items.items import item
from rss_pipeline.storage.sql import compact
from rss_pipeline_tests.features.stories.stored import AGAIN, LANDSLIDE, arrive
from rss_pipeline_tests.reader.accounts.signed_in import signed_in
from rss_pipeline_tests.support.pipeline import Clock


@pytest.fixture
def ada(database: Database, objects: FolderStore, three: tuple[str, str, str], window: Path) -> Caller:
    """Ada, who reads a, b and c, of which the first two have a story."""
    service.catch_up(database, objects, window)
    caller = signed_in(database, "ada", clock=Clock())
    database.query(
        "INSERT INTO subscriptions (user_id, feed_id, read_up_to, added_at)"
        " SELECT ?, id, 0, created_at FROM feeds",
        [caller.user_id],
    )
    return caller


def story(caller: Caller, id: str) -> set[str]:
    found = caller.ask(together(caller.user_id, Scope(), [id]))
    return {each.id for each in found.get(id, ())}


def test_lists_and_counts_are_alike_on_every_database(three: tuple[str, str, str], ada: Caller) -> None:
    first, second, third = three
    hidden = ada.ask(hidden_unread(ada.user_id))
    assert (hidden.of_all, hidden.of_feeds) == (1, {"b": 1})
    for is_read in (False, None):
        for order in get_args(Order):
            for with_news in (False, True):
                filter = Filter(is_read=is_read, fold=Fold(with_news=with_news))
                found = ada.ask(items(ada.user_id, filter, Page(limit=10, order=order)))
                assert {each.id for each in found.items} == {first, third}
    # What is read beside a feed is unread again with it.
    every = {each.id: each.arrived for each in ada.ask(items(ada.user_id, Filter(), Page(limit=10))).items}
    shown = Shown(scope=Scope(feed_id="a"), up_to=every[third])
    assert mark_shown(ada, shown, beside=[every[first], every[second]]).undoable is not None
    unread = Filter(is_read=False)
    assert [each.id for each in ada.ask(items(ada.user_id, unread, Page(limit=10))).items] == [third]
    [mark] = ada.ask(undoable(ada.user_id, now=ada.clock()))
    assert undo_mark(ada, mark.id) == mark.items == 2
    assert len(ada.ask(items(ada.user_id, unread, Page(limit=10))).items) == 3


def test_what_comes_later_follows_the_item_that_it_is_like_and_undo_takes_all_back(
    database: Database, objects: FolderStore, three: tuple[str, str, str], window: Path, ada: Caller
) -> None:
    first, second, third = three
    assert story(ada, first) == {first, second}
    assert acts.apart(ada, second)
    assert story(ada, first) == {first}
    later = arrive(database, "c", "later", AGAIN, minutes=-2)
    copy = arrive(database, "c", "copy", LANDSLIDE, minutes=-1)
    service.catch_up(database, objects, window)
    assert story(ada, later) == {second, later}
    assert story(ada, first) == {first, copy}
    assert acts.together(ada, first, third)
    assert story(ada, third) == {first, copy, third}
    assert acts.undo(ada) == first
    assert acts.undo(ada) == second
    assert acts.undo(ada) is None
    assert story(ada, first) == {first, second, later, copy}


def test_a_short_text_leads_no_story_that_a_user_makes_with_a_full_one(
    database: Database, objects: FolderStore, three: tuple[str, str, str], window: Path, ada: Caller
) -> None:
    text = ("A harvest of rye", "<p>Barley, oats and rye. </p>" * 40)
    full = arrive(database, "b", "full", text, minutes=-2)
    service.catch_up(database, objects, window)
    first, _, short = three
    assert acts.together(ada, short, full)
    [rows] = ada.ask(together(ada.user_id, Scope(), [full])).values()
    assert [each.id for each in rows] == [full, short]
    # It is hers: exports have both in no story, and the others in theirs.
    assert [(item(database, id) or {})["story"] for id in (short, full, first)] == [None, None, first]


def test_items_that_are_decided_at_once_follow_a_choice_one_behind_the_other(
    database: Database, three: tuple[str, str, str], ada: Caller
) -> None:
    first, second, _ = three
    assert acts.apart(ada, second)
    later, last = (
        arrive(database, feed, "later", AGAIN, minutes=minutes) for feed, minutes in (("c", -2), ("a", -1))
    )
    members = [
        sql.Member(
            item_id=id,
            story_id=first,
            article=id,
            later=0,
            evidence=None,
            joins=(Join(kind="event", items=(nearest,)),),
        )
        for id, nearest in ((later, second), (last, later))
    ]
    with hold(database, sql.ends(database)) as lease:
        lease.commit(members, arrived=lease.writer.arrived)
    assert story(ada, last) == {second, later, last}


def test_two_tabs_that_say_something_at_one_moment_are_both_heard(
    three: tuple[str, str, str], ada: Caller
) -> None:
    first, second, third = three
    with ThreadPoolExecutor(2) as tabs:
        heard = [tabs.submit(acts.apart, ada, second), tabs.submit(acts.together, ada, first, third)]
        assert [each.result() for each in heard] == [True, True]
    # What each of them saw of the other is a matter of chance; undo takes both back.
    assert second not in story(ada, first) or story(ada, first) == {first, second, third}
    assert acts.undo(ada) is not None
    assert acts.undo(ada) is not None
    assert acts.undo(ada) is None
    assert story(ada, first) == {first, second}


def test_choices_are_in_the_backup_of_a_user_and_come_back(
    database: Database, three: tuple[str, str, str], ada: Caller, tmp_path: Path
) -> None:
    first, second, third = three
    acts.apart(ada, second)
    acts.together(ada, second, third)
    objects = FolderStore(tmp_path / "objects")
    assert back_up_user(database, objects, ada.user_id, now=ada.clock())
    [info] = list_states(objects)
    [kept] = [each for each in parts_of(info.key, load_state(objects, info)) if isinstance(each, KeptRows)]
    database.query("DELETE FROM story_choices")
    database.query("DELETE FROM story_members")
    database.batch(acts.restore_choices(ada.user_id, compact(kept.rows)))
    assert story(ada, second) == {second, third}
    assert story(ada, first) == set()


def test_rows_that_are_not_a_feature_s_are_refused_and_those_of_none_left_out(
    database: Database, ada: Caller, tmp_path: Path
) -> None:
    objects = FolderStore(tmp_path / "objects")
    assert back_up_user(database, objects, ada.user_id, now=ada.clock())
    [info] = list_states(objects)
    packed = load_state(objects, info)

    def parts(line: bytes) -> list[Part]:
        return [*parts_of(info.key, gzip.compress(gzip.decompress(packed) + line + b"\n"))]

    assert parts(b'{"of a feature that is not here":[["a"]]}') == [*parts_of(info.key, packed)]
    for line in (b'{"stories":[["a b","c"]]}', b'{"stories":[["a"]]}', b'{"stories":[[7,"c"]]}'):
        with pytest.raises(BackupUnreadable):
            parts(line)
