"""Stories where another feature hides items: none of these leads a story, or counts in one."""

import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rss_pipeline.api.google_reader.folded import NamedItems, as_entries
from rss_pipeline.features.stories import person, reading
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.item_queries import Page, Scope, items, together
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.subscriptions import folding, item_query
from rss_pipeline.storage.subscriptions.chosen import Filter, Fold
from rss_pipeline_tests.features.stories.stored import one_story
from rss_pipeline_tests.reader.accounts.signed_in import begin
from rss_pipeline_tests.storage.subscriptions.readers import add_user, arrive, guids, mark, subscribe, unread
from rss_pipeline_tests.support.databases import migrated
from rss_pipeline_tests.support.pipeline import Clock
from rss_pipeline_tests.support.stored import add_feeds

HIDES = item_query.ItemCondition(
    sql="""NOT EXISTS (SELECT 1 FROM items AS h INDEXED BY items_of_feed
      WHERE h.feed_id = {feed} AND h.arrived = {arrived} AND {user} = 'ann' AND h.guid LIKE 'hidden%')"""
)


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """Ann, from whom some items are hidden, and Bob, both with the feeds a, b and c."""
    with monkeypatch.context() as patched:
        patched.setattr(item_query, "conditions", lambda: (HIDES,))
        # Statements take in the conditions once, as they are loaded.
        importlib.reload(reading)
        for module in (item_query, folding):
            patched.setattr(module, "folding", lambda: reading.FOLDING)
        database = migrated(tmp_path / "rss.sqlite")
        add_feeds(database, "a", "b", "c")
        for user in ("ann", "bob"):
            add_user(database, user)
            subscribe(database, user, "a", "b", "c")
        database.query("""UPDATE users SET preferences = '{"stories":true}'""")
        yield database
        database.close()
    importlib.reload(reading)


def folded(database: Database, user: str) -> list[str]:
    """The items of a list of unread ones, which agrees with the counts."""
    found = guids(database, user, Filter(is_read=False, fold=Fold()))
    [rows] = database.batch([reading.FOLDING.count(user)])
    assert len(found) == sum(unread(database, user).values()) - reading.FOLDING.counted(rows).of_all
    return found


def in_apps(database: Database, user: str, id: str) -> list[str]:
    """The items of an item's story, as apps are given them."""
    ids = reading.FOLDING.ids.format(user=f"'{user}'", item=f"'{id}'")
    return [each for _, each, *_ in sorted(json.loads(database.query(f"SELECT {ids} AS ids").rows[0]["ids"]))]


def test_a_hidden_item_leads_no_story_and_a_story_of_hidden_ones_is_not_shown(database: Database) -> None:
    for place in ("a hidden 1", "b 2", "c 3", "c 6", "a hidden 4", "b hidden 5"):
        arrive(database, *place.split(" ", 1))
    first, *others = one_story(database, "ahidden 1", "b2", "c3", "c6")
    one_story(database, "ahidden 4", "bhidden 5")
    assert folded(database, "ann") == guids(database, "ann", Filter(fold=Fold())) == ["2"]
    assert folded(database, "bob") == guids(database, "bob", Filter(fold=Fold())) == ["hidden 4", "hidden 1"]
    assert in_apps(database, "ann", others[0]) == others
    assert in_apps(database, "bob", others[0]) == [first, *others]
    # A copy of an article is news to somebody from whom that one is hidden.
    database.query("UPDATE story_members SET article = ? WHERE item_id = ?", [first, others[1]])
    for user in ("ann", "bob"):
        mark(database, user, "b", ["2"], is_read=True)
    mark(database, "bob", "a", ["hidden 1"], is_read=True)
    assert (folded(database, "ann"), folded(database, "bob")) == (["3"], ["hidden 4", "6"])


def as_user(database: Database, name: str) -> Caller:
    return Caller(begin(database, name, clock=Clock()), database, Clock())


def test_a_hidden_item_is_named_nowhere_but_on_its_own_page(database: Database) -> None:
    for place in ("a hidden 1", "b 2", "c 3", "a hidden 4", "b hidden 5", "c 7", "a hidden 8"):
        arrive(database, *place.split(" ", 1))
    database.query("UPDATE items SET title = 'Title ' || guid")
    first, *others = one_story(database, "ahidden 1", "b2", "c3")
    fourth, fifth = one_story(database, "ahidden 4", "bhidden 5")
    half = one_story(database, "c7", "ahidden 8")
    ann, bob = as_user(database, "ann"), as_user(database, "bob")

    assert [[each.id for each in found] for found in ann.ask(together("ann", Scope(), others)).values()] == [
        others
    ] * 2
    for user, shown, rest in ((ann, others[0], [others[1]]), (bob, first, others)):
        rows = user.ask(items(user.user_id, Filter(fold=Fold()), Page(limit=9))).items
        _, ends = as_entries(user, NamedItems(), rows)
        assert b"hidden 5" not in ends[shown]
        for id in rest:
            assert f"Title {guid(database, id)}".encode() in ends[shown]
        assert (b"hidden" in ends[shown]) == (first in rest)

    # On a page, and why.
    [one] = person.stories_of(ann, limit=9).stories
    assert [each.id for each in one] == others
    assert [each.reason.kind for each in one] == ["first", "event"]
    assert one[1].reason.nearest == others[0]
    assert "ravensdale" not in {name for each in one for name in each.reason.names}
    assert [each.id for each in person.story_of(ann, others[1])] == others
    assert [each.id for each in person.story_of(ann, first)] == [first, *others]
    assert [each.id for each in person.story_of(ann, fourth)] == [fourth]
    stories = person.stories_of(bob, limit=9).stories
    assert [[each.id for each in story] for story in stories] == [half, [fourth, fifth], [first, *others]]
    assert {each.reason.nearest for each in stories[2]} == {None, first}
    assert person.stories_of(ann, limit=9).next_key is None


def guid(database: Database, id: str) -> str:
    [row] = database.query("SELECT guid FROM items WHERE id = ?", [id]).rows
    return str(row["guid"])
