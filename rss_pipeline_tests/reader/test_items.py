"""Items and feeds as people are shown them: neighbours in a list, bounds of numbers, none of others."""

import pytest

from rss_pipeline.reader import feed_queries as feeds
from rss_pipeline.reader import images
from rss_pipeline.reader import item_queries as items
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.item_queries import MAX_INTEGER, Filter, Page, Scope
from rss_pipeline.reader.query import together
from rss_pipeline.storage.database import Database
from rss_pipeline_tests.reader.accounts.signed_in import signed_in
from rss_pipeline_tests.storage.subscriptions import readers
from rss_pipeline_tests.storage.values import register, spec
from rss_pipeline_tests.support.pipeline import Clock


@pytest.fixture
def ann(database: Database, clock: Clock) -> Caller:
    """Ann, who subscribes a (1, 2, 3) and b (4), and nobody c (5)."""
    register(database, spec("a"), spec("b"), spec("c"))
    caller = signed_in(database, "ann", clock=clock)
    for id in "ab":
        readers.subscribe(database, caller.user_id, id)
    for id, guids in (("a", "123"), ("b", "4"), ("c", "5")):
        for guid in guids:
            readers.arrive(database, id, guid)
    return caller


def ids(database: Database) -> dict[str, str]:
    return {row["guid"]: row["id"] for row in database.query("SELECT guid, id FROM items").rows}


def test_an_item_has_its_neighbours_in_the_list_that_it_was_opened_from(ann: Caller) -> None:
    known = ids(ann.database)
    guid_of = {id: guid for guid, id in known.items()}

    def around(guid: str, filter: Filter, *, newest_first: bool) -> str:
        key = ann.ask(items.item_keys(ann.user_id, known[guid]))["arrived"]
        page = Page(limit=9, after=key, newest_first=newest_first)
        found = ann.ask(items.neighbours(ann.user_id, filter, page))
        return "".join("-" if row is None else guid_of[row.id] for row in found)

    assert [around(each, Filter(), newest_first=True) for each in "1234"] == ["2-", "31", "42", "-3"]
    assert [around(each, Filter(), newest_first=False) for each in "1234"] == ["-2", "13", "24", "3-"]
    assert around("3", Filter(scope=Scope(feed_id="a")), newest_first=True) == "-2"
    assert around("3", Filter(is_starred=True), newest_first=True) == "--"


def test_bounds_of_numbers_are_those_of_the_items_next_to_them(ann: Caller) -> None:
    first = min(readers.numbers(ann.database, "a").values())
    last = max(readers.numbers(ann.database, "c").values())
    assert ann.ask(items.highest_number()) >= last
    for given, nearest in (
        ((None, None), (None, None)),
        ((0, MAX_INTEGER), (first, last)),
        ((last + 1, first - 1), (MAX_INTEGER, 0)),
    ):
        assert ann.ask(items.nearest_numbers(*given)) == nearest


def test_no_query_shows_what_the_user_does_not_subscribe_to(ann: Caller) -> None:
    user, other = ann.user_id, ids(ann.database)["5"]
    of_other = Filter(scope=Scope(feed_id="c"))
    assert ann.ask(
        together(
            together(items.item(user, other), items.item_keys(user, other), items.marks(user, [other])),
            together(
                items.items_by_number(user, [*readers.numbers(ann.database, "c").values()]),
                items.named_items_with_texts(user, [other]),
            ),
            together(
                items.page_version(user, of_other, Page(limit=1)),
                items.feed_of_page(user, of_other),
                items.arrival_numbers(user, of_other, Page(limit=1)).then(lambda found: found.numbers),
            ),
            together(feeds.feed(user, "c"), feeds.feed_name(user, "c"), feeds.has_feed(user, "c")),
            images.may_see(user, "images/c/0/1.png"),
        )
    ) == ((None, {}, []), ({}, ([], {})), (None, None, ()), (None, None, False), False)
    assert ann.ask(images.may_see(user, "images/a/0/1.png"))
    assert not ann.ask(images.may_see(user, "backups/a/0/1.png"))
