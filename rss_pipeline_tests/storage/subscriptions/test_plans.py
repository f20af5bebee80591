"""No statement of a request reads a whole table of feeds, items or states."""

from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.subscriptions import item_lists, item_query, listing, subscriptions, undo
from rss_pipeline.storage.subscriptions import item_states as states
from rss_pipeline.storage.subscriptions.chosen import ALL, Chosen, Filter, Key, Order, Page, Scope, Shown
from rss_pipeline_tests.storage.values import NOW

NAMED = (Chosen.by_ids(["a"]), Chosen.by_numbers([1]))
KEY = Key.of_number(5)
ORDERS: tuple[Order, ...] = ("placed", "published")
FILTERS = [
    Filter(scope=scope, is_read=is_read, is_starred=is_starred, since=1, until=9)
    for scope in (ALL, Scope(feed_id="a"), Scope(folder="News"))
    for is_read in (None, True, False)
    for is_starred in (None, True, False)
]
STATEMENTS = [
    listing.list_feeds("ann"),
    listing.list_feeds("ann", "a"),
    listing.list_names("ann"),
    listing.list_names("ann", "a"),
    item_query.count_unread("ann"),
    subscriptions.list_folders("ann"),
    *(item_lists.list_items("ann", one, Page(limit=9, after=KEY)) for one in FILTERS),
    *(item_lists.list_numbers("ann", one, Page(limit=9, after=KEY, newest_first=False)) for one in FILTERS),
    *(
        item_lists.list_items("ann", one, Page(limit=9, after=KEY, newest_first=newest_first, order=order))
        for one in FILTERS
        for order in ORDERS
        for newest_first in (True, False)
    ),
    item_lists.keys_of("ann", "a"),
    *(item_lists.items_by("ann", chosen) for chosen in NAMED),
    *(
        one
        for chosen in NAMED
        for is_read in (True, False)
        for one in states.mark_items("ann", chosen, is_read=is_read)
    ),
    *(one for chosen in NAMED for one in states.star_items("ann", chosen, at=NOW)),
    *(one for chosen in NAMED for one in states.unstar_items("ann", chosen)),
    *(
        one
        for scope in (ALL, Scope(feed_id="a"), Scope(folder="b"))
        for one in states.mark_shown("ann", Shown(scope=scope, up_to=5))
    ),
    *(
        one
        for scope in (ALL, Scope(feed_id="a"), Scope(folder="b"))
        for one in undo.remember("ann", "m", Shown(scope=scope, up_to=5), until=NOW, now=NOW)
    ),
    *(undo.keep_read("ann", chosen) for chosen in NAMED),
    *undo.undo("ann", "m", now=NOW),
    undo.list_undoable("ann", now=NOW),
    *subscriptions.subscribe("ann", [subscriptions.Wanted(feed_id="a")], at=NOW),
    *subscriptions.unsubscribe("ann", ["a"], at=NOW),
    *subscriptions.unsubscribe_all("ann", at=NOW),
]


def test_no_statement_scans_a_table(sqlite: SqliteDatabase) -> None:
    scanned = {
        (statement.name, row["detail"])
        for statement in STATEMENTS
        for row in sqlite.query(f"EXPLAIN QUERY PLAN {statement.sql}", statement.params).rows
        if row["detail"].startswith("SCAN") and not row["detail"].split()[1].startswith(_SMALL)
    }
    assert scanned == set()


def test_the_item_of_a_state_is_looked_up_and_not_looked_for(sqlite: SqliteDatabase) -> None:
    """A page behind a key bounds the numbers of states, and the search for an item must not follow that."""
    for filter in (Filter(is_read=False), Filter(is_read=True), Filter(is_starred=True)):
        for newest_first in (True, False):
            page = Page(limit=9, after=KEY, newest_first=newest_first)
            statement = item_lists.list_numbers("ann", filter, page)
            plan = sqlite.query(f"EXPLAIN QUERY PLAN {statement.sql}", statement.params).rows
            searches = [row["detail"] for row in plan if row["detail"].startswith("SEARCH i ")]
            # Of several parts, the one that begins with states is the last.
            assert "arrived=?" in searches[-1]


_PARTS = ("page", "part", "shown", "own", "marked", "touched", "read", "new", "fresh", "unread", "excepted")
_SMALL = ("j", "v", "CONSTANT", "(subquery", *_PARTS)
"""Parameters, and the results of other parts of the statement."""
