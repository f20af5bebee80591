"""feedparser as the last resort: documents that the strict parser cannot read, and formats such as CDF.

The usual reader is `rss_atom.py`. feedparser gets no texts but placeholders, so that an item
reads the same with both.
"""

import html
import io
import re
from collections.abc import Mapping
from datetime import datetime
from operator import itemgetter
from typing import Any

from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.collector.parse.atom_text import HTML_TYPES, html_title, rss_title
from rss_pipeline.collector.parse.authors import ATOM_AUTHORS, RSS_AUTHORS, author_names
from rss_pipeline.collector.parse.links import (
    ALTERNATE,
    PAGE,
    absolute,
    comments_url,
    is_discussion,
    is_path,
    is_web,
    may_be_web,
    web_base,
)
from rss_pipeline.collector.parse.loose_fields import with_one_of_each, with_plain_authors
from rss_pipeline.collector.parse.media import (
    FURTHER_TEXTS,
    FURTHER_TITLES,
    PLAIN_TEXTS,
    html_of_plain,
)
from rss_pipeline.collector.parse.pictures import is_file, picture_type, pictures_beside, width_of
from rss_pipeline.collector.parse.raw_feed import (
    CUT_OFF,
    EscapedText,
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
from rss_pipeline.collector.parse.sections import Sections

# Placeholders for the texts of a document while feedparser reads it, and its values with the texts put back.

# Two characters of a private plane replace a text while feedparser works: it strips, translates, resolves
# and re-decodes the texts it finds, and "corrects" `Ã©`.
_OPEN, _CLOSE = "\U0010ff70", "\U0010ff71"
_STAND_IN = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")
_CDATA_OPEN, _CDATA_CLOSE = "<![CDATA[", "]]>"
_CDATA = Sections((re.escape(_CDATA_OPEN), _CDATA_CLOSE))
_LEAF = re.compile(
    r"<(guid|id|title|link|pubDate|dc:date|description|content:encoded|content|summary|published|updated"
    r"|issued|modified|(?:\w+:)?(?:author|creator|name|email)|category|x-[a-z]+-[\w.-]+)"
    r"((?:\s[^<>]*)?(?<!/))>([^<]*)</\1\s*>"
)
_LONG_TEXT = re.compile(r">[^<>]{1000,}+")
_LONG_PIECE = re.compile(r"[^>&;]{1000,}+")
"""Without a reference, which feedparser reads in some places only."""
_STAND_INS = re.compile(f"[{_OPEN}{_CLOSE}]")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Shield:
    """Takes texts out of a document, and puts them back into the values that were read from it."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._elements: dict[int, tuple[str, str]] = {}

    def over_sections(self, text: str) -> str:
        """The text with a placeholder for each CDATA section."""

        def kept(section: str) -> str:
            return self._kept(section[len(_CDATA_OPEN) : -len(_CDATA_CLOSE)])

        # The publisher's own characters would be taken for ours, each for a text as long as the document.
        return _CDATA.sub(kept, _STAND_INS.sub("\ufffd", text))

    def over_leaves(self, text: str) -> str:
        """The text with a placeholder for the text of each element that an item is read from."""
        return _LEAF.sub(self._leaf, text)

    def over_long_texts(self, text: str) -> str:
        """The text with a placeholder for each long piece of text between tags: feedparser looks for mail
        addresses in names, in time by the square of their length."""
        return _LONG_TEXT.sub(lambda found: _LONG_PIECE.sub(self._piece, found[0]), text)

    def _piece(self, found: re.Match[str]) -> str:
        return self._kept(self.restored(found[0]))

    def _leaf(self, found: re.Match[str]) -> str:
        name, attributes, text = found.groups()
        if not text.strip():
            return found[0]
        self._elements[len(self._texts)] = name, attributes
        return f"<{name}{attributes}>{self._kept(self.restored(html.unescape(text)))}</{name}>"

    def restored(self, text: str) -> str:
        return _STAND_IN.sub(self._restored_one, text)

    def tag(self, value: str) -> tuple[str | None, str]:
        """The name and the attributes of the element that a value was the text of, as the document writes
        them."""
        found = _STAND_IN.search(value)
        return (found and self._elements.get(int(found[1][:9]))) or (None, "")

    def _kept(self, text: str) -> str:
        self._texts.append(text)
        return f"{_OPEN}{len(self._texts) - 1}{_CLOSE}"

    def _restored_one(self, found: re.Match[str]) -> str:
        number = int(found[1][:9])
        return self._texts[number] if number < len(self._texts) else ""


class Values:
    """A feedparser dict, read by its own keys: its `get` returns other keys' values for missing ones."""

    def __init__(self, values: Mapping[str, Any], shield: Shield) -> None:
        self._values = values
        self._shield = shield

    def raw(self, key: str) -> str | None:
        value = dict.get(self._values, key) if isinstance(self._values, dict) else None
        if not isinstance(value, str):
            return None
        return _UNSTORABLE.sub(
            lambda found: "" if found[0] == "\x00" else "\ufffd", self._shield.restored(value)
        )

    def text(self, key: str) -> str | None:
        return trimmed(self.raw(key))

    def tag(self, key: str) -> tuple[str | None, str]:
        """The name and the attributes of the element with the value as its text, as the document writes
        them."""
        value = dict.get(self._values, key) if isinstance(self._values, dict) else None
        return self._shield.tag(value) if isinstance(value, str) else (None, "")

    def denies(self, key: str) -> bool:
        """Return True if a flag is there and is not set."""
        return isinstance(self._values, dict) and not dict.get(self._values, key, True)

    def each(self, key: str) -> "list[Values]":
        values = dict.get(self._values, key) if isinstance(self._values, dict) else None
        if isinstance(values, dict):
            values = [values]
        return [Values(each, self._shield) for each in values or () if isinstance(each, dict)]


# Not on one line with the document: feedparser would look for the end of it in time by the cube of that line.
_DECLARATION = '<?xml version="1.0" encoding="utf-8"\n?>'
_BASE = re.compile(r"\sxml:base\s*=\s*(\"[^\"<]*\"|'[^'<]*')")
_BASE_VALUE = r"(?>\s(?:[^<>]*\s)?xml:base\s*=\s*(?P<base>\"[^\"<>]*\"|'[^'<>]*'))"
_ITEM_BASE = re.compile(rf"<(?:\w+:)?(?:item|entry){_BASE_VALUE}[^<>]*+(?<!/)>")
_TEXT_BASE = re.compile(rf"<(?:\w+:)?(?:content|summary|encoded|description){_BASE_VALUE}")
_ITEM_IMAGE = re.compile(r"<image\s*>(\s*[^<\s][^<]*)</image\s*>")
"""An item's image that is only its URL."""
_CONTENT_TAG = re.compile(r"<content(?=\s)[^<>]*+>")
_PLACE_AND_TYPE = re.compile(r"\s(src|type)\s*+=\s*+(\"[^\"]*+\"|'[^']*+')")
_CDF = re.compile(r"\A<channel\s[^>]*\bhref\s*=", re.IGNORECASE)
_ROOT = re.compile(r"\A<[A-Za-z_][^>]*>")
_FIRST_TAG = re.compile(r"<\w", re.ASCII)
# A tag ends where feedparser ends it: a quoted value may have `>` in it, a lone quote is a character.
_TAG = re.compile(
    r"""<[^\W\d][\w.:-]*(?=\s)(?:[^<>"']|"[^"]*"(?=[\s>/]|\w+=)|'[^']*'(?=[\s>/]|\w+=)|["'])*+>"""
)
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_MOST_ATTRIBUTES = 500
"""feedparser's time grows with the square of a tag's attributes: 20,000 took it a minute."""
# feedparser files these under content, summary, title or tags; as `x-media-title` each keeps its own place.
_OTHER_TEXTS = re.compile(
    rf"(</?)({'|'.join((*FURTHER_TEXTS, *FURTHER_TITLES))}|itunes:(?:subtitle|keywords|category)"
    r"|media:(?:text|keywords|category))\b"
)
_ITEM_TAG = re.compile(r"<(/?)(?:item|entry|[A-Za-z]\w*:(?:item|entry))(?=[\s>/])", re.IGNORECASE)
_PERSON_PART = re.compile("(?:name|email)$")
_ROOT_END = re.compile(r"</(?:rss|rdf:RDF|feed|channel|[A-Za-z]\w*:feed)\s*>", re.IGNORECASE)


def read_with_feedparser(text: str, url: str | None, *, now: datetime) -> RawFeed | None:
    """The feed that feedparser finds in a text that begins with its root; None if it finds none."""
    # Imported by the first such document: each parser process holds what is imported, and most see none.
    import feedparser

    # As every XML parser does (XML 1.0, 2.11); the CDATA sections are not seen by one here.
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    shield = Shield()
    shielded, is_cut_off = _without_unended(shield.over_sections(text))
    if first := _FIRST_TAG.search(shielded):
        # Before it is no element. feedparser looks for a document type there, from each line on.
        shielded = shielded[first.start() :]
    root = str((_ROOT.match(shielded) or [""])[0])
    bases = _BASE.findall(root)
    # feedparser would resolve ids against them: it gets them as elements of their own.
    shielded = _ITEM_BASE.sub(r"\g<0><x-item-base>\g<base></x-item-base>", shielded)
    shielded = _TEXT_BASE.sub(r"<x-text-base>\g<base></x-text-base>\g<0>", shielded)
    shielded = _ITEM_IMAGE.sub(r"<x-item-image>\g<1></x-item-image>", shielded)
    shielded = _CONTENT_TAG.sub(_with_file, shielded)
    shielded = _BASE.sub("", _OTHER_TEXTS.sub(_renamed, shielded))
    shielded = with_plain_authors(shield.over_leaves(shielded))
    shielded = _TAG.sub(_without_many_attributes, shielded)
    shielded = with_one_of_each(shielded, root=root, is_blank=lambda text: not shield.restored(text).strip())
    shielded = shield.over_long_texts(shielded)
    try:
        # Bytes in a stream: a str might be opened as a file or URL. Lower-case names: others are ignored
        # and change the charset to iso-8859-1. No content-location: ids would be resolved against it.
        parsed: Any = feedparser.parse(
            io.BytesIO((_DECLARATION + shielded).encode("utf-8", "replace")),
            response_headers={"content-type": "application/xml; charset=utf-8"},
            sanitize_html=False,
            resolve_relative_uris=False,
        )
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a foreign parser on hostile input can raise anything
        return None
    if not parsed.entries and not parsed.version:
        return None
    feed = Values(parsed.feed, shield)
    base = absolute(bases[0][1:-1], (url,)) if bases else None
    link = absolute(feed.text("link"), (base, url))
    atom = str(parsed.version).startswith("atom")
    entries = [Values(entry, shield) for entry in parsed.entries]
    chosen = newest_items(entries, _dates, now=now)
    inherited = author_names(_authors(feed, atom))
    return RawFeed(
        # feedparser reads Microsoft's CDF but gives it no name.
        format=parsed.version or ("cdf" if _CDF.match(text) else "unknown"),
        title=_plain_title(feed, atom) or feed.text("title"),
        link=link,
        description=_description(feed, atom),
        language=feed.text("language"),
        items=tuple(_item(entry, atom, base, (base, link, web_base(url)), inherited) for entry in chosen),
        dropped_items=len(entries) - len(chosen),
        cut_off=is_cut_off,
        repairs=(CUT_OFF,) if is_cut_off else (),
    )


def _item(
    entry: Values, atom: bool, base: str | None, bases: tuple[str | None, ...], inherited: tuple[str, ...]
) -> RawItem:
    own = _authors(entry, atom)
    copied = (name for each in entry.each("source") for name in _authors(each, atom))
    guid = entry.text("id")
    links = entry.each("links")
    # Not its `link`, which may be the guid.
    alternates = [each for each in links if ALTERNATE.fullmatch(each.raw("rel") or "")]
    link = next(filter(None, (each.text("href") for each in alternates)), None)
    # Identities go by the first one.
    pages = (each.text("href") for each in alternates if atom and PAGE.match(each.raw("type") or "html"))
    page = next(filter(None, pages), None)
    element, attributes = entry.tag("id")
    path = None
    if link is None and guid is not None and (atom or not entry.denies("guidislink")):
        link = guid if is_web(guid) else None
        path = guid if not atom and is_path(guid, is_stated="ispermalink" in attributes.lower()) else None
    content, summary = content_and_summary(
        [_as_html(each, each.raw("value"), atom) for each in entry.each("content")],
        next(
            (_as_html(each, each.raw("value"), atom) for each in entry.each("summary_detail")),
            entry.raw("summary"),
        ),
    )
    updates = distinct([entry.raw("updated")])
    base = _base(entry, "x-item-base", bases) or base
    if link is not None and not may_be_web(page or link):
        # A page on the web goes before one elsewhere, such as `gemini:`.
        page = next((each for other in alternates if (each := other.text("href")) and may_be_web(each)), page)
    url = absolute(page or link or path, (base, *bases))
    bases = (base, url, *bases)
    fallback = None if speaks(content) else first_that_speaks([summary]) or _further_text(entry)
    files, pictures = _enclosures_and_pictures(entry, links, bases, fallback or content)
    return RawItem(
        guid=guid,
        is_about=guid is not None and not atom and element is None,
        link=link,
        url=url,
        title=entry.text("title"),
        plain_title=_plain_title(entry, atom),
        author=next(iter(own), None),
        authors=author_names(own) or (author_names(copied) or inherited if atom else ()),
        dates=_dates(entry),
        # In RSS this is dc:date, a second name for the publication.
        updates=updates if atom else (),
        categories=distinct([each.raw("term") for each in entry.each("tags")]) or _further_categories(entry),
        enclosures=files,
        further_files=() if files else _further_files(entry, bases),
        pictures=pictures,
        summary=summary,
        content_html=content,
        fallback_html=fallback,
        comments_url=comments_url(
            [
                entry.text("comments"),
                *(each.text("href") for each in links if is_discussion(each.raw("rel"), each.raw("type"))),
            ],
            bases,
            page=url,
        ),
        base_url=_base(entry, "x-text-base", bases) or base,
    )


def _authors(values: Values, atom: bool) -> list[str]:
    """The names of the authors, in the order of the strict reader; feedparser has that of the document."""
    order = ATOM_AUTHORS if atom else RSS_AUTHORS
    found: list[tuple[int, str]] = []
    for each in values.each("authors"):
        if text := each.text("name"):
            element = _PERSON_PART.sub("author", each.tag("name")[0] or "author")
            found.append((order.index(element) if element in order else len(order), text))
    return [name for _, name in sorted(found, key=itemgetter(0))]


def _without_many_attributes(found: re.Match[str]) -> str:
    tag = found[0]
    if tag.count("=") <= _MOST_ATTRIBUTES or _QUOTED.sub("", tag).count("=") <= _MOST_ATTRIBUTES:
        return tag
    return f"{tag.split(None, 1)[0]}{'/' if tag.endswith('/>') else ''}>"


def _with_file(found: re.Match[str]) -> str:
    """Behind an enclosure, if a content of Atom is a file at another URL: feedparser has no place for one."""
    written = dict(_PLACE_AND_TYPE.findall(found[0]))
    source, kind = written.get("src", ""), written.get("type", "")
    if not source.strip("\"' ") or not is_file(html.unescape(kind.strip("\"'")), html.unescape(source[1:-1])):
        return found[0]
    return f"<link rel='enclosure' href={source}{kind and ' type='}{kind} />{found[0]}"


def _renamed(found: re.Match[str]) -> str:
    return found[1] + _own_name(found[2])


def _own_name(name: str) -> str:
    return f"x-{name.replace(':', '-')}"


def _further_text(entry: Values) -> str | None:
    for name in FURTHER_TEXTS:
        text = (entry.raw(_own_name(name)) or "").strip()
        if text:
            return html_of_plain(text) if name in PLAIN_TEXTS else text
    return None


def _further_categories(entry: Values) -> tuple[str, ...]:
    keywords = (entry.raw(_own_name(name)) or "" for name in ("media:keywords", "itunes:keywords"))
    return distinct([entry.raw(_own_name("media:category")), *",".join(keywords).split(",")])


def _base(entry: Values, name: str, bases: tuple[str | None, ...]) -> str | None:
    return absolute((entry.raw(name) or "").strip("\"' "), bases)


def _enclosures_and_pictures(
    entry: Values, links: list[Values], bases: tuple[str | None, ...], content: str | None
) -> tuple[tuple[Enclosure, ...], tuple[Enclosure, ...]]:
    files = tuple(
        # The type that feedparser gives a link without one.
        Enclosure(
            url=target, type=kind if kind != "text/html" else None, length=byte_count(each.raw("length"))
        )
        for each in links
        if each.raw("rel") == "enclosure"
        for kind in (each.text("type"),)
        if (target := absolute(each.raw("href") or each.raw("url"), bases))
    )
    media = [
        (
            width_of(each.raw),
            Enclosure(url=target, type=picture_type(each.raw), length=byte_count(each.raw("filesize"))),
        )
        for each in entry.each("media_content")
        if (target := absolute(each.raw("url"), bases))
    ]
    widest = sorted(entry.each("media_thumbnail"), key=lambda each: width_of(each.raw), reverse=True)
    named = [
        *(each.raw("url") for each in widest),
        *(each.raw("href") for each in entry.each("image")),
        entry.raw("x-item-image"),
    ]
    images = (absolute(reference, bases) for reference in named)
    return files or tuple(each for _, each in media), pictures_beside(content, files, media, images)


def _further_files(entry: Values, bases: tuple[str | None, ...]) -> tuple[Enclosure, ...]:
    """As the strict reader has them; feedparser keeps the last of several elements of one name."""
    [alternate, source, secure] = [
        next(iter(entry.each(name)), None)
        for name in ("podcast_alternateenclosure", "podcast_source", "ppg_enclosuresecure")
    ]
    named = ((alternate, source, "uri"), (secure, secure, "url"))
    return tuple(
        Enclosure(url=url, type=each.text("type"), length=byte_count(each.raw("length")))
        for each, place, name in named
        if each is not None and place is not None and (url := absolute(place.raw(name), bases))
    )


def _dates(entry: Values) -> tuple[str, ...]:
    return distinct([entry.raw("published"), entry.raw("created"), entry.raw("updated")])


def _plain_title(values: Values, atom: bool) -> str | None:
    published = values.text("title")
    if published is None:
        return next(filter(None, (values.text(_own_name(name)) for name in FURTHER_TITLES)), None)
    kind = next((detail.raw("type") for detail in values.each("title_detail")), None)
    plain = (
        html_title(published) if atom and kind in HTML_TYPES else published if atom else rss_title(published)
    )
    return None if plain == published else plain


def _description(feed: Values, atom: bool) -> str | None:
    kind = next((detail.raw("type") for detail in feed.each("subtitle_detail")), None)
    if atom and kind not in HTML_TYPES and (plain := feed.text("subtitle")):
        return plain
    names = ("subtitle", "summary", *map(_own_name, ("dc:description", "itunes:summary", "itunes:subtitle")))
    return next(filter(None, (html_title(feed.text(name)) for name in names)), None)


def _as_html(detail: Values, text: str | None, atom: bool) -> str | None:
    kind = detail.raw("type") or ""
    if atom and kind.startswith(("image/", "audio/", "video/")) and not kind.endswith("xml"):
        return None
    if text is not None and atom and kind == "text/plain":
        return EscapedText(html.escape(text, quote=False))
    return text


def _without_unended(text: str) -> tuple[str, bool]:
    """The text without an item that is cut off, and whether the text ends early."""
    tags = list(_ITEM_TAG.finditer(text))
    if _ROOT_END.search(text, tags[-1].start() if tags else 0):
        return text, False
    ended = max((tag.start() for tag in tags if tag[1]), default=-1)
    begun = next((tag.start() for tag in tags if not tag[1] and tag.start() > ended), None)
    if begun is None:
        return text, True
    return text[:begun], True
