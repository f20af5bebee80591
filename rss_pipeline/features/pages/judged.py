"""The likeness of each list of a page to entries: shares of dates, headings, text, and a score.

Doubts about the best one are doubts.py's.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass

from rss_pipeline.features.pages.addresses import is_below_list
from rss_pipeline.features.pages.dates import PageDates, address_date
from rss_pipeline.features.pages.entries import dates_above
from rss_pipeline.features.pages.links import same_host, shape
from rss_pipeline.features.pages.lists import LEAST_ENTRIES, Box, LinkList, link_lists
from rss_pipeline.features.pages.page import HEADINGS, Page
from rss_pipeline.features.pages.titles import titles_of

_GENERIC = re.compile(
    r"(?<!/releases)/(?:tags?|categor(?:y|ies)|authors?|labels?|users?|page|login|signup|search)(?:/|\Z|\?)",
    re.IGNORECASE,
)
"""Addresses of other lists."""
_GENERIC_IF_UNDATED = re.compile(r"/(?:topics?|series)(?:/|\Z|\?)", re.IGNORECASE)
"""Addresses of other lists, or of news and talks: these have dates."""
_DIGITS = re.compile(r"\d+")
_CSS_WORD = re.compile(r"-?[A-Za-z_][\w-]{0,60}", re.ASCII)
_FIRST_WIDE = "\u2e80"
_MOST_LISTS, _LONGEST_LISTS = 12, 3
"""Lists of which each box is read: by a first look, and by their length alone."""
_BESIDE = 40
_LONG_TITLE, _LONGEST_TITLE, _LONG_TEXT = 30, 60, 200
_MOST_ELEMENTS = 60
_LEAD_SHARE = _SHOWN_SHARE = 0.8
_LEAD_TEXT = 40
_DOCUMENT = re.compile(r"\.(?:pdf|docx?|odt|rtf|wpd)(?:\Z|[?#])", re.IGNORECASE)
_NEWS_SHARE, _NEWS_SCORE = 0.6, 0.4
_DATES_OF_ROW = 1.2
_KNOWN_SHARE, _SCORE_SHARE, _SECOND_SHARE = 0.6, 0.6, 0.5


@dataclass(slots=True)
class Judged:
    """A list with shares of its entries, each from 0 to 1."""

    links: LinkList
    titles: list[str]
    dated: float
    headed: float
    text: float
    """1 where each has 200 characters besides its title."""
    title_length: float
    """Characters in the mean, of each title 60 at most. One of Chinese or Japanese says as much as two."""
    distinct: float
    own: float
    """On the page's host."""
    generic: float
    """To tags, categories, authors."""
    score: float = 0.0


def judged_lists(page: Page, dates: PageDates) -> list[Judged]:
    """The lists of a page that may be its entries, the best first."""
    every = link_lists(page)
    longest = sorted(every, key=lambda links: (links.in_aside, -len(links.boxes)))[:_LONGEST_LISTS]
    likely = sorted(every, key=_rough, reverse=True)[:_MOST_LISTS]
    lists = {id(links): links for links in (*likely, *longest)}.values()
    found = sorted((judged(page, dates, links) for links in lists), key=lambda each: -each.score)
    first = next((each for each in found[1:] if _has_titles_of(page, each, found[0])), None)
    if first is None and found and found[0].dated < _KNOWN_SHARE and has_other_news(page, found[0]):
        first = next((each for each in found[1:] if _is_news_beside(each, found[0])), None)
    if first is None:
        first = next((each for each in found[1:] if _is_column_of(page, dates, each, found[0])), None)
    return found if first is None else [first, *(each for each in found if each is not first)]


def _is_column_of(page: Page, dates: PageDates, other: Judged, best: Judged) -> bool:
    """True for one of the two links of each row of a table where the best list has both, and a row has one
    date: a case and its document."""
    theirs = other.links.boxes
    ids = {box.anchor.identity for box in best.links.boxes}
    return (
        2 * len(theirs) == len(ids)
        and all(page.tags[box.node] == "tr" for box in theirs)
        and other.dated >= _LEAD_SHARE
        and other.score >= _SCORE_SHARE * best.score
        and all(box.anchor.identity in ids for box in theirs)
        and len(dates.between(theirs[0].begin, theirs[-1].stop)) <= _DATES_OF_ROW * len(theirs)
    )


def has_other_news(page: Page, best: Judged) -> bool:
    """True if few of a list's links are below the address of a list of news, and others of the page are: they
    are of its sections, and the others are its news."""
    urls = best.links.urls()
    ids = {box.anchor.identity for box in best.links.boxes}
    others = {
        each.identity
        for each in page.anchors
        if each.identity not in ids and not page.is_aside[each.node] and is_below_list(each.url)
    }
    below = sum(map(is_below_list, urls))
    return below < _NEWS_SHARE * len(urls) and len(others) + below >= LEAST_ENTRIES


def _is_news_beside(other: Judged, best: Judged) -> bool:
    """True for a list with titles of which all links are below the address of a list of news."""
    return (
        not other.links.in_aside
        and other.score >= _NEWS_SCORE * best.score
        and all(map(is_below_list, other.links.urls()))
        and not {box.anchor.identity for box in best.links.boxes}.intersection(
            box.anchor.identity for box in other.links.boxes
        )
    )


def _has_titles_of(page: Page, other: Judged, best: Judged) -> bool:
    """True for the links with the titles of entries of which the best list has others: "Apply". A document is
    the entry itself."""
    if [box.node for box in other.links.boxes] != [box.node for box in best.links.boxes]:
        return False
    if any(_DOCUMENT.search(box.anchor.url) for box in best.links.boxes):
        return False
    return other.titles == best.titles and _titled(page, best) == 0 and _titled(page, other) > _SHOWN_SHARE


def _titled(page: Page, found: Judged) -> float:
    """The share of entries with their title in their own link."""
    pairs = zip(found.links.boxes, found.titles, strict=True)
    return sum(bool(title) and title in page.shown_of(box.anchor.node) for box, title in pairs) / len(
        found.titles
    )


def _rough(links: LinkList) -> float:
    """A score without a look into the boxes."""
    text = sum(min(max(box.stop - box.begin, _LONG_TITLE), _LONG_TEXT) for box in links.boxes)
    return float(text / len(links.boxes) ** 0.5 * (0.15 if links.in_aside else 1))


def judged(page: Page, dates: PageDates, links: LinkList) -> Judged:
    """A list with its titles, shares and score."""
    boxes, n = links.boxes, len(links.boxes)
    titles = titles_of(page, dates, boxes)
    is_part = boxes[0].anchor.is_part
    dated = _dated(page, dates, boxes) / n
    found = Judged(
        links,
        titles,
        dated=dated,
        headed=sum(_has_heading(page, box) for box in boxes) / n,
        text=sum(
            min(max(box.stop - box.begin - len(title), 0), _LONG_TEXT) / _LONG_TEXT
            for box, title in zip(boxes, titles, strict=True)
        )
        / n,
        title_length=sum(0 if "://" in title else min(width(title), _LONGEST_TITLE) for title in titles) / n,
        distinct=len(set(filter(None, titles))) / n,
        own=sum(same_host(box.anchor.url, page.url) for box in boxes) / n,
        generic=sum(_is_generic(box.anchor.url, has_date=dated >= _KNOWN_SHARE) for box in boxes) / n,
    )
    found.score = (
        float(n**0.5)
        * (0.2 + min(found.title_length / _LONG_TITLE, 1))
        * (0.2 + found.distinct)
        * (1 + 1.5 * found.dated**2)
        * (1 + 0.7 * found.headed)
        * (1 + 0.5 * found.text)
        * (0.4 + 0.6 * found.own)
        * (1 - 0.7 * found.generic)
        * (0.15 if links.in_aside else 1)
        # The headings of an article are no entries; those of a changelog have dates.
        * (0.1 if is_part and found.dated < 1 else 1)
    )
    return found


def width(title: str) -> int:
    """Characters of a title; one of Chinese or Japanese says as much as two."""
    return len(title) if title.isascii() else len(title) + sum(each >= _FIRST_WIDE for each in title)


def _is_generic(url: str, *, has_date: bool) -> bool:
    return bool(_GENERIC.search(url) or (not has_date and _GENERIC_IF_UNDATED.search(url)))


def _dated(page: Page, dates: PageDates, boxes: Sequence[Box]) -> int:
    if boxes[0].anchor.is_part:
        # The date of a version is beside its name; an article may have dates in each part.
        return sum(bool(dates.between(box.begin, page.stops[box.anchor.node] + _BESIDE)) for box in boxes)
    dated = sum(
        bool(dates.between(box.begin, max(box.stop, box.begin + 1)))
        or address_date(box.anchor.url) is not None
        for box in boxes
    )
    return dated or sum(day is not None for day in dates_above(page, dates, boxes))


def _has_heading(page: Page, box: Box) -> bool:
    return page.is_heading[box.anchor.node] or any(
        page.tags[node] in HEADINGS for node in range(box.node, min(box.end, box.node + _MOST_ELEMENTS))
    )


def widened(page: Page, dates: PageDates, lists: Sequence[Judged], *, with_second: bool = True) -> Judged:
    """The first of these lists, with entries that a class or a place sets apart from it (pinned, first,
    without image), and with a second list that is as good: news and events on one page."""
    best = lists[0]
    boxes = list(best.links.boxes)
    ids = {box.anchor.identity for box in boxes}
    shapes = {shape(box.anchor.url)[:-1] for box in boxes}
    for other in lists[1:]:
        if other.score > _SCORE_SHARE * best.score and _is_finer(other, best, ids, shapes):
            rest = [each for each in lists if each is not best and each is not other]
            return widened(page, dates, [other, *rest], with_second=with_second)
    for other in lists[1:]:
        theirs = other.links.boxes
        known = sum(box.anchor.identity in ids for box in theirs)
        if other.links.in_aside and not best.links.in_aside:
            continue
        if known >= _KNOWN_SHARE * len(boxes) and other.score > _SCORE_SHARE * best.score:
            further = [
                box
                for box in theirs
                if box.anchor.identity not in ids and shape(box.anchor.url)[:-1] in shapes
            ]
        elif (
            with_second
            and known == 0
            and other.score > _SECOND_SHARE * best.score
            and _is_shown_as(other, best)
        ):
            further = theirs
        else:
            continue
        boxes = _without_overlaps(boxes, further)
        ids = {box.anchor.identity for box in boxes}
    if (lead := _lead(page, dates, best, shapes)) is not None:
        boxes = _without_overlaps(boxes, [lead])
    if len(boxes) == len(best.links.boxes):
        return best
    return judged(page, dates, LinkList(boxes, best.links.in_aside))


def _is_finer(other: Judged, best: Judged, ids: Set[str], shapes: Set[Sequence[str]]) -> bool:
    """True for a list with several entries in boxes of the best: these are sections, such as the jobs of each
    department."""
    theirs = other.links.boxes
    more = [box for box in theirs if box.anchor.identity not in ids]
    return (
        len(theirs) - len(more) == len(ids)
        and len(more) >= 2
        and other.links.in_aside == best.links.in_aside
        and all(shape(box.anchor.url)[:-1] in shapes for box in more)
        and all(_box_of(box.node, best.links.boxes) is not None for box in more)
    )


def _box_of(node: int, boxes: Sequence[Box]) -> Box | None:
    """The box with an element in it."""
    index = bisect_right(boxes, node, key=lambda box: box.node) - 1
    return boxes[index] if index >= 0 and boxes[index].end > node else None


def _lead(page: Page, dates: PageDates, best: Judged, shapes: Set[Sequence[str]]) -> Box | None:
    """The one entry before a dated list, with a heading and a date or text: it is shown larger."""
    first = best.links.boxes[0]
    if min(best.dated, best.headed) < _LEAD_SHARE or first.anchor.is_part:
        return None
    ids = {box.anchor.identity for box in best.links.boxes}
    found = {
        anchor.identity: anchor
        for anchor in page.anchors_in(0, first.node)
        if page.is_heading[anchor.node]
        and not page.is_aside[anchor.node]
        and anchor.identity not in ids
        and shape(anchor.url)[:-1] in shapes
    }
    if len(found) != 1:
        return None
    [anchor] = found.values()
    node = anchor.node
    while (parent := page.parents[node]) >= 0 and page.ends[parent] <= first.node:
        node = parent
    box = Box(anchor, node, page.ends[node], page.begins[node], page.stops[node])
    has_text = page.length(node) - page.length(anchor.node) >= _LEAD_TEXT
    return box if has_text or dates.between(box.begin, box.stop) else None


def _is_shown_as(other: Judged, best: Judged) -> bool:
    return (
        min(other.headed, best.headed) > 0.8
        and min(other.text, best.text) > 0.5
        and other.own > 0.8
        and other.generic < 0.2
    )


def _without_overlaps(boxes: Sequence[Box], further: Sequence[Box]) -> list[Box]:
    """All boxes, and those of `further` that share no element with one, in the order of the page."""
    starts = [box.node for box in boxes]
    kept = list(boxes)
    for box in further:
        index = bisect_right(starts, box.node)
        is_in_one = index > 0 and boxes[index - 1].end > box.node
        if not is_in_one and (index == len(boxes) or boxes[index].node >= box.end):
            kept.append(box)
    return sorted(kept, key=lambda box: box.node)


def structure_of(page: Page, found: Judged) -> str:
    """The tags and class words of most entries, from their links up to what is around their boxes."""
    boxes = Counter(page.class_paths[box.anchor.node] for box in found.links.boxes)
    usual = boxes.most_common(1)[0][0]
    box = next(each for each in found.links.boxes if page.class_paths[each.anchor.node] == usual)
    top = page.parents[box.node]
    names: list[str] = []
    node = box.anchor.node
    while node >= 0:
        classes = "".join(sorted(set(_DIGITS.sub("", page.elements[node].get("class") or "").split())))
        names.append(f"{page.tags[node]}.{classes}")
        if node == top:
            break
        node = page.parents[node]
    return " ".join(names)


def css_of(page: Page, boxes: Sequence[Box]) -> str:
    """CSS for the elements of most boxes: their tag and the class words that all of these have."""
    tag = Counter(page.tags[box.node] for box in boxes).most_common(1)[0][0]
    words = [
        set((page.elements[box.node].get("class") or "").split())
        for box in boxes
        if page.tags[box.node] == tag
    ]
    common = sorted(word for word in set.intersection(*words) if _CSS_WORD.fullmatch(word))
    return "".join([tag, *(f".{word}" for word in common)])
