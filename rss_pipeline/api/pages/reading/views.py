"""The lists of items that a user may look at, each with its address: which items, in which order.

A view travels in addresses: an item that was opened from one leads back to it, and on to its next item.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeVar
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from rss_pipeline.api.pages.addresses import HOME, feed_url, folder_url, local
from rss_pipeline.api.request_values import has_controls
from rss_pipeline.reader.accounts.preferences import Preferences
from rss_pipeline.reader.item_queries import ALL, Filter, Fold, Key, Page, Scope
from rss_pipeline.reader.item_queries import Order as ItemOrder

T = TypeVar("T", bound=str)

Kind = Literal["unread", "all", "starred", "feed", "folder"]
Show = Literal["unread", "all"]
Order = Literal["published", "newest", "oldest"]

_WITHOUT_NAME: Mapping[str, Kind] = {"/unread": "unread", "/all": "all", "/starred": "starred"}
_MOST_CHARACTERS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A list. `show` and `order` are what its address names; None for what the user prefers."""

    kind: Kind
    scope: Scope = ALL
    show: Show | None = None
    order: Order | None = None

    @property
    def path(self) -> str:
        """The address without `show` and `order`."""
        match self.kind:
            case "feed":
                return feed_url(self.scope.feed_id or "")
            case "folder":
                return folder_url(self.scope.folder or "")
            case _:
                return f"/{self.kind}"

    def address(self, *, after: Key | None = None) -> str:
        """The address, of the page behind this key."""
        named = {"show": self.show, "order": self.order, "after": after}
        query = urlencode({name: value for name, value in named.items() if value is not None})
        return f"{self.path}{'&' if '?' in self.path else '?'}{query}" if query else self.path

    def showing(self, show: Show) -> str:
        """The address of the same list with all items, or only the unread ones."""
        if self.kind in ("unread", "all"):
            return replace(self, kind=show, show=None).address()
        return replace(self, show=show).address()

    def ordered(self, order: Order) -> str:
        """The address of the same list in this order."""
        return replace(self, order=order).address()

    def is_unread_only(self, preferences: Preferences) -> bool:
        if self.kind in ("unread", "all"):
            return self.kind == "unread"
        if self.show is not None or self.kind == "starred":
            return self.show == "unread"
        return not preferences.show_read

    def order_for(self, preferences: Preferences) -> Order:
        return self.order or preferences.order

    def newest_first(self, preferences: Preferences) -> bool:
        return self.order_for(preferences) != "oldest"

    def filter(self, preferences: Preferences) -> Filter:
        """Which items the list has."""
        return Filter(
            scope=self.scope,
            is_read=False if self.is_unread_only(preferences) else None,
            is_starred=True if self.kind == "starred" else None,
            fold=Fold(scope=self.scope) if preferences.stories and self.kind != "feed" else None,
        )

    def item_order(self, preferences: Preferences) -> ItemOrder:
        """The order of the list's items. By arrival, the first document of a new feed would be before all
        news of others; in a list of that feed alone there is none."""
        if self.order_for(preferences) == "published":
            return "published"
        return "arrived" if self.kind == "feed" else "placed"

    def page(self, preferences: Preferences, *, after: Key | None, limit: int | None = None) -> Page:
        """A part of the list."""
        order = self.item_order(preferences)
        return Page(
            limit=preferences.entries_per_page if limit is None else limit,
            after=None if after is None else after.within(order),
            newest_first=self.newest_first(preferences),
            order=order,
        )


def view_at(address: str | None) -> View:
    """The view of an address such as `/feeds/planet?show=all`; that of the first page for any other text."""
    parts = urlsplit(local(address))
    given = dict(parse_qsl(parts.query))
    show: Show | None = _one(given.get("show"), "unread", "all")
    order: Order | None = _one(given.get("order"), "published", "newest", "oldest")
    folder, _, name = parts.path[1:].partition("/")
    name = unquote(name) or given.get("name", "")
    if parts.path in _WITHOUT_NAME:
        return View(kind=_WITHOUT_NAME[parts.path], show=show, order=order)
    if name and len(name) <= _MOST_CHARACTERS and not has_controls(name):
        if folder == "feeds" and "/" not in name:
            return View(kind="feed", scope=Scope(feed_id=name), show=show, order=order)
        if folder == "folders":
            return View(kind="folder", scope=Scope(folder=name), show=show, order=order)
    return View(kind=_WITHOUT_NAME[HOME])


def _one(value: str | None, *known: T) -> T | None:
    return next((each for each in known if each == value), None)
