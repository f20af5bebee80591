"""Queries for the items that a user sees: pages of lists, and named items.

Every query goes from the user's subscriptions to the items, also for named items and for stars. Pages go by
key, the arrival number of the last item: what is marked or comes in between two pages moves no other item.
Which items a page has is found in indexes; rows of items are read for the page alone.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from rss_pipeline.storage.database import Result, Statement, Value, one
from rss_pipeline.storage.items.bodies import body_text, body_version
from rss_pipeline.storage.sql import number
from rss_pipeline.storage.subscriptions.chosen import ALL, Chosen, Scope
from rss_pipeline.storage.subscriptions.item_rows import ITEM_COLUMNS, ITEM_FROM, ItemRow, item_rows

_HAS_FEED = "EXISTS (SELECT 1 FROM subscriptions AS s WHERE s.user_id = ? AND s.feed_id = ?)"
MAX_PAGE = 20_000
"""The most items of one page of numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which items of a user: those for which all of it holds."""

    scope: Scope = ALL
    is_read: bool | None = None
    """None for both."""
    is_starred: bool | None = None
    since: int | None = None
    """The lowest arrival number."""
    until: int | None = None
    """The highest arrival number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A part of a list: so many items behind a key, the newest arrivals first or last."""

    limit: int
    after: int | None = None
    """The `next_key` of the page before; None for the first page."""
    newest_first: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A page of items."""

    items: tuple[ItemRow, ...]
    next_key: int | None
    """None where this is the last page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """A page of arrival numbers."""

    numbers: tuple[int, ...]
    next_key: int | None
    """None where this is the last page."""


def list_items(user_id: str, filter: Filter, page: Page, *, text_characters: int = 0) -> Statement:
    """A query for a page of items without their contents, for `items_of`; with so many characters of the
    start of their texts, for `texts_of`."""
    found, params = _page(user_id, filter, page)
    text = f", substr({body_text('i')}, 1, {text_characters}) AS text" if text_characters else ""
    return Statement(
        f"""SELECT {ITEM_COLUMNS}{text} FROM ({found}) AS page {ITEM_FROM}
        ORDER BY page.arrived {_order(page)}""",
        [*params, user_id],
        name="list items of a user",
    )


def items_of(result: Result, page: Page) -> Items:
    """The page that `list_items` found."""
    rows = item_rows(result)
    # One item more than the page takes is read, to know whether it is the last page.
    next_key = rows[page.limit - 1].arrived if len(rows) > page.limit else None
    return Items(items=tuple(rows[: page.limit]), next_key=next_key)


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
            CROSS JOIN feeds AS f ON f.id = i.feed_id ORDER BY page.arrived {_order(page)}) AS v) AS items
        FROM users AS u WHERE u.id = ? AND ({_HAS_FEED} OR CAST(? AS TEXT) IS NULL)""",
        [*params, user_id, user_id, filter.scope.feed_id, filter.scope.feed_id],
        name="read version of a page of items",
    )


def page_version_of(result: Result) -> PageVersion | None:
    """The result of `page_version`; None if its scope is a feed that the user does not subscribe to."""
    row = one(result)
    return None if row is None else PageVersion(state=int(row["state_version"]), items=row["items"] or "")


def known_ids(user_id: str, ids: Sequence[str]) -> Statement:
    """A query for those of these ids that are items of the user's feeds, each in a row with `id`."""
    chosen = Chosen.by_ids(ids)
    return Statement(
        f"""SELECT i.id FROM {chosen.rows}
        WHERE EXISTS (SELECT 1 FROM subscriptions AS s WHERE s.user_id = ? AND s.feed_id = i.feed_id)""",
        [chosen.names, user_id],
        name="look for items of a user",
    )


def list_numbers(user_id: str, filter: Filter, page: Page) -> Statement:
    """A query for the arrival numbers of a page of items, from indexes alone, for `numbers_of`."""
    found, params = _page(user_id, filter, page)
    # One text in place of a thousand rows.
    return Statement(
        f"SELECT json_group_array(page.arrived) AS numbers FROM ({found}) AS page",
        params,
        name="list item numbers of a user",
    )


def numbers_of(result: Result, page: Page) -> Numbers:
    """The page that `list_numbers` found."""
    [(text,)] = result.columns("numbers")
    # SQL promises no order of what is aggregated.
    numbers: list[int] = sorted(json.loads(text), reverse=page.newest_first)
    return Numbers(
        numbers=tuple(numbers[: page.limit]),
        next_key=numbers[page.limit - 1] if len(numbers) > page.limit else None,
    )


def items_by(user_id: str, chosen: Chosen) -> Statement:
    """A query for these items without their contents, newest first, for `named_items`."""
    return Statement(
        f"""SELECT {ITEM_COLUMNS} FROM (SELECT DISTINCT i.rowid AS place FROM {chosen.rows}) AS page
        {ITEM_FROM} ORDER BY i.arrived DESC""",
        [chosen.names, user_id],
        name="read items of a user",
    )


def named_items(result: Result) -> list[ItemRow]:
    """The result of `items_by`."""
    return item_rows(result)


def _order(page: Page) -> str:
    return "DESC" if page.newest_first else "ASC"


def _page(user_id: str, filter: Filter, page: Page) -> tuple[str, list[Value]]:
    """A query for `arrived` and `place` (the row id) of a page, and one item more; with its parameters."""
    if not 1 <= page.limit <= MAX_PAGE:
        raise ValueError(f"a page of {page.limit} items; it has 1 to {MAX_PAGE:,}")
    scope, scope_params = filter.scope.of(user_id)
    condition, params = scope, scope_params
    lowest, highest = _bounds(filter, page)
    for operator, bound in ((">=", lowest), ("<=", highest)):
        if bound is not None:
            condition, params = f"{condition} AND {{at}} {operator} ?", [*params, bound]
    found, bindings = list[str](), list[Value]()
    for part in _parts(filter):
        found.append(f"{part.sql} WHERE {condition.format(at=part.at)}{part.more.format(scope=scope)}")
        bindings += params + scope_params * part.more.count("{scope}")
    return f"{' UNION ALL '.join(found)} ORDER BY 1 {_order(page)} LIMIT {page.limit + 1}", bindings


def _bounds(filter: Filter, page: Page) -> tuple[int | None, int | None]:
    """The lowest and the highest arrival number."""
    lowest = [bound for bound in (filter.since,) if bound is not None]
    highest = [bound for bound in (filter.until,) if bound is not None]
    if page.after is not None:
        (highest if page.newest_first else lowest).append(page.after + (-1 if page.newest_first else 1))
    return max(lowest, default=None), min(highest, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Some of the items, by one index; `at` is its column of the arrival number, `more` its conditions, with
    `{scope}` where they need the scope once more."""

    sql: str
    at: str
    more: str


_STATE = "t.user_id = s.user_id AND t.feed_id = s.feed_id AND t.arrived = i.arrived"


def _parts(filter: Filter) -> list[_Part]:
    """The items of a filter, without the scope and the bounds."""
    if filter.is_starred:
        is_read = f"coalesce(t.is_read, {number('t.arrived <= s.read_up_to')})"
        return [_starred("" if filter.is_read is None else f" AND {is_read} = {int(filter.is_read)}")]
    starred = "" if filter.is_starred is None else " AND t.starred_at IS NOT NULL"
    unlike = "" if filter.is_starred is None else " AND t.starred_at IS NULL"
    if filter.is_read is None:
        return [_of_feeds(_without("t.starred_at IS NOT NULL") if starred else "")]
    # Items decided by the subscription's number, but those with a state; and those decided by their state.
    operator, exception = ("<=", 0) if filter.is_read else (">", 1)
    excepted = (
        f"(t.is_read = {exception} OR t.starred_at IS NOT NULL)" if starred else f"t.is_read = {exception}"
    )
    decided = f"arrived {operator} s.read_up_to"
    return [
        _of_feeds(f" AND i.{decided}{_without(f't.{decided} AND {excepted}')}"),
        _of_states(f" AND t.is_read = {int(filter.is_read)}{unlike}"),
    ]


def _without(state: str) -> str:
    """The condition that an item has no such state: its number is not among theirs, which are read once.

    Numbers are unique, but nothing in the schema says so: a number that is found is looked at again.
    """
    numbers = f"""SELECT t.arrived FROM subscriptions AS s
      CROSS JOIN item_states AS t ON t.user_id = s.user_id AND t.feed_id = s.feed_id
      WHERE {{scope}} AND {state}"""
    this = f"SELECT 1 FROM item_states AS t WHERE {_STATE} AND {state}"
    return f" AND (i.arrived NOT IN ({numbers}) OR NOT EXISTS ({this}))"


def _of_feeds(more: str) -> _Part:
    return _Part(
        sql="""SELECT i.arrived, i.rowid AS place
        FROM subscriptions AS s CROSS JOIN items AS i INDEXED BY items_of_feed ON i.feed_id = s.feed_id""",
        at="i.arrived",
        more=f" AND i.arrived IS NOT NULL{more}",
    )


# Without the plus, SQLite carries a bound of `t.arrived` over to `i.arrived`, prefers it to the equality, and
# goes through all items of a feed for each state: 4 s for the second page of 100 feeds of 1,000 items.
_PLACE = """CROSS JOIN items AS i INDEXED BY items_of_feed
  ON i.feed_id = t.feed_id AND i.arrived = +t.arrived"""


def _of_states(more: str) -> _Part:
    return _Part(
        sql=f"""SELECT i.arrived, i.rowid AS place FROM subscriptions AS s
        CROSS JOIN item_states AS t ON t.user_id = s.user_id AND t.feed_id = s.feed_id {_PLACE}""",
        at="t.arrived",
        more=more,
    )


def _starred(more: str) -> _Part:
    return _Part(
        sql=f"""SELECT i.arrived, i.rowid AS place FROM item_states AS t INDEXED BY item_states_starred
        CROSS JOIN subscriptions AS s ON s.user_id = t.user_id AND s.feed_id = t.feed_id {_PLACE}""",
        at="t.arrived",
        more=f" AND t.starred_at IS NOT NULL{more}",
    )
