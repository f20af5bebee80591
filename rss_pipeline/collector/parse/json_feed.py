"""The reader of JSON Feed 1.0 and 1.1 (https://www.jsonfeed.org/version/1.1/): a text to a RawFeed.

feedparser does not read this format. Identity and dates are decided in `document.py`.
"""

import html
import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.collector.parse.atom_text import rss_title
from rss_pipeline.collector.parse.authors import author_names
from rss_pipeline.collector.parse.links import absolute, is_web
from rss_pipeline.collector.parse.pictures import pictures_beside
from rss_pipeline.collector.parse.raw_feed import (
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
from rss_pipeline.errors import NotAFeed

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_NAMES = ("name", "term", "label", "title")
_URLS = ("url", "href", "src")
"""The keys of a text, the preferred first, where a publisher has an object in its place."""
_WHOLE = re.compile(r"([0-9]{1,18})(?:\.0+)?")


class _Number(str):
    """A number as written in the document: an id of 1.0 or of 30 digits keeps its form."""

    __slots__ = ()


def read_json_feed(text: str, url: str | None, *, now: datetime) -> RawFeed:
    """The feed in a JSON text.

    Raises `NotAFeed` if it is not JSON, or JSON of another kind.
    """
    decoder = json.JSONDecoder(strict=False, parse_int=_Number, parse_float=_Number, parse_constant=_Number)
    try:
        document, end = decoder.raw_decode(text)
    except json.JSONDecodeError as error:
        raise NotAFeed(
            f"The document begins like a JSON Feed but is not JSON: {error.msg} in line {error.lineno}, "
            f"column {error.colno}. Only its publisher can fix that."
        ) from None
    except RecursionError:
        raise NotAFeed("The document is JSON nested too deep to be a JSON Feed.") from None
    version = document.get("version") if isinstance(document, dict) else None
    items = document.get("items") if isinstance(document, dict) else None
    named = isinstance(version, str) and "jsonfeed.org/version/" in version
    if not isinstance(document, dict) or not isinstance(items, list) or not (named or "title" in document):
        raise NotAFeed(
            "The document is JSON but not a JSON Feed: it has no version or no items of one. "
            "Look in the site's documentation for the address of its feed."
        )
    link = absolute(_text(document, "home_page_url"), (url,))
    bases = (link, url)
    objects = [item for item in items if isinstance(item, dict)]
    read = newest_items(objects, _dates, now=now)
    inherited = author_names(_authors(document))
    return RawFeed(
        format="json11" if named and str(version).rstrip("/").endswith("1.1") else "json10",
        title=rss_title(trimmed(_text(document, "title"))),
        link=link,
        description=trimmed(_text(document, "description")),
        language=trimmed(_text(document, "language")),
        items=tuple(_item(item, bases, inherited) for item in read),
        dropped_items=len(objects) - len(read),
        # Caches sign what they serve: `<!-- Dynamic page generated in 0.5 seconds. -->`.
        repairs=("junk after the feed cut",) if text[end:].strip() else (),
    )


def _item(item: dict[str, Any], bases: tuple[str | None, ...], inherited: tuple[str, ...]) -> RawItem:
    plain = _text(item, "content_text")
    summary = _text(item, "summary")
    content, summary = content_and_summary(
        [_text(item, "content_html"), None if plain is None else _escaped(plain)],
        None if summary is None else _escaped(summary),
    )
    fallback = None
    if not speaks(content):
        fallback = first_that_speaks((None if plain is None else _escaped(plain), summary))
    id = trimmed(_text(item, "id"))
    link = trimmed(_text(item, "url")) or trimmed(_text(item, "external_url"))
    authors = _authors(item)
    # "Ideally, the id is the full URL of the resource described by the item."
    further_link = next((each for key in ("url", "external_url") for each in _texts(item, key, *_URLS)), None)
    url = absolute(link or further_link or (id if id and is_web(id) else None), bases)
    # What is beside an item is beside its page.
    bases = (url, *bases)
    images = (
        absolute(each, bases) for key in ("image", "banner_image") for each in _texts(item, key, *_URLS)
    )
    attachments = tuple(
        Enclosure(
            url=target,
            type=trimmed(_text(each, "mime_type")),
            length=_size(_text(each, "size_in_bytes")),
        )
        for value in _values(item, "attachments")
        for each in (value if isinstance(value, dict) else {},)
        if (target := absolute(next(_texts({"": value}, "", *_URLS), None), bases))
    )
    title = trimmed(_text(item, "title"))
    return RawItem(
        guid=id,
        link=link,
        url=url,
        title=title,
        plain_title=rss_title(title),
        author=next(iter(authors), None),
        # "If not specified in an item, then the top-level authors ... are the authors of the item."
        authors=author_names(authors) or inherited,
        dates=_dates(item),
        updates=distinct([_text(item, "date_modified")]),
        categories=_tags(item),
        enclosures=attachments,
        pictures=pictures_beside(fallback or content, attachments, (), images),
        summary=summary,
        content_html=content,
        fallback_html=fallback,
        json=item,
    )


def _escaped(plain: str) -> EscapedText:
    return EscapedText(html.escape(plain, quote=False))


def _authors(owner: dict[str, Any]) -> tuple[str, ...]:
    """The names of an item's or a feed's authors: of 1.1, then the one of 1.0; objects or plain strings.

    A number is that of an account of the publisher's software."""
    return tuple(
        name
        for key in ("authors", "author")
        for each in _values(owner, key)
        if not isinstance(each, _Number)
        for name in _texts({key: [each]}, key, "name")
    )


def _tags(item: dict[str, Any]) -> tuple[str, ...]:
    """The tags of an item. A text in place of the list is taken as keywords, which are between commas."""
    tags = item.get("tags")
    return distinct(tags.split(",") if isinstance(tags, str) else _texts(item, "tags", *_NAMES))


def _size(text: str | None) -> int | None:
    found = _WHOLE.fullmatch((text or "").strip())
    return byte_count(found[1]) if found else None


def _dates(item: dict[str, Any]) -> tuple[str, ...]:
    return distinct([_text(item, "date_published")])


def _values(item: dict[str, Any], key: str) -> list[Any]:
    value = item.get(key)
    return value if isinstance(value, list) else [value]


def _texts(item: dict[str, Any], key: str, *names: str) -> Iterator[str]:
    """The texts of a key that are not blank: one, or a list of some; an object has it at one of `names`."""
    for each in _values(item, key):
        found = (_text(each, name) for name in names) if isinstance(each, dict) else (_text({"": each}, ""),)
        if text := next(filter(None, map(trimmed, found)), None):
            yield text


def _text(item: dict[str, Any], key: str) -> str | None:
    value = item.get(key)
    return _clean(value) if isinstance(value, str) else None


def _clean(text: str) -> str:
    """The text without U+0000, and with U+FFFD for half a surrogate pair: no store accepts these two."""
    return _UNSTORABLE.sub(lambda found: "" if found[0] == "\x00" else "\ufffd", str(text))
