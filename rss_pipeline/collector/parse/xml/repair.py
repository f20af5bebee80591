"""The repair of ill-formed XML text, as little as is needed to read it.

Text in, text out; `tree.py` then finds out whether it can be read.
"""

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html.entities import html5

from rss_pipeline.collector.parse.xml.namespaces import NAMESPACES, UNDECLARED

_PROLOG = re.compile(r"(?:\s+|\ufeff|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)
_DOCTYPE = re.compile(r"<!DOCTYPE\s++([^\s>\[]*+)[^>\[]*+(?:\[.*?\]\s*+)?>", re.DOTALL | re.IGNORECASE)
_ROOT = re.compile(r"<([A-Za-z_][\w.:-]*)")
_FEED_START = re.compile(
    r"<\?xml\s|<!DOCTYPE\s+(?:rss|rdf|feed)\b|<(?:rss|rdf:RDF|(?:\w+:)?feed)[\s>]", re.IGNORECASE
)
# Nothing but the frame of a web page between the beginning and the feed: a server's template, a saved view.
_PAGE_AROUND = re.compile(
    # Possessive: without it, a long run of white space would be tried in every division.
    r"\A(?:\s++|\ufeff|<\?.*?\?>|<!--.*?-->|<!DOCTYPE\s+html\b[^>]*+>|</?(?:html|head|meta|body|pre|div)\b[^>]*+>)++"
    r"(?=<(?:rss|rdf:RDF|(?:\w+:)?feed)[\s>])",
    re.DOTALL | re.IGNORECASE,
)
# A root without anything in it; a feed of its own unless another root follows.
_EMPTY_ROOT = re.compile(
    r"<((?:\w+:)?(?:feed|rss|rdf))(?:\s[^<>]*|/)?(?:(?<=/)>|>\s*+</\1\s*>)", re.IGNORECASE
)
_EMPTY_ROOTS = 8
_PAGE_END = re.compile(r"</(?:html|body|pre|div)\s{0,9}>\Z", re.IGNORECASE)
_PAGE_ENDS = 8
_NAMED = re.compile(r"&([A-Za-z_][\w.-]*+);")
_PARAMETER = re.compile(r"%[A-Za-z_][\w.-]*+;")
_NUMBERED = re.compile(r"&#(?:[0-9]{1,8}|[xX][0-9A-Fa-f]{1,6});")
_ENTITY = re.compile(r"<!ENTITY\s+([A-Za-z_][\w.-]*)\s+(?:\"([^\"]*)\"|'([^']*)')\s*>")

# Not XML 1.0 characters.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_REFERENCES = re.compile(
    r"(?=[<&])(?:<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)"
    r"|&(?:#(?P<number>[0-9]{1,8}|[xX][0-9A-Fa-f]{1,6});|(?P<name>[A-Za-z_][\w.-]*+);)?"
    r"|(?P<less><(?![A-Za-z_/!?:])))",
    re.DOTALL,
)
_PAIR = re.compile(
    r"&#(?:(5[5-7][0-9]{3})|[xX]([dD][89abAB][0-9A-Fa-f]{2}));"
    r"&#(?:(5[67][0-9]{3})|[xX]([dD][c-fC-F][0-9A-Fa-f]{2}));"
)
_PREFIXED = re.compile(r"</?([A-Za-z_][\w.-]*):[A-Za-z_]|\s([A-Za-z_][\w.-]*):[\w.-]+\s*=\s*[\"']")
_LONGEST_ENTITY = 1_000
_MOST_NESTED = 10
_MOST_EXPANDED = 1_000_000
"""Characters that a document's own entities may expand to in total: an entity of a megabyte, used a million
times, would be a terabyte."""
_XML_NAMES = frozenset({"amp", "lt", "gt", "quot", "apos"})
_MARKUP_CHARACTERS = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedDocument:
    """A document from its root element on; the part before it has no meaning once the bytes are decoded."""

    text: str
    root: str
    """The root's name with its prefix; empty if no element begins."""
    entities: Mapping[str, str]
    """Internal entities for plain text."""
    repairs: tuple[str, ...]


def opened(text: str) -> OpenedDocument:
    """Cut declaration, document type and junk before the root.

    The declaration names the charset of bytes that are decoded already (`encoding="gb2312"` gave mojibake).
    Without a document type no entity can be defined by another, so none can expand without limit.
    """
    repairs: tuple[str, ...] = ()
    start, name = _prolog_end(text, 0)
    root = _ROOT.match(text, start)
    if "html" in (name.lower(), root[1].lower() if root else "") and (page := _PAGE_AROUND.match(text)):
        start, name = page.end(), ""
        root = _ROOT.match(text, start)
        text = _without_page_end(text)
        repairs = ("web page around the feed cut",)
    junk = None
    if name.lower() != "html" and (root is None or not is_feed_name(root[1])):
        junk = _FEED_START.search(text, start)
    if junk and (root is None or root[1].lower() != "html"):
        start, _ = _prolog_end(text, junk.start())
        root = _ROOT.match(text, start)
        repairs = ("junk before the feed cut",)
    declared: dict[str, str] = {}
    for entity in _ENTITY.finditer(text[:start]):
        # The first declaration counts (XML 1.0, 4.2).
        declared.setdefault(entity[1], entity[2] or entity[3] or "")
    for _ in range(_EMPTY_ROOTS):
        if root is None or (after := _after_empty_root(text, start)) is None:
            break
        start, root = after
        repairs = (*repairs, "empty feed before the feed cut")
    return OpenedDocument(
        text=text[start:],
        root="html" if name.lower() == "html" else root[1] if root else "",
        entities=_plain_entities(declared),
        repairs=repairs,
    )


def _after_empty_root(text: str, start: int) -> tuple[int, re.Match[str]] | None:
    """The index and the match of the root that follows an empty one; None where there are no such two."""
    if (empty := _EMPTY_ROOT.match(text, start)) is None:
        return None
    end, _ = _prolog_end(text, empty.end())
    root = _ROOT.match(text, end)
    return (end, root) if root is not None and is_feed_name(root[1]) else None


def _plain_entities(declared: Mapping[str, str]) -> dict[str, str]:
    """The plain texts that a document's own entities are for, but not those that are markup, too long, or
    named within themselves.

    A number is replaced where the entity is declared, and what it makes is a reference where the entity is
    used: `&#38;#8212;` is a dash (XML 1.0, 4.4). An entity may name others, wherever they are declared.
    """
    left = {
        name: _NUMBERED.sub(lambda found: html.unescape(found[0]), value)
        for name, value in declared.items()
        if len(value) <= _LONGEST_ENTITY and "<" not in value and not _PARAMETER.search(value)
    }
    texts: dict[str, str] = {}
    for _ in range(_MOST_NESTED):
        found = {name: _plain(value, texts, declared) for name, value in left.items()}
        texts |= {name: text for name, text in found.items() if text is not None}
        if len(left) == len(left := {name: value for name, value in left.items() if name not in texts}):
            break
    return texts


def _plain(value: str, texts: Mapping[str, str], declared: Mapping[str, str]) -> str | None:
    """The text of an entity whose own entities are in `texts`; None if one is not, or if it is too long."""
    pieces = _NAMED.split(value)
    for place in range(1, len(pieces), 2):
        name = pieces[place]
        if name not in texts and (name in declared or f"{name};" not in html5):
            return None
    plain = "".join(
        texts.get(piece, html5.get(f"{piece};", "")) if place % 2 else html.unescape(piece)
        for place, piece in enumerate(pieces)
    )
    return plain if len(plain) <= _LONGEST_ENTITY else None


def _without_page_end(text: str) -> str:
    text = text.rstrip()
    for _ in range(_PAGE_ENDS):
        if (found := _PAGE_END.search(text, max(0, len(text) - 20))) is None:
            break
        text = text[: found.start()].rstrip()
    return text


def is_feed_name(root: str) -> bool:
    """True if a root element of this name means RSS, RDF or Atom, of which a document may be one entry."""
    return root.rpartition(":")[2] in ("rss", "RDF", "feed", "entry")


def repaired(document: OpenedDocument) -> tuple[str, tuple[str, ...]]:
    """The repaired text, and a description of each repair.

    Control characters and references to them are removed, halves of surrogate pairs become one character or
    U+FFFD, named entities become their characters, a bare `&` or `<` its escape. CDATA sections lose control
    characters only.
    """
    repairs: dict[str, None] = {}
    left = _MOST_EXPANDED
    text = _CONTROLS.sub("", document.text)
    if text != document.text:
        repairs["control characters dropped"] = None
    if "&#" in text:
        text = _PAIR.sub(_joined, text)

    def reference(found: re.Match[str]) -> str:
        nonlocal left
        whole = found[0]
        if found["less"]:
            repairs["bare < escaped"] = None
            return "&lt;"
        if not whole.startswith("&"):
            return whole
        if number := found["number"]:
            code = int(number[1:], 16) if number[0] in "xX" else int(number)
            if _is_character(code):
                return whole
            repairs["references to impossible characters dropped"] = None
            return "" if code < 0x20 else "\ufffd"
        name = found["name"]
        if name in _XML_NAMES:
            return whole
        own = document.entities.get(name) if name and left > 0 else None
        left -= len(own or "")
        characters = own if own is not None else html5.get(f"{name};") if name else None
        if characters is None:
            repairs["bare & escaped"] = None
            return "&amp;" + whole[1:]
        repairs["named entities replaced"] = None
        return "".join(_MARKUP_CHARACTERS.get(each, each) for each in characters)

    text = _REFERENCES.sub(reference, text)
    return text, tuple(repairs)


def _prolog_end(text: str, start: int) -> tuple[int, str]:
    """The index at which the root should begin, and its name by the document type."""
    name = ""
    found = _PROLOG.match(text, start)
    end = found.end() if found else start
    if doctype := _DOCTYPE.match(text, end):
        name = doctype[1]
        found = _PROLOG.match(text, doctype.end())
        end = found.end() if found else doctype.end()
    return end, name


def _is_character(code: int) -> bool:
    return (
        code in (9, 10, 13)
        or 0x20 <= code <= 0xD7FF
        or 0xE000 <= code <= 0xFFFD
        or 0x10000 <= code <= 0x10FFFF
    )


def _joined(found: re.Match[str]) -> str:
    """One character for two references: .NET and Java wrote an emoji as one for each UTF-16 unit."""
    high = int(found[1]) if found[1] else int(found[2], 16)
    low = int(found[3]) if found[3] else int(found[4], 16)
    if not (0xD800 <= high <= 0xDBFF and 0xDC00 <= low <= 0xDFFF):
        return found[0]
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


def with_prefixes(text: str) -> str:
    """The text, which begins with its root, with each used prefix declared on the root.

    A prefix that is usual in feeds gets its usual namespace.
    """
    root = re.match(r"<[A-Za-z_][\w.:-]*", text)
    if root is None:
        return text
    head = text[: text.find(">") + 1]
    declared = set(re.findall(r"xmlns:([A-Za-z_][\w.-]*)\s*=", head)) | {"xml", "xmlns"}
    used = {first or second for first, second in _PREFIXED.findall(text)} - declared
    extra = "".join(
        f' xmlns:{prefix}="{NAMESPACES.get(prefix.lower(), UNDECLARED + prefix)}"' for prefix in sorted(used)
    )
    return text[: root.end()] + extra + text[root.end() :]
