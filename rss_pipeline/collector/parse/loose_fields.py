"""Fields in text that no strict parser reads, written so that feedparser reads them as `rss_atom.py` does.

feedparser takes the last of several links, titles or guids; `rss_atom.py` has an order of preference, and
takes the first. An item has to be the same one on a day on which its document is ill-formed.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from rss_pipeline.collector.parse.links import ALTERNATE

_HIDDEN = "x-unread"
"""The name of elements that feedparser is not to read."""

_ITEM_TAG = re.compile(r"<(/?)(?:item|entry|[A-Za-z]\w*:(?:item|entry))(?=[\s>/])", re.IGNORECASE)
_ATOM_PREFIX = re.compile(r"xmlns:(\w+)\s*=\s*[\"']http://www\.w3\.org/2005/Atom[\"']")
_CONTAINERS = "source|image|author|contributor|textInput|group|content|summary|description|encoded"
_TOKEN = re.compile(
    r"<(?P<name>(?:\w+:)?(?:link|guid|id|title|pubDate))(?P<attributes>(?:\s[^<>]*)?)"
    r"(?:(?<=/)>|>(?P<text>[^<]*)</(?P=name)\s*>)"
    rf"|<(?P<end>/?)(?:\w+:)?(?:{_CONTAINERS})\b[^<>]*(?<!/)>"
)
_RELATION = re.compile(r"\srel\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_TARGET = re.compile(r"\shref\s*=\s*(?:\"\s*[^\"\s][^\"]*\"|'\s*[^'\s][^']*')")
_AUTHOR = re.compile(
    r"(<(?P<tag>(?:\w+:)?author)(?:\s[^<>]*)?>)(?P<inner>[^<]*+(?:<(?!/?(?:\w+:)?author\b)[^<]*+)*+)</(?P=tag)\s*>"
)
_PERSON = {
    part: re.compile(rf"<(?:\w+:)?{part}(?:\s[^<>]*)?>(\s*[^<\s][^<]*)</") for part in ("name", "email")
}


@dataclass(frozen=True, slots=True)
class _Field:
    """An element of an item: what it would be, and its rank among those that would be the same."""

    group: str
    rank: int
    found: re.Match[str]


def with_plain_authors(text: str) -> str:
    """The text with the name alone, or else the address, in each author that is a person construct.

    feedparser mixes such authors up where there are several, or others beside them, and takes a title within
    for the item's.
    """
    return _AUTHOR.sub(_plain_author, text)


def _plain_author(found: re.Match[str]) -> str:
    inner = found["inner"]
    person = next((each for part in _PERSON.values() if (each := part.search(inner))), None)
    return found[0] if person is None else f"{found[1]}{person[1]}</{found['tag']}>"


def with_one_of_each(text: str, *, root: str, is_blank: Callable[[str], bool]) -> str:
    """The text with one kind of link, and at most one guid, title and pubDate, in each item: those of the
    strict reader.

    `root` is the tag of the root element. `is_blank` is true for a text of the document that says nothing.
    """
    prefixes = frozenset({"atom", "a10", *_ATOM_PREFIX.findall(root)})
    pieces: list[str] = []
    done = 0
    starts = [tag.start() for tag in _ITEM_TAG.finditer(text)]
    for start, end in pairwise((*starts, len(text))):
        fields = [each for each in _fields(text, start, end, prefixes) if not _is_empty(each, is_blank)]
        chosen: dict[str, _Field] = {}
        for each in fields:
            if each.group not in chosen or each.rank < chosen[each.group].rank:
                chosen[each.group] = each
        for each in fields:
            found = each.found
            if each.group == "link" and 0 < each.rank == chosen["link"].rank:
                # feedparser lists Atom's with their types.
                continue
            if chosen[each.group] is not each:
                shown = f"<{_HIDDEN}>{found['text'] or ''}</{_HIDDEN}>"
            elif each.group == "link" and each.rank == 0:
                # An href would be taken instead of the text.
                shown = f"<link>{found['text']}</link>"
            else:
                continue
            pieces += (text[done : found.start()], shown)
            done = found.end()
    return "".join((*pieces, text[done:]))


def _fields(text: str, start: int, end: int, prefixes: frozenset[str]) -> Iterator[_Field]:
    """The identifying fields of one item; those of its source, its author and its content are not its own."""
    depth = 0
    for found in _TOKEN.finditer(text, start, end):
        if found["name"] is None:
            depth = max(0, depth - 1) if found["end"] else depth + 1
        elif depth == 0 and (field := _field(found, prefixes)) is not None:
            yield field


def _field(found: re.Match[str], prefixes: frozenset[str]) -> _Field | None:
    prefix, _, local = found["name"].rpartition(":")
    is_atom = prefix in prefixes
    match local:
        case "link" if (not prefix or is_atom) and (rank := _link_rank(found, is_atom)) is not None:
            return _Field("link", rank, found)
        case "guid" if not prefix:
            return _Field("guid", 0, found)
        case "id" if not prefix or is_atom:
            return _Field("guid", 1, found)
        case "title" if not prefix or is_atom or prefix == "dc":
            return _Field("title", 2 if prefix == "dc" else int(is_atom), found)
        case "pubDate" if not prefix:
            return _Field("pubDate", 0, found)
    return None


def _link_rank(found: re.Match[str], is_atom: bool) -> int | None:
    """0 for RSS's link, 1 and 2 for Atom's; None for a link to something else, or to nothing."""
    if not is_atom and found["text"]:
        return 0
    relation = _RELATION.search(found["attributes"])
    if relation and not ALTERNATE.fullmatch((relation[1] or relation[2] or "").strip()):
        return None
    return 1 + is_atom if _TARGET.search(found["attributes"]) else None


def _is_empty(field: _Field, is_blank: Callable[[str], bool]) -> bool:
    if field.group == "link" and field.rank > 0:
        return False
    return is_blank(field.found["text"] or "")
