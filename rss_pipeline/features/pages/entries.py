"""The entries of a list: of each box its title, date, text, image and author."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from datetime import date
from functools import partial

from rss_pipeline.collector.images.find import attribute
from rss_pipeline.collector.parse.dates.read import WEEKDAYS, folded
from rss_pipeline.collector.parse.image_references import image_references, is_one_pixel
from rss_pipeline.collector.parse.links import absolute
from rss_pipeline.features.pages.dates import DateFound, PageDates, address_date
from rss_pipeline.features.pages.lists import Box
from rss_pipeline.features.pages.model import Entry
from rss_pipeline.features.pages.page import BLOCK, Page

_UPDATED = re.compile(r"updat|modif|edited|aktualisiert|mis à jour|更新|수정|обновл", re.IGNORECASE)
_DIGIT, _DIGITS, _WORD = re.compile(r"\d"), re.compile(r"\d+"), re.compile(r"\w")
_WORDS = re.compile(r"\w+")
_BEFORE_DATE = 24
_LONG_BEFORE = 60
_LONGEST_HEADING = 80
_AUTHOR_NAME = re.compile(r"(?:\b|_)(?:author|byline|p-author|creator)(?:\b|_)", re.IGNORECASE)
_LONGEST_AUTHOR = 80
_LONGEST_TEXT = 4_000
_MARKS = " |·•–—,"
_MOST_LAST_LINKS, _LONGEST_LABEL = 3, 40
_MOST_ELEMENTS = 200


def entries_of(
    page: Page, dates: PageDates, boxes: Sequence[Box], titles: Sequence[str]
) -> tuple[Entry, ...]:
    """An entry for each box, with its title; in the order of the page."""
    days = dates_of(page, dates, boxes)
    stops = _stops_of_texts(page, boxes, titles)
    return tuple(
        Entry(
            link=box.anchor.url,
            title=title or None,
            date=day,
            text=_text(page, dates if day else None, box.begin, stop, title),
            image=_image(page, box),
            author=_author(page, box),
        )
        for box, title, day, stop in zip(boxes, titles, days, stops, strict=True)
    )


def dates_of(page: Page, dates: PageDates, boxes: Sequence[Box]) -> list[date | None]:
    """The date of each box: that at the place where most boxes have one, else its first, else that in its
    address, else, of boxes without dates, that above it. A date of a change is taken where there is none."""
    found = [_dates_of_box(page, dates, box) for box in boxes]
    times = Counter(place for each in found for place in each)
    days: list[date | None] = []
    for box, each in zip(boxes, found, strict=True):
        # Of places that are as usual the first in the box: a dict keeps the order, and `min` the first.
        place = min(each, key=lambda place: (place[0], -times[place]), default=None)
        days.append(address_date(box.anchor.url) if place is None else each[place])
    return dates_above(page, dates, boxes) if not any(days) else days


def _dates_of_box(page: Page, dates: PageDates, box: Box) -> dict[tuple[int, int, int], date]:
    """Dates by their place: how unlikely it is the date of the entry, the way to its element, and the number
    of cells before it."""
    places: dict[tuple[int, int, int], date] = {}
    anchor = box.anchor.node
    for each in dates.between(box.begin, max(box.stop, box.begin + 1)):
        if (day := dates.resolved(each, box.anchor.url)) is None:
            continue
        in_title = page.begins[anchor] <= each.begin < page.stops[anchor] and not each.in_attribute
        # A date in running text is what the text is about.
        line = page.text.rfind(BLOCK, box.begin, each.begin)
        in_running_text = each.begin - max(line, box.begin) > _LONG_BEFORE
        node = page.node_at(each.begin)
        cells = (
            sum(page.tags[inner] == "td" for inner in range(box.node, node)) if box.end - box.node < 99 else 0
        )
        rank = _rank(page, each) + 2 * in_title + in_running_text
        places.setdefault((rank, page.paths[node], cells), day)
    return places


def dates_above(page: Page, dates: PageDates, boxes: Sequence[Box]) -> list[date | None]:
    """The date in the heading above each box, where a list has one for each day."""
    nothing: list[date | None] = [None] * len(boxes)
    found = [
        (each, node)
        for each in dates.between(0, boxes[-1].begin)
        if page.length(node := page.node_at(each.begin)) <= _LONGEST_HEADING
    ]
    between = [node for each, node in found if each.begin > boxes[0].begin]
    if not between:
        return nothing
    way = page.paths[between[0]]
    above = [each for each, node in found if page.paths[node] == way]
    places = [each.begin for each in above]
    indices = [bisect_left(places, box.begin) - 1 for box in boxes]
    return [
        dates.resolved(above[index], box.anchor.url) if index >= 0 else None
        for index, box in zip(indices, boxes, strict=True)
    ]


def _rank(page: Page, found: DateFound) -> int:
    # Behind an earlier date, which the word may be about.
    before = _DIGIT.split(page.text[max(0, found.begin - _BEFORE_DATE) : found.begin])[-1]
    return (1 if _UPDATED.search(before) else 0) + (1 if found.year is None else 0)


def _stops_of_texts(page: Page, boxes: Sequence[Box], titles: Sequence[str]) -> list[int]:
    """The end of each box's text, without the links to the entry itself that end most boxes with the same
    words: "Read more", "Weiterlesen"."""
    stops = [box.stop for box in boxes]
    for _ in range(_MOST_LAST_LINKS):
        last = [_last_link(page, box, stop) for box, stop in zip(boxes, stops, strict=True)]
        labels = [
            None if node is None else _DIGITS.sub("#", page.shown_of(node).replace(title, "")).strip()
            for node, title in zip(last, titles, strict=True)
        ]
        usual, times = Counter(filter(None, labels)).most_common(1)[0] if any(labels) else ("", 0)
        if times * 2 < len(boxes) or len(usual) > _LONGEST_LABEL:
            break
        stops = [
            page.begins[node] if node is not None and label == usual else stop
            for node, label, stop in zip(last, labels, stops, strict=True)
        ]
    return stops


def _last_link(page: Page, box: Box, stop: int) -> int | None:
    """The link to the entry itself behind which its box has no more text, and before which it has some."""
    for each in reversed(page.anchors_in(box.node, box.end)):
        begin = page.begins[each.node]
        if each.identity == box.anchor.identity and begin < stop:
            is_last = _WORD.search(page.text, page.stops[each.node], stop) is None
            return each.node if is_last and _WORD.search(page.text, box.begin, begin) else None
    return None


def _text(page: Page, dates: PageDates | None, begin: int, stop: int, title: str) -> str | None:
    """The text without the title, and without lines that are one of `dates` before all else."""
    lines: list[str] = []
    has_text = False
    for raw in page.text[begin:stop].split(BLOCK):
        line = page.shown(begin, begin + len(raw))
        if dates is None or has_text or not _is_date(page, dates, begin, begin + len(raw)):
            lines.append(line)
            has_text = has_text or line not in ("", title)
        begin += len(raw) + 1
    shown = " ".join(filter(None, lines))
    if title and title in shown:
        before, _, after = shown.partition(title)
        shown = f"{before.strip()} {after.strip()}".strip()
    return shown[:_LONGEST_TEXT].lstrip(_MARKS) or None


def _is_date(page: Page, dates: PageDates, begin: int, stop: int) -> bool:
    found = dates.between(begin, stop)
    if not found:
        return False
    if found[0].in_attribute:
        node = page.node_at(found[0].begin)
        return page.tags[node] == "time" and page.shown_of(node) == page.shown(begin, stop)
    rest = page.text[begin : found[0].begin] + page.text[found[-1].stop : stop]
    return all(folded(word) in WEEKDAYS for word in _WORDS.findall(rest))


def _image(page: Page, box: Box) -> str | None:
    for node in range(box.node, min(box.end, box.node + _MOST_ELEMENTS)):
        if page.tags[node] != "img":
            continue
        read = partial(attribute, page.elements[node])
        if is_one_pixel(read):
            continue
        for reference in image_references(read):
            url = absolute(reference, (page.base, page.url))
            if url is not None and url.startswith("http"):
                return url
    return None


def _author(page: Page, box: Box) -> str | None:
    for node in range(box.node, min(box.end, box.node + _MOST_ELEMENTS)):
        element = page.elements[node]
        names = " ".join(filter(None, (element.get("rel"), element.get("class"), element.get("itemprop"))))
        if names and _AUTHOR_NAME.search(names):
            name = page.shown_of(node)
            if 1 < len(name) <= _LONGEST_AUTHOR:
                return re.sub(r"\A(?:by|von|par|por|di|от)\s+", "", name, flags=re.IGNORECASE)
    return None
