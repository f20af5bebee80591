"""The readers' comments of a page, which are removed before its article is looked for.

They may be longer than the article, and in elements that name one: in HTML an `<article>` in another one is a
comment (HTML 4.3.2). What holds the title of the page is none, whatever it is called.

Each function takes time by the size of the page, however deep it is nested.
"""

import re
from collections.abc import Iterator

from lxml import etree

from rss_pipeline.features.full_text.walls import LEAST_CHARACTERS

_TYPE = re.compile(r"schema\.org/(?:User)?Comments?\b", re.IGNORECASE)
_NAME = re.compile(
    r"(?:(?!(?:no|has|with|show|hide|enabled?|disabled?)[-_])[\w-]{1,40}?[-_]|article|post|reader|user)?comments?"
    r"(?:[-_]{1,3}(?!open|close|enabled|disabled|allowed|status|on\b|off\b)[\w-]*"
    r"|area|body|box|container|item|list|section|thread|wrapper)?"
    r"|disqus_thread|dsq-comments|fb-comments|webmentions?",
    re.IGNORECASE,
)
"""An id or a class of comments, as a whole: `comments-open` and `commentary` are those of articles."""
_HEADING = re.compile(
    r"[\W\d]*+(?:(?:reader|user|view|all|show|leave)\w*+\s+)?"
    r"(?:comments?|responses|replies|discussion|kommentare?|leserkommentare|commentaires?|comentarios?|comentários"
    r"|commenti|reacties|kommentarer|kommentit|komentarze|yorumlar|комментари[ий]|коментарі|σχόλια|评论|評論|留言"
    r"|コメント|댓글|تعليقات)[\W\d]*+",
    re.IGNORECASE,
)
"""A heading of comments, with their number."""
_HEADINGS = ("h2", "h3", "h4", "h5", "h6", "summary", "legend")
_GROUPS = frozenset(("section", "div", "aside", "details", "fieldset", "footer", "ol", "ul"))
_OF_READERS = ("article", "details", "form", "li", "time", "textarea", "blockquote")
"""Elements of which some are in each group of comments."""
_BESIDE = frozenset(("aside", "footer", "form", "header", "nav", "script", "style"))
"""Elements whose text is not that of the article around them."""


def drop_comments(page: etree._Element) -> bool:
    """Remove the comments of readers from a page; return True if there were any."""
    kept, gone = _around_article(page), set[etree._Element]()
    for each in (*_named(page), *_headed(page), *_articles(page)):
        if each in kept or each in gone:
            continue
        gone.update(each.iter())
        _drop(each)
    return bool(gone)


def _around_article(page: etree._Element) -> set[etree._Element]:
    """The elements of a page that hold its title, or what is marked as its article."""
    found = set[etree._Element]()
    marked = [
        each for each in page.iter("article", "div", "section") if "articleBody" in each.get("itemprop", "")
    ]
    for each in (*page.iter("html", "head", "body", "main", "h1"), *marked):
        above: etree._Element | None = each
        while above is not None and above not in found:
            found.add(above)
            above = above.getparent()
    return found


def _drop(element: etree._Element) -> None:
    parent, before = element.getparent(), element.getprevious()
    if parent is None:
        return
    if before is None:
        parent.text = (parent.text or "") + (element.tail or "")
    else:
        before.tail = (before.tail or "") + (element.tail or "")
    parent.remove(element)


def _named(page: etree._Element) -> Iterator[etree._Element]:
    """Elements that say of themselves that they are comments."""
    entries = 0
    for event, each in etree.iterwalk(page, events=("start", "end")):
        classes = (each.get("class") or "").split()
        is_entry = "h-entry" in classes
        if event == "end":
            entries -= is_entry
            continue
        said = f"{each.get('role') or ''} {each.get('itemprop') or ''}".lower().split()
        if (
            "comment" in said
            or _TYPE.search(each.get("itemtype") or "")
            or any(map(_NAME.fullmatch, (*classes, each.get("id") or "")))
            # An entry of microformats in another one is a reply to it: https://indieweb.org/comments
            or (entries and (is_entry or "h-cite" in classes))
        ):
            yield each
        entries += is_entry


def _headed(page: etree._Element) -> Iterator[etree._Element]:
    """Parts of a page below a heading of comments."""
    for heading in page.iter(*_HEADINGS):
        if not _HEADING.fullmatch(" ".join("".join(map(str, heading.itertext())).split())):
            continue
        group = next(heading.iterancestors(*_GROUPS), None)
        if group is not None and next(group.iter("h1", *_HEADINGS)) is heading:
            if next(group.iter(*_OF_READERS), group) is not group or group.tag == "details":
                yield group
            continue
        for each in heading.itersiblings():
            if each.tag in _HEADINGS:
                break
            if each.tag in ("article", "details") or (
                each.tag in _GROUPS and next(each.iter(*_OF_READERS), None) is not None
            ):
                yield each


def _articles(page: etree._Element) -> Iterator[etree._Element]:
    """Articles in an article with a text of its own, after the one with the title of the page, and beside a
    `<main>` with a text."""
    lengths, beside_main = _lengths(page)
    titled = {around for title in page.iter("h1") if (around := _article_around(title)) is not None}
    titled = {each for each in titled if lengths[each] >= LEAST_CHARACTERS}
    after_titled = {each for title in titled for each in title.itersiblings("article")} - titled
    for each in lengths:
        around = _article_around(each)
        if around is None:
            is_comment = each in after_titled or each in beside_main
        else:
            is_comment = lengths[around] >= LEAST_CHARACTERS
        if is_comment:
            yield each


def _article_around(element: etree._Element) -> etree._Element | None:
    return next(element.iterancestors("article"), None)


def _lengths(page: etree._Element) -> tuple[dict[etree._Element, int], set[etree._Element]]:
    """The characters of each article, without those of what is in it and beside its text; and the articles
    beside a `<main>` that has a text."""
    lengths: dict[etree._Element, int] = {}
    outside: set[etree._Element] = set()
    articles: list[etree._Element] = []
    beside = mains = of_main = 0
    for event, each in etree.iterwalk(page, events=("start", "end")):
        is_start = event == "start"
        if each.tag == "article":
            if is_start:
                articles.append(each)
                lengths[each] = 0
                if not mains:
                    outside.add(each)
            else:
                articles.pop()
        beside += (1 if is_start else -1) * (each.tag in _BESIDE)
        mains += (1 if is_start else -1) * (each.tag == "main")
        text = (each.text if is_start else each.tail) or ""
        if beside or not text:
            continue
        length = len(text.strip())
        of_main += length if mains else 0
        if articles:
            lengths[articles[-1]] += length
    return lengths, outside if of_main >= LEAST_CHARACTERS else set()
