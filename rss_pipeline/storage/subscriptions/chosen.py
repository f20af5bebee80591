"""The items and feeds that a call is about: named items, parts of a user's feeds, what was shown of them, and
pages of lists: a filter, an order, and the key behind which a page begins.

Pieces of SQL with their parameters, for the statements of this room. None names the user of the feeds: each
statement joins the user's subscriptions.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple, Self

from rss_pipeline.storage.database import Value
from rss_pipeline.storage.sql import compact, number

NEWEST = """coalesce((SELECT max(i.arrived) FROM items AS i INDEXED BY items_of_feed
  WHERE i.feed_id = s.feed_id), 0)"""
"""The arrival number of the newest item of `subscriptions AS s`, 0 for none: what a client that lists the
feed has seen."""
MAX_CHOSEN = 20_000
"""The most items that are named at once: a JSON parameter stays below 1 MB."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Items that a client names. Unknown ones are left out by every statement, and so are those of feeds that
    the user does not subscribe."""

    names: str
    """A JSON list of ids or of arrival numbers."""
    join: str
    """The rows of `items AS i` by `j.value`."""

    @classmethod
    def by_ids(cls, ids: Sequence[str]) -> Self:
        """Items by their ids."""
        return cls(_checked(ids), "CROSS JOIN items AS i ON i.id = j.value")

    @classmethod
    def by_numbers(cls, numbers: Sequence[int]) -> Self:
        """Items by their arrival numbers, the ids that Google Reader clients have."""
        join = f"CROSS JOIN items AS i INDEXED BY items_arrived ON i.arrived = {number('j.value')}"
        return cls(_checked(numbers), join)

    @property
    def rows(self) -> str:
        """`FROM` for the items, as `i`; binds `names`."""
        return f"json_each(?) AS j {self.join}"


def _checked(names: Sequence[str] | Sequence[int]) -> str:
    if len(names) > MAX_CHOSEN:
        raise ValueError(f"{len(names):,} items; at most {MAX_CHOSEN:,} can be named at once")
    return compact(list(names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A part of a user's feeds: one, those of a folder, or all."""

    feed_id: str | None = None
    folder: str | None = None

    def of(self, user_id: str) -> tuple[str, list[Value]]:
        """The condition on `subscriptions AS s`, with its parameters."""
        condition, params = "s.user_id = ?", [user_id]
        if self.feed_id is not None:
            condition, params = f"{condition} AND s.feed_id = ?", [*params, self.feed_id]
        if self.folder is not None:
            condition, params = f"{condition} AND s.folder = ?", [*params, self.folder]
        return condition, [*params]


ALL = Scope()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The items that a client has listed: those of a part of a user's feeds, up to an arrival number."""

    scope: Scope = ALL
    up_to: int
    of_feeds: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Feeds that were listed by themselves, by id, with the numbers that hold for them instead."""

    def of(self, user_id: str) -> tuple[str, list[Value]]:
        """`WITH` for the table `shown`: `user_id`, `feed_id`, `read_up_to` and, as `number`, the number up to
        which the feed was shown, its newest item's at most; with its parameters."""
        condition, params = self.scope.of(user_id)
        shown = f"""shown AS MATERIALIZED (
          SELECT s.user_id, s.feed_id, s.read_up_to, min({{}}, {NEWEST}) AS number
          FROM subscriptions AS s{{}} WHERE {condition})"""
        # Mostly there are none; then a feed is marked in three quarters of the time.
        if not self.of_feeds:
            return f"WITH {shown.format('?', '')}", [self.up_to, *params]
        return (
            f"""WITH own AS MATERIALIZED (
              SELECT key AS feed_id, {number("value")} AS number FROM json_each(?)),
            {shown.format("coalesce(own.number, ?)", " LEFT JOIN own ON own.feed_id = s.feed_id")}""",
            [compact(dict(self.of_feeds)), self.up_to, *params],
        )


EVERYTHING = 2**53
"""An arrival number above all: what is stored when the statement runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Show items that belong together once (folding.py), as a list of this part of the feeds does."""

    scope: Scope = ALL
    with_news: bool = False
    """A list of all items has the first unread one, too, where the leading one was read: for apps, which know
    the state of an item and not that of an entry."""


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
    fold: Fold | None = None


Order = Literal["arrived", "placed", "published"]
"""The value that makes an item new. `arrived`: its arrival number. `placed`: the same, but the items of a
feed's first document, which were there before, are at their dates. `published`: its date of publication, its
arrival number among those of one second."""


class Key(NamedTuple):
    """The place of an item in an order: keys grow as items do. As text it is whole numbers only, and the
    arrival number alone where the two are one."""

    at: int
    """The arrival number; by date, the microsecond since 1970 for `placed`, the second for `published`."""
    number: int
    """The arrival number."""

    @classmethod
    def of_number(cls, number: int) -> Self:
        """The key of an item that is at its arrival number."""
        return cls(number, number)

    @classmethod
    def read(cls, text: str) -> Self:
        """The inverse of `str`. ValueError for a text that is none."""
        if KEY.fullmatch(text) is None:
            raise ValueError("this is no key of a page")
        at, _, number = text.rpartition("~")
        return cls(int(at or number), int(number))

    def within(self, order: Order) -> "Key":
        """The key in this order, of whichever order it is: one by arrival is at the time of its number."""
        if order == "published":
            return self if self.at != self.number else Key(self.number // 1_000_000, self.number)
        return Key.of_number(self.number) if order == "arrived" else self

    @property
    def as_json(self) -> int | str:
        """A number where it is one."""
        return self.number if self.at == self.number else str(self)

    def __str__(self) -> str:
        return str(self.number) if self.at == self.number else f"{self.at}~{self.number}"


_NUMBER = "(?:[0-8][0-9]{15}|[0-9]{1,15})"
KEY = re.compile(f"(?:-?{_NUMBER}~)?{_NUMBER}")
"""A key as text. Its numbers are below 2^53."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A part of a list: so many items behind a key, the newest ones first or last."""

    limit: int
    after: Key | None = None
    """The `next_key` of the page before; None for the first page."""
    newest_first: bool = True
    order: Order = "arrived"
