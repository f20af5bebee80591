"""The lists of links on a page: groups of links of one structure, and the box of each entry.

Which of them is the page's list is judged.py's.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from rss_pipeline.features.pages.page import Anchor, Page

LEAST_ENTRIES = 3
_OFTEN = 3
_MOST_BEFORE = 3
_ROWS = frozenset(("tr", "li", "article", "body"))
_OUTERMOST = frozenset(("body", "html", "main"))


@dataclass(slots=True)
class Box:
    """An entry's part of a page: the elements from `node` up to `end`."""

    anchor: Anchor
    node: int
    end: int
    begin: int
    """Its text, in the page's."""
    stop: int


@dataclass(slots=True)
class LinkList:
    """Links of one structure, each with its box, in the order of the page."""

    boxes: list[Box] = field(default_factory=list)
    in_aside: bool = False
    """In a menu, a foot or a margin."""

    def urls(self) -> list[str]:
        """The links, in the order of the page."""
        return [box.anchor.url for box in self.boxes]


def link_lists(page: Page) -> list[LinkList]:
    """All lists of at least three links."""
    groups: dict[tuple[str, object], list[Anchor]] = defaultdict(list)
    for number, anchor in enumerate(page.anchors):
        groups["classes", page.class_paths[anchor.node]].append(anchor)
        groups["tags", page.paths[anchor.node]].append(anchor)
        groups["near", _near(page, anchor.node)].append(anchor)
        groups["place", (page.paths[anchor.node], _place_in_row(page, number))].append(anchor)
    found: dict[tuple[int, ...], LinkList] = {}
    for anchors in groups.values():
        if len(anchors) < LEAST_ENTRIES:
            continue
        outside = [anchor for anchor in anchors if not page.is_aside[anchor.node]]
        for each, in_aside in ((outside, False), (anchors, True)):
            if len({anchor.url for anchor in each}) < LEAST_ENTRIES:
                continue
            key = tuple(anchor.node for anchor in each)
            if key not in found:
                found[key] = LinkList(boxes_of(page, each), in_aside)
            break
    # Links of images, titles and "Read more" have the same boxes.
    by_boxes: dict[tuple[tuple[int, str], ...], LinkList] = {}
    for links in sorted(found.values(), key=lambda links: links.in_aside):
        if len(links.boxes) >= LEAST_ENTRIES:
            by_boxes.setdefault(tuple((box.node, box.anchor.identity) for box in links.boxes), links)
    return list(by_boxes.values())


def _place_in_row(page: Page, number: int) -> int:
    """The number of earlier links in the same row: the smallest element with another link, or a row of a
    table, an item of a list, an article."""
    anchors = page.anchors
    node = anchors[number].node
    before = anchors[number - 1].node if number else -1
    after = anchors[number + 1].node if number + 1 < len(anchors) else len(page.tags)
    row = page.parents[node]
    while row > 0 and page.tags[row] not in _ROWS:
        is_alone = before < row and after >= page.ends[row]
        if not is_alone and page.tags[row] not in ("td", "th"):
            break
        row = page.parents[row]
    place = 0
    while number and anchors[number - 1].node > row:
        number -= 1
        place += 1
    return place


def _near(page: Page, node: int) -> tuple[str, ...]:
    """The link and the two elements around it, with their classes: the same in another part of the page."""
    names = []
    for _ in range(3):
        if node < 0:
            break
        names.append(page.tags[node] + "." + _class_words(page, node))
        node = page.parents[node]
    return tuple(names)


def _class_words(page: Page, node: int) -> str:
    return re.sub(r"\d+", "", page.elements[node].get("class") or "")


def boxes_of(page: Page, anchors: Sequence[Anchor]) -> list[Box]:
    """The box of each distinct link: the largest element around it without another link of the list."""
    runs = _runs([anchor.identity for anchor in anchors])
    # A link that comes again and again is beside the entries, not one of them.
    times = Counter(anchors[low].identity for low, _ in runs)
    often = {each for each, count in times.items() if count > _OFTEN + len(runs) * 0.3}
    if often:
        anchors = [anchor for anchor in anchors if anchor.identity not in often]
        runs = _runs([anchor.identity for anchor in anchors])
    if not runs:
        return []
    tops: list[list[int]] = []
    for number, (low, high) in enumerate(runs):
        before = anchors[runs[number - 1][1] - 1].node if number else -1
        after = anchors[high].node if number + 1 < len(runs) else len(page.tags)
        way = [anchors[low].node]
        while (parent := page.parents[way[-1]]) >= 0:
            if before >= parent or after < page.ends[parent] or page.tags[parent] in _OUTERMOST:
                break
            way.append(parent)
        tops.append(way)
    usual = Counter(page.paths[way[-1]] for way in tops).most_common(1)[0][0]
    nodes = [next((node for node in way if page.paths[node] == usual), way[-1]) for way in tops]
    boxes: list[Box] = []
    seen: set[str] = set()
    spans = _spans(page, nodes)
    for (low, _), node, (begin, end, stop) in zip(runs, nodes, spans, strict=True):
        if (identity := anchors[low].identity) in seen:
            continue
        seen.add(identity)
        boxes.append(Box(anchors[low], node, end, begin, stop))
    return boxes


def _runs(ids: Sequence[str]) -> list[tuple[int, int]]:
    """The stretches of equal values, each from a place up to another."""
    runs: list[tuple[int, int]] = []
    start = 0
    for index in range(1, len(ids) + 1):
        if index == len(ids) or ids[index] != ids[start]:
            runs.append((start, index))
            start = index
    return runs


def _spans(page: Page, nodes: Sequence[int]) -> list[tuple[int, int, int]]:
    """The begin of each box's text, the end of the box and of its text. Where headings and texts follow each
    other without an element around them, a box begins with what stands before each of them, such as its date,
    and goes on up to the next one."""
    plain = [(page.begins[node], page.ends[node], page.stops[node]) for node in nodes]
    gaps = [
        later - page.ends[node]
        for node, later in pairwise(nodes)
        if page.parents[node] == page.parents[later]
    ]
    if len(gaps) < len(nodes) * 0.6 or median(gaps) < 1:
        return plain
    spans = list(plain)
    usual = int(median(gaps))
    firsts = _firsts(page, nodes)
    for index, node in enumerate(nodes):
        parent_end = page.ends[page.parents[node]] if page.parents[node] >= 0 else len(page.tags)
        following = firsts[index + 1] if index + 1 < len(nodes) else page.ends[node] + usual
        end = max(min(following, parent_end), page.ends[node])
        stop = page.begins[end] if end < parent_end and end < len(page.tags) else page.stops[end - 1]
        spans[index] = (page.begins[firsts[index]], end, max(stop, page.stops[node]))
    return spans


def _firsts(page: Page, nodes: Sequence[int]) -> list[int]:
    """The first element of each box: of what stands before it, all that stands before each of the others, and
    not behind the last."""
    parent = page.parents[nodes[-1]]
    behind = set[int]()
    following = page.ends[nodes[-1]]
    while parent >= 0 and following < page.ends[parent]:
        behind.add(page.class_paths[following])
        following = page.ends[following]
    firsts = list(nodes)
    for _ in range(_MOST_BEFORE):
        before = [_element_before(page, node) for node in firsts]
        found = [each for each in before if each is not None]
        kinds = {page.class_paths[each] for each in found}
        if len(found) < len(before) or len(kinds) > 1 or kinds & behind:
            break
        firsts = found
    return firsts


def _element_before(page: Page, node: int) -> int | None:
    """The element before another one, with the same parent."""
    before, parent = node - 1, page.parents[node]
    while before > parent and page.parents[before] != parent:
        before = page.parents[before]
    return before if before > parent else None
