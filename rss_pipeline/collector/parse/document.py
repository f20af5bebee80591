"""The parser: a document's bytes to a ParsedFeed, by decoding, repair, reading, identity and dates.

The formats are read in `rss_atom.py`, `json_feed.py` and `feedparser_fallback.py`. No I/O, no storage.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any
from xml.etree.ElementTree import Element, ParseError, SubElement

from rss_pipeline.collector.models.feed import ItemKey
from rss_pipeline.collector.models.identity import Identities
from rss_pipeline.collector.models.item import Enclosure, FeedHeader, Item, ItemTree, ParsedFeed
from rss_pipeline.collector.parse.characters.c1_characters import with_c1_read
from rss_pipeline.collector.parse.characters.decode import decode, former_readings
from rss_pipeline.collector.parse.dates.read import has_impossible_zone, parse_date
from rss_pipeline.collector.parse.feedparser_fallback import read_with_feedparser
from rss_pipeline.collector.parse.item_identity import (
    FormerItem,
    Identity,
    former_about,
    former_guids,
    former_items,
    identities,
    in_short,
    long_guid,
    misread_guids,
)
from rss_pipeline.collector.parse.json_feed import read_json_feed
from rss_pipeline.collector.parse.pictures import with_pictures
from rss_pipeline.collector.parse.raw_feed import RawFeed, RawItem, with_line_breaks
from rss_pipeline.collector.parse.rss_atom import in_feed, read_feed
from rss_pipeline.collector.parse.sections import Sections
from rss_pipeline.collector.parse.web_page import is_web_page, web_page_sentence
from rss_pipeline.collector.parse.xml.namespaces import NAMESPACES
from rss_pipeline.collector.parse.xml.repair import (
    OpenedDocument,
    is_feed_name,
    opened,
    repaired,
    with_prefixes,
)
from rss_pipeline.collector.parse.xml.tolerant import read_tolerantly
from rss_pipeline.collector.parse.xml.tree import UNBOUND_PREFIX, Tree, read_tree
from rss_pipeline.errors import NotAFeed

MAX_FEED_TITLE_CHARACTERS = 1_000
"""Length of a feed's own title, which is used in events and tables; an item's is stored as published."""
_MAX_DESCRIPTION_CHARACTERS = 2_000
_MAX_LANGUAGE_CHARACTERS = 100
_UPDATES_KEPT = 20
_NO_TAGS = Sections((r"<!\[CDATA\[", "]]>"), ("<!--", "-->"))
_ITEM_TAG = re.compile(r"<(?:\w+:)?(?:item|entry)(?=[\s>])", re.IGNORECASE)


def parse_feed(
    body: bytes,
    *,
    content_type: str | None = None,
    url: str | None = None,
    hint: str | None = None,
    formers: Iterable[str | None] = (),
    key: ItemKey = "guid",
    now: datetime | None = None,
    keep_tree: bool = False,
) -> ParsedFeed:
    """Read a document as served, after content decoding.

    Relative links are resolved against `url`, `hint` is the codec that last decoded this feed, `formers` are
    those by which its stored items may have been read, `key` is the identity of its items, and `now` limits
    the years of dates. With `keep_tree`, the result has the elements that its items were read from. Raises
    `NotAFeed` with a message for a person and the kind `empty_body`, `html` or `not_a_feed`.
    """
    decoded = decode(body, content_type=content_type, hint=hint)
    if not decoded.text.strip("\x00 \t\r\n\ufeff"):
        raise NotAFeed(
            "The server sent an empty document. If this continues, its publisher has to fix it.",
            kind="empty_body",
        )
    now = now or datetime.now(UTC)
    read = partial(_read, content_type=content_type, url=url, now=now)
    raw = read(decoded.text)
    tree = raw.tree or plain_tree(raw) if keep_tree else None
    # The tree is larger than the document.
    raw = replace(raw, tree=None)
    is_ascii = decoded.text.isascii()
    former = (
        [] if is_ascii else list(_former(former_readings(body, decoded.charset, formers), raw, key, read))
    )
    items, kept, duplicates, shared = _identified(
        raw.items, key, now, former, is_ill_formed=raw.is_ill_formed
    )
    repairs = raw.repairs
    if decoded.replaced:
        repairs = (f"{decoded.replaced} undecodable place(s) replaced", *repairs)
    header = FeedHeader(
        format=raw.format,
        title=raw.title and raw.title[:MAX_FEED_TITLE_CHARACTERS],
        link=raw.link,
        description=raw.description and raw.description[:_MAX_DESCRIPTION_CHARACTERS],
        language=raw.language and raw.language[:_MAX_LANGUAGE_CHARACTERS],
        charset=decoded.charset,
        charset_rule=decoded.rule,
        is_ascii=is_ascii,
        mislabelled=decoded.mislabelled,
        repairs=repairs,
        hints=replace(raw.hints, updates=_updates(items, now)),
    )
    parsed = ParsedFeed(
        header=header,
        items=items,
        duplicate_guids=duplicates,
        shared_guids=shared,
        impossible_zones=sum(
            item.pub_date is not None and has_impossible_zone(item.pub_date_raw or "") for item in items
        ),
        dropped_items=raw.dropped_items,
        cut_off=raw.cut_off,
        tree=tree and replace(tree, items=tuple(tree.items[place] for place in kept)),
    )
    return with_c1_read(parsed, decoded.text)


def _read(text: str, content_type: str | None, url: str | None, now: datetime) -> RawFeed:
    if text.lstrip("\ufeff \t\r\n").startswith("{"):
        return read_json_feed(text.strip("\ufeff\x00 \t\r\n"), url, now=now)
    document = opened(text)
    if document.root.lower() == "html":
        raise NotAFeed(web_page_sentence(text, url), kind="html")
    feed = None
    tree, repairs, repaired_text = _tree(document)
    is_ill_formed = tree is None and is_feed_name(document.root)
    if is_ill_formed:
        tree = read_tolerantly(repaired_text)
        repairs = (*repairs, "ill-formed; read by the tolerant parser")
    feed_tree = tree and in_feed(tree)
    if feed_tree is not None and is_feed_name(document.root):
        feed = read_feed(feed_tree, url, now=now)
    else:
        feed = read_with_feedparser(repaired_text, url, now=now)
    if feed is not None and feed.cut_off and not feed.items:
        raise NotAFeed(
            "The document is cut off before its first item ends. "
            "If this continues, its publisher has to fix it."
        )
    if feed is None:
        if is_web_page(text, content_type):
            raise NotAFeed(web_page_sentence(text, url), kind="html")
        raise NotAFeed(
            "The document is not RSS, Atom or JSON Feed"
            + (f" (it begins with <{document.root[:40]}>)" if document.root else "")
            + ". Open its address in a browser to see what the server sends."
        )
    if not feed.items and (listed := _item_tags(repaired_text)):
        raise NotAFeed(
            f"The document has {listed} item tag(s), but no item could be read. Open its address in a"
            " browser to see what is wrong; only its publisher can fix it."
        )
    return replace(feed, repairs=(*document.repairs, *repairs, *feed.repairs), is_ill_formed=is_ill_formed)


def _item_tags(text: str) -> int:
    return len(_ITEM_TAG.findall(_NO_TAGS.sub(lambda _section: "", text)))


def _tree(document: OpenedDocument) -> tuple[Tree | None, tuple[str, ...], str]:
    """The tree (None if repair does not help), the repairs, and the repaired text."""
    try:
        return read_tree(document.text), (), document.text
    except ParseError:
        text, repairs = repaired(document)
    try:
        return read_tree(text), repairs, text
    except ParseError as error:
        if error.code != UNBOUND_PREFIX:
            return None, repairs, text
    text, repairs = with_prefixes(text), (*repairs, "undeclared prefixes declared")
    try:
        return read_tree(text), repairs, text
    except ParseError:
        return None, repairs, text


def _former(
    texts: Iterable[str], feed: RawFeed, key: ItemKey, read: Callable[[str], RawFeed]
) -> Iterator[list[FormerItem]]:
    """The items of each former reading of the document, in its order.

    The whole document is read once more: an item is stored as that codec read its bytes, and what it did
    with one that it could not decode is in no text of today's reading.
    """
    for text in texts:
        with suppress(NotAFeed):
            items = read(text).items
            if len(items) == len(feed.items):
                yield former_items(items, key)


def _identified(
    raw_items: Collection[RawItem],
    key: ItemKey,
    now: datetime,
    former: Sequence[Sequence[FormerItem]],
    *,
    is_ill_formed: bool,
) -> tuple[tuple[Item, ...], list[int], tuple[str, ...], int]:
    """The items in order, the first with each guid, and their places among the raw items; the guids of the
    others, and how many of those are other items and no repetitions."""
    items: dict[str, Item] = {}
    firsts: dict[str, RawItem] = {}
    kept: list[int] = []
    duplicates: list[str] = []
    shared = 0
    published_as = iter(raw_items)
    for place, (raw, identity) in enumerate(identities(in_short(raw_items), key)):
        guid, as_published = identity.guid, next(published_as)
        if guid in items:
            duplicates.append(guid)
            shared += _shows(raw) != _shows(firsts[guid])
            continue
        firsts[guid] = raw
        kept.append(place)
        dates = raw.published or raw.dates
        updated = _first_readable(raw.updates, now)
        published = _first_readable(dates, now) or updated
        item = Item(
            guid=guid,
            guid_source=identity.source,
            link=raw.url,
            title=raw.plain_title or raw.title,
            author=raw.author,
            authors=raw.authors,
            pub_date=published[1] if published else None,
            pub_date_raw=published[0] if published else next(iter((*dates, *raw.updates)), None),
            updated_at=updated[1] if updated else None,
            categories=raw.categories,
            enclosures=with_pictures((*raw.enclosures, *raw.further_files), raw.pictures),
            summary=None if raw.summary == raw.fallback_html else with_line_breaks(raw.summary),
            content_html=with_line_breaks(raw.fallback_html or raw.content_html),
            comments_url=raw.comments_url,
            base_url=raw.base_url,
        )
        then = [items_then[place] for items_then in former]
        pairs = (
            *(pair for each in then for pair in former_guids(raw.link, identity, each)),
            *(long_guid(as_published, guid) if raw is not as_published else ()),
            *former_about(as_published, identity),
            *(misread_guids(raw, identity) if is_ill_formed else ()),
        )
        known = _alternatives(raw, identity, item, then)
        if known is not None and (before := _first_readable(raw.dates, now) or updated) != published:
            known = replace(known, former_date=before)
        items[guid] = replace(item, former_guids=pairs, identities=known)
    return tuple(items.values()), kept, tuple(duplicates), shared


def _alternatives(
    raw: RawItem, identity: Identity, item: Item, former: Iterable[FormerItem]
) -> Identities | None:
    if identity.hash is None or identity.linked_hash is None or raw.link is None:
        return None
    return Identities(
        guid=identity.guid,
        link=raw.link,
        hash=identity.hash,
        linked_hash=identity.linked_hash,
        shares_link=identity.shares_link,
        is_about=raw.is_about,
        url=item.link,
        titles=tuple(
            dict.fromkeys((item.title, raw.title, *(title for each in former for title in each.titles)))
        ),
        pub_date=item.pub_date,
        pub_date_raw=item.pub_date_raw,
    )


def _shows(item: RawItem) -> tuple[object, ...]:
    """The parts of an item that a reader sees: where they are the same, nothing is lost."""
    return item.title, item.content_html, item.summary, item.enclosures


def _updates(items: Iterable[Item], now: datetime) -> tuple[datetime, ...]:
    """The newest publication times. A date in the future announces an item and proves no update."""
    dates = {item.pub_date for item in items if item.pub_date is not None and item.pub_date <= now}
    return tuple(sorted(dates, reverse=True)[:_UPDATES_KEPT])


def _first_readable(dates: tuple[str, ...], now: datetime) -> tuple[str, datetime] | None:
    return next(((raw, moment) for raw in dates if (moment := parse_date(raw, now=now))), None)


# The tree of a document that was read without one: JSON Feed, and what only feedparser reads.
# Its items have the elements of RSS, or those of Atom if the document is Atom, with the values that were
# read; so the XPath of a stream selects the same items on a day on which its document is ill-formed. Those of
# a JSON Feed have an element for each key of their own, too.

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NAME = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_NOT_COPIED = frozenset(("title", "author", "content_html", "content_text"))
"""Keys of JSON Feed with the name of an element that RSS has, and those of the largest texts."""
_CONTENT = f"{{{NAMESPACES['content']}}}encoded"
_CREATOR = f"{{{NAMESPACES['dc']}}}creator"
_UPDATED = f"{{{NAMESPACES['atom']}}}updated"


def plain_tree(feed: RawFeed) -> ItemTree:
    """The tree of a feed's items: `feed` with entries for Atom, else `rss` with a channel."""
    atom = feed.format.startswith("atom")
    root = Element("feed" if atom else "rss")
    channel = root if atom else SubElement(root, "channel")
    _add(channel, "title", feed.title)
    if atom:
        _add(channel, "link", None, rel="alternate", href=feed.link)
    else:
        _add(channel, "link", feed.link)
        _add(channel, "language", feed.language)
    return ItemTree(root=root, items=tuple((_entry if atom else _item)(channel, item) for item in feed.items))


def _item(channel: Element, item: RawItem) -> Element:
    element = SubElement(channel, "item")
    for name, text in (("guid", item.guid), ("title", item.title), ("link", item.url)):
        _add(element, name, text)
    _add_people(element, item)
    for name in item.authors:
        _add(element, _CREATOR, name)
    for term in item.categories:
        _add(element, "category", term)
    _add(element, "comments", item.comments_url)
    _add(element, "pubDate", next(iter(item.dates), None))
    _add(element, _UPDATED, next(iter(item.updates), None))
    _add(element, "description", item.summary or item.content_html)
    _add(element, _CONTENT, item.content_html)
    for each in with_pictures((*item.enclosures, *item.further_files), item.pictures):
        _add(element, "enclosure", None, url=each.url, **_kind(each))
    _add_json(element, {key: value for key, value in item.json.items() if key not in _NOT_COPIED})
    return element


def _entry(feed: Element, item: RawItem) -> Element:
    element = SubElement(feed, "entry")
    for name, text in (("id", item.guid), ("title", item.title)):
        _add(element, name, text)
    _add(element, "link", None, rel="alternate", href=item.url)
    _add(element, "link", None, rel="replies", href=item.comments_url)
    _add_people(element, item)
    for term in item.categories:
        _add(element, "category", None, term=term)
    _add(element, "published", next(iter(item.dates), None))
    _add(element, "updated", next(iter(item.updates), None))
    _add(element, "summary", item.summary)
    _add(element, "content", item.content_html)
    for each in with_pictures((*item.enclosures, *item.further_files), item.pictures):
        _add(element, "link", None, rel="enclosure", href=each.url, **_kind(each))
    return element


def _add_people(element: Element, item: RawItem) -> None:
    for name in item.authors:
        _add(SubElement(element, "author"), "name", name)


def _add_json(element: Element, values: Mapping[str, Any]) -> None:
    """Add an element for each key, and for each value of a list. Not recursive: JSON may be nested deep."""
    to_add: list[tuple[Element, str, Any]] = [(element, *each) for each in reversed(list(values.items()))]
    while to_add:
        parent, key, value = to_add.pop()
        match value:
            case list():
                to_add += [(parent, key, each) for each in reversed(value)]
            case _ if value is None or not _NAME.fullmatch(key):
                continue
            case dict():
                child = SubElement(parent, key)
                to_add += [(child, *each) for each in reversed(value.items())]
            case bool():
                _add(parent, key, str(value).lower())
            case _:
                _add(parent, key, str(value))


def _kind(enclosure: Enclosure) -> dict[str, str | None]:
    length = enclosure.length
    return {"type": enclosure.type, "length": None if length is None else str(length)}


def _add(parent: Element, name: str, text: str | None, **attributes: str | None) -> None:
    """Add an element with this text or these attributes, unless there is nothing in it."""
    known = {key: _NO_XML.sub("", value) for key, value in attributes.items() if value is not None}
    if text is None and not known.keys() - {"rel"}:
        return
    SubElement(parent, name, known).text = text and _NO_XML.sub("", text)
