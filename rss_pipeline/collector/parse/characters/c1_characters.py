"""C1 characters (U+0080 to U+009F) in the texts of a document: they were meant as Windows-1252.

Its bytes were taken for Latin-1 once on their way, or named by number (`&#146;`), which HTML reads as
Windows-1252 for the same reason. An identity never changes.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain

from rss_pipeline.collector.models.item import Item, ParsedFeed

_C1 = re.compile("[\x80-\x9f]")
_UNDEFINED = re.compile("[\x81\x8d\x8f\x90\x9d]")
"""The characters that Windows-1252 leaves open: the lead bytes of Shift_JIS and Big5 are among them."""
_UTF_8 = re.compile("[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
"""A character of UTF-8 with its bytes taken for Latin-1."""
_BREAKS = re.compile("\x85(?=[\r\n])|(?<=[\r\n])\x85")
"""NEL beside a line break is one itself, and no ellipsis."""
_CHARACTERS = {
    byte: bytes([byte]).decode("cp1252") for byte in range(0x80, 0xA0) if not _UNDEFINED.match(chr(byte))
}
_SPACES = "".join(each for each in map(chr, range(0x3001)) if each.isspace() and each != "\x85")
_FEWEST_OTHERS = 2
"""Other characters beside each C1 character, at least; text in another charset has fewer."""


def trimmed_around(text: str) -> str:
    """The text without white space around it; U+0085 is kept, for it may be an ellipsis."""
    return text.strip(_SPACES)


def with_c1_read(feed: ParsedFeed, document: str) -> ParsedFeed:
    """The feed with its C1 characters in texts for people as the characters of Windows-1252.

    Only where the document is otherwise sane: nothing in it is undecodable, none of these characters is
    undefined in Windows-1252, they are few, and most are no part of UTF-8 that was taken for Latin-1. Titles,
    authors and categories are judged together, and contents and summaries apart from those.
    """
    return _with_contents_read(_with_titles_read(feed, document), document)


def _with_contents_read(feed: ParsedFeed, document: str) -> ParsedFeed:
    contents = (text for item in feed.items for text in (item.content_html, item.summary))
    found = [text for text in contents if text and _C1.search(text)]
    if not found or not _is_sane(found, document):
        return feed
    items = (
        replace(
            item,
            content_html=item.content_html and _meant(item.content_html),
            summary=item.summary and _meant(item.summary),
        )
        for item in feed.items
    )
    return replace(feed, items=tuple(items))


def _with_titles_read(feed: ParsedFeed, document: str) -> ParsedFeed:
    texts = [
        feed.header.title or "",
        feed.header.description or "",
        *chain.from_iterable(map(_texts, feed.items)),
    ]
    found = [text for text in texts if _C1.search(text)]
    if not found:
        return feed
    read = _windows_1252 if _is_sane(found, document) else _without_nel_around
    return replace(
        feed,
        header=replace(
            feed.header,
            title=feed.header.title and read(feed.header.title),
            description=feed.header.description and read(feed.header.description),
        ),
        items=tuple(_read(item, read) if any(map(_C1.search, _texts(item))) else item for item in feed.items),
    )


def _read(item: Item, read: Callable[[str], str]) -> Item:
    title = item.title and read(item.title)
    known = item.identities
    if known is not None:
        # Stored items are recognized by the title that is stored from now on, too.
        known = replace(known, titles=tuple(dict.fromkeys((title, *known.titles))))
    return replace(
        item,
        title=title,
        author=item.author and read(item.author),
        authors=tuple(map(read, item.authors)),
        categories=tuple(map(read, item.categories)),
        identities=known,
    )


def _texts(item: Item) -> Iterable[str]:
    others = (name for name in item.authors if name != item.author)
    return (item.title or "", item.author or "", *others, *item.categories)


def _is_sane(texts: list[str], document: str) -> bool:
    if "\ufffd" in document:
        return False
    text = "\n".join(texts)
    c1 = len(_C1.findall(text))
    in_utf_8 = sum(len(_C1.findall(found)) for found in _UTF_8.findall(text))
    return not _UNDEFINED.search(text) and len(text) - c1 >= _FEWEST_OTHERS * c1 and in_utf_8 * 2 < c1


def _windows_1252(text: str) -> str:
    return _meant(text).strip()


def _meant(text: str) -> str:
    return _BREAKS.sub("", text).translate(_CHARACTERS)


def _without_nel_around(text: str) -> str:
    return text.strip()
