"""The items of a user as people are shown them: pages of lists, named items, one item with its neighbours.

No contents: the bodies are bodies.py's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rss_pipeline.reader.query import Query
from rss_pipeline.reader.query import together as of_one_moment
from rss_pipeline.storage.database import MAX_INTEGER, Result
from rss_pipeline.storage.items import cursor
from rss_pipeline.storage.subscriptions import folding, item_lists
from rss_pipeline.storage.subscriptions.chosen import (
    ALL,
    KEY,
    MAX_CHOSEN,
    Chosen,
    Filter,
    Fold,
    Key,
    Order,
    Page,
    Scope,
    Shown,
)
from rss_pipeline.storage.subscriptions.folding import (
    FoldedItem,
    earlier_copies,
    is_news,
    ordered_ids,
    read_with,
)
from rss_pipeline.storage.subscriptions.item_lists import (
    READ_CHARACTERS,
    FeedOfPage,
    ItemRow,
    Items,
    MarkedItem,
    Numbers,
    PageVersion,
)

__all__ = [
    "ALL",
    "KEY",
    "MAX_CHOSEN",
    "MAX_INTEGER",
    "FeedOfPage",
    "Filter",
    "Fold",
    "FoldedItem",
    "ItemRow",
    "Items",
    "Key",
    "MarkedItem",
    "Numbers",
    "Order",
    "Page",
    "PageVersion",
    "Scope",
    "Shown",
    "Texts",
    "arrival_numbers",
    "earlier_copies",
    "feed_of_page",
    "highest_number",
    "is_news",
    "item",
    "item_keys",
    "items",
    "items_by_number",
    "items_with_texts",
    "marks",
    "named_items_with_texts",
    "nearest_numbers",
    "neighbours",
    "ordered_ids",
    "page_version",
    "read_with",
    "together",
]

Texts = Mapping[str, str]
"""By item id, the starts of the texts of items, as unchecked HTML."""


def items(user_id: str, filter: Filter, page: Page, *, with_together: bool = False) -> Query[Items]:
    """A page of a list."""
    return Query.of(
        item_lists.list_items(user_id, filter, page, with_together=with_together),
        lambda found: item_lists.items_of(found, page),
    )


def items_with_texts(user_id: str, filter: Filter, page: Page) -> Query[tuple[Items, Texts]]:
    """A page of a list, and the starts of the items' texts."""
    return Query.of(
        item_lists.list_items(user_id, filter, page, text_characters=READ_CHARACTERS),
        lambda found: (item_lists.items_of(found, page), item_lists.texts_of(found)),
    )


def page_version(user_id: str, filter: Filter, page: Page) -> Query[PageVersion | None]:
    """The version of a page, in a third of the time of the page; None if its scope is a feed that the user
    does not subscribe to."""
    return Query.of(item_lists.page_version(user_id, filter, page), item_lists.page_version_of)


def feed_of_page(user_id: str, filter: Filter) -> Query[FeedOfPage | None]:
    """The feed of a page of its items; None for a page of several feeds, and where the user does not
    subscribe to it."""
    feed_id = filter.scope.feed_id
    if feed_id is None:
        return Query((), lambda _: None)
    return Query.of(item_lists.read_feed_of_page(user_id, feed_id, filter), item_lists.feed_of_page)


def arrival_numbers(user_id: str, filter: Filter, page: Page) -> Query[Numbers]:
    """The arrival numbers of a page by arrival, from indexes alone."""
    return Query.of(
        item_lists.list_numbers(user_id, filter, page), lambda found: item_lists.numbers_of(found, page)
    )


def highest_number() -> Query[int]:
    """The highest arrival number given so far, 0 for none: with other queries, the end of what they see."""
    return Query.of(cursor.highest_number(), lambda found: int(found.values[0][0]))


def nearest_numbers(since: int | None, until: int | None) -> Query[tuple[int | None, int | None]]:
    """The same bounds of arrival numbers as those of the items next to them, which stay the same while
    nothing comes in between two moments; None for a bound that is None."""

    def read(found: Result) -> tuple[int | None, int | None]:
        lowest, highest = found.values[0]
        return (
            None if since is None else MAX_INTEGER if lowest is None else int(lowest),
            None if until is None else 0 if highest is None else int(highest),
        )

    return Query.of(item_lists.nearest_numbers(since, until), read)


def item(user_id: str, item_id: str) -> Query[ItemRow | None]:
    """One item; None for what is no item of the user's feeds."""
    return Query.of(
        item_lists.items_by(user_id, Chosen.by_ids([item_id]), with_together=True),
        lambda found: next(iter(item_lists.named_items(found)), None),
    )


def item_keys(user_id: str, item_id: str) -> Query[Mapping[Order, Key]]:
    """The keys of an item in every order; empty for what is no item of the user's feeds."""
    return Query.of(item_lists.keys_of(user_id, item_id), item_lists.item_keys)


def neighbours(user_id: str, filter: Filter, page: Page) -> Query[tuple[ItemRow | None, ItemRow | None]]:
    """The items before and behind the key of a page, in its list and its order."""
    forth = replace(page, limit=1)
    back = replace(forth, newest_first=not page.newest_first)
    return of_one_moment(items(user_id, filter, back), items(user_id, filter, forth)).then(
        lambda found: (next(iter(found[0].items), None), next(iter(found[1].items), None))
    )


def items_by_number(user_id: str, numbers: Sequence[int]) -> Query[Mapping[int, ItemRow]]:
    """By arrival number, those of these items that are the user's feeds'."""
    return Query.of(
        item_lists.items_by(user_id, Chosen.by_numbers(numbers)),
        lambda found: {row.arrived: row for row in item_lists.named_items(found)},
    )


def named_items_with_texts(user_id: str, ids: Sequence[str]) -> Query[tuple[Sequence[ItemRow], Texts]]:
    """The items of these ids that are the user's feeds', newest first, and the starts of their texts."""
    return Query.of(
        item_lists.items_by(user_id, Chosen.by_ids(ids), text_characters=READ_CHARACTERS),
        lambda found: (item_lists.named_items(found), item_lists.texts_of(found)),
    )


def together(user_id: str, scope: Scope, ids: Sequence[str]) -> Query[Mapping[str, Sequence[FoldedItem]]]:
    """By shown item, all items of the entries that show these items in a list of several feeds, the leading
    one first; nothing of an item that stands for itself."""
    folds = folding.folding()
    if folds is None or not ids or scope.feed_id is not None:
        return Query((), lambda _: {})
    return Query.of(folds.read(user_id, scope, ids), folding.folded_items)


def marks(user_id: str, ids: Sequence[str]) -> Query[Sequence[MarkedItem]]:
    """The marks of those of these items that are the user's feeds'."""
    return Query.of(item_lists.marks_of(user_id, Chosen.by_ids(ids)), item_lists.marked_items)
