"""The identities that an item without a guid may have, and the choice between them by what is stored.

Its link identifies it, as long as no other item of the document has that link and another title; where one
has, each of them is identified by a hash of title and date. Documents change, and so the same item would be
known by its link today and by its hash tomorrow: it keeps the identity under which it is stored. Pure
functions; the stored items are read in storage.items.identities.
"""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from string import ascii_lowercase, ascii_uppercase

from rss_pipeline.collector.models.clock import instant

MAX_TITLE_CHARACTERS = 500
"""The beginning of a title that is compared: titles may have megabytes."""
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


def same_title(title: str) -> str:
    """The form in which titles are compared: a rebuilt page may have other letters in capitals. SQL's `lower`
    knows those of ASCII."""
    return title[:MAX_TITLE_CHARACTERS].translate(_LOWER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identities:
    """An item without a guid: the identities that it may have, and what it is recognized by."""

    guid: str
    """Its identity if nothing is stored."""
    link: str
    """As published."""
    hash: str
    """The hash of title and date, as published."""
    linked_hash: str
    """The hash of title, date and link: for an item where one with another link has the other hash."""
    shares_link: bool
    """Another item of the document has the link too, and another title."""
    is_about: bool = False
    """The link is the item's rdf:about: earlier versions took it for a guid."""
    url: str | None
    """The link, resolved."""
    titles: tuple[str | None, ...]
    """As published and as plain text (earlier versions stored the one, later versions the other), and both as
    former codecs read them."""
    pub_date: datetime | None = None
    pub_date_raw: str | None = None
    former_date: tuple[str, datetime] | None = None
    """The date, as published and read, that earlier versions took for that of publication."""

    @property
    def guids(self) -> tuple[str, str, str]:
        return self.link, self.hash, self.linked_hash


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The row of an item, as far as items are recognized by it: stored under a guid, listed by a document, or
    a tombstone, which under a guid is known by its time alone."""

    title: str | None = None
    link: str | None = None
    pub_date: datetime | None = None
    """None where the document gave none that could be read."""
    pub_date_raw: str | None = None
    backup_key: str | None = None
    retired_at: datetime | None = None
    alias_of: str | None = None
    """The guid that the row has, where this one was given to its item later."""
    since: datetime | None = None
    """The fetch time of the document that brought this guid; None for tombstones and what a dry run plans."""


# Guids that are addresses, in another spelling: behind caches and proxies, the software of some sites writes
# http or https, `www.` or not, a final slash or none, by the request that filled the cache.


_BEHIND_PATH = re.compile("[?#]")


def spelling_parts(guid: str) -> tuple[str, str] | None:
    """The common parts of all spellings of an address, around the final slash of its path; None for other
    guids.

    >>> spelling_parts("https://www.example.org/a/?p=1"), spelling_parts("urn:1")
    (('example.org/a', '?p=1'), None)
    """
    scheme, mark, rest = guid.partition("://")
    if not mark or scheme.lower() not in ("http", "https"):
        return None
    behind = _BEHIND_PATH.search(rest)
    end = behind.start() if behind else len(rest)
    head, tail = rest[:end], rest[end:]
    if head[:4].lower() == "www.":
        head = head[4:]
    return (head.removesuffix("/"), tail) if head.strip("/") else None


SPELLINGS = tuple(
    (start, slash) for start in ("https://", "https://www.", "http://", "http://www.") for slash in ("", "/")
)
"""The beginning of an address, and the end of its path."""


def spellings(guid: str) -> tuple[str, ...]:
    """All spellings of a guid that is an address; none of another one."""
    if (parts := spelling_parts(guid)) is None:
        return ()
    head, tail = parts
    return tuple(f"{start}{head}{slash}{tail}" for start, slash in SPELLINGS)


def respelled(listed: Mapping[str, Known], stored: Mapping[str, Known]) -> dict[str, str]:
    """The guids of a document that are not stored, but spell that of a stored item otherwise, each with the
    guid that the item has.

    `listed` are the document's items by guid, `stored` the feed's by any spelling of these guids. Both have
    the same link, in any spelling, or the same title and date. No two items of the document are one.
    """
    found: dict[str, str] = {}
    taken = {stored[guid].alias_of or guid for guid in listed if guid in stored}
    for guid, item in listed.items():
        if guid in stored:
            continue
        for spelling in spellings(guid):
            old = stored.get(spelling)
            name = old and (old.alias_of or spelling)
            if old and name and name not in taken and name not in listed and _is_alike(item, old):
                found[guid] = name
                taken.add(name)
                break
    return found


def _is_alike(item: Known, old: Known) -> bool:
    """Return True if one guid in two spellings names one item. Older tombstones have the guid alone."""
    if old.retired_at is not None and old.link is None and old.title is None:
        return True
    if item.link and old.link and spellings(item.link)[:1] == spellings(old.link)[:1] != ():
        return True
    if item.link is not None and item.link == old.link:
        return True
    return _start(item.title) == _start(old.title) and (
        item.pub_date == old.pub_date
        if item.pub_date and old.pub_date
        else item.pub_date_raw == old.pub_date_raw
    )


def settled(
    items: Sequence[Identities],
    known: Mapping[str, Known],
    *,
    earlier: str | None = None,
    earlier_abouts: str | None = None,
    others: Set[str] = frozenset(),
) -> list[str]:
    """The guid of each of a document's items, in their order.

    `known` is what is stored under their guids, and `others` are the guids of the document's other items.
    `earlier` is the backup key of a document that an earlier version stored: the first item of each link
    alone, under the link. A restore gives it this guid again. `earlier_abouts` is the same of items with an
    rdf:about, for which that holds longer. The same guid twice: the first item has it, the
    others are left out.
    """
    chosen: dict[int, str] = {}
    for place, item in enumerate(items):
        guid = _hash_of_stored(item, known)
        if guid is not None and guid not in others:
            chosen[place] = guid
    by_link: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        if item.shares_link and item.link not in others:
            by_link.setdefault(item.link, []).append(place)
    for link, places in by_link.items():
        left = [place for place in places if place not in chosen]
        found = None
        if link in known:
            found = _stored_by_link(known[link], left, items)
        by = earlier_abouts if items[places[0]].is_about else earlier
        if found is None and left == places and _is_first_of_link(link, known, by):
            found = places[0]
        if found is not None:
            chosen[found] = link
    return [chosen.get(place) or _guid_of_new(item, known, others) for place, item in enumerate(items)]


def held_back(item: Identities, guid: str, known: Mapping[str, Known]) -> bool:
    """Return True if the item may be news, and is not stored: one with its link was retired, and as the item
    has no date, it may be that one."""
    return item.shares_link and guid == item.link and _may_be_retired(item, known) and item.pub_date is None


def _hash_of_stored(item: Identities, known: Mapping[str, Known]) -> str | None:
    """The hash under which the item is stored or retired, if it is.

    A tombstone knows no link: an item of another link, with that title and date, is as old as the one it
    keeps away.
    """
    if item.linked_hash in known:
        return item.linked_hash
    found = known.get(item.hash)
    if found is None or (found.retired_at is None and _page(found.link) != _page(item.url)):
        return None
    return item.hash


def _stored_by_link(stored: Known, places: Sequence[int], items: Sequence[Identities]) -> int | None:
    """The item that is stored under the link which these share: that with its title and no other date."""
    if stored.retired_at is not None:
        return None
    titled = [place for place in places if _start(stored.title) in map(_start, items[place].titles)]
    for alike in (_has_date_of, _may_have_date_of):
        for place in titled:
            if alike(items[place], stored):
                return place
    return None


def _is_first_of_link(link: str, known: Mapping[str, Known], earlier: str | None) -> bool:
    """Return True if an earlier version stored the document's first item with the link, or would have.

    It is stored of that document, its title read otherwise now (another charset); or it is lost.
    """
    return earlier is not None and (link not in known or known[link].backup_key == earlier)


def _guid_of_new(item: Identities, known: Mapping[str, Known], others: Set[str]) -> str:
    if not item.shares_link:
        return item.link
    if _may_be_retired(item, known):
        return item.link
    if item.guid == item.hash and (item.hash in known or item.hash in others):
        return item.linked_hash
    return item.guid


def _may_be_retired(item: Identities, known: Mapping[str, Known]) -> bool:
    """Return True if an item was retired under the link, and this one is not newer than that."""
    retired_at = known[item.link].retired_at if item.link in known else None
    return retired_at is not None and (item.pub_date is None or item.pub_date <= retired_at)


def _start(title: str | None) -> str:
    return (title or "")[:MAX_TITLE_CHARACTERS]


def _has_date_of(item: Identities, stored: Known) -> bool:
    dates = [(item.pub_date_raw, item.pub_date), *([item.former_date] if item.former_date else [])]
    return any(_is_date_of(raw, date, stored) for raw, date in dates)


def _is_date_of(raw: str | None, date: datetime | None, stored: Known) -> bool:
    if date is not None and stored.pub_date is not None:
        return instant(date) == instant(stored.pub_date)
    return raw is not None and raw == stored.pub_date_raw


def _may_have_date_of(item: Identities, stored: Known) -> bool:
    """Return True if one of them has no date: earlier versions did not read all of them."""
    return item.pub_date_raw is None or stored.pub_date_raw is None


def _page(url: str | None) -> str | None:
    """The URL without scheme and host, which change when a site moves."""
    return None if url is None else url.partition("://")[2].partition("/")[2]
