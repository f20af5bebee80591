"""The titles of a list's entries, from the same source for all of them.

A link may surround a whole box, or say "Read more" in each: then a heading has the title.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from rss_pipeline.features.pages.dates import PageDates
from rss_pipeline.features.pages.lists import Box
from rss_pipeline.features.pages.page import BLOCK, BORDER, HEADINGS, Page

_TITLE_NAME = re.compile(r"(?:\b|_)(?:p-name|headline|title|heading)(?:\b|_)|title\b|\btitle", re.IGNORECASE)
_MORE = re.compile(
    r"(?:(?:read|learn|see|view|show|find out)\b.{0,12}\b(?:more|on|post|article|full|details?)|read|more"
    r"|continue|weiter(?:lesen)?|mehr|lire la suite|leer más|ler mais|leia mais|подробнее|читать.{0,10}"
    r"|阅读.{0,4}|閱讀.{0,4}|続きを読む|더 ?보기"
    r"|(?:pdf|html?|docx?|xlsx?|odt|zip)(?:[\s,(]{1,3}\d[\d.,]{0,9}\s?[km]i?b\)?)?"
    r"|link|details?|download|view|open|permalink|#|¶|→|»|>>?)[\s.…»→>]*",
    re.IGNORECASE,
)
_EDGES = " \t\n|·•-–—:,/[]"
_LONG_ENOUGH = 15
_MOST_ELEMENTS = 150


def titles_of(page: Page, dates: PageDates, boxes: Sequence[Box]) -> list[str]:
    """A title for each box; empty where it shows none."""
    sources: list[Callable[[Box], str]] = [
        lambda box: _in_heading(page, dates, box),
        lambda box: _named_title(page, dates, box),
        lambda box: _link_text(page, dates, box),
        lambda box: _heading(page, dates, box),
        lambda box: _of_attributes(page, box),
        lambda box: _first_piece(page, dates, box.begin, box.stop),
    ]
    titles = [""] * len(boxes)
    for least in (0.5, 0.0):
        for source in sources:
            missing = [number for number, title in enumerate(titles) if not title]
            if not missing:
                return titles
            found = [source(boxes[number]) for number in missing]
            filled = [title for title in found if title]
            # The same words in most boxes are no title of any.
            if len(filled) < len(missing) * least or len(set(filled)) * 2 < len(filled):
                continue
            for number, title in zip(missing, found, strict=True):
                titles[number] = title
    return titles


def _own_anchors(page: Page, box: Box) -> Iterator[int]:
    for anchor in page.anchors_in(box.node, box.end):
        if anchor.url == box.anchor.url:
            yield anchor.node


def _in_heading(page: Page, dates: PageDates, box: Box) -> str:
    """The text of the entry's link in a heading, or of a heading in its link."""
    for node in _own_anchors(page, box):
        if page.is_heading[node] and (title := _usable(page, dates, node)):
            return title
    for node in _own_anchors(page, box):
        for inner in range(node, min(page.ends[node], node + _MOST_ELEMENTS)):
            if page.tags[inner] in HEADINGS and (title := _usable(page, dates, inner)):
                return title
    return ""


def _named_title(page: Page, dates: PageDates, box: Box) -> str:
    """The text of an element that is called a title, in the entry's link or around it."""
    for node in _own_anchors(page, box):
        parent = page.parents[node]
        around = [node] if parent < box.node else [node, parent]
        for each in (*around, *range(node + 1, min(page.ends[node], node + _MOST_ELEMENTS))):
            name = page.elements[each].get("class") or page.elements[each].get("itemprop")
            if name and _TITLE_NAME.search(name) and (title := _usable(page, dates, each)):
                return title
    return ""


def _link_text(page: Page, dates: PageDates, box: Box) -> str:
    texts = [_usable(page, dates, node) for node in _own_anchors(page, box)]
    return next((text for text in texts if len(text) >= _LONG_ENOUGH), max(texts, key=len, default=""))


def _heading(page: Page, dates: PageDates, box: Box) -> str:
    for node in range(box.node, min(box.end, box.node + _MOST_ELEMENTS)):
        if page.tags[node] in HEADINGS and (title := _usable(page, dates, node)):
            return title
    for node in range(box.node, min(box.end, box.node + _MOST_ELEMENTS)):
        name = page.elements[node].get("class")
        if name and _TITLE_NAME.search(name) and (title := _usable(page, dates, node)):
            return title
    return ""


def _of_attributes(page: Page, box: Box) -> str:
    for node in _own_anchors(page, box):
        element = page.elements[node]
        for inner in (element, *(page.elements[n] for n in range(node + 1, min(page.ends[node], node + 8)))):
            for name in ("title", "aria-label", "alt"):
                text = " ".join((inner.get(name) or "").split())
                if len(text) > 3 and not _MORE.fullmatch(text):
                    return text
    return ""


def _usable(page: Page, dates: PageDates, node: int) -> str:
    return _first_piece(page, dates, page.begins[node], page.stops[node])


def _first_piece(page: Page, dates: PageDates, begin: int, stop: int) -> str:
    """The first long line of a part of the page that is more than a date, without dates at its ends."""
    lines: list[str] = []
    at = begin
    for raw in page.text[begin:stop].split(BLOCK):
        line = _without_dates(page, dates, at, at + len(raw))
        at += len(raw) + 1
        if line:
            if len(line) >= _LONG_ENOUGH:
                return "" if _MORE.fullmatch(line) else line
            lines.append(line)
            if len(lines) > 5:
                break
    lines = [line for line in lines if not _MORE.fullmatch(line)]
    return max(lines, key=len, default="")


def _without_dates(page: Page, dates: PageDates, begin: int, stop: int) -> str:
    found = [each for each in dates.between(begin, stop) if not each.in_attribute]
    if not found:
        return page.shown(begin, stop)
    pieces: list[tuple[int, int]] = []
    at = begin
    for raw in page.text[begin:stop].split(BORDER):
        pieces.append((at, at + len(raw)))
        at += len(raw) + 1
    kept = list(pieces)
    for each in found:
        for low, high in pieces:
            if low <= each.begin and each.stop <= high + 1:
                rest = page.text[low : each.begin] + page.text[each.stop : high]
                if len(rest.strip(_EDGES)) < 3 and (low, high) in kept:
                    kept.remove((low, high))
    if not kept:
        return ""
    text = "".join(page.text[low:high] + BORDER for low, high in kept)
    return " ".join(text.replace(BORDER, "").split()).strip(" |·•")
