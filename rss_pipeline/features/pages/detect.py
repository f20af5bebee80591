"""The list of a page, found without selectors: repeated structure, dates, headings, addresses.

A pure function of the page's text and address. To know that a page has no list is the hard half: an article,
a shop front, a login page, an index of documentation are never certain.
"""

from collections.abc import Sequence, Set

from rss_pipeline.features.pages.dates import PageDates
from rss_pipeline.features.pages.doubts import doubts_about
from rss_pipeline.features.pages.entries import entries_of
from rss_pipeline.features.pages.judged import Judged, css_of, judged, judged_lists, structure_of, widened
from rss_pipeline.features.pages.known import Known, mark
from rss_pipeline.features.pages.links import shape
from rss_pipeline.features.pages.lists import LEAST_ENTRIES, LinkList, boxes_of
from rss_pipeline.features.pages.model import Choice, Detected, Verdict
from rss_pipeline.features.pages.page import Page, read_page
from rss_pipeline.features.pages.structured import with_structured_data

LEAST_SCORE = 2.0
"""Below it, a group of links is a menu."""
MOST_CHOICES = 5
_FEW_WORDS = 60
_OF_ENTRIES = 0.6


def detect(html: str, url: str, known: Known | None = None, *, was_taken: bool = False) -> Detected:
    """The list of a page at an address, by the page alone.

    With what is `known` of the page's last documents, the list with most of the known entries is taken, and
    is certain if it is the same list; without one, a person has to confirm what is found. `was_taken`: the
    last known list is that of this document, so all its links are one, too, whatever they look like.
    """
    page = read_page(html, url)
    if page is None:
        return Detected(verdict="none", evidence=("There is no text that could be read as a page.",))
    dates = PageDates(page)
    lists = judged_lists(page, dates)
    best = widened(page, dates, lists) if lists else None
    ids = frozenset[str]() if known is None else known.among(anchor.identity for anchor in page.anchors)
    if known is not None and (again := _again(page, dates, lists, best, known, ids)) is not None:
        count = _count(again, ids)
        return _detected(page, dates, again, "certain", f"{count} of its links are known entries.")
    if known is not None and (again := _moved(page, dates, lists, known)) is not None:
        return _detected(page, dates, again, "certain", "Its entries are known ones at other addresses.")
    if known is not None and was_taken and (again := _by_links(page, dates, known, ids)) is not None:
        return _detected(page, dates, again, "certain", "Its links are those of the last list.")
    if best is None or best.score < LEAST_SCORE:
        score = best.score if best else 0.0
        return Detected(
            verdict="none", score=score, evidence=(_why_none(page),), feeds=page.feeds, title=page.title
        )
    doubts = doubts_about(page, dates, best, lists)
    if known is not None:
        doubts = ("It has too few of the links that were on the page before.", *doubts)
    return _detected(page, dates, best, "ask" if doubts else "certain", _seen(best), *doubts)


def choices(html: str, url: str) -> tuple[Choice, ...]:
    """The other lists of a page, and the other links of the entries of its best one: what a person may choose
    in place of that, the likeliest first. The memory of the chosen one finds it again."""
    page = read_page(html, url)
    if page is None:
        return ()
    dates = PageDates(page)
    lists = judged_lists(page, dates)
    if not lists:
        return ()
    best = widened(page, dates, lists)
    found: list[Choice] = []
    seen = [{box.anchor.identity for box in best.links.boxes}]
    links = [(each, {box.anchor.identity for box in each.links.boxes}) for each in lists]
    for each, ids in links:
        is_link = _is_link_of(each, best)
        if not (is_link or each.score >= LEAST_SCORE) or any(_are_alike(ids, other) for other in seen):
            continue
        if _is_of_columns(ids, [other for _, other in links]):
            continue
        seen.append(ids)
        structure = mark(structure_of(page, each))
        found.append(
            Choice(
                # Links of one row may have one structure: the address of the list's form tells them apart.
                name=mark(" ".join([structure, *sorted({"/".join(shape(one)[:-1]) for one in ids})[:3]])),
                is_link=is_link,
                entries=with_structured_data(page, entries_of(page, dates, each.links.boxes, each.titles)),
                structure=structure,
            )
        )
    return tuple(sorted(found, key=lambda choice: not choice.is_link))[:MOST_CHOICES]


def _is_link_of(other: Judged, best: Judged) -> bool:
    """True if most links of a list are in entries of the best one, one in each."""
    inside = [
        number
        for number, box in enumerate(best.links.boxes)
        if any(box.node <= each.anchor.node < box.end for each in other.links.boxes)
    ]
    most = max(len(best.links.boxes), len(other.links.boxes))
    return len(inside) >= _OF_ENTRIES * most


def _is_of_columns(ids: Set[str], others: Sequence[Set[str]]) -> bool:
    """True for the links of several columns together, each of which is a list of its own."""
    parts = [other for other in others if other < ids]
    return any(
        first.isdisjoint(second) and abs(len(first) - len(second)) <= 0.2 * len(first)
        for number, first in enumerate(parts)
        for second in parts[number + 1 :]
    )


def _are_alike(ids: Set[str], others: Set[str]) -> bool:
    return 2 * len(ids & others) > len(ids)


def _detected(page: Page, dates: PageDates, best: Judged, verdict: Verdict, *evidence: str) -> Detected:
    entries = entries_of(page, dates, best.links.boxes, best.titles)
    return Detected(
        verdict=verdict,
        entries=with_structured_data(page, entries),
        score=round(best.score, 1),
        evidence=evidence,
        structure=mark(structure_of(page, best)),
        item=css_of(page, best.links.boxes),
        title=page.title,
        feeds=page.feeds,
    )


def _again(
    page: Page,
    dates: PageDates,
    lists: Sequence[Judged],
    best: Judged | None,
    known: Known,
    ids: Set[str],
) -> Judged | None:
    """The list of a page's last documents, as it is now: the one with most of the known entries, of several
    the one with the fewest others. `ids` are the identities of known links."""
    candidates = [] if best is None else [best]
    for each in lists:
        if _count(each, ids) or mark(structure_of(page, each)) == known.structure:
            others = [other for other in lists if other is not each]
            wider = widened(page, dates, [each, *others], with_second=False)
            candidates.append(each if _is_of_two(each, wider, ids) else wider)
    return max(
        (each for each in candidates if _fits(page, each, known)),
        key=lambda each: (
            _count(each, ids),
            mark(structure_of(page, each)) == known.structure,
            -len(each.links.boxes),
            each.score,
        ),
        default=None,
    )


def _is_of_two(found: Judged, wider: Judged, ids: Set[str]) -> bool:
    """True if a list was widened by another one: by entries of which none is known, and more than the few
    that are new and shown first."""
    more = len(wider.links.boxes) - len(found.links.boxes)
    return more >= LEAST_ENTRIES and _count(wider, ids) == _count(found, ids)


def _moved(page: Page, dates: PageDates, lists: Sequence[Judged], known: Known) -> Judged | None:
    """The list of a page's last documents at other addresses: the best with enough of the known names."""
    for each in lists if known.names else ():
        found = widened(
            page, dates, [each, *(other for other in lists if other is not each)], with_second=False
        )
        entries = entries_of(page, dates, found.links.boxes, found.titles)
        if known.moved_among(entries, mark(structure_of(page, found))):
            return found
    return None


def _by_links(page: Page, dates: PageDates, known: Known, ids: Set[str]) -> Judged | None:
    """The known links, if these are all of the last list."""
    boxes = boxes_of(page, [anchor for anchor in page.anchors if anchor.identity in ids])
    if not boxes or not known.has_last_list(box.anchor.identity for box in boxes):
        return None
    return judged(page, dates, LinkList(boxes))


def _fits(page: Page, found: Judged, known: Known) -> bool:
    """True if a list is the known one, by its entries; or all of them are new, and it looks as before."""
    links = found.links.urls()
    if known.is_same_list(links):
        return True
    if mark(structure_of(page, found)) != known.structure:
        return False
    return sum(map(known.has_shape, links)) * 2 >= len(links)


def _count(found: Judged, ids: Set[str]) -> int:
    return sum(box.anchor.identity in ids for box in found.links.boxes)


def _seen(best: Judged) -> str:
    return (
        f"{len(best.links.boxes)} links of one structure: {best.dated:.0%} with a date, {best.headed:.0%}"
        f" with a heading, {best.own:.0%} on the page's own host."
    )


def _why_none(page: Page) -> str:
    if page.has_password:
        return "The page has a field for a password: it may show its list after a login."
    if len(page.text.split()) < _FEW_WORDS and page.scripts:
        return "The page is made by scripts and needs a browser: without them it shows next to no text."
    if page.has_frames:
        return "The page shows other pages in frames: take the address of one of them."
    if not page.anchors:
        return "The page has no link that an entry could have."
    return f"{len(page.anchors)} links, and no group of them looks like entries."
