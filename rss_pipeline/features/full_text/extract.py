"""The article of a web page: its HTML as readers show it, or the reason why the page has none.

A pure function of the page's bytes and its address. Comments are removed first (comments.py). trafilatura
chooses the text; a second look with links and pictures (pictures.py) keeps those that stand in it. Whether
there is an article is walls.py's.
"""

import re
from collections.abc import Iterator
from copy import deepcopy
from urllib.parse import urlsplit

from lxml import etree
from trafilatura import extract

from rss_pipeline.collector.images.find import has_overloaded_tag, tree
from rss_pipeline.collector.parse.links import absolute, is_web
from rss_pipeline.collector.parse.sections import Sections
from rss_pipeline.collector.sanitize.html import MOST_HTML_CHARACTERS, safe_html
from rss_pipeline.features.full_text.comments import drop_comments
from rss_pipeline.features.full_text.model import Extracted
from rss_pipeline.features.full_text.pictures import name_placed, place_pictures
from rss_pipeline.features.full_text.walls import AboutItem, verdict_of, verdict_of_page
from rss_pipeline.features.pages.page import decode_page

MOST_BYTES = 1_000_000
"""The most of an article's HTML: it is in one row, beside which others are read."""
_MOST_TAGS = 30_000
"""Tags of a page that is read: trafilatura takes 2 s for so many."""
_LEAST_SHARE = 0.95
"""Words of the text that the one with links and images must have; else the text is shown without them."""
_BEFORE_LINK = 3
"""Words beside a link to another page of the site: "Read more:"."""
_HTML_TYPES = ("html", "xml", "text/plain")
_STARTS = (b"<", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x00<")
_WORD = re.compile(r"\w+")
_TAG = re.compile(r"<[a-zA-Z]")
_SCRIPTS = Sections(
    (r"<script\b", "</script"),
    (r"<SCRIPT\b", "</SCRIPT"),
    (r"<style\b", "</style"),
    (r"<STYLE\b", "</STYLE"),
)
_INLINE = frozenset(
    [
        "a",
        "abbr",
        "b",
        "bdi",
        "big",
        "cite",
        "code",
        "del",
        "em",
        "font",
        "i",
        "img",
        "ins",
        "kbd",
        "mark",
        "q",
        "s",
        "samp",
        "small",
        "span",
        "strong",
        "sub",
        "sup",
        "tt",
        "u",
        "var",
        "wbr",
    ]
)


def extract_article(
    body: bytes, content_type: str | None, url: str, *, about: AboutItem | None = None
) -> Extracted:
    """The article of a page at an address, without what runs, with absolute links and images.

    `about` has what the feed says of the item: a page that says nothing of it is another one.
    """
    if not _may_be_html(body, content_type):
        return Extracted(verdict="no_html")
    html = decode_page(body, content_type).text
    if _is_garbled(html):
        return Extracted(verdict="unreadable")
    html = _SCRIPTS.sub(_emptied, html)
    if len(_TAG.findall(html)) > _MOST_TAGS or has_overloaded_tag(html):
        return Extracted(verdict="too_large")
    page = tree(html)
    if page is None:
        return Extracted(verdict="empty")
    if drop_comments(page) | _open_asides(page):
        html = _html(page)
    base = _base(page, url)
    chosen = _article_html(html, page, base)
    shown = safe_html(chosen, bases=[base]) if chosen else ""
    if shown is None or len((shown or "").encode()) > MOST_BYTES:
        return Extracted(verdict="too_large")
    article = tree(f"<body>{shown}</body>") if shown else None
    text = "\n".join(_lines(article)) if article is not None else ""
    verdict = verdict_of_page(page, text) or verdict_of(page, text, html=html, url=url, about=about)
    if verdict != "article":
        return Extracted(verdict=verdict)
    return Extracted(verdict="article", html=shown, text=text)


def _may_be_html(body: bytes, content_type: str | None) -> bool:
    kind = (content_type or "").partition(";")[0].strip().lower()
    if kind and not any(each in kind for each in _HTML_TYPES):
        return False
    return body[:1_000].lstrip().startswith(_STARTS) or (b"<" in body and kind != "text/plain")


def _is_garbled(text: str) -> bool:
    """True if more than one in 200 characters could not be decoded, or is a control character."""
    bad = text.count("\ufffd") + sum(text.count(chr(each)) for each in range(9))
    return bad * 200 > len(text)


def _base(page: etree._Element, url: str) -> str:
    for element in page.iter("base"):
        if (href := element.get("href")) and (found := absolute(href, (url,))) and is_web(found):
            return found
    return url


def _emptied(section: str) -> str:
    """A script or style sheet without its text, which may look like tags; structured data stays."""
    start, bracket, _ = section.partition(">")
    return section if "ld+json" in start else f"{start}{bracket}{section[section.rindex('<') :]}"


def _article_html(html: str, page: etree._Element, base: str) -> str:
    """The HTML of the text that trafilatura takes for the article, with its links and images; may be empty.

    To look for links or images changes what it takes: the text without them is nearer to what people mark as
    the article. So that one decides, and of the other the paragraphs are kept that are in it.
    """
    plain = _extracted(html, is_rich=False)
    body = _body(plain)
    if body is None:
        return ""
    words = _words(_text(body))
    pictured = deepcopy(page)
    pictures = place_pictures(pictured, base)
    rich = _body(_extracted(_html(pictured), is_rich=True))
    if rich is not None:
        name_placed(rich, pictures)
        _prune(rich, f" {' '.join(words)} ")
        if len(_words(_text(rich))) >= _LEAST_SHARE * len(words):
            body = rich
    _drop_title(body, page)
    _drop_links_to_others(body, base)
    return "".join(etree.tostring(each, encoding="unicode", method="html") for each in body)


def _open_asides(page: etree._Element) -> bool:
    """Rename an `<aside>` with the title, which trafilatura removes; return True if it is there."""
    asides = {each for title in page.iter("h1") for each in title.iterancestors("aside")}
    for each in asides:
        each.tag = "div"
    return bool(asides)


def _html(page: etree._Element) -> str:
    return etree.tostring(page, encoding="unicode", method="html")


def _extracted(html: str, *, is_rich: bool) -> str:
    found: str | None = extract(
        html,
        fast=True,
        output_format="html",
        include_comments=False,
        include_formatting=True,
        include_images=is_rich,
        include_links=is_rich,
    )
    return found or ""


def _body(html: str) -> etree._Element | None:
    root = tree(html[: MOST_HTML_CHARACTERS * 2]) if html else None
    return None if root is None else root.find(".//body")


def _prune(element: etree._Element, words: str) -> None:
    """Remove the paragraphs whose words are not together in `words`; their images stay."""
    for child in list(element):
        if not isinstance(child.tag, str) or child.tag in _INLINE or child.tag == "br":
            continue
        own = _words(_text(child))
        if not own or f" {' '.join(own)} " in words:
            continue
        if any(each.tag not in _INLINE for each in child.iterdescendants()):
            _prune(child, words)
            if child.text and f" {' '.join(_words(child.text))} " not in words:
                child.text = None
            continue
        images = list(child.iter("img"))
        for each in [*child]:
            child.remove(each)
        child.text = None
        for image in images:
            image.tail = None
            child.append(image)
        if not images:
            element.remove(child)


def _drop_links_to_others(body: etree._Element, base: str) -> None:
    """Remove paragraphs that are links to other pages of the site and nothing besides: "Read more: ..."."""
    host, here = urlsplit(base).hostname, base.partition("#")[0]
    for each in list(body):
        links = [link for link in each.iter("a") if link.get("href")]
        if not links or each.find(".//img") is not None:
            continue
        urls = [absolute(link.get("href") or "", (base,)) or "" for link in links]
        is_to_others = all(urlsplit(url).hostname == host and not url.startswith(f"{here}#") for url in urls)
        words = len(_words(_text(each)))
        if is_to_others and sum(len(_words(_text(link))) for link in links) >= words - _BEFORE_LINK:
            body.remove(each)


def _drop_title(body: etree._Element, page: etree._Element) -> None:
    """Remove the title where the text begins with it: readers show the item's above it."""
    if not len(body) or body[0].find(".//img") is not None:
        return
    said = " ".join(_words(_text(body[0])))
    titles = [*page.iter("title"), *page.iter("h1")]
    if said and any(said in " ".join(_words(_text(each))) for each in titles):
        body.remove(body[0])


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _text(element: etree._Element) -> str:
    return " ".join(_lines(element))


def _lines(element: etree._Element) -> Iterator[str]:
    """The text of an element, a line for each paragraph in it."""
    pieces: list[str] = []
    for event, each in etree.iterwalk(element, events=("start", "end", "comment", "pi")):
        is_border = event in ("start", "end") and each.tag not in _INLINE
        if is_border and (line := " ".join("".join(pieces).split())):
            yield line
        if is_border:
            pieces = []
        if event == "start":
            pieces.append(each.text or "")
        elif each is not element:
            pieces.append(each.tail or "")
    if line := " ".join("".join(pieces).split()):
        yield line
