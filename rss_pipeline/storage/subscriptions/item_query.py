"""The builder of queries for the items of a user: pages and counts of what a filter lists, in each order.

Every condition on what lists, counts, marks and search show is in here: those of a filter, and those that
features add (`Feature.item_condition`), which hold wherever this room asks `listed` for them.

Which items a page has is found in indexes, from its key on; the rows of items are read for the page alone
(item_lists.py). All entries are looked at of first documents, by date of what they have without a date, and
for a page of unread items by date of those of a feed of which some are read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Literal, NamedTuple

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.features import FEATURES
from rss_pipeline.storage.database import Result, Statement, Value
from rss_pipeline.storage.sql import number
from rss_pipeline.storage.subscriptions.chosen import NEWEST, Filter, Fold, Key, Order, Page
from rss_pipeline.storage.subscriptions.folding import folding

MAX_PAGE = 20_000
"""The most items of one page of numbers."""
ORDERS: tuple[Order, ...] = ("arrived", "placed", "published")


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCondition:
    """A condition of a feature on the items that a user is shown. An item that it hides is in no list, count
    and result of a search, and no mark of all that is shown reaches it; by its id it is there."""

    sql: str
    """True for an item that is shown, and false for another one, in terms of `{user}`, `{feed}` and
    `{arrived}`, two ids and a number. What it reads must raise the user's state version where it changes."""
    is_for_one_feed: bool = True
    """False where it does not hold in the list of one feed by itself."""


@cache
def conditions() -> tuple[ItemCondition, ...]:
    """The conditions of all features."""
    return tuple(each.item_condition.load() for each in FEATURES if each.item_condition is not None)


def listed(user: str, item: str, *, of_one_feed: bool, feed: str = "feed_id") -> str:
    """` AND` with each condition on the items of a table with `arrived`, for one with `user_id` and the id of
    a feed, in the list of this feed alone or in another list; empty where there are none."""
    columns = {"user": f"{user}.user_id", "feed": f"{user}.{feed}", "arrived": f"{item}.arrived"}
    return "".join(
        f" AND ({each.sql.format(**columns)})" for each in conditions() if of_one_feed <= each.is_for_one_feed
    )


def unread(*, with_hidden: bool = False) -> str:
    """The number of unread items of `subscriptions AS s`, exact and from indexes alone.

    Those above the subscription's number, less those that are read above it, and those that are kept unread
    below it: as many rows are looked at as items are unread, or have a state.
    """
    of_items, of_states = ("" if with_hidden else listed("s", item, of_one_feed=True) for item in ("i", "t"))
    return f"""((SELECT count(*) FROM items AS i INDEXED BY items_of_feed
    WHERE i.feed_id = s.feed_id AND i.arrived > s.read_up_to{of_items})
  + coalesce((SELECT sum(CASE t.is_read WHEN 1 THEN -CAST(t.arrived > s.read_up_to AS INTEGER)
      WHEN 0 THEN CAST(t.arrived <= s.read_up_to AS INTEGER) ELSE 0 END)
    FROM item_states AS t WHERE t.user_id = s.user_id AND t.feed_id = s.feed_id{of_states}), 0))"""


# An item that is dated ahead is as new as the time at which it was found, and so is one without a date; but
# where a first document lists them, they were there before: today's news is newer.
_PUBLISHED = "CASE WHEN i.pub_date < i.created_at THEN i.pub_date ELSE i.created_at END"
"""As the index `items_published` has it."""
_FIRST_DATE = f"""CASE WHEN i.pub_date >= i.created_at
  THEN strftime('%Y-%m-%dT%H:%M:%SZ', i.created_at, '-1 day') ELSE {_PUBLISHED} END"""
_AT_FIRST: Mapping[Order, str] = {
    "placed": f"""{number(f"strftime('%s', {_FIRST_DATE})")} * 1000000""",
    "published": _FIRST_DATE,
}
"""The place in an order of an item of a first document."""
_AT_LATER: Mapping[Order, str] = {"arrived": "i.arrived", "placed": "i.arrived", "published": _PUBLISHED}
"""The place of another item."""


def place_in(order: Order, feed: str = "f") -> str:
    """An item's place in an order, of `items AS i` of this feed."""
    if order == "arrived":
        return _AT_LATER[order]
    return (
        f"CASE WHEN i.created_at = {feed}.first_stored_at THEN {_AT_FIRST[order]} ELSE {_AT_LATER[order]} END"
    )


def key_at(order: Order, at: object, number: object) -> Key:
    """The key of an item from what the columns hold."""
    if order == "published":
        return Key(int(datetime.fromisoformat(str(at)).timestamp()), int(str(number)))
    return Key(int(str(at)), int(str(number)))


def order_of(page: Page) -> str:
    way = "DESC" if page.newest_first else "ASC"
    return f"page.at {way}" if page.order == "arrived" else f"page.at {way}, page.arrived {way}"


def page_query(
    user_id: str, filter: Filter, page: Page, *, has_place: bool = True
) -> tuple[str, list[Value]]:
    """A query for `at`, unless that is the same `arrived`, and `place` (the row id) of a page, and one item
    more; with its parameters. The fewer columns, the less is sorted: mostly all unread items are."""
    if not 1 <= page.limit <= MAX_PAGE:
        raise ValueError(f"a page of {page.limit} items; it has 1 to {MAX_PAGE:,}")
    scope, scope_params = filter.scope.of(user_id)
    condition, params = "", list[Value]()
    lowest, highest = _bounds(filter, page)
    for operator, bound in ((">=", lowest), ("<=", highest)):
        if bound is not None:
            condition, params = f"{condition} AND {{number}} {operator} ?", [*params, bound]
    if page.order != "arrived" and page.after is not None:
        # The first comparison bounds the search in an index, which SQLite does not do by a row of values.
        than = "<" if page.newest_first else ">"
        condition += f" AND {{at}} {than}= ? AND ({{at}} {than} ? OR i.arrived {than} ?)"
        at = _bound(page.order, page.after.at)
        params = [*params, at, at, page.after.number]
    way, most = "DESC" if page.newest_first else "ASC", f"LIMIT {page.limit + 1}"
    others = "" if page.order == "arrived" else ", i.arrived"
    if has_place:
        others += ", i.rowid AS place"
    parts = _parts(filter, page.order)
    found, bindings, before = list[str](), list[Value](), ""
    if not all(part.has_scope for part in parts):
        before, bindings = _unread_feeds(filter, page.order, scope), [*scope_params]
    for part in parts:
        sql = f"SELECT {part.at} AS at{others} FROM {part.tables}"
        more, more_params = _more(part, filter, user_id)
        where = condition.format(number=part.number, at=part.at) + more
        sql = f"{sql} WHERE {scope if part.has_scope else 'true'}{where}{_listed(part, filter)}"
        if page.order != "arrived":
            # SQLite stops in an index at the end of the page only where it sorts by no column twice.
            by = f"1 {way}" if part.at == "i.arrived" else f"1 {way}, 2 {way}"
            sql = f"SELECT * FROM ({sql} ORDER BY {by} {most}) AS part"
        found.append(sql)
        bindings += [*(scope_params if part.has_scope else []), *params, *more_params]
    by = f"1 {way}" if page.order == "arrived" else f"1 {way}, 2 {way}"
    return f"{before}{' UNION ALL '.join(found)} ORDER BY {by} {most}", bindings


def count_query(user_id: str, filter: Filter) -> tuple[str, list[Value]]:
    """A query for the number of items of a filter without bounds, with its parameters."""
    scope, params = filter.scope.of(user_id)
    counts, bindings = list[str](), list[Value]()
    for part in _parts(filter, "arrived"):
        more, more_params = _more(part, filter, user_id)
        counts.append(f"SELECT count(*) AS n FROM {part.tables} WHERE {scope}{more}{_listed(part, filter)}")
        bindings += [*params, *more_params]
    return f"SELECT sum(n) FROM ({' UNION ALL '.join(counts)}) AS counted", bindings


def _more(part: "_Part", filter: Filter, user_id: str) -> tuple[str, list[Value]]:
    """The conditions of a part beside its scope, with their parameters."""
    scope, params = filter.scope.of(user_id)
    of_fold, fold_params = (filter.fold or Fold()).scope.of(user_id)
    return (
        part.more.format(scope=scope) + part.folds.format(scope=of_fold),
        params * part.more.count("{scope}") + fold_params * part.folds.count("{scope}"),
    )


def _listed(part: "_Part", filter: Filter) -> str:
    of_one_feed, item = filter.scope.feed_id is not None, part.number.partition(".")[0]
    if part.has_scope:
        return listed("s", item, of_one_feed=of_one_feed)
    return listed("unread", item, feed="id", of_one_feed=of_one_feed)


_EARLIEST, _LATEST = -62_135_596_800, 253_402_300_799
"""The seconds of the years 1 and 9999, which dates of items have at most."""


def _bound(order: Order, at: int) -> Value:
    """A key's `at` as the column has it."""
    if order != "published":
        return at
    return instant(datetime.fromtimestamp(min(max(at, _EARLIEST), _LATEST), UTC))


def _bounds(filter: Filter, page: Page) -> tuple[int | None, int | None]:
    """The lowest and the highest arrival number."""
    lowest = [bound for bound in (filter.since,) if bound is not None]
    highest = [bound for bound in (filter.until,) if bound is not None]
    if page.after is not None and page.order == "arrived":
        number = page.after.number
        (highest if page.newest_first else lowest).append(number - 1 if page.newest_first else number + 1)
    return max(lowest, default=None), min(highest, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Some of the items, by one index; `number` is its column of the arrival number, `at` the place in the
    order, `more` its conditions, with `{scope}` where they need the scope once more, and `folds` the one of a
    fold, with its own `{scope}`."""

    tables: str
    number: str
    at: str
    more: str
    folds: str = ""
    has_scope: bool = True
    """False where the tables have the feeds of the scope alone."""


STATE = "t.user_id = s.user_id AND t.feed_id = s.feed_id AND t.arrived = i.arrived"
_IS_UNREAD = f"""coalesce((SELECT t.is_read FROM item_states AS t WHERE {STATE}),
  CAST(i.arrived <= s.read_up_to AS INTEGER)) = 0"""


def _parts(filter: Filter, order: Order) -> list[_Part]:
    """The items of a filter, without the scope and the bounds."""
    parts = _all_parts(filter, order)
    folds = None if filter.fold is None else folding()
    if folds is None or filter.fold is None or filter.is_starred:
        return parts
    condition = folds.shown_unread if filter.is_read is False else folds.shown
    if filter.is_read is None and filter.fold.with_news:
        condition = f"({folds.shown} OR ({_IS_UNREAD} AND {folds.shown_unread}))"
    return [_folded(part, condition) for part in parts]


def _folded(part: _Part, condition: str) -> _Part:
    alias, user = part.number.partition(".")[0], "s" if part.has_scope else "unread"
    columns = {"user": f"{user}.user_id", "feed": f"{alias}.feed_id", "arrived": part.number}
    return replace(part, folds=f" AND {condition.format(**columns, scope='{scope}')}")


def _all_parts(filter: Filter, order: Order) -> list[_Part]:
    if filter.is_starred:
        is_read = f"coalesce(t.is_read, {number('t.arrived <= s.read_up_to')})"
        return [_starred(order, "" if filter.is_read is None else f" AND {is_read} = {int(filter.is_read)}")]
    starred = "" if filter.is_starred is None else " AND t.starred_at IS NOT NULL"
    unlike = "" if filter.is_starred is None else " AND t.starred_at IS NULL"
    if filter.is_read is None:
        return _all_of_feeds(order, _without("t.starred_at IS NOT NULL") if starred else "")
    # Items decided by the subscription's number, but those with a state; and those decided by their state.
    operator = "<=" if filter.is_read else ">"
    decided, excepted = f"arrived {operator} s.read_up_to", _excepted(filter)
    by_number = (
        [_of_feeds(order, f" AND i.{decided}{_without(f't.{decided} AND {excepted}')}")]
        if filter.is_read or order == "arrived"
        else _unread(order, excepted)
    )
    return [*by_number, _of_states(order, f" AND t.is_read = {int(filter.is_read)}{unlike}")]


def _excepted(filter: Filter) -> str:
    """The condition on a state that the subscription's number does not decide for the filter."""
    excepted = f"t.is_read = {0 if filter.is_read else 1}"
    return excepted if filter.is_starred is None else f"({excepted} OR t.starred_at IS NOT NULL)"


def _without(state: str) -> str:
    """The condition that an item has no such state: its number is not among theirs, which are read once.

    Numbers are unique, but nothing in the schema says so: a number that is found is looked at again.
    """
    numbers = f"""SELECT t.arrived FROM subscriptions AS s
      CROSS JOIN item_states AS t ON t.user_id = s.user_id AND t.feed_id = s.feed_id
      WHERE {{scope}} AND {state}"""
    this = f"SELECT 1 FROM item_states AS t WHERE {STATE} AND {state}"
    return f" AND (i.arrived NOT IN ({numbers}) OR NOT EXISTS ({this}))"


def _all_of_feeds(order: Order, more: str) -> list[_Part]:
    """All items. The place of some of first documents is computed; the others are in an index in the order,
    so that of each feed no more is read than the page has."""
    if order == "arrived":
        return [_of_feeds(order, more)]
    more = f" AND i.arrived IS NOT NULL{more}"
    return _in_order(order, "subscribed", more)


_BY_NUMBER = """SELECT 1 FROM items AS i INDEXED BY items_of_feed
    WHERE i.feed_id = s.feed_id AND i.arrived {} s.read_up_to"""


def _unread_feeds(filter: Filter, order: Order, scope: str) -> str:
    """`WITH` for `unread`, the feeds of a scope with items above the number, and `excepted`, the numbers of
    those that their state excepts. Mostly nearly all feeds are left aside so.

    `is_whole`: no item of the feed is below the number.
    """
    whole = f", NOT EXISTS ({_BY_NUMBER.format('<=')}) AS is_whole" if order == "published" else ""
    return f"""WITH unread AS MATERIALIZED (
      SELECT s.user_id, s.feed_id AS id, s.read_up_to,
        (SELECT f.first_stored_at FROM feeds AS f WHERE f.id = s.feed_id) AS first_stored_at{whole}
      FROM subscriptions AS s WHERE {scope} AND EXISTS ({_BY_NUMBER.format(">")})),
    excepted AS MATERIALIZED (
      SELECT t.arrived FROM unread
      CROSS JOIN item_states AS t ON t.user_id = unread.user_id AND t.feed_id = unread.id
      WHERE t.arrived > unread.read_up_to AND {_excepted(filter)}) """


def _unread(order: Order, excepted: str) -> list[_Part]:
    """Items above the subscription's number, in the order as `_all_of_feeds`. By date, an index in the order
    serves for a feed of which nothing is read; of another one it would mostly lead to what is read."""
    more = f""" AND i.arrived > unread.read_up_to AND (
      i.arrived NOT IN (SELECT arrived FROM excepted) OR NOT EXISTS (SELECT 1 FROM item_states AS t
        WHERE t.user_id = unread.user_id AND t.feed_id = unread.id AND t.arrived = i.arrived
          AND {excepted}))"""
    if order == "placed":
        return _in_order(order, "unread", more)
    partly_read = _Part(
        tables="unread CROSS JOIN items AS i INDEXED BY items_of_feed ON i.feed_id = unread.id",
        number="i.arrived",
        at=place_in(order, "unread"),
        more=f" AND NOT unread.is_whole{more}",
        has_scope=False,
    )
    return [*_in_order(order, "unread", f" AND unread.is_whole{more}"), partly_read]


_IN_ORDER: Mapping[Order, tuple[str, str, str]] = {
    "placed": ("items_of_feed", "", ""),
    # Of a first document, only what has no date, or one ahead, is elsewhere than the index has it.
    "published": (
        "items_published",
        f" OR {_PUBLISHED} < i.created_at",
        " AND i.pub_date >= i.created_at",
    ),
}
"""The indexes of a feed's items in these orders; which items of first documents are in order there, too, and
which are not."""


def _in_order(order: Order, feeds: Literal["subscribed", "unread"], more: str) -> list[_Part]:
    """Items of the feeds of a scope, or of `unread`: those that an index has in the order, and the others of
    first documents."""
    tables, of = _tables(feeds)
    index, in_order, others = _IN_ORDER[order]
    return [
        _Part(
            tables=f"{tables} CROSS JOIN items AS i INDEXED BY {index} ON i.feed_id = {of}.id",
            number="i.arrived",
            at=_AT_LATER[order],
            more=f" AND (i.created_at IS NOT {of}.first_stored_at{in_order}){more}",
            has_scope=feeds == "subscribed",
        ),
        _Part(
            tables=f"""{tables} CROSS JOIN items AS i INDEXED BY items_age
              ON i.feed_id = {of}.id AND i.created_at = {of}.first_stored_at""",
            number="i.arrived",
            at=_AT_FIRST[order],
            more=f"{others}{more}",
            has_scope=feeds == "subscribed",
        ),
    ]


def _tables(feeds: Literal["subscribed", "unread"]) -> tuple[str, str]:
    """The tables, and the one among them with `id` and `first_stored_at` of a feed."""
    if feeds == "unread":
        return "unread", "unread"
    return "subscriptions AS s CROSS JOIN feeds AS f ON f.id = s.feed_id", "f"


def _of_feeds(order: Order, more: str) -> _Part:
    return _Part(
        tables=f"""subscriptions AS s{_feeds(order)}
        CROSS JOIN items AS i INDEXED BY items_of_feed ON i.feed_id = s.feed_id""",
        number="i.arrived",
        at=place_in(order),
        more=f" AND i.arrived IS NOT NULL{more}",
    )


# Without the plus, SQLite carries a bound of `t.arrived` over to `i.arrived`, prefers it to the equality, and
# goes through all items of a feed for each state: 4 s for the second page of 100 feeds of 1,000 items.
_PLACE = """CROSS JOIN items AS i INDEXED BY items_of_feed
  ON i.feed_id = t.feed_id AND i.arrived = +t.arrived"""


def _of_states(order: Order, more: str) -> _Part:
    return _Part(
        tables=f"""subscriptions AS s
        CROSS JOIN item_states AS t ON t.user_id = s.user_id AND t.feed_id = s.feed_id{_feeds(order)}
        {_PLACE}""",
        number="t.arrived",
        at=place_in(order),
        more=more,
    )


def _starred(order: Order, more: str) -> _Part:
    return _Part(
        tables=f"""item_states AS t INDEXED BY item_states_starred
        CROSS JOIN subscriptions AS s ON s.user_id = t.user_id AND s.feed_id = t.feed_id{_feeds(order)}
        {_PLACE}""",
        number="t.arrived",
        at=place_in(order),
        more=f" AND t.starred_at IS NOT NULL{more}",
    )


def _feeds(order: Order) -> str:
    """The feeds, where the order needs them."""
    return "" if order == "arrived" else " CROSS JOIN feeds AS f ON f.id = s.feed_id"


class UnreadCount(NamedTuple):
    """The unread items of one feed."""

    feed_id: str
    folder: str | None
    unread: int
    newest: int
    """The arrival number of its newest item, read or not; 0 for none."""


def count_unread(user_id: str) -> Statement:
    """A query for the unread items of all feeds of a user, for `unread_counts`."""
    return Statement(
        f"""SELECT s.feed_id, s.folder, {unread()} AS unread, {NEWEST} AS newest
        FROM subscriptions AS s WHERE s.user_id = ? ORDER BY s.feed_id""",
        [user_id],
        name="count unread items",
        is_kept=True,
    )


def unread_counts(result: Result) -> list[UnreadCount]:
    """The result of `count_unread`, by feed id; feeds without unread items too."""
    return list(map(UnreadCount._make, result.columns(*UnreadCount._fields)))


def count_items(user_id: str) -> Statement:
    """A query for `n`, all items of the user's feeds: an index entry is read of each."""
    return Statement(
        f"""SELECT count(*) AS n FROM subscriptions AS s
        CROSS JOIN items AS i INDEXED BY items_of_feed ON i.feed_id = s.feed_id
        WHERE s.user_id = ? AND i.arrived IS NOT NULL{listed("s", "i", of_one_feed=False)}""",
        [user_id],
        name="count items",
        is_kept=True,
    )


def count_all_starred(user_id: str) -> Statement:
    """A query for `n`, all items to which the user has given a star."""
    return Statement(
        f"""SELECT count(*) AS n FROM item_states AS t INDEXED BY item_states_starred
        WHERE t.user_id = ? AND t.starred_at IS NOT NULL{listed("t", "t", of_one_feed=False)}""",
        [user_id],
        name="count stars",
        is_kept=True,
    )


def count_starred(user_id: str, feed_id: str) -> Statement:
    """A query for `n`, the items of a feed to which the user has given a star."""
    return Statement(
        f"""SELECT count(*) AS n FROM item_states AS t
        WHERE t.user_id = ? AND t.feed_id = ? AND t.starred_at IS NOT NULL
          {listed("t", "t", of_one_feed=True)}""",
        [user_id, feed_id],
        name="count stars of a feed",
    )
