"""OPML 1.0 and 2.0: the feeds of a file, or every mistake in it with its line; and a list written.

A file comes from another program: no entity may be declared, nothing is loaded, and texts are cut to what
feeds.yaml takes. A folder is the names of the outlines around a feed, joined by `/`; a slash in a name, as in
"AC/DC", is kept as U+2215, which looks the same. http://opml.org/spec2.opml
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement
from xml.parsers import expat

from rss_pipeline.collector.parse.characters.decode import decode
from rss_pipeline.collector.parse.xml.repair import OpenedDocument, repaired
from rss_pipeline.collector.registry.entry import MAX_FOLDER_CHARACTERS
from rss_pipeline.collector.registry.feed_url import completed, literal, read_url, reason
from rss_pipeline.collector.registry.values import MAX_TITLE_CHARACTERS, printable
from rss_pipeline.collector.registry.yaml_nodes import MAX_FILE_BYTES, Mistake
from rss_pipeline.errors import RegistryError
from rss_pipeline.features import FEED_KEYS

_SLASH = "\u2215"


def as_folder(name: str) -> str:
    """The name of one outline as a part of a folder."""
    return name.replace("/", _SLASH)


def as_name(part: str) -> str:
    """The inverse of `as_folder`."""
    return part.replace(_SLASH, "/")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpmlFeed:
    """One outline with an `xmlUrl`, or of a web page."""

    url: str
    same_as: str = ""
    """The same for two forms of one URL, as in feeds.yaml; set where it was read."""
    title: str | None = None
    folder: str | None = None
    """The texts of the outlines around it, joined by `/`."""
    html_url: str | None = None
    line: int = 0
    """In the file that it was read from, from 1."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Keys in feeds.yaml without which there is no feed at its address."""
    is_watched: bool = True
    """False for a name and a page, without any source."""


_FEED_TYPES = frozenset({"rss", "atom", "rdf", "feed", "json", "jsonfeed", "rss1", "atom1"})
_OF_A_FOLDER = frozenset({"text", "title", "type", "isopen", "expanded", "description", "created"})
"""Attributes of an outline that can be a folder without feeds. Others are notes or settings (Thunderbird)."""
_SCRAPED = re.compile(r"\+(?:xpath|dotnotation)", re.IGNORECASE)
"""FreshRSS: a document that it turns into a feed by own rules. Of a page, the entries are found anew."""
_SCRAPED_PAGE = "html+xpath"
_OURS = "https://rss-pipeline.invalid/opml"
"""The namespace of attributes for what OPML has no word for. Nothing is requested there."""
_PREFIX = "rssp"
ElementTree.register_namespace(_PREFIX, _OURS)
_LISTED_KEYS = tuple(name for name, key in FEED_KEYS.items() if key.in_lists is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpmlLimits:
    """The most of a file that is read."""

    file_bytes: int
    outlines: int
    deepest: int
    """Outlines within each other."""
    takes_doctype: bool
    """True if a document type may be declared, without entities in it."""


OWN_FILE = OpmlLimits(file_bytes=MAX_FILE_BYTES, outlines=1_000_000, deepest=50, takes_doctype=True)
"""The limits of a file that the operator imports."""


class Outlines(NamedTuple):
    """The outlines of a file."""

    feeds: list[OpmlFeed]
    """In the order of the file, doubles included."""
    mistakes: list[Mistake]
    empty_folders: list[str]
    """Each once."""
    pages: list[OpmlFeed]
    """Web pages of which nothing says that they can be collected."""


def read_opml(body: bytes, *, path: Path) -> Outlines:
    """The outlines of a file that the operator imports; `path` is used in the RegistryError only.

    Every URL is one that feeds.yaml takes. Raises RegistryError with all mistakes.
    """
    found = read_outlines(body, OWN_FILE)
    if found.mistakes:
        raise RegistryError(str(path), [str(mistake) for mistake in found.mistakes])
    return found


def read_outlines(body: bytes, limits: OpmlLimits) -> Outlines:
    """The feeds and the empty folders of the file, and all mistakes in it."""
    if len(body) > limits.file_bytes:
        too_large = Mistake(0, "", f"the file is larger than {limits.file_bytes // 1_000_000} MB")
        return Outlines([], [too_large], [], [])
    decoded = decode(body).text
    text = decoded.lstrip()
    cut = decoded[: len(decoded) - len(text)].count("\n")
    try:
        reader = _read(text, cut, limits)
    except expat.ExpatError:
        # A bare `&` in a URL and HTML's named entities are frequent; no line changes its number.
        text, _ = repaired(OpenedDocument(text=text, root="opml", entities={}, repairs=()))
        try:
            reader = _read(text, cut, limits)
        except expat.ExpatError as error:
            what = f"this is not XML here: {expat.ErrorString(error.code)}; export the file again"
            return Outlines([], [Mistake(error.lineno + cut, "", what)], [], [])
    if not reader.mistakes and not reader.feeds and not reader.pages:
        reader.mistakes.append(
            Mistake(0, "", "the file lists no feed: no outline of it has an xmlUrl; is it the right file?")
        )
    return Outlines(reader.feeds, reader.mistakes, [*dict.fromkeys(reader.empty_folders)], reader.pages)


def _read(text: str, cut: int, limits: OpmlLimits) -> "_Reader":
    reader = _Reader(cut, limits)
    try:
        reader.read(text)
    except _Refused as refused:
        reader.mistakes.append(refused.mistake)
    return reader


class _Refused(Exception):
    def __init__(self, line: int, sentence: str) -> None:
        self.mistake = Mistake(line, "", sentence)
        super().__init__(sentence)


class _Reader:
    """The handlers of one pass over the text."""

    def __init__(self, cut: int, limits: OpmlLimits) -> None:
        self.feeds: list[OpmlFeed] = []
        self.pages: list[OpmlFeed] = []
        self.mistakes: list[Mistake] = []
        self.empty_folders: list[str] = []
        self._leaf: str | None = None
        """The folder that the last outline is, until another one begins within it."""
        self._cut = cut
        self._limits = limits
        self._outlines = 0
        self._folders: list[str] = []
        """One for each open outline; of a feed, the folder it is in."""
        self._depth = 0
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.EntityDeclHandler = self._entity
        if not limits.takes_doctype:
            self._parser.StartDoctypeDeclHandler = self._doctype

    def read(self, text: str) -> None:
        """Raises expat.ExpatError, _Refused."""
        self._parser.Parse(text, True)

    def _line(self) -> int:
        return self._parser.CurrentLineNumber + self._cut

    def _entity(self, *_: object) -> None:
        raise _Refused(
            self._line(),
            "the file declares entities, which no feed list needs and some attacks use; remove them",
        )

    def _doctype(self, *_: object) -> None:
        raise _Refused(
            self._line(),
            "the file declares a document type (<!DOCTYPE>), which OPML does not have; remove it",
        )

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        name = name.rpartition(":")[2].lower()
        if self._depth == 0 and name != "opml":
            advice = "; if it is a feed, add its address instead" if name in ("rss", "feed") else ""
            known = f"<{name}>, " if name in ("rss", "feed", "rdf", "html") else ""
            raise _Refused(self._line(), f"this is {known}not OPML{advice}")
        self._depth += 1
        if name != "outline":
            return
        if len(self._folders) >= self._limits.deepest:
            raise _Refused(
                self._line(),
                f"folders are nested deeper than {self._limits.deepest}; that is no list of feeds",
            )
        self._outlines += 1
        if self._outlines > self._limits.outlines:
            raise _Refused(
                self._line(), f"the file has more than {self._limits.outlines:,} outlines; split it"
            )
        # The case of names is wrong in many files.
        given = {key.lower(): value.strip() for key, value in attributes.items()}
        self._folders.append(self._outline(given))
        is_folder = bool(given.get("text") or given.get("title")) and given.keys() <= _OF_A_FOLDER
        self._leaf = self._folders[-1] if is_folder else None

    def _end(self, name: str) -> None:
        self._depth -= 1
        if name.rpartition(":")[2].lower() == "outline":
            self._folders.pop()
            if self._leaf:
                self.empty_folders.append(self._leaf)
            self._leaf = None

    def _outline(self, given: Mapping[str, str]) -> str:
        """Keep a feed; return the folder of the outlines within this one."""
        around = self._folders[-1] if self._folders else ""
        url, kind = given.get("xmlurl", ""), given.get("type", "").lower()
        title = printable(given.get("title", "")) or printable(given.get("text", ""))
        page = "" if kind in ("link", "include") else given.get("htmlurl", "")
        if kind == _SCRAPED_PAGE:
            url, page = "", url
        if not url and page:
            self._add(page, "htmlUrl", title, around, given)
            return around
        if not url:
            if kind in _FEED_TYPES:
                self._wrong("this outline has no xmlUrl, the feed's address; write it, or remove the outline")
            name = as_folder(title[:MAX_FOLDER_CHARACTERS].strip("/ "))
            return "/".join(filter(None, (around, name)))
        if _SCRAPED.search(kind):
            self._wrong(
                "this outline is no feed but a document that another reader turns into one, as its type"
                " says; remove the outline"
            )
            return around
        self._add(url, "xmlUrl", title, around, given)
        return around

    def _add(self, url: str, attribute: str, title: str, around: str, given: Mapping[str, str]) -> None:
        try:
            url = completed(url)
            key = read_url(literal(url), {}).same_as
        except ValueError as error:
            self._wrong(f"{attribute}: {reason(error)}")
            return
        folder = around or given.get("category", "").partition(",")[0]
        folder = "/".join(name for each in folder.split("/") if (name := printable(each)))
        if len(folder) > MAX_FOLDER_CHARACTERS:
            self._wrong(
                f"the folders around it have more than {MAX_FOLDER_CHARACTERS} characters; shorten them"
            )
            return
        title = title[:MAX_TITLE_CHARACTERS].strip()
        keys = {name: text for name in _LISTED_KEYS if (text := given.get(f"{_PREFIX}:{name}"))}
        (self.feeds if attribute == "xmlUrl" or keys else self.pages).append(
            OpmlFeed(
                url=url,
                same_as=key,
                title=title if title not in ("", url) else None,
                folder=folder or None,
                html_url=given.get("htmlurl"),
                line=self._line(),
                keys=keys,
                is_watched=given.get(f"{_PREFIX}:watch") != "false",
            )
        )

    def _wrong(self, sentence: str) -> None:
        self.mistakes.append(Mistake(self._line(), "", sentence))


def write_opml(
    feeds: Iterable[OpmlFeed], *, title: str, created: datetime, empty_folders: Iterable[str] = ()
) -> bytes:
    """The feeds in their order, each folder at the place of its first feed, then folders without feeds, as
    UTF-8."""
    root = Element("opml", version="2.0")
    head = SubElement(root, "head")
    SubElement(head, "title").text = title
    SubElement(head, "dateCreated").text = format_datetime(created)
    body = SubElement(root, "body")
    folders: dict[tuple[str, ...], Element] = {(): body}
    for feed in feeds:
        outline = SubElement(
            _folder(folders, tuple(feed.folder.split("/")) if feed.folder else ()), "outline"
        )
        # XML cannot hold some characters that a JSON feed may have in its title.
        name = printable(feed.title or "") or feed.url
        # `text` is required and is what programs show; `title` is what most readers take (OPML 2.0).
        if feed.keys or not feed.is_watched:
            # Without an xmlUrl: other readers would request a feed there again and again.
            outline.attrib |= {"text": name, "title": name, "htmlUrl": feed.url}
            ours = feed.keys if feed.is_watched else {"watch": "false"}
            outline.attrib |= {f"{{{_OURS}}}{key}": value for key, value in ours.items()}
            continue
        outline.attrib |= {"type": "rss", "text": name, "title": name, "xmlUrl": feed.url}
        if feed.html_url and (page := printable(feed.html_url)):
            outline.set("htmlUrl", page)
    for each in empty_folders:
        _folder(folders, tuple(each.split("/")))
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _folder(folders: dict[tuple[str, ...], Element], path: tuple[str, ...]) -> Element:
    if path not in folders:
        name = printable(as_name(path[-1]))
        folders[path] = SubElement(_folder(folders, path[:-1]), "outline", text=name, title=name)
    return folders[path]
