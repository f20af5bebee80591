"""The list of a page, found without selectors: repeated structure, dates, headings, addresses.

A pure function of the page's text and address. To know that a page has no list is the hard half: an article,
a shop front, a login page, an index of documentation are never certain.
"""

from collections.abc import Sequence

from rss_pipeline.features.pages.dates import PageDates
from rss_pipeline.features.pages.doubts import doubts_about
from rss_pipeline.features.pages.entries import entries_of
from rss_pipeline.features.pages.judged import Judged, judged_lists, widened
from rss_pipeline.features.pages.links import identity, is_same_list
from rss_pipeline.features.pages.model import Detected, Verdict
from rss_pipeline.features.pages.page import Page, read_page
from rss_pipeline.features.pages.structured import with_structured_data

LEAST_SCORE = 2.0
"""Below it, a group of links is a menu."""
_FEW_WORDS = 60


def detect(html: str, url: str, known: Sequence[str] = ()) -> Detected:
    """The list of a page at an address, by the page alone.

    `known` are links of entries that the page had, newest first: the list with most of them is taken, and is
    certain if it is the same list (`is_same_list`); without one, a person has to confirm what is found.
    """
    page = read_page(html, url)
    if page is None:
        return Detected(verdict="none", evidence=("There is no text that could be read as a page.",))
    dates = PageDates(page)
    lists = judged_lists(page, dates)
    if known and (again := _with_known(lists, known)):
        stored = {identity(each) for each in known}
        count = sum(box.anchor.identity in stored for box in again.links.boxes)
        return _detected(page, dates, again, "certain", f"{count} of its links are known entries.")
    best = widened(page, dates, lists) if lists else None
    if best is None or best.score < LEAST_SCORE:
        score = best.score if best else 0.0
        return Detected(verdict="none", score=score, evidence=(_why_none(page),), feeds=page.feeds)
    doubts = doubts_about(page, best)
    if known:
        doubts = ("It has too few of the links that were on the page before.", *doubts)
    return _detected(page, dates, best, "ask" if doubts else "certain", _seen(best), *doubts)


def _detected(page: Page, dates: PageDates, best: Judged, verdict: Verdict, *evidence: str) -> Detected:
    entries = entries_of(page, dates, best.links.boxes, best.titles)
    return Detected(
        verdict=verdict,
        entries=with_structured_data(page, entries),
        score=round(best.score, 1),
        evidence=evidence,
        feeds=page.feeds,
    )


def _with_known(lists: Sequence[Judged], known: Sequence[str]) -> Judged | None:
    """The list with most of the known entries; of several the one with the fewest others."""
    stored = {identity(url) for url in known}
    fitting = [each for each in lists if is_same_list(known, each.links.urls())]
    return max(
        fitting,
        key=lambda each: (
            sum(box.anchor.identity in stored for box in each.links.boxes),
            -len(each.links.boxes),
            each.score,
        ),
        default=None,
    )


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
    return f"{len(page.anchors)} links, and no group of them looks like entries."
