"""Queries for the items that a user sees: pages of lists, and named items.

Every query goes from the user's subscriptions to the items, also for named items and for stars. Pages go by
key, the place of the last item: what is marked or comes in between two pages moves no other item.
Which items a page has is found in indexes, from its key on; rows of items are read for the page alone. All
entries are looked at of first documents, by date of what they have without a date, and for a page of unread
items by date of those of a feed of which some are read.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.database import Result, Statement, Value, one
from rss_pipeline.storage.feeds.subscribed import shown_url
from rss_pipeline.storage.items.bodies import body_text, body_version
from rss_pipeline.storage.sql import number
from rss_pipeline.storage.subscriptions.chosen import Chosen, Filter, Key, Order, Page
from rss_pipeline.storage.subscriptions.counts import UNREAD
from rss_pipeline.storage.subscriptions.item_rows import ITEM_COLUMNS, ITEM_FROM, ItemRow, item_rows

_HAS_FEED = "EXISTS (SELECT 1 FROM subscriptions AS s WHERE s.user_id = ? AND s.feed_id = ?)"
READ_CHARACTERS = 2_000
"""Part of an item's HTML that a list reads for its first words."""
MAX_PAGE = 20_000
"""The most items of one page of numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A page of items."""

    items: tuple[ItemRow, ...]
    order: Order
    places: Sequence[object]
    """The places of the items, as the columns hold them."""
    next_key: Key | None
    """None where this is the last page."""

    def key(self, nth: int) -> Key:
        """The key of an item of the page."""
        return _key(self.order, self.places[nth], self.items[nth].arrived)


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """A page of arrival numbers."""

    numbers: tuple[int, ...]
    next_key: Key | None
    """None where this is the last page."""


class FeedOfPage(NamedTuple):
    """The feed of a page of items, with what a filter lists of it over all pages."""

    feed_id: str
    title: str | None
    """The user's own, or else the feed's."""
    own_title: str | None
    description: str | None
    stored_url: str
    link: str | None
    folder: str | None
    total: int
    """The items that the filter lists."""
    unread: int
    """1 if an item of the feed is unread."""
    read_at: str | None
    """The last time that the user marked an item of it as read."""

    @property
    def url(self) -> str:
        return shown_url(self.stored_url)


def list_items(user_id: str, filter: Filter, page: Page, *, text_characters: int = 0) -> Statement:
    """A query for a page of items without their contents, for `items_of`; with so many characters of the
    start of their texts, for `texts_of`."""
    found, params = _page(user_id, filter, page)
    return Statement(
        f"""SELECT {ITEM_COLUMNS}, page.at{_text(text_characters)} FROM ({found}) AS page {ITEM_FROM}
        ORDER BY {_order(page)}""",
        [*params, user_id],
        name="list items of a user",
        is_kept=True,
    )


def items_of(result: Result, page: Page) -> Items:
    """The page that `list_items` found."""
    rows = item_rows(result)
    places = [at for (at,) in result.columns("at")]
    # One item more than the page takes is read, to know whether it is the last page.
    last = page.limit - 1
    next_key = _key(page.order, places[last], rows[last].arrived) if len(rows) > page.limit else None
    return Items(items=tuple(rows[: page.limit]), order=page.order, places=places, next_key=next_key)


def texts_of(result: Result) -> dict[str, str]:
    """By item id, the starts of the texts that `list_items` found, as unchecked HTML."""
    return {row["id"]: row["text"] or "" for row in result.rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageVersion:
    """The versions of the parts of a page of items: equal ones are of equal pages."""

    state: int
    """The user's state version."""
    items: str
    """The items with the versions of their bodies, in their order."""


def page_version(user_id: str, filter: Filter, page: Page) -> Statement:
    """A query for the version of a page, for `page_version_of`: a third of the work for the page itself."""
    found, params = _page(user_id, filter, page)
    return Statement(
        f"""SELECT u.state_version, (
          SELECT group_concat(v.version, ' ') FROM (
            SELECT json_array({body_version(items="i", feeds="f")}, f.title, i.comments_url) AS version
            FROM ({found}) AS page CROSS JOIN items AS i ON i.rowid = page.place
            CROSS JOIN feeds AS f ON f.id = i.feed_id ORDER BY {_order(page)}) AS v) AS items
        FROM users AS u WHERE u.id = ? AND ({_HAS_FEED} OR CAST(? AS TEXT) IS NULL)""",
        [*params, user_id, user_id, filter.scope.feed_id, filter.scope.feed_id],
        name="read version of a page of items",
        is_kept=True,
    )


def page_version_of(result: Result) -> PageVersion | None:
    """The result of `page_version`; None if its scope is a feed that the user does not subscribe to."""
    row = one(result)
    return None if row is None else PageVersion(state=int(row["state_version"]), items=row["items"] or "")


def read_feed_of_page(user_id: str, feed_id: str, filter: Filter) -> Statement:
    """A query for what a page of a feed says of the feed, for `feed_of_page`."""
    counted, params = _count(user_id, filter)
    return Statement(
        f"""SELECT s.feed_id, coalesce(s.title, f.title) AS title, s.title AS own_title, f.description,
          f.url AS stored_url, f.link, s.folder, ({counted}) AS total, {number(f"{UNREAD} > 0")} AS unread,
          s.last_read_at AS read_at
        FROM subscriptions AS s CROSS JOIN feeds AS f ON f.id = s.feed_id
        WHERE s.user_id = ? AND s.feed_id = ?""",
        [*params, user_id, feed_id],
        name="read feed of a page of items",
        is_kept=True,
    )


def feed_of_page(result: Result) -> FeedOfPage | None:
    """The result of `read_feed_of_page`; None if the user does not subscribe to the feed."""
    return next(map(FeedOfPage._make, result.columns(*FeedOfPage._fields)), None)


def known_ids(user_id: str, ids: Sequence[str]) -> Statement:
    """A query for those of these ids that are items of the user's feeds, each in a row with `id`."""
    chosen = Chosen.by_ids(ids)
    return Statement(
        f"""SELECT i.id FROM {chosen.rows}
        WHERE EXISTS (SELECT 1 FROM subscriptions AS s WHERE s.user_id = ? AND s.feed_id = i.feed_id)""",
        [chosen.names, user_id],
        name="look for items of a user",
    )


def keys_of(user_id: str, item_id: str) -> Statement:
    """A query for the keys of an item of the user's feeds in every order, for `item_keys`."""
    at = ", ".join(f"{_at(order)} AS {order}" for order in _AT_LATER)
    return Statement(
        f"""SELECT {at}, i.arrived AS number FROM items AS i
        CROSS JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = i.feed_id
        CROSS JOIN feeds AS f ON f.id = i.feed_id WHERE i.id = ?""",
        [user_id, item_id],
        name="place an item",
        is_kept=True,
    )


def item_keys(result: Result) -> dict[Order, Key]:
    """The keys that `keys_of` found; none for what is no item of the user's feeds."""
    row = one(result)
    return {} if row is None else {order: _key(order, row[order], row["number"]) for order in _AT_LATER}


def list_numbers(user_id: str, filter: Filter, page: Page) -> Statement:
    """A query for the arrival numbers of a page by arrival, from indexes alone, for `numbers_of`."""
    found, params = _page(user_id, filter, page, has_place=False)
    # One text in place of a thousand rows.
    return Statement(
        f"SELECT json_group_array(page.at) AS numbers FROM ({found}) AS page",
        params,
        name="list item numbers of a user",
        is_kept=True,
    )


def nearest_numbers(since: int | None, until: int | None) -> Statement:
    """A query for `since`, the lowest arrival number of an item from this bound on, and `until`, the highest
    one up to this bound; null for none. Two rows are read at most.

    As bounds they list the same items, and stay the same while nothing comes in between two moments.
    """
    found = "SELECT {}(i.arrived) FROM items AS i INDEXED BY items_arrived WHERE i.arrived {} ?"
    return Statement(
        f"SELECT ({found.format('min', '>=')}) AS since, ({found.format('max', '<=')}) AS until",
        [since, until],
        name="find nearest item numbers",
    )


def numbers_of(result: Result, page: Page) -> Numbers:
    """The page that `list_numbers` found."""
    [(text,)] = result.columns("numbers")
    # SQL promises no order of what is aggregated.
    numbers: list[int] = sorted(json.loads(text), reverse=page.newest_first)
    next_key = Key.of_number(numbers[page.limit - 1]) if len(numbers) > page.limit else None
    return Numbers(numbers=tuple(numbers[: page.limit]), next_key=next_key)


def items_by(user_id: str, chosen: Chosen, *, text_characters: int = 0) -> Statement:
    """A query for these items without their contents, newest first, for `named_items`; with so many
    characters of the start of their texts, for `texts_of`."""
    return Statement(
        f"""SELECT {ITEM_COLUMNS}{_text(text_characters)}
        FROM (SELECT DISTINCT i.rowid AS place FROM {chosen.rows}) AS page
        {ITEM_FROM} ORDER BY i.arrived DESC""",
        [chosen.names, user_id],
        name="read items of a user",
        is_kept=True,
    )


def named_items(result: Result) -> list[ItemRow]:
    """The result of `items_by`."""
    return item_rows(result)


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


def _at(order: Order, feed: str = "f") -> str:
    """An item's place in an order, of `items AS i` of this feed."""
    if order == "arrived":
        return _AT_LATER[order]
    return (
        f"CASE WHEN i.created_at = {feed}.first_stored_at THEN {_AT_FIRST[order]} ELSE {_AT_LATER[order]} END"
    )


def _key(order: Order, at: object, number: object) -> Key:
    """The key of an item from what the columns hold."""
    if order == "published":
        return Key(int(datetime.fromisoformat(str(at)).timestamp()), int(str(number)))
    return Key(int(str(at)), int(str(number)))


class MarkedItem(NamedTuple):
    """The marks of an item."""

    id: str
    read: int
    starred: int


def marks_of(user_id: str, chosen: Chosen) -> Statement:
    """A query for the marks of these items, for `marked_items`."""
    return Statement(
        f"""SELECT i.id, coalesce(t.is_read, {number("i.arrived <= s.read_up_to")}) AS read,
          {number("t.starred_at IS NOT NULL")} AS starred
        FROM {chosen.rows} CROSS JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = i.feed_id
        LEFT JOIN item_states AS t ON {_STATE}""",
        [chosen.names, user_id],
        name="read marks of items",
    )


def marked_items(result: Result) -> list[MarkedItem]:
    """The result of `marks_of`."""
    return list(map(MarkedItem._make, result.columns(*MarkedItem._fields)))


def _text(characters: int) -> str:
    return f", substr({body_text('i')}, 1, {characters}) AS text" if characters else ""


def _order(page: Page) -> str:
    way = "DESC" if page.newest_first else "ASC"
    return f"page.at {way}" if page.order == "arrived" else f"page.at {way}, page.arrived {way}"


def _page(user_id: str, filter: Filter, page: Page, *, has_place: bool = True) -> tuple[str, list[Value]]:
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
        where = condition.format(number=part.number, at=part.at)
        sql = f"{sql} WHERE {scope if part.has_scope else 'true'}{where}{part.more.format(scope=scope)}"
        if page.order != "arrived":
            # SQLite stops in an index at the end of the page only where it sorts by no column twice.
            by = f"1 {way}" if part.at == "i.arrived" else f"1 {way}, 2 {way}"
            sql = f"SELECT * FROM ({sql} ORDER BY {by} {most}) AS part"
        found.append(sql)
        bindings += [*(scope_params if part.has_scope else []), *params]
        bindings += scope_params * part.more.count("{scope}")
    by = f"1 {way}" if page.order == "arrived" else f"1 {way}, 2 {way}"
    return f"{before}{' UNION ALL '.join(found)} ORDER BY {by} {most}", bindings


def _count(user_id: str, filter: Filter) -> tuple[str, list[Value]]:
    """A query for the number of items of a filter without bounds, with its parameters."""
    scope, params = filter.scope.of(user_id)
    counts = [
        (f"SELECT count(*) AS n FROM {part.tables} WHERE {scope}{part.more.format(scope=scope)}", part.more)
        for part in _parts(filter, "arrived")
    ]
    bindings = [value for _, more in counts for value in params * (1 + more.count("{scope}"))]
    return f"SELECT sum(n) FROM ({' UNION ALL '.join(sql for sql, _ in counts)}) AS counted", bindings


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
    order, `more` its conditions, with `{scope}` where they need the scope once more."""

    tables: str
    number: str
    at: str
    more: str
    has_scope: bool = True
    """False where the tables have the feeds of the scope alone."""


_STATE = "t.user_id = s.user_id AND t.feed_id = s.feed_id AND t.arrived = i.arrived"


def _parts(filter: Filter, order: Order) -> list[_Part]:
    """The items of a filter, without the scope and the bounds."""
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
    this = f"SELECT 1 FROM item_states AS t WHERE {_STATE} AND {state}"
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
        at=_at(order, "unread"),
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
        at=_at(order),
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
        at=_at(order),
        more=more,
    )


def _starred(order: Order, more: str) -> _Part:
    return _Part(
        tables=f"""item_states AS t INDEXED BY item_states_starred
        CROSS JOIN subscriptions AS s ON s.user_id = t.user_id AND s.feed_id = t.feed_id{_feeds(order)}
        {_PLACE}""",
        number="t.arrived",
        at=_at(order),
        more=f" AND t.starred_at IS NOT NULL{more}",
    )


def _feeds(order: Order) -> str:
    """The feeds, where the order needs them."""
    return "" if order == "arrived" else " CROSS JOIN feeds AS f ON f.id = s.feed_id"
