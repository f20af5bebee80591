"""RSS 0.9x, 1.0 and 2.0, RDF and Atom 0.3 and 1.0: a parsed tree to a RawFeed.

Raw fields are read from the item's own XML, without sanitizing or resolving anything inside them. Identity
and dates are decided in `document.py`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from xml.etree.ElementTree import Element

from rss_pipeline.collector.models.item import ItemTree, PublisherHints
from rss_pipeline.collector.parse.atom_text import atom_html, atom_title, html_title, inner_place, rss_title
from rss_pipeline.collector.parse.authors import atom_authors, atom_persons, author_names, rss_authors
from rss_pipeline.collector.parse.characters.c1_characters import trimmed_around
from rss_pipeline.collector.parse.links import (
    ALTERNATE,
    PAGE,
    comments_url,
    is_discussion,
    is_path,
    is_web,
    may_be_web,
    web_base,
)
from rss_pipeline.collector.parse.media import (
    enclosures_and_pictures,
    further_categories,
    further_files,
    further_text,
    further_title,
    markup,
)
from rss_pipeline.collector.parse.pictures import is_file
from rss_pipeline.collector.parse.raw_feed import (
    CUT_OFF,
    RawFeed,
    RawItem,
    byte_count,
    content_and_summary,
    distinct,
    first_that_speaks,
    newest_items,
    speaks,
    trimmed,
)
from rss_pipeline.collector.parse.xml.fields import (
    XML_BASE,
    Fields,
    LinkBases,
    Vocabulary,
    first_text,
    inner_texts,
    texts,
)
from rss_pipeline.collector.parse.xml.namespaces import ATOM_03, ATOM_10, XML
from rss_pipeline.collector.parse.xml.tree import Tree, attribute, inner_html, text_of

_LANG = f"{{{XML}}}lang"
_RDF_ABOUT = ("{http://www.w3.org/1999/02/22-rdf-syntax-ns#}about", "about")
_TITLES = ("title", "atom:title", "dc:title")
_RSS_DESCRIPTIONS = ("description", "dc:description", "itunes:summary", "itunes:subtitle")
_ATOM_DESCRIPTIONS = ("subtitle", "tagline", "atom:subtitle")
_ITEM_NAMES = ("item", "entry")
_Attribute = Callable[[Element, str], str | None]
"""The reader of an attribute. A link is part of an identity as `Element.get` gives it: earlier versions read
no attribute with a prefix."""
_ENCLOSURE = re.compile(r"(?:http://www\.iana\.org/assignments/relation/)?enclosure", re.IGNORECASE)


_RSS_DATES = ("pubDate", "dc:date", "dcterms:issued", "atom:published", "atom:issued")
_ATOM_DATES = ("published", "issued", "created", "dc:date", "updated", "modified")
# Elements of other formats and vocabularies. An identity is made of the dates above alone.
_FURTHER_DATES = (
    *("pubDate", "published", "issued", "created", "date"),
    *("atom:published", "atom:issued", "atom:created"),
    *(f"dcterms:{name}" for name in ("issued", "created", "date", "dateSubmitted", "available")),
)
_RSS_PUBLISHED = (*_RSS_DATES, *_FURTHER_DATES)
_ATOM_PUBLISHED = (*_ATOM_DATES[:4], *_FURTHER_DATES, *_ATOM_DATES[4:])


def read_feed(tree: Tree, url: str | None, *, now: datetime) -> RawFeed | None:
    """The feed in a tree with the root `rss`, `RDF` or `feed`; None if the tree has none.

    Items without an end tag, in a document that was cut off, are left out: a stored item is not corrected
    later.
    """
    root = tree.root
    uri, _, local = root.tag.rpartition("}")
    uri = uri.lstrip("{")
    atom = local == "feed"
    # RDF's root is in RDF's namespace, its items are in RSS 1.0's.
    vocabulary = Vocabulary("" if local == "RDF" else uri)
    top = vocabulary.fields(root)
    channel = root if atom else top.get("channel", [None])[0]
    fields = vocabulary.fields(channel) if channel is not None else {}
    elements = _items(tree, vocabulary, "entry" if atom else "item")
    if channel is None and not elements:
        return None

    outer = LinkBases(None, (web_base(url),)).within(root)
    place = outer.within(channel) if channel is not None and channel is not root else outer
    link = _atom_link(fields, "link") if atom else _rss_link(fields)
    link = _resolved(_web_link(fields, link), fields, place)
    place = LinkBases(place.base, (link, *place.further))
    read: Callable[[Element, Vocabulary, LinkBases], RawItem] = _rss_item
    if atom:
        read = partial(_atom_item, inherited=author_names(atom_persons(fields, vocabulary)))
    names = _ATOM_PUBLISHED if atom else _RSS_PUBLISHED
    chosen = newest_items(elements, lambda element: texts(vocabulary.fields(element), *names), now=now)
    cut_off = tree.defect == "cut off" and not _is_whole(local, channel, tree)
    return RawFeed(
        format=_format(local, uri, root.get("version"), tree),
        title=_plain_title(fields, vocabulary, atom=atom) or _title(fields),
        link=link,
        description=_description(fields),
        language=first_text(fields, "language", "dc:language")
        or trimmed(channel.get(_LANG) if channel is not None else None)
        or trimmed(root.get(_LANG)),
        items=tuple(read(element, vocabulary, place) for element in chosen),
        dropped_items=len(elements) - len(chosen),
        cut_off=cut_off,
        repairs={
            None: (),
            "cut off": (CUT_OFF if cut_off else "missing end tag of the root added",),
            "junk after": ("junk after the feed cut",),
        }[tree.defect],
        hints=_hints(fields, vocabulary),
        tree=ItemTree(
            root=root,
            own=vocabulary.own,
            items=tuple(chosen),
            left_out=tuple(each for each in tree.unended if vocabulary.name(each) in _ITEM_NAMES),
        ),
    )


def in_feed(tree: Tree) -> Tree | None:
    """The tree of a document that is one Atom entry (RFC 4287, 2) with a feed around it; any other as it is,
    but None for an `entry` of another vocabulary."""
    uri, _, local = tree.root.tag.rpartition("}")
    if local != "entry":
        return tree
    if uri.lstrip("{").rstrip("#") not in (ATOM_10, ATOM_03.rstrip("#")):
        return None
    feed = Element(f"{uri}}}feed")
    feed.append(tree.root)
    return replace(tree, root=feed)


def _is_whole(root: str, channel: Element | None, tree: Tree) -> bool:
    """Return True if nothing but the end tag of `<rss>` is missing: all items are in its channel."""
    return root == "rss" and channel is not None and tree.unended == (tree.root,)


def _hints(fields: Fields, vocabulary: Vocabulary) -> PublisherHints:
    return PublisherHints(
        ttl=requested_interval(
            first_text(fields, "ttl"),
            first_text(fields, "sy:updatePeriod"),
            first_text(fields, "sy:updateFrequency"),
        ),
        skip_hours=skipped_hours(inner_texts(fields, "skipHours", "hour", vocabulary)),
        skip_days=skipped_days(inner_texts(fields, "skipDays", "day", vocabulary)),
    )


def _items(tree: Tree, vocabulary: Vocabulary, name: str) -> list[Element]:
    # Beside the channel in RSS 1.0 and 0.90, inside it in all others.
    parents = (tree.root, *(child for child in tree.root if vocabulary.name(child) == "channel"))
    found = [element for parent in parents for element in parent if vocabulary.name(element) == name]
    if not found:
        # Some wrap their items once more, in <items> or a list of their own.
        found = [element for element in tree.root.iter() if vocabulary.name(element) == name]
    unended = {id(element) for element in tree.unended}
    return [element for element in found if id(element) not in unended]


def _rss_item(element: Element, vocabulary: Vocabulary, outer: LinkBases) -> RawItem:
    fields = vocabulary.fields(element)
    place = outer.within(element)
    about = next((value for name in _RDF_ABOUT if (value := trimmed(element.get(name)))), None)
    guid_element = next((each for each in fields.get("guid", ()) if text_of(each).strip()), None)
    guid = text_of(guid_element).strip() if guid_element is not None else first_text(fields, "atom:id")
    is_about, guid = guid is None and about is not None, guid or about
    link, further_link = _rss_link(fields, Element.get), _rss_link(fields)
    if link is None and guid is not None:
        stated = None if guid_element is None else attribute(guid_element, "isPermaLink")
        if (stated or "true").strip().lower() != "false":
            link = guid if is_web(guid) else None
            further_link = further_link or (guid if is_path(guid, is_stated=bool(stated)) else None)
    url = _resolved(_web_link(fields, further_link or link), fields, place)
    place = LinkBases(place.base, (url, *place.further))
    contents = _texts(fields, "content:encoded", place, markup, _inside)
    descriptions = _texts(fields, "description", place, markup, _inside)
    content, summary = content_and_summary(
        [text for text, _ in contents], next((text for text, _ in descriptions), None)
    )
    fallback = None
    if not speaks(content):
        fallback = first_that_speaks((*(text for text, _ in contents), summary))
        fallback = fallback or further_text(fields, vocabulary, place)
    author, authors = rss_authors(fields, vocabulary)
    files, pictures = enclosures_and_pictures(
        [
            *((attribute(each, "url"), each) for each in fields.get("enclosure", ())),
            *(
                (attribute(each, "href"), each)
                for each in fields.get("atom:link", ())
                if _is(each, _ENCLOSURE)
            ),
        ],
        fields,
        vocabulary,
        place,
        fallback or content,
    )
    return RawItem(
        guid=guid,
        is_about=is_about,
        link=link,
        url=url,
        title=_title(fields),
        plain_title=_plain_title(fields, vocabulary, atom=False),
        author=author,
        authors=authors,
        dates=texts(fields, *_RSS_DATES),
        published=_further_dates(fields, _RSS_PUBLISHED, _RSS_DATES),
        updates=texts(fields, "atom:updated", "dcterms:modified", "atom:modified", "updated", "modified"),
        categories=distinct(
            [
                *(text_of(each) for name in ("category", "dc:subject") for each in fields.get(name, ())),
                *(attribute(each, "term") for each in fields.get("atom:category", ())),
            ]
        )
        or further_categories(fields, vocabulary),
        enclosures=files,
        further_files=() if files else further_files(fields, vocabulary, place),
        pictures=pictures,
        summary=summary,
        content_html=content,
        fallback_html=fallback,
        comments_url=comments_url(_discussions(fields), place.bases, page=url),
        base_url=next((base for _, base in (*contents, *descriptions)), place.base),
    )


def _atom_item(
    element: Element, vocabulary: Vocabulary, outer: LinkBases, *, inherited: tuple[str, ...]
) -> RawItem:
    fields = vocabulary.fields(element)
    place = outer.within(element)
    id = first_text(fields, "id")
    link = _atom_link(fields, "link", Element.get)
    further_link = _page_link(fields) or (None if link else _atom_link(fields, "link"))
    if link is None and id is not None and is_web(id):
        link = id
    # A link that a publisher wrote as text.
    text_link = None if link else next(filter(None, map(_target, _alternates(fields, "link"))), None)
    elsewhere = [
        (src, each) for each in fields.get("content", ()) if (src := trimmed(attribute(each, "src")))
    ]
    files_elsewhere = [(src, each) for src, each in elsewhere if is_file(attribute(each, "type"), src)]
    url = _resolved(further_link or link or text_link, fields, place) or next(
        (place.within(each).resolve(src) for src, each in elsewhere if (src, each) not in files_elsewhere),
        None,
    )
    place = LinkBases(place.base, (url, *place.further))
    contents = _texts(fields, "content", place, atom_html, inner_place)
    descriptions = _texts(fields, "summary", place, atom_html, inner_place)
    content, summary = content_and_summary(
        [text for text, _ in contents], next((text for text, _ in descriptions), None)
    )
    fallback = None
    if not speaks(content):
        fallback = first_that_speaks((*(text for text, _ in contents), summary))
        fallback = fallback or further_text(fields, vocabulary, place, atom=True)
    author, authors = atom_authors(fields, vocabulary, inherited)
    files, pictures = enclosures_and_pictures(
        [
            *((_target(each), each) for each in fields.get("link", ()) if _is(each, _ENCLOSURE)),
            *files_elsewhere,
        ],
        fields,
        vocabulary,
        place,
        fallback or content,
    )
    return RawItem(
        guid=id,
        link=link,
        url=url,
        title=_title(fields),
        plain_title=_plain_title(fields, vocabulary, atom=True),
        author=author,
        authors=authors,
        dates=texts(fields, *_ATOM_DATES),
        published=_further_dates(fields, _ATOM_PUBLISHED, _ATOM_DATES),
        updates=texts(fields, "updated", "modified", "dcterms:modified"),
        categories=distinct(
            [
                *(attribute(each, "term") for each in fields.get("category", ())),
                *(text_of(each) for each in fields.get("dc:subject", ())),
            ]
        )
        or further_categories(fields, vocabulary),
        enclosures=files,
        further_files=() if files else further_files(fields, vocabulary, place),
        pictures=pictures,
        summary=summary,
        content_html=content,
        fallback_html=fallback,
        comments_url=comments_url(_discussions(fields), place.bases, page=url),
        base_url=next((base for _, base in (*contents, *descriptions)), place.base),
    )


def _texts(
    fields: Fields,
    name: str,
    place: LinkBases,
    html_of: Callable[[Element, LinkBases], str | None],
    place_of: Callable[[Element, LinkBases], LinkBases],
) -> list[tuple[str, str | None]]:
    """The HTML of each of these elements that is not blank, with the xml:base in force within it."""
    found = []
    for each in fields.get(name, ()):
        inside = place_of(each, place)
        html = html_of(each, inside)
        if html and html.strip():
            found.append((html, inside.base))
    return found


def _inside(element: Element, place: LinkBases) -> LinkBases:
    return place.within(element)


def _resolved(link: str | None, fields: Fields, place: LinkBases) -> str | None:
    """A link of these fields, resolved with the xml:base of its own element."""
    if link is None or is_web(link):
        return place.resolve(link)
    elements = (each for name in ("link", "atom:link") for each in fields.get(name, ()))
    own = next(
        (
            each
            for each in elements
            if XML_BASE in each.attrib and link in (_target(each), text_of(each).strip())
        ),
        None,
    )
    return (place if own is None else place.within(own)).resolve(link)


def _discussions(fields: Fields) -> Iterator[str | None]:
    """The addresses under which an item is discussed, the preferred first."""
    yield from texts(fields, "comments")
    for link in (*fields.get("link", ()), *fields.get("atom:link", ())):
        if is_discussion(attribute(link, "rel"), attribute(link, "type")):
            yield _target(link)


def _further_dates(fields: Fields, names: tuple[str, ...], usual: tuple[str, ...]) -> tuple[str, ...]:
    """The dates of these elements; none where the usual ones have them all."""
    return () if {*names} & fields.keys() <= {*usual} else distinct(texts(fields, *names))


def _title(fields: Fields) -> str | None:
    return first_text(fields, *_TITLES)


def _plain_title(fields: Fields, vocabulary: Vocabulary, *, atom: bool) -> str | None:
    element = next((each for name in _TITLES for each in fields.get(name, ()) if text_of(each).strip()), None)
    if element is None:
        return further_title(fields, vocabulary)
    published = text_of(element)
    is_construct = atom or attribute(element, "type") or attribute(element, "mode")
    plain = atom_title(element) if is_construct else rss_title(trimmed_around(published))
    return None if plain == published.strip() else plain


def _description(fields: Fields) -> str | None:
    """The feed's description as plain text. In RSS it is HTML where it looks so."""
    found = (atom_title(each) for name in _ATOM_DESCRIPTIONS for each in fields.get(name, ()))
    others = (
        html_title(inner_html(each) if len(each) else text_of(each))
        for name in _RSS_DESCRIPTIONS
        for each in fields.get(name, ())
    )
    return next(filter(None, chain(found, others)), None)


def _is(link: Element, relation: re.Pattern[str]) -> bool:
    return relation.fullmatch((attribute(link, "rel") or "alternate").strip()) is not None


def _target(link: Element) -> str | None:
    """The href of an Atom link; its text where a publisher wrote the URL there."""
    return trimmed(attribute(link, "href")) or (text if is_web(text := text_of(link).strip()) else None)


def _atom_link(fields: Fields, name: str, read: _Attribute = attribute) -> str | None:
    hrefs = (trimmed(read(each, "href")) for each in _alternates(fields, name))
    return next(filter(None, hrefs), None)


def _page_link(fields: Fields) -> str | None:
    """The href of the first alternate that may be a page: on the web, rather than elsewhere (`gemini:`)."""
    pages = (each for each in _alternates(fields, "link") if PAGE.match(attribute(each, "type") or "html"))
    hrefs = [href for each in pages if (href := trimmed(attribute(each, "href")))]
    return next(filter(may_be_web, hrefs), None) or next(iter(hrefs), None)


def _web_link(fields: Fields, link: str | None) -> str | None:
    """The link, or the first one on the web if it leads elsewhere (`gemini:`, `nostr:`)."""
    if link is None or may_be_web(link):
        return link
    links = [each for name in ("link", "atom:link") for each in _alternates(fields, name)]
    found = filter(None, (_target(each) or trimmed(text_of(each)) for each in links))
    return next(filter(may_be_web, found), link)


def _alternates(fields: Fields, name: str) -> list[Element]:
    return [each for each in fields.get(name, ()) if _is(each, ALTERNATE)]


def _rss_link(fields: Fields, read: _Attribute = attribute) -> str | None:
    # <link> with href and no text is an Atom link, in a document with Atom's default namespace.
    return (
        first_text(fields, "link")
        or _atom_link(fields, "link", read)
        or _atom_link(fields, "atom:link", read)
    )


def _format(local: str, uri: str, version: str | None, tree: Tree) -> str:
    """feedparser's names for the formats."""
    version = (version or "").strip()
    match local:
        case "feed":
            atom03 = uri.startswith(ATOM_03.rstrip("#")) or version == "0.3"
            return "atom03" if atom03 else "atom10" if uri else "atom"
        case "RDF":
            names = {element.tag.rpartition("}")[0].lstrip("{") for element in tree.root}
            return "rss090" if any("rdf/simple/0.9" in name for name in names) else "rss10"
        case _:
            if version.startswith("2"):
                return "rss20"
            return "rss" + version.replace(".", "")[:3] if re.fullmatch(r"0\.9[0-9]", version[:4]) else "rss"


# A document's hints on how often to fetch it: RSS ttl, skipHours, skipDays and the syndication module.

_PERIODS: Mapping[str, timedelta] = {
    "hourly": timedelta(hours=1),
    "daily": timedelta(days=1),
    "weekly": timedelta(days=7),
    "monthly": timedelta(days=30),
    "yearly": timedelta(days=365),
}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_HOUR = re.compile(r"[01]?[0-9]|2[0-4]")
_LONGEST = timedelta(days=365)
_MOST = 10**6


def requested_interval(ttl: str | None, period: str | None, frequency: str | None) -> timedelta | None:
    """The time between two visits by `<ttl>` (minutes), else by sy:updatePeriod / updateFrequency.

    The syndication module's defaults are daily and once (https://web.resource.org/rss/1.0/modules/syndication/).
    """
    if minutes := byte_count(ttl):
        return min(timedelta(minutes=min(minutes, _MOST)), _LONGEST)
    span = _PERIODS.get((period or "").lower())
    times = byte_count(frequency)
    if span is None and not times:
        return None
    return (span or _PERIODS["daily"]) / min(times or 1, _MOST)


def skipped_hours(texts: Iterable[str]) -> frozenset[int]:
    """The hours of skipHours as UTC hours 0 to 23; RSS 0.91 counted from 1 to 24."""
    return frozenset(int(text) % 24 for text in texts if _HOUR.fullmatch(text))


def skipped_days(texts: Iterable[str]) -> frozenset[int]:
    """The days of skipDays as weekdays, Monday 0."""
    return frozenset(_DAYS.index(text.lower()) for text in texts if text.lower() in _DAYS)
