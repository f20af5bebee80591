"""The HTML of an item as text for a terminal: paragraphs, lists, quotes and code, and its links by number.

Lines are broken where the text is printed. The HTML itself is not changed, and no image is shown.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape

from lxml import etree

from rss_pipeline.collector.images.archived import render
from rss_pipeline.collector.images.find import image_bases, tree
from rss_pipeline.collector.images.urls import with_former_urls
from rss_pipeline.collector.parse.links import absolute
from rss_pipeline.collector.parse.sections import Sections
from rss_pipeline.collector.sanitize.html import in_words
from rss_pipeline.collector.sanitize.shown import lead_image, picture_above
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.images import image_tasks as tasks
from rss_pipeline.storage.items.items import image_source
from rss_pipeline.storage.objects import ObjectStore

_SPACES = re.compile(r"[ \t\r\n\f]+")
_HIDDEN = frozenset(("script", "style", "template", "head", "title", "object", "iframe", "svg", "math"))
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_TIGHT = frozenset(("li", "tr", "dt", "dd", "summary"))
_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "body", "center", "details", "div", "dl", "fieldset"),
        *(
            "figcaption",
            "figure",
            "footer",
            "form",
            "header",
            "hr",
            "main",
            "nav",
            "ol",
            "p",
            "pre",
            "section",
        ),
        *("table", "ul", *_HEADINGS, *_TIGHT),
    )
)
_TAGS = Sections(("<!--", "-->"), ("</?[a-zA-Z]", ">"))
_INDENT = "  "
_DEEPEST = 8
"""Levels of lists and quotes that are indented; deeper ones leave no room for a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A paragraph, an item of a list, a row of a table."""

    text: str
    """On one line, but with line breaks where the publisher has them (`<br>`, `<pre>`)."""
    first: str = ""
    """The text before its first line: an indent, a bullet, the mark of a quote."""
    rest: str = ""
    """The text before the other lines."""
    is_heading: bool = False
    is_tight: bool = False
    """No blank line is before it."""


@dataclass(slots=True)
class ItemText:
    """The blocks, with `[1]` behind the text of each link, and the links in this order."""

    blocks: list[Block] = field(default_factory=list)
    links: list[str] = field(default_factory=list)


def item_text(html: str, *, bases: Sequence[str | None]) -> ItemText:
    """The text of an item's HTML, with the links of its frames, its formulas and the texts of its drawings.

    Links are resolved against the first usable of `bases`.
    HTML that is not parsed (2,048 levels, a tag with hundreds of attributes) is one block, without its tags.
    """
    html = in_words(html, bases) or html
    root = tree(html)
    if root is None:
        return _without_tags(html)
    writer = _Writer(bases)
    walk = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
    for event, element in walk:
        if event == "start" and element.tag in _HIDDEN:
            walk.skip_subtree()
        elif event == "start":
            writer.start(element)
        elif event == "end" and element.tag not in _HIDDEN:
            writer.end(element)
        if event != "start":
            # Comments have a text behind them, too.
            writer.add(element.tail)
    writer.flush()
    return writer.written if writer.written.blocks else _without_tags(html)


def _without_tags(html: str) -> ItemText:
    text = unescape(_TAGS.sub(lambda _tag: "", html)).strip()
    return ItemText([Block(text=text)] if text else [])


class _Writer:
    def __init__(self, bases: Sequence[str | None]) -> None:
        self.written = ItemText()
        self._bases = bases
        self._parts: list[str] = []
        self._numbers: list[int] = []
        """The number of the next item in each open list; -1 in one without numbers."""
        self._places: dict[str, int] = {}
        """The number of each link: a page may have a hundred thousand."""
        self._bullet = ""
        self._quotes = 0
        self._pre = 0
        self._tag = ""

    def start(self, element: etree._Element) -> None:
        tag = str(element.tag)
        if tag in _BLOCKS:
            self.flush()
            self._tag = tag
        match tag:
            case "ul" | "ol":
                self._numbers.append(1 if tag == "ol" else -1)
            case "li":
                self._bullet = self._next_bullet()
            case "blockquote":
                self._quotes += 1
            case "pre":
                self._pre += 1
            case "br":
                self._parts.append("\n")
            case "hr":
                self._parts.append("----")
            case "td" | "th" if self._parts:
                self._parts.append(" | ")
            case "img":
                alt = _SPACES.sub(" ", element.get("alt") or "").strip()
                self._parts.append(f"[image: {alt}]" if alt else "[image]")
        self.add(element.text)

    def end(self, element: etree._Element) -> None:
        tag = str(element.tag)
        if tag == "a":
            self._link(element.get("href"))
        if tag in _BLOCKS:
            self.flush()
        match tag:
            case "ul" | "ol":
                self._numbers.pop()
            case "blockquote":
                self._quotes -= 1
            case "pre":
                self._pre -= 1

    def add(self, text: str | None) -> None:
        if text:
            self._parts.append(text if self._pre else _SPACES.sub(" ", text))

    def flush(self) -> None:
        text = "".join(self._parts)
        self._parts = []
        text = text.strip("\n") if self._pre else "\n".join(_lines(text))
        if not text.strip():
            return
        depth = min(max(len(self._numbers) - 1, 0), _DEEPEST)
        indent = "> " * min(self._quotes, _DEEPEST) + _INDENT * depth
        bullet, self._bullet = self._bullet, ""
        hanging = " " * len(bullet) if bullet else _INDENT if self._numbers else ""
        self.written.blocks.append(
            Block(
                text=text,
                first=indent + (bullet or hanging),
                rest=indent + hanging,
                is_heading=self._tag in _HEADINGS,
                is_tight=self._tag in _TIGHT,
            )
        )
        self._tag = ""

    def _next_bullet(self) -> str:
        if not self._numbers or self._numbers[-1] < 0:
            return "- "
        self._numbers[-1] += 1
        return f"{self._numbers[-1] - 1}. "

    def _link(self, href: str | None) -> None:
        url = absolute(href, self._bases)
        if url is None or (href or "").startswith("#"):
            return
        if url not in self._places:
            self.written.links.append(url)
        self._parts.append(f" [{self._places.setdefault(url, len(self.written.links))}]")


def _lines(text: str) -> Iterator[str]:
    """The lines with single blanks; of several empty ones, one."""
    before = ""
    for line in text.strip().split("\n"):
        line = _SPACES.sub(" ", line).strip()
        if line or before:
            yield line
        before = line


# The HTML of stored items with their archived images in place, for the command line and downstream assets.
#
# How HTML is rendered is collector.images.archived's, the statement storage.images.image_tasks'. The result
# is still a publisher's HTML, which frames.py puts into a page for browsers. Nothing is written:
# `content_html` stays as published.
#
# An asset of your own; each partition is a page of one feed's items:
#
# @dg.asset( deps=["feed_items"], partitions_def=feeds_partitions, required_resource_keys={"database",
# "objects"}, ) def page(context: dg.AssetExecutionContext) -> None: database, objects =
# context.resources.database, context.resources.objects rows = database.query( "SELECT items.*, feeds.url AS
# feed_url, feeds.link AS feed_link" " FROM items JOIN feeds ON feeds.id = items.feed_id" " WHERE feed_id = ?
# ORDER BY pub_date DESC LIMIT 50", [context.partition_key], ).rows write_page(context.partition_key,
# items_html(database, objects, rows))


def item_html(database: Database, objects: ObjectStore, item: Row) -> str | None:
    """One item's content with its archived images in place, below its picture if it shows none.

    None where it has neither.

    `item` is a row of `storage.items.item`: all columns of the item, and its feed's `feed_url`, `feed_link`.
    Images that are pending or failed, or that have no URL, keep the publisher's URL.
    """
    [html] = items_html(database, objects, [item])
    return html


def items_html(database: Database, objects: ObjectStore, items: Sequence[Row]) -> list[str | None]:
    """`item_html` of each, with one query for all of them."""
    archived = tasks.archived(database, [item["id"] for item in items])
    return [_html(objects, item, archived.get(item["id"], {})) for item in items]


def _html(objects: ObjectStore, item: Row, keys: Mapping[str, str]) -> str | None:
    html: str | None = item["content_html"]
    source = image_source(item)
    bases = image_bases(source, item["feed_link"], item["feed_url"])
    lead = lead_image(html, source.enclosures, bases=bases)
    if lead is None and not (html and keys):
        return html
    found = {original: url for original, key in keys.items() if (url := objects.url(key)) is not None}
    urls = with_former_urls(found, bases)
    above = "" if lead is None else picture_above(urls.get(lead, lead))
    return above + render(html or "", archived=urls, bases=bases)
