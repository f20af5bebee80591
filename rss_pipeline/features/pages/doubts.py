"""The doubts about the best list of a page: with one, a person has to confirm it.

Each is a sentence on what was seen. A list without a doubt is certain.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import pairwise
from statistics import median
from urllib.parse import unquote, urlsplit

from rss_pipeline.features.pages.addresses import LIST_WORDS, is_named_as_entry, is_of_offer, segments
from rss_pipeline.features.pages.dates import PageDates, beside_day
from rss_pipeline.features.pages.entries import dates_of
from rss_pipeline.features.pages.judged import Judged, has_other_news, width
from rss_pipeline.features.pages.page import BLOCK, Page

_DOCS_WORDS = frozenset(
    (
        "api",
        "doc",
        "docs",
        "documentation",
        "guide",
        "guides",
        "handbook",
        "help",
        "manual",
        "reference",
        "wiki",
    )
)
_NO_DOCS_WORDS = frozenset(
    (
        "api",
        "doc",
        "docs",
        "documentation",
        "guide",
        "guides",
        "handbook",
        "help",
        "manual",
        "reference",
        "wiki",
    )
)
_NOLIST_WORDS = frozenset(
    (
        "404",
        "cart",
        "checkout",
        "login",
        "logon",
        "register",
        "search",
        "signin",
        "signup",
        "suche",
        "sitemap",
    )
)
_THINGS_WORDS = frozenset(
    """agences branches equipe filialen locations magasins members memberlist mitarbeiter offices people
    players shops squad staff standorte stores sucursales team tiendas users""".split()  # noqa: SIM905
)
"""Last words of the addresses of people and places, whose dates are no news."""
_SEARCH = re.compile(r"[?&](?:s|q|query|search|suche)=", re.IGNORECASE)
_CART = re.compile(
    r"/(?:cart|basket|checkout|warenkorb|panier|carrito|carrello|koszyk|winkelwagen)(?:[/?.]|\Z)",
    re.IGNORECASE,
)
_NOT_FOUND = re.compile(r"\b(?:404|not found|nicht gefunden|page introuvable|no encontrada)\b", re.IGNORECASE)
_PRICE = re.compile(
    r"[$€£¥₹₽₩]\s?\d|\d\s?(?:[€£¥₽₩円元원]|(?:EUR|USD|GBP|CHF|PLN|SEK|zł|kr|руб)\b)"
    r"|add to (?:cart|basket|bag)|in den warenkorb|ajouter au panier|añadir a(?:l carrito| la cesta)"
    r"|aggiungi al carrello|в корзину|加入购物车|加入購物車|カートに入れる|장바구니",
    re.IGNORECASE,
)
_DOCUMENT = re.compile(r"\.(?:pdf|docx?|odt|rtf|wpd)(?:\Z|[?#])", re.IGNORECASE)
_WORDS = re.compile(r"[a-z0-9]+")
_NAME_WORDS = re.compile(r"[^\W_]+")
_OF_A_DAY = re.compile(r"/(?:19|20)\d\d/[01]?\d(?:/[0-3]?\d)?/[^/\d]{0,99}[^\W\d_][^/]{0,999}\Z")
_LANGUAGE = re.compile(r"[a-z]{2}(?:-[a-z]{2})?")

_RUNNING_TEXT = 80
"""Characters of a line from which it is running text and no label."""
_MUCH_TEXT = 500
_TITLE_WORDS = 5
_MOST_DATED = 0.6
_MOST_HEADED = 0.8
_SOME_TEXT = 0.2
_MUCH_OF_TEXT = 0.7
_LIST_SHARE = 0.6
"""The share of the page's text that a list without dates has to be."""
_ARCHIVE_SHARE = 0.45
_MANY = 10
_FEW = 4
_SHORT_TITLE = 4.0
_LONG_TITLE = 20.0
_SENTENCE = 35.0
"""The length of a title that is more than a name."""
_MOST_EQUAL = 0.8
_LEAST_ORDERED = 0.75
"""Entries are in the order of their dates; a few are pinned, or of a second list."""
_FAR_APART = 300
"""Days between dates of birth, of openings."""


def doubts_about(page: Page, dates: PageDates, best: Judged, lists: Sequence[Judged]) -> tuple[str, ...]:
    """Sentences on what is against the best of a page's lists; none if it is certain."""
    days = dates_of(page, dates, best.links.boxes)
    doubts = list(_doubts(page, best, [day for day in days if day is not None]))
    if max(best.dated, best.headed) < _MOST_DATED and any(_is_fuller(each, best) for each in lists):
        doubts.append("Few of the entries have a date or a heading, and those of another list have.")
    return tuple(doubts)


def _is_fuller(other: Judged, best: Judged) -> bool:
    """True for a list beside the best, of which the entries have dates, or headings and texts."""
    ids = {box.anchor.identity for box in best.links.boxes}
    return (
        (other.dated >= _MOST_HEADED or (other.headed >= _MOST_HEADED and other.text >= _SOME_TEXT))
        and not other.links.in_aside
        and other.generic < 0.5
        and ids.isdisjoint(box.anchor.identity for box in other.links.boxes)
    )


def _doubts(page: Page, best: Judged, days: Sequence[date]) -> Iterator[str]:
    parts = segments(page.url)
    if page.has_password:
        yield "The page has a field for a password."
    if set(parts) & _NOLIST_WORDS or _SEARCH.search(page.url) or _NOT_FOUND.search(page.title):
        yield "It is a page for a search, a login or an error, by its address or title."
    if {*parts, _first_of_host(page.url)} & _DOCS_WORDS:
        yield "By its address it is documentation, of which an index is no list of news."
    inside, outside, total = _texts(page, best)
    # Of a page that is all menus, feet and margins by its names, these say nothing.
    if best.links.in_aside and (best.dated < _MOST_DATED or inside * 2 < total):
        yield "The links are in a menu, a foot or a margin."
    if best.distinct < 0.7 or best.title_length < _SHORT_TITLE:
        yield "Many entries have no title of their own."
    if best.generic > 0.5 or best.own < 0.3:
        yield "Most links go to tags, authors or other hosts."
    priced = sum(_PRICE.search(page.text, box.begin, box.stop) is not None for box in best.links.boxes)
    if priced * 2 >= len(best.links.boxes):
        yield "Most entries have a price, as in a shop."
    is_list_address = bool(parts) and parts[-1] in LIST_WORDS
    is_home = all(_LANGUAGE.fullmatch(each) or each in ("index", "home") for each in parts)
    if page.og_type == "article" and (outside > _MUCH_TEXT or _is_titled_as_one(page, best)):
        yield "The page says that it is one article, and it has its title or running text."
    if _is_article(page.url):
        yield "By its address it is one article."
    if parts and parts[-1] in _THINGS_WORDS:
        yield "By its address it is a list of people or places."
    if _is_calendar(page, best, days):
        yield "Each entry is a day, as in a calendar."
    undated = None
    if best.dated < _MOST_DATED:
        undated = "Few of the entries have a date"
    elif not set(parts) & LIST_WORDS:
        undated = _why_undated(best, days, is_home=is_home)
    if undated is None:
        most = 4.0 if is_list_address or (is_home and best.headed >= _MOST_HEADED) else 1.0
    else:
        most = 0.3
        if any(_CART.search(anchor.url) for anchor in page.anchors):
            yield f"{undated}, and the page has a shopping cart."
        if _are_in_menu(page, best):
            yield f"{undated}, and they are in a menu of the page, too."
        if has_other_news(page, best):
            yield f"{undated}, and other links of the page look like news by their addresses."
        if len(best.links.boxes) < _FEW or best.own < _MOST_HEADED:
            yield f"{undated}, and they are few or on other hosts."
        # Things for sale, people and answers have headings and texts, too.
        is_headed = (
            is_home and best.headed >= _MOST_HEADED and best.text >= _SOME_TEXT and _are_named_as_news(best)
        )
        documents = sum(_DOCUMENT.search(box.anchor.url) is not None for box in best.links.boxes)
        is_shown_by_text = best.title_length >= _LONG_TITLE and (
            documents >= _MOST_HEADED * len(best.links.boxes)
            or (is_home and best.text >= _MOST_HEADED and len(best.links.boxes) >= _MANY)
        )
        is_archive = is_list_address and best.title_length >= _LONG_TITLE
        if inside < total * (_ARCHIVE_SHARE if is_archive else _LIST_SHARE):
            yield f"{undated}, and the page has much besides them."
        elif not (is_headed or is_list_address or is_shown_by_text):
            yield f"{undated}, and little else says that they are news."
    if outside > most * inside and outside > _RUNNING_TEXT:
        yield "There is more running text outside the entries than in them."


def _are_in_menu(page: Page, best: Judged) -> bool:
    """True if half of the links are in a menu, too: they are sections."""
    menus = {
        each.identity
        for node, tag in enumerate(page.tags)
        if tag == "nav"
        for each in page.anchors_in(node, page.ends[node])
        if not any(box.node <= each.node < box.end for box in best.links.boxes)
    }
    return 2 * sum(box.anchor.identity in menus for box in best.links.boxes) >= len(best.links.boxes)


def _are_named_as_news(best: Judged) -> bool:
    """True for entries without dates whose titles and addresses say what is new, as those of posts do. The
    buttons of a home page have headings and texts, too: they name a section in a word or two."""
    urls = best.links.urls()
    if sum(map(is_of_offer, urls)) * 2 >= len(urls):
        return False
    if len(urls) >= _MANY and best.text >= _MUCH_OF_TEXT:
        return True
    is_named = sum(map(is_named_as_entry, urls)) * 2 >= len(urls)
    return len(urls) > _FEW and is_named and best.title_length >= _LONG_TITLE


def _why_undated(best: Judged, days: Sequence[date], *, is_home: bool) -> str | None:
    """The reason for which the dates of entries say nothing on when these came; None where they do."""
    if len(days) < _FEW:
        return None
    if Counter(days).most_common(1)[0][1] >= _MOST_EQUAL * len(days):
        is_told = best.text >= (_MOST_HEADED if is_home else _LIST_SHARE) and (
            is_home or best.title_length >= _SENTENCE
        )
        return None if is_told else "The entries have one date"
    steps = [(after - before).days for before, after in pairwise(days)]
    falling = sum(step <= 0 for step in steps) / len(steps)
    rising = sum(step >= 0 for step in steps) / len(steps)
    if max(falling, rising) < _LEAST_ORDERED:
        return "The dates of the entries are in no order"
    if median(map(abs, steps)) > _FAR_APART:
        return "The dates of the entries are far apart"
    return None


def _is_calendar(page: Page, best: Judged, days: Sequence[date]) -> bool:
    """True where the links differ by days alone, and these do not fall."""
    texts = [beside_day(page.shown_of(box.anchor.node)) for box in best.links.boxes]
    equal = Counter(text for text in texts if text is not None).most_common(1)
    falling = sum(after < before for before, after in pairwise(days))
    return bool(equal) and equal[0][1] * 2 >= len(texts) and falling * 2 < len(days)


def _is_titled_as_one(page: Page, best: Judged) -> bool:
    """True where a heading that is no entry's is more than a name, and the title of the page."""
    headings = {page.shown_of(node) for node, tag in enumerate(page.tags) if tag == "h1"}
    return any(
        width(each) >= _SENTENCE and each.casefold() in page.title.casefold()
        for each in headings.difference(best.titles)
    )


def _is_article(url: str) -> bool:
    """True for an address that ends with a title of many words, or with a name behind a day or month."""
    try:
        path = unquote(urlsplit(url).path).lower().rstrip("/")
    except ValueError:
        return False
    words = _NAME_WORDS.findall(path.rpartition("/")[2].partition(".")[0])
    if not words or words[-1] in LIST_WORDS or words[-1] in ("index", "page"):
        return False
    return len(words) >= _TITLE_WORDS or bool(_OF_A_DAY.search(path))


def _first_of_host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").partition(".")[0]
    except ValueError:
        return ""


def _texts(page: Page, best: Judged) -> tuple[int, int, int]:
    """Characters in the entries, of running text outside them and in none of them, and of all but menus."""
    spans = [(box.begin, box.stop) for box in best.links.boxes]
    inside = sum(stop - begin for begin, stop in spans)
    spans += [
        (page.begins[node], page.stops[node])
        for node, is_aside in enumerate(page.is_aside)
        if is_aside and not page.is_aside[page.parents[node]]
    ]
    # Some pages have each entry once for every width of a screen.
    in_entries = {
        line.strip() for box in best.links.boxes for line in page.text[box.begin : box.stop].split(BLOCK)
    }
    outside = total = at = 0
    for begin, stop in [*sorted(spans), (len(page.text), len(page.text))]:
        if begin > at:
            for line in page.text[at:begin].split(BLOCK):
                text = line.strip()
                total += len(text)
                if len(text) >= _RUNNING_TEXT and text not in in_entries:
                    outside += len(text)
        at = max(at, stop)
    return inside, outside, total + inside
