"""Statements for the items that a user sees: pages of lists, and named items, with queries of item_query.py.

Every query goes from the user's subscriptions to the items, also for named items and for stars. Pages go by
key, the place of the last item: what is marked or comes in between two pages moves no other item.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from rss_pipeline.collector.models.author import author_name
from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.storage.database import Result, Statement, one
from rss_pipeline.storage.feeds.subscribed import shown_url
from rss_pipeline.storage.items.body_parts import BodyKey, body_text, body_version, repaired_at
from rss_pipeline.storage.items.items import stored_authors
from rss_pipeline.storage.sql import number
from rss_pipeline.storage.subscriptions.chosen import Chosen, Filter, Key, Order, Page
from rss_pipeline.storage.subscriptions.folding import folded_ids
from rss_pipeline.storage.subscriptions.item_query import (
    ORDERS,
    STATE,
    count_query,
    key_at,
    listed,
    order_of,
    page_query,
    place_in,
    unread,
)


class ItemRow(NamedTuple):
    """An item without its content, as it was read: what has to be made of a value is made where it is
    used, since a page has hundreds of items. Instants are text in the fields, aware and in UTC in the
    properties."""

    id: str
    arrived: int
    """Its arrival number: the id that Google Reader clients have, and the key of pages."""
    feed_id: str
    feed_title: str | None
    """The user's own, or else the feed's."""
    stored_feed_url: str
    feed_link: str | None
    language: str | None
    """The feed's, as it says."""
    folder: str | None
    """The user's."""
    title: str | None
    link: str | None
    base_url: str | None
    comments_url: str | None
    """The page on which readers discuss the item."""
    first_author: str | None
    authors_json: str | None
    published: str
    date_source: str
    updated: str | None
    collected: str
    categories_json: str
    enclosures_json: str
    read: int
    starred: str | None
    body_version: str
    """The version of its body (storage.items.body_parts)."""
    together: str | None
    """The items that stand together with it, for folding.py, where they were read."""

    @property
    def feed_url(self) -> str:
        return shown_url(self.stored_feed_url)

    @property
    def author(self) -> str | None:
        return self.first_author and author_name(self.first_author)

    @property
    def authors(self) -> tuple[str, ...]:
        return stored_authors({"author": self.first_author, "authors": self.authors_json})

    @property
    def published_at(self) -> datetime:
        return datetime.fromisoformat(self.published)

    @property
    def is_dated(self) -> bool:
        """False where the feed gave no date that can be read: `published_at` is the time of fetching."""
        return self.date_source == "feed"

    @property
    def updated_at(self) -> datetime | None:
        return from_instant(self.updated)

    @property
    def categories(self) -> tuple[str, ...]:
        return tuple(_values(self.categories_json))

    @property
    def enclosures(self) -> tuple[Enclosure, ...]:
        return tuple(Enclosure(**enclosure) for enclosure in _values(self.enclosures_json))

    @property
    def files(self) -> tuple[Enclosure, ...]:
        """The enclosures without pictures: where the content is, these are mostly shown in it."""
        return tuple(each for each in self.enclosures if not (each.type or "").startswith("image/"))

    @property
    def is_read(self) -> bool:
        return bool(self.read)

    @property
    def is_starred(self) -> bool:
        return self.starred is not None

    @property
    def starred_at(self) -> datetime | None:
        return from_instant(self.starred)

    @property
    def body_key(self) -> BodyKey:
        """Its body in the version that was read."""
        return BodyKey(
            id=self.id,
            arrived=self.arrived,
            title=self.title,
            link=self.link,
            base_url=self.base_url,
            enclosures_json=self.enclosures_json,
            feed_link=self.feed_link,
            feed_url=self.stored_feed_url,
            version=self.body_version,
        )

    @property
    def is_repaired(self) -> bool:
        """True if there are earlier versions of it."""
        return repaired_at(self.body_version) is not None


ITEM_COLUMNS = f"""i.id, i.arrived, i.feed_id, coalesce(s.title, f.title) AS feed_title,
  f.url AS stored_feed_url, f.link AS feed_link, f.language, s.folder, i.title,
  i.link, i.base_url, i.comments_url, i.author AS first_author, i.authors AS authors_json,
  i.pub_date AS published, i.pub_date_source AS date_source,
  i.updated_at AS updated, i.created_at AS collected, i.categories AS categories_json,
  i.enclosures AS enclosures_json, coalesce(t.is_read, CAST(i.arrived <= s.read_up_to AS INTEGER)) AS read,
  t.starred_at AS starred, {body_version(items="i", feeds="f", user="s.user_id")} AS body_version"""
"""The fields of ItemRow, but for `together`."""
ITEM_FROM = """CROSS JOIN items AS i ON i.rowid = page.place
  CROSS JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = i.feed_id
  CROSS JOIN feeds AS f ON f.id = i.feed_id
  LEFT JOIN item_states AS t ON t.user_id = s.user_id AND t.feed_id = i.feed_id AND t.arrived = i.arrived"""
"""From `page.place`, the row id of an item; binds the user's id."""


def item_rows(result: Result) -> list[ItemRow]:
    """Rows with ITEM_COLUMNS."""
    return list(map(ItemRow._make, result.columns(*ItemRow._fields)))


def _values(text: str) -> list[Any]:
    """A JSON list. Most are empty, and a page has hundreds."""
    return [] if text == "[]" else json.loads(text)


_HAS_FEED = "EXISTS (SELECT 1 FROM subscriptions AS s WHERE s.user_id = ? AND s.feed_id = ?)"
READ_CHARACTERS = 2_000
"""Part of an item's HTML that a list reads for its first words."""


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
        return key_at(self.order, self.places[nth], self.items[nth].arrived)


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


def list_items(
    user_id: str, filter: Filter, page: Page, *, text_characters: int = 0, with_together: bool = False
) -> Statement:
    """A query for a page of items without their contents, for `items_of`; with so many characters of the
    start of their texts, for `texts_of`."""
    found, params = page_query(user_id, filter, page)
    return Statement(
        f"""SELECT {_columns(with_together)}, page.at{_text(text_characters)}
        FROM ({found}) AS page {ITEM_FROM} ORDER BY {order_of(page)}""",
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
    next_key = key_at(page.order, places[last], rows[last].arrived) if len(rows) > page.limit else None
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
    found, params = page_query(user_id, filter, page)
    return Statement(
        f"""SELECT u.state_version, (
          SELECT group_concat(v.version, ' ') FROM (
            SELECT json_array({body_version(items="i", feeds="f", user="u.id")}, f.title, i.comments_url,
              {folded_ids("u.id", "i.id")}) AS version
            FROM ({found}) AS page CROSS JOIN items AS i ON i.rowid = page.place
            CROSS JOIN feeds AS f ON f.id = i.feed_id ORDER BY {order_of(page)}) AS v) AS items
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
    counted, params = count_query(user_id, filter)
    return Statement(
        f"""SELECT s.feed_id, coalesce(s.title, f.title) AS title, s.title AS own_title, f.description,
          f.url AS stored_url, f.link, s.folder, ({counted}) AS total, {number(f"{unread()} > 0")} AS unread,
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
    at = ", ".join(f"{place_in(order)} AS {order}" for order in ORDERS)
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
    return {} if row is None else {order: key_at(order, row[order], row["number"]) for order in ORDERS}


def list_numbers(user_id: str, filter: Filter, page: Page) -> Statement:
    """A query for the arrival numbers of a page by arrival, from indexes alone, for `numbers_of`."""
    found, params = page_query(user_id, filter, page, has_place=False)
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


def items_by(
    user_id: str,
    chosen: Chosen,
    *,
    text_characters: int = 0,
    with_hidden: bool = True,
    with_together: bool = False,
) -> Statement:
    """A query for these items without their contents, newest first, for `named_items`; with so many
    characters of the start of their texts, for `texts_of`. Not `with_hidden`: only those that lists show."""
    where = "" if with_hidden else f"WHERE true{listed('s', 'i', of_one_feed=False)} "
    return Statement(
        f"""SELECT {_columns(with_together)}{_text(text_characters)}
        FROM (SELECT DISTINCT i.rowid AS place FROM {chosen.rows}) AS page
        {ITEM_FROM} {where}ORDER BY i.arrived DESC""",
        [chosen.names, user_id],
        name="read items of a user",
        is_kept=True,
    )


def named_items(result: Result) -> list[ItemRow]:
    """The result of `items_by`."""
    return item_rows(result)


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
        LEFT JOIN item_states AS t ON {STATE}""",
        [chosen.names, user_id],
        name="read marks of items",
    )


def marked_items(result: Result) -> list[MarkedItem]:
    """The result of `marks_of`."""
    return list(map(MarkedItem._make, result.columns(*MarkedItem._fields)))


def _columns(with_together: bool) -> str:
    return f"{ITEM_COLUMNS}, {folded_ids('s.user_id', 'i.id') if with_together else 'NULL'} AS together"


def _text(characters: int) -> str:
    return f", substr({body_text('i')}, 1, {characters}) AS text" if characters else ""
