"""Folding: the items that lists of several feeds show as one entry, for a user who wants that.

Which items these are is a feature's (`Feature.folding`); item_query.py applies it where a filter is folded.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import NamedTuple, Protocol

from rss_pipeline.features import FEATURES
from rss_pipeline.storage.database import Result, Statement
from rss_pipeline.storage.items.stories import is_named
from rss_pipeline.storage.subscriptions.chosen import Scope


class FoldedItem(NamedTuple):
    """An item of an entry, in a feed of the user's."""

    shown_id: str
    """The item that the list shows in place of all."""
    id: str
    arrived: int
    feed_id: str
    feed_title: str | None
    """The user's own, or else the feed's."""
    feed_url: str
    title: str | None
    link: str | None
    published: str
    article: str
    """Equal for the copies of one article."""
    unread: int
    replaced: int
    """1 if a newer item of its feed replaces it."""
    joins: str | None
    """The earlier items with which it stands by itself (storage/items/stories.py)."""

    @property
    def published_at(self) -> datetime:
        return datetime.fromisoformat(self.published)


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenUnread:
    """The unread items that are counted in their feeds, and not in lists of several feeds."""

    of_all: int = 0
    of_folders: Mapping[str, int] = field(default_factory=dict)
    of_feeds: Mapping[str, int] = field(default_factory=dict)
    """By feed, the ones that a list of all does not show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """Statements of a feature, and what their results are."""

    shown: str
    """The condition that no other item stands for an item in a list of all: SQL in terms of `{user}`,
    `{feed}`, `{arrived}` and `{scope}`, the condition on `subscriptions AS s`."""
    shown_unread: str
    """The same in a list of unread items."""
    count: Callable[[str], Statement]
    """A query for `counted`, by a user's id."""
    counted: Callable[[Result], HiddenUnread]
    ids: str
    """All items of the entry of an item, in a list of all: SQL for a JSON list of each one's place, id,
    arrival number, and 1 if it is read with that item, in terms of `{user}` and `{item}`."""
    read: Callable[[str, Scope, Sequence[str]], Statement]
    """A query for all items of the entries that show these items in a list of this part of the user's feeds:
    rows with the fields of FoldedItem."""


@cache
def folding() -> Folding | None:
    """The one of the features; None where none folds anything."""
    return next((each.folding.load() for each in FEATURES if each.folding is not None), None)


def folded_ids(user: str, item: str) -> str:
    """`Folding.ids` for columns or parameters with the ids of a user and an item."""
    folds = folding()
    return "NULL" if folds is None else folds.ids.format(user=user, item=item)


def ordered_ids(text: str | None) -> list[str]:
    """The ids of that, the leading item first; empty for an item that stands for itself."""
    found = [] if text is None else sorted(json.loads(text))
    return [id for _, id, *_ in found] if len(found) > 1 else []


def numbers_together(text: str | None) -> dict[int, bool]:
    """The arrival numbers of the same items, each with True if it is read with the shown item; empty for one
    that is in none."""
    return {} if text is None else {number: bool(paired) for _, _, number, paired in json.loads(text)}


class Foldable(Protocol):
    """An item of an entry."""

    @property
    def id(self) -> str: ...
    @property
    def feed_id(self) -> str: ...
    @property
    def arrived(self) -> int: ...
    @property
    def article(self) -> str: ...
    @property
    def replaced(self) -> int: ...
    @property
    def joins(self) -> str | None: ...


def is_old_by(one: Foldable, other: Foldable) -> bool:
    """True if an item of an entry is no news to somebody who has read the other one: it is a copy of that, or
    it was replaced by it. What only a third one ties to it is news."""
    if other.article == one.article and other.arrived < one.arrived:
        return are_paired(one, other)
    is_reissue = one.replaced == 1 and other.feed_id == one.feed_id and other.arrived > one.arrived
    return is_reissue and are_paired(one, other)


def are_paired(one: Foldable, other: Foldable) -> bool:
    """True if two items stand together by themselves."""
    return is_named(other.id, one.joins) or is_named(one.id, other.joins)


def is_news(one: FoldedItem, items: Sequence[FoldedItem]) -> bool:
    """True for an unread one of these items, unless another one makes it old that is read."""
    return bool(one.unread) and not any(not each.unread and is_old_by(one, each) for each in items)


def earlier_copies(items: Sequence[FoldedItem], id: str) -> list[FoldedItem]:
    """The ones of these that the shown item is a copy of: it is news only while all of them are unread."""
    one = next((each for each in items if each.id == id), None)
    return [] if one is None else [each for each in items if is_old_by(one, each)]


def read_with(items: Sequence[FoldedItem], id: str) -> list[FoldedItem]:
    """The shown item, and the ones of these that are read with it: not those that only a third one ties to
    it, which come as an entry of their own then."""
    one = next((each for each in items if each.id == id), None)
    return [] if one is None else [each for each in items if each is one or are_paired(one, each)]


def folded_items(result: Result) -> dict[str, list[FoldedItem]]:
    """By the shown item, the rows of `Folding.read`, the leading item first."""
    found = dict[str, list[FoldedItem]]()
    for item in map(FoldedItem._make, result.columns(*FoldedItem._fields)):
        found.setdefault(item.shown_id, []).append(item)
    return found
