"""The items of a document whose publisher has given nearly all of them other guids, by what is stored.

A new guid alone is a new item. Only where a whole document has new ones, and half of its items are stored
ones, have its guids been rewritten: by other software, a moved site, or at every visit. Pure functions; the
stored items are read in storage.items.identities.
"""

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.identity import MAX_TITLE_CHARACTERS, Known

MIN_REWRITTEN = 3

Key = Callable[[Known], Hashable | None]


def may_be_rewritten(new: int, listed: int) -> bool:
    """Return True if at least 80 % of a document's guids are new, and at least three."""
    return new >= MIN_REWRITTEN and 5 * new >= 4 * listed


@dataclass(frozen=True, slots=True)
class Brought:
    """The items of a document whose guids were first seen in this very document: it is read again."""

    new: Collection[str] = ()
    """The ones stored from it, by guid."""
    rewritten: Collection[str] = ()
    """The ones recognized in it, by the guid that they keep."""

    @property
    def all(self) -> set[str]:
        """The new and the recognized ones."""
        return {*self.new, *self.rewritten}


def rewritten(
    listed: Mapping[str, Known],
    known: Collection[str],
    stored: Mapping[str, Known],
    *,
    before: bool = False,
    brought: Brought = Brought(),
) -> dict[str, str]:
    """The new guids that stored items have in this document, each with the guid that its item keeps.

    `listed` are the document's items, `known` the guids among theirs that are stored or retired, and `stored`
    at least the feed's items, also retired ones, with a link or title of the document; all by guid. Two items
    are one if both have the same link; if one of them has no link, the same title and date; if one has moved
    to another host, the same path, title and date. Neither the document nor the feed may have another item
    that is alike: what is ambiguous is new. Nothing is rewritten unless these are at least three, and half of
    the document's items.

    A feed whose guids were rewritten `before` may go back, or list guids of several kinds: then a new guid is
    that of the one stored item with the same link, title and date; without dates, with the same link and
    title, where the document has at least 80 % new guids.

    A document that is read again is judged as it was: what it has `brought` was new then.
    """
    found: dict[str, str] = {}
    stored_links = {_by_link(old) for old in stored.values()}

    def find(key: Key, may_be: Callable[[Known, Known], bool]) -> None:
        theirs = _only(stored, key)
        for value, guid in _only(listed, key).items():
            old = theirs.get(value)
            if guid is None or old is None or guid in known or guid in found:
                continue
            if old not in listed and may_be(listed[guid], stored[old]):
                found[guid] = old

    again = sum(guid in listed for guid in brought.rewritten)
    were_known = set(known) - brought.all
    is_rewritten = may_be_rewritten(sum(guid not in were_known for guid in listed), len(listed))
    if is_rewritten:
        find(_by_link, lambda _new, _old: True)
        find(_by_title_and_date, lambda new, old: not new.link or not old.link)
        find(_by_page, lambda new, _old: _by_link(new) not in stored_links)
    if len(found) + again < MIN_REWRITTEN or 2 * (len(found) + again) < len(listed):
        found.clear()
        if before:
            find(_by_all, lambda _new, _old: True)
        if before and is_rewritten:
            find(_by_link_and_title, lambda _new, _old: True)
    return found


def _only(items: Mapping[str, Known], key: Key) -> dict[Hashable, str | None]:
    """The guid of the item with each key; None where several have it."""
    by_key: dict[Hashable, str | None] = {}
    for guid, item in items.items():
        if (value := key(item)) is not None:
            by_key[value] = None if value in by_key else guid
    return by_key


def _by_link(item: Known) -> str | None:
    return _without_scheme(item.link) if item.link else None


def _by_title_and_date(item: Known) -> tuple[str, str] | None:
    if not item.title or item.pub_date is None:
        return None
    return item.title[:MAX_TITLE_CHARACTERS], instant(item.pub_date)


def _by_page(item: Known) -> Hashable | None:
    titled = _by_title_and_date(item)
    path = _without_scheme(item.link or "").lstrip("/").partition("/")[2]
    return (path, titled) if path and titled else None


def _by_all(item: Known) -> Hashable | None:
    titled = _by_title_and_date(item)
    return (_by_link(item), titled) if titled else None


def _by_link_and_title(item: Known) -> Hashable | None:
    """The key of an item without a date."""
    is_undated = item.link and item.title and item.pub_date is None
    return (_by_link(item), (item.title or "")[:MAX_TITLE_CHARACTERS]) if is_undated else None


def _without_scheme(link: str) -> str:
    scheme, colon, rest = link.partition(":")
    return rest if colon and scheme.lower() in ("http", "https") else link


def same_links(link: str) -> tuple[str, ...]:
    """The link over http and over https, if it is either: the same page."""
    rest = _without_scheme(link)
    return (link,) if rest == link else (f"http:{rest}", f"https:{rest}")
