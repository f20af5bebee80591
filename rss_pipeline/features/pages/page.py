"""A web page as rows: its elements in document order, its text as one string, its links.

An element is a number; its descendants are the numbers up to its `end`, and its text is a part of the page's.
So each question about a part of a page is a comparison of numbers, whatever its size.
"""

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from lxml import etree

from rss_pipeline.collector.images.find import has_overloaded_tag
from rss_pipeline.collector.parse.characters.decode import Decoded, decode
from rss_pipeline.collector.parse.links import absolute, is_web
from rss_pipeline.collector.parse.web_page import of_alternates
from rss_pipeline.features.pages.links import identity

MOST_LINKS = 5_000
"""Links of one page that are looked at."""
_MOST_ELEMENTS = 60_000
_DEEPEST = 400

_SILENT = frozenset(
    [
        "script",
        "style",
        "noscript",
        "template",
        "svg",
        "math",
        "iframe",
        "object",
        "head",
        "title",
        "select",
        "option",
        "textarea",
    ]
)
"""Elements that show no text of the page."""
_INLINE = frozenset(
    [
        "a",
        "abbr",
        "b",
        "bdi",
        "code",
        "em",
        "font",
        "i",
        "mark",
        "q",
        "s",
        "small",
        "strong",
        "sub",
        "sup",
        "u",
        "wbr",
    ]
)
HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
BORDER, BLOCK = "\x1f", "\x1e"
"""Between the texts of spans and of other elements: white space to `str.split` and `\\s`. Spans may be
words of one title, or boxes of their own."""
_SPACES = re.compile(r"\s+")
_META_CHARSET = re.compile(
    rb"<meta\b[^>]{0,300}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE
)
_CHARSET = re.compile(r"charset\s*=", re.IGNORECASE)
_META_WITHIN = 4_096
_DIGITS = re.compile(r"\d+")
_WORDS = re.compile(r"[a-z]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")

_ASIDE_TAGS = frozenset(("nav", "footer", "aside", "form", "dialog"))
_ASIDE_ROLES = frozenset(
    ("navigation", "contentinfo", "complementary", "search", "menu", "menubar", "dialog")
)
_MENU_ROLES = frozenset(("navigation", "menu", "menubar"))
_ASIDE_WORDS = frozenset(
    [
        "nav",
        "navbar",
        "navigation",
        "menu",
        "submenu",
        "topbar",
        "toolbar",
        "footer",
        "sidebar",
        "aside",
        "breadcrumb",
        "breadcrumbs",
        "pagination",
        "paginator",
        "pager",
        "paging",
        "widget",
        "widgets",
        "social",
        "share",
        "sharing",
        "related",
        "recommended",
        "toc",
        "comment",
        "comments",
        "commentlist",
        "cookie",
        "cookies",
        "consent",
        "languages",
        "langs",
        "lang",
        "copyright",
        "masthead",
        "dropdown",
        "skip",
        "banner",
        "tagcloud",
        "blogroll",
        "ad",
        "ads",
        "adsense",
        "advert",
        "adverts",
        "advertisement",
        "advertising",
        "sponsored",
    ]
)
_ASIDE_SHARE = 0.45
"""A margin with more of the page's text is its content; a menu stays one, however long."""


def decode_page(body: bytes, content_type: str | None, *, hint: str | None = None) -> Decoded:
    """The text of a page: its charset by the header, its `<meta>`, or as a feed's is detected."""
    if not (content_type and _CHARSET.search(content_type)) and (
        named := _META_CHARSET.search(body[:_META_WITHIN])
    ):
        content_type = f"text/html; charset={named[1].decode('ascii')}"
    return decode(body, content_type=content_type, hint=hint)


@dataclass(slots=True)
class Anchor:
    """A link of a page."""

    node: int
    url: str
    identity: str
    is_part: bool = False
    """In a heading, and to a place on the page itself: an entry of a changelog, or a part of an article."""


@dataclass(slots=True)
class Page:
    """The rows of a page; all lists have an entry for each element."""

    url: str
    base: str
    elements: list[etree._Element] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    """The number after the last descendant."""
    paths: list[int] = field(default_factory=list)
    """A number for each way of tags from the root."""
    class_paths: list[int] = field(default_factory=list)
    """Likewise with the words of their classes, without digits."""
    begins: list[int] = field(default_factory=list)
    """The place in `text` where the element's begins."""
    stops: list[int] = field(default_factory=list)
    is_aside: list[bool] = field(default_factory=list)
    """In a menu, a foot, a margin."""
    is_heading: list[bool] = field(default_factory=list)
    """In a heading."""
    text: str = ""
    anchors: list[Anchor] = field(default_factory=list)
    scripts: int = 0
    title: str = ""
    og_type: str = ""
    structured: list[str] = field(default_factory=list)
    """The texts of JSON-LD."""
    feeds: tuple[str, ...] = ()
    """Absolute URLs of the feeds that the head names."""
    has_password: bool = False
    has_frames: bool = False

    def shown(self, begin: int, stop: int) -> str:
        """The text between two places, in one line."""
        return _SPACES.sub(" ", self.text[begin:stop].replace(BORDER, "")).strip()

    def shown_of(self, node: int) -> str:
        """The text of an element, in one line."""
        return self.shown(self.begins[node], self.stops[node])

    def length(self, node: int) -> int:
        """Characters of an element's text."""
        return self.stops[node] - self.begins[node]

    def node_at(self, place: int) -> int:
        """The innermost element around a place in the text."""
        node = bisect_right(self.begins, place) - 1
        while node > 0 and self.stops[node] <= place:
            node = self.parents[node]
        return max(node, 0)

    def anchors_in(self, node: int, end: int) -> list[Anchor]:
        """The links of the elements from `node` up to `end`."""
        low = bisect_left(self.anchors, node, key=lambda each: each.node)
        high = bisect_left(self.anchors, end, key=lambda each: each.node)
        return self.anchors[low:high]


def read_page(html: str, url: str) -> Page | None:
    """The rows of a page at an address; None for a text without elements or with a tag that no page has."""
    if not html.strip() or has_overloaded_tag(html):
        return None
    parser = etree.HTMLParser(
        encoding="utf-8", no_network=True, huge_tree=True, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(html.encode("utf-8", "replace"), parser)
    except etree.ParserError:
        return None
    if root is None:
        return None
    page = Page(url=url, base=_base(root, url))
    _walk(page, root)
    _mark_asides(page)
    _read_links(page)
    _read_head(page, root)
    return page


def own_address(html: str) -> str | None:
    """The address that a page says it has: `<link rel="canonical">`, og:url or an absolute `<base href>`."""
    page = read_page(html, "")
    if page is None:
        return None
    named = [
        element.get(name) or ""
        for element, name, key, value in (
            *((each, "href", "rel", "canonical") for each in page.elements if each.tag == "link"),
            *((each, "content", "property", "og:url") for each in page.elements if each.tag == "meta"),
            *((each, "href", "", "") for each in page.elements if each.tag == "base"),
        )
        if not key or (element.get(key) or "").lower() == value
    ]
    return next((url for url in named if is_web(url)), None)


def _base(root: etree._Element, url: str) -> str:
    for element in root.iter("base"):
        if (href := element.get("href")) and (found := absolute(href, (url,))) and is_web(found):
            return found
    return url


def _walk(page: Page, root: etree._Element) -> None:
    """Fill the rows, in one walk."""
    pieces: list[str] = []
    at = 0
    path_numbers: dict[tuple[int, str], int] = {}
    class_numbers: dict[tuple[int, str, str], int] = {}
    words: dict[str, str] = {}
    open_nodes: list[int] = []
    silent_depth = 0
    heading_depth = 0

    def add(text: str) -> int:
        pieces.append(text)
        return len(text)

    tags, parents, ends, paths = page.tags, page.parents, page.ends, page.paths
    class_paths, begins, stops, headings = page.class_paths, page.begins, page.stops, page.is_heading
    for event, element in etree.iterwalk(root, events=("start", "end")):
        tag = element.tag
        if event == "start":
            node = len(tags)
            if node >= _MOST_ELEMENTS or len(open_nodes) > _DEEPEST:
                open_nodes.append(-1)
                continue
            parent = open_nodes[-1] if open_nodes else -1
            if parent == -1 and open_nodes:
                open_nodes.append(-1)
                continue
            if tag in HEADINGS:
                heading_depth += 1
            if tag in _SILENT:
                silent_depth += 1
            elif silent_depth == 0 and tag not in _INLINE:
                at += add(BORDER if tag == "span" else BLOCK)
            page.elements.append(element)
            tags.append(tag)
            parents.append(parent)
            ends.append(node + 1)
            above = paths[parent] if parent >= 0 else -1
            paths.append(path_numbers.setdefault((above, tag), len(path_numbers)))
            classes = element.get("class") or ""
            key = words.get(classes)
            if key is None:
                key = words[classes] = " ".join(sorted(set(_DIGITS.sub("", classes).split())))
            above = class_paths[parent] if parent >= 0 else -1
            class_paths.append(class_numbers.setdefault((above, tag, key), len(class_numbers)))
            begins.append(at)
            stops.append(at)
            headings.append(heading_depth > 0)
            open_nodes.append(node)
            if silent_depth == 0 and (text := element.text):
                at += add(text)
        else:
            node = open_nodes.pop()
            if node >= 0:
                ends[node] = len(tags)
                stops[node] = at
                if tag in HEADINGS:
                    heading_depth -= 1
                if tag in _SILENT:
                    silent_depth -= 1
                elif silent_depth == 0 and tag not in _INLINE:
                    at += add(BORDER if tag == "span" else BLOCK)
            if silent_depth == 0 and (text := element.tail):
                at += add(text)
    page.text = "".join(pieces)


def _mark_asides(page: Page) -> None:
    total = len(page.text) or 1
    marks = [False] * len(page.tags)
    known: dict[str, bool] = {}
    for node, tag in enumerate(page.tags):
        parent = page.parents[node]
        if parent >= 0 and marks[parent]:
            marks[node] = True
            continue
        element = page.elements[node]
        named = tag in _ASIDE_TAGS or tag == "header"
        if not named and tag not in ("body", "html", "main", "article", "a"):
            names = f"{element.get('class') or ''} {element.get('id') or ''}"
            if len(names) > 1:
                found = known.get(names)
                if found is None:
                    found = known[names] = _is_aside_name(names)
                named = found
            if not named and (role := element.get("role")):
                named = role in _ASIDE_ROLES
        if not named:
            continue
        if tag in ("header", "footer") and _is_in_entry(page, node):
            continue
        is_menu = tag == "nav" or element.get("role") in _MENU_ROLES
        marks[node] = is_menu or page.length(node) < total * _ASIDE_SHARE
    page.is_aside = marks


def _is_aside_name(names: str) -> bool:
    return any(
        word in _ASIDE_WORDS
        for name in names.split()[:12]
        for word in _WORDS.findall(_CAMEL.sub("-", name).lower())
    )


def _is_in_entry(page: Page, node: int) -> bool:
    parent = page.parents[node]
    while parent >= 0:
        if page.tags[parent] in ("article", "li", "main", "section"):
            return True
        parent = page.parents[parent]
    return False


def _read_links(page: Page) -> None:
    bases = (page.base, page.url)
    here = page.url.partition("#")[0]
    resolved: dict[str, tuple[str, str, bool] | None] = {}
    for node, tag in enumerate(page.tags):
        if tag != "a" or (href := page.elements[node].get("href")) is None:
            continue
        if "sponsored" in (page.elements[node].get("rel") or "").lower():
            continue
        if href not in resolved:
            resolved[href] = _link(absolute(href, bases), here)
        if (link := resolved[href]) is not None and (page.is_heading[node] or not link[2]):
            page.anchors.append(Anchor(node, *link))
        if len(page.anchors) >= MOST_LINKS:
            break


def _link(url: str | None, here: str) -> tuple[str, str, bool] | None:
    """A usable link: its URL, its identity, and whether it is to a part of the page."""
    if url is None or not url.startswith("http"):
        return None
    before, _, fragment = url.partition("#")
    if before != here:
        # What the page is a part of is none of its entries.
        is_above = before.endswith("/") and here.startswith(before)
        return None if is_above else (url, identity(url), False)
    return (url, f"{identity(url)}#{fragment}", True) if fragment else None


def _read_head(page: Page, root: etree._Element) -> None:
    alternates = []
    for element in root.iter("link", "title", "meta", "script", "input", "frame", "iframe"):
        match element.tag:
            case "link":
                if "alternate" in (element.get("rel") or "").lower():
                    names = ("rel", "type", "href", "title")
                    alternates.append({name: element.get(name) or "" for name in names})
            case "title":
                page.title = page.title or " ".join((element.text or "").split())[:200]
            case "meta":
                if element.get("property") == "og:type":
                    page.og_type = (element.get("content") or "").strip().lower()
            case "script":
                page.scripts += 1
                if element.get("type") == "application/ld+json" and element.text:
                    page.structured.append(element.text)
            case "frame" | "iframe":
                page.has_frames = True
            case _:
                page.has_password |= (element.get("type") or "").lower() == "password"
    page.feeds = tuple(of_alternates(alternates, (page.base, page.url), page.url))
