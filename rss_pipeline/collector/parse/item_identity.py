"""The identity of each item of a document: its guid, its link or a hash; as if nothing were stored yet.

What is stored may give an item without guid another of its identities: collector.models.identity.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from rss_pipeline.collector.models.feed import ItemKey
from rss_pipeline.collector.models.item import GuidSource
from rss_pipeline.collector.parse.raw_feed import RawItem

MOST_GUID_BYTES = 2_000
"""Postgres has 2,704 bytes for an entry of an index, and the feed's id is in it too."""
_MOST_STORED_BYTES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The identity of an item in its feed. The hashes are those of an item that may be known by several."""

    guid: str
    source: GuidSource
    hash: str | None = None
    linked_hash: str | None = None
    shares_link: bool = False


def identities(items: Collection[RawItem], key: ItemKey) -> Iterator[tuple[RawItem, Identity]]:
    """Each item with its identity: `guid_of`, but the hash for items without guid that share a link.

    They share it if they differ in title: else all but one of a site that links each item to the same page
    would be lost. Where an item of another link has the same title and date, the hash is of the link too. An
    rdf:about that equals the link is none but the link, and one that is not this item's alone is none.
    """
    if key == "guid":
        common = _common_abouts(items)
        items = [
            replace(item, guid=None, is_about=False)
            if item.is_about and item.guid in common
            else replace(item, guid=None)
            if _is_link_alone(item)
            else item
            for item in items
        ]
    identified = [
        (item, Identity(guid=guid, source=source)) for item in items for guid, source in (guid_of(item, key),)
    ]
    if key != "guid":
        yield from identified
        return
    shared = _shared_links(items)
    by_hash: dict[str, str | None] = {each.guid: None for _, each in identified if each.source != "link"}
    for item, each in identified:
        if each.source != "link" or item.link is None:
            yield item, each
            continue
        hashed = _hash(item)
        linked = _linked_hash(hashed, item.link)
        shares = item.link in shared
        if shares:
            is_free = by_hash.setdefault(hashed, item.link) == item.link
            each = Identity(guid=hashed if is_free else linked, source="hash")
        elif item.is_about:
            each = replace(each, source="guid")
        yield item, replace(each, hash=hashed, linked_hash=linked, shares_link=shares)


def in_short(items: Iterable[RawItem]) -> list[RawItem]:
    """The items as they are identified: a guid or link of more than 2,000 bytes by its SHA-256."""
    return [
        replace(item, guid=_short(item.guid), link=_short(item.link))
        if len(item.guid or "") > MOST_GUID_BYTES // 4 or len(item.link or "") > MOST_GUID_BYTES // 4
        else item
        for item in items
    ]


def _short(value: str | None) -> str | None:
    if value is None or len(value) <= MOST_GUID_BYTES // 4 or len(value.encode()) <= MOST_GUID_BYTES:
        return value
    return f"sha256:{hashlib.sha256(value.encode()).hexdigest()}"


def long_guid(item: RawItem, guid: str) -> Iterator[tuple[str, str]]:
    """The guid in short with the long one, under which earlier versions stored the item; none if it is the
    same. `item` is as it was published."""
    for value in (item.guid, item.link):
        if value and value != guid and len(value) <= _MOST_STORED_BYTES and _short(value) == guid:
            yield guid, value
            return


def former_about(item: RawItem, identity: Identity) -> Iterator[tuple[str, str]]:
    """The link of an item whose rdf:about several have, with that: earlier versions stored one of them so."""
    if item.is_about and identity.source == "link" and item.guid and item.guid != identity.guid:
        yield identity.guid, item.guid


def misread_guids(item: RawItem, identity: Identity) -> Iterator[tuple[str, str]]:
    """The guid of an item of an ill-formed document, with each identity that it would have without one.

    Earlier versions found no guid where tags did not match, and stored the item under its link or hash.
    """
    if item.guid and identity.guid == item.guid:
        yield from ((item.guid, former) for former in (item.link, _hash(item)) if former)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerItem:
    """An item's identities and titles as a former codec of the feed read them."""

    guid: str
    hash: str
    link: str | None
    titles: tuple[str | None, ...]


def former_items(items: Iterable[RawItem], key: ItemKey) -> list[FormerItem]:
    """The items of a document that a former codec of its feed decoded."""
    return [
        FormerItem(
            guid=guid_of(item, key)[0],
            hash=_hash(item),
            link=item.link,
            titles=(item.plain_title or item.title, item.title),
        )
        for item in in_short(items)
    ]


def former_guids(link: str | None, identity: Identity, former: FormerItem) -> Iterator[tuple[str, str]]:
    """Each guid that the item may have, with its former reading, where that is another."""
    pairs = [(identity.guid, former.guid)]
    if identity.hash is not None and identity.linked_hash is not None and link and former.link:
        linked = _linked_hash(former.hash, former.link)
        pairs = [(link, former.link), (identity.hash, former.hash), (identity.linked_hash, linked)]
    yield from (pair for pair in pairs if pair[0] != pair[1])


def guid_of(item: RawItem, key: ItemKey) -> tuple[str, GuidSource]:
    """The identity of an item for itself, and its source.

    The raw guid, else the raw link, else MD5 of raw title and raw date: never a resolved URL, which a
    redirect would change, and never a date of our own, which each poll would change. `key` puts link or hash
    first. Without title and date, the hash is of the content.
    """
    order: Mapping[ItemKey, list[tuple[str | None, GuidSource]]] = {
        "guid": [(item.guid, "guid"), (item.link, "link")],
        "link": [(item.link, "link"), (item.guid, "guid")],
        "title+date": [],
    }
    found = next(((value, source) for value, source in order[key] if value), None)
    return found or (_hash(item), "hash")


def _is_link_alone(item: RawItem) -> bool:
    return item.is_about and item.guid == item.link


def _common_abouts(items: Iterable[RawItem]) -> frozenset[str]:
    """Each rdf:about of several items that differ in link and title."""
    links: dict[str, set[str | None]] = {}
    titles: dict[str, set[str | None]] = {}
    for item in items:
        if item.is_about and item.guid:
            links.setdefault(item.guid, set()).add(item.link)
            titles.setdefault(item.guid, set()).add(item.title)
    return frozenset(about for about, some in links.items() if len(some) > 1 and len(titles[about]) > 1)


def _shared_links(items: Iterable[RawItem]) -> frozenset[str]:
    """The links that several items without guid have, with different titles."""
    titles: dict[str, set[str | None]] = {}
    for item in items:
        if item.link and not item.guid:
            titles.setdefault(item.link, set()).add(item.title)
    return frozenset(link for link, some in titles.items() if len(some) > 1)


def _hash(item: RawItem) -> str:
    text = (item.title or "") + (item.dates[0] if item.dates else "")
    text = text or item.content_html or "".join(each.url for each in item.enclosures)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _linked_hash(hashed: str, link: str) -> str:
    return hashlib.md5(f"{hashed}\n{link}".encode(), usedforsecurity=False).hexdigest()
