"""One entry of a topic's documents: the values of an item, valid for Atom and JSON Feed alike."""

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from rss_pipeline.collector.images.urls import former_base, former_url, usable_base
from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.collector.parse.iri import published_url
from rss_pipeline.collector.parse.pictures import is_picture
from rss_pipeline.collector.sanitize.html import text_of, with_images
from rss_pipeline.collector.sanitize.item_body import title_of_place
from rss_pipeline.collector.sanitize.shown import files_beside, first_picture, shown_html
from rss_pipeline.collector.sanitize.text import one_line, title_line
from rss_pipeline.features.topics.choice import TopicItem, entry_id, feed_urn, topic_urn
from rss_pipeline.features.topics.model import (
    Candidate,
    PublicImage,
    PublicUrls,
    SourceFeed,
    TopicContent,
    TopicSpec,
)

# The HTML of items as topics publish it; for one run, an item that several topics show is cleaned once.

MOST_CHARACTERS = 8_000_000
"""At most 4 bytes each."""


@dataclass(frozen=True, slots=True)
class PublicHtml:
    """The HTML of an item with public copies of its images."""

    html: str
    files: tuple[Enclosure, ...] = ()
    """The enclosures that it does not show."""
    image: str | None = None
    """The URL of the picture that it begins with."""


PublishedHtml = Callable[[str, Candidate, PublicImage], PublicHtml | None]
"""`published_html`, or one that remembers what it did."""


def published_html(html: str, candidate: Candidate, image: PublicImage) -> PublicHtml | None:
    """`shown_html` of an item, published; None also if nothing is left of it."""
    feed = candidate.feed
    bases = (candidate.base_url, candidate.link, feed.link, feed.url)
    cleaned = shown_html(html, candidate.enclosures, bases=bases)
    if not cleaned:
        return None
    files = tuple(files_beside(cleaned, candidate.enclosures))
    base, former = usable_base(bases), former_base(bases)

    def public(url: str) -> str | None:
        found = image(candidate.item_id, url)
        if found is None and (known := former_url(url, base=base, former=former)):
            return image(candidate.item_id, known)
        return found

    placed = with_images(cleaned, public)
    return PublicHtml(placed, files, first_picture(placed))


_Known = tuple[tuple[str, tuple[Enclosure, ...]], PublicHtml | None]
"""The content and the enclosures of an item, and what was made of them."""


class HtmlCache:
    """`published_html` with a memory, in which those that were used longest ago make room."""

    def __init__(self, *, most_characters: int = MOST_CHARACTERS) -> None:
        self._most = most_characters
        self._size = 0
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, html: str, candidate: Candidate, image: PublicImage) -> PublicHtml | None:
        """The item's HTML as it is published. Safe to call from several threads."""
        with self._lock:
            known = self._taken(candidate.item_id)
        # A repair may have changed it since.
        source = html, candidate.enclosures
        if known is None or known[0] != source:
            known = source, published_html(html, candidate, image)
        with self._lock:
            self._taken(candidate.item_id)
            self._known[candidate.item_id] = known
            self._size += _size(known)
            while self._size > self._most:
                self._taken(next(iter(self._known)))
        return known[1]

    def _taken(self, item_id: str) -> _Known | None:
        known = self._known.pop(item_id, None)
        if known is not None:
            self._size -= _size(known)
        return known


def _size(known: _Known) -> int:
    (html, enclosures), published = known
    return len(html) + sum(len(each.url) for each in enclosures) + len(published.html if published else "")


MOST_TITLE_CHARACTERS = 500
_TITLE_OF_TEXT_CHARACTERS = 100
"""Length of a title that is made from the item's text."""
_SUMMARY_CHARACTERS = 1_000
_NAME_CHARACTERS = 200
_MOST_OF_A_KIND = 20
"""Authors, categories and enclosures of one entry."""
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")
_LARGEST_LENGTH = 2**53 - 1
"""The largest integer that every reader of JSON keeps (RFC 8259, 6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySource:
    """The feed of an entry."""

    id: str
    member: str
    """As the topic names it: `feed` or `feed/stream`."""
    title: str
    link: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """The same item in a further member of the topic."""

    member: str
    title: str
    """The feed's."""
    url: str | None
    """The item's, as this feed has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentEntry:
    """One entry. All texts are legal XML, on one line but for `html`; URLs are IRIs; instants end in Z."""

    id: str
    title: str
    """Never empty: made from the text where the item has no title."""
    has_title: bool
    link: str | None
    authors: tuple[str, ...]
    published: datetime | None
    updated: datetime
    categories: tuple[str, ...]
    enclosures: tuple[Enclosure, ...]
    """Without pictures that `html` shows."""
    image: str | None
    """The picture that `html` begins with."""
    summary: str | None
    html: str | None
    source: EntrySource
    also_in: tuple[Copy, ...]


def entry_of(
    topic: TopicSpec, chosen: TopicItem, *, content: TopicContent, image: PublicImage, html: PublishedHtml
) -> DocumentEntry:
    """The entry of an item, with as much of its content as `content` says."""
    item = chosen.candidate
    title = title_line(item.title, limit=MOST_TITLE_CHARACTERS)
    link = published_url(item.link)
    shown, summary = _content(item, content, image, html)
    published, updated = _dates(item)
    return DocumentEntry(
        id=entry_id(item),
        title=title or _title_of(item, link),
        has_title=bool(title),
        link=link,
        authors=_names(item.authors),
        published=published,
        updated=updated,
        categories=_names(item.categories),
        enclosures=_enclosures(item, item.enclosures if shown is None else shown.files, image),
        image=None if shown is None else published_url(shown.image),
        summary=summary,
        html=None if shown is None else shown.html,
        source=EntrySource(
            id=feed_urn(item.feed),
            member=str(topic.of[item.member]),
            title=_feed_title(item.feed),
            link=published_url(item.feed.link),
        ),
        also_in=tuple(_copy(topic, each) for each in chosen.also_in),
    )


def _content(
    item: Candidate, content: TopicContent, image: PublicImage, html: PublishedHtml
) -> tuple[PublicHtml | None, str | None]:
    """HTML and summary. A summary that is all of an item is its content."""
    if content == "none":
        return None, None
    whole = item.content_html or item.summary or ""
    if content == "full" and (whole or item.enclosures):
        shown = html(whole, item, image)
        if shown is not None:
            is_further = item.content_html and item.summary and item.summary != item.content_html
            return shown, (text_of(item.summary, limit=_SUMMARY_CHARACTERS) or None) if is_further else None
    return None, (
        text_of(item.summary, limit=_SUMMARY_CHARACTERS)
        or text_of(item.content_html, limit=_SUMMARY_CHARACTERS)
        or None
    )


def _dates(item: Candidate) -> tuple[datetime | None, datetime]:
    """Publication and last change, neither later than the first time that the item was seen.

    Readers sort by these dates, and take a document for unchanged if its date is not later than the last: a
    date of 2099 would be on top, and hide all that comes, until then.
    """
    published = item.sort_date
    updated = published if item.updated_at is None else min(item.updated_at, item.created_at)
    return published if item.is_dated else None, max(published, updated)


def _title_of(item: Candidate, link: str | None) -> str:
    limit = _TITLE_OF_TEXT_CHARACTERS
    return (
        text_of(item.summary, limit=limit)
        or text_of(item.content_html, limit=limit)
        or title_of_place(item.enclosures, link)
        or _feed_title(item.feed)
    )


def _names(texts: Iterable[str]) -> tuple[str, ...]:
    """The distinct texts that are not empty, each once, as they are listed."""
    found = dict.fromkeys(one_line(text, limit=_NAME_CHARACTERS) for text in texts)
    found.pop("", None)
    return tuple(found)[:_MOST_OF_A_KIND]


def _enclosures(item: Candidate, files: Iterable[Enclosure], image: PublicImage) -> tuple[Enclosure, ...]:
    found: dict[str, Enclosure] = {}
    for each in files:
        kind = (each.type or "").partition(";")[0].strip().lower()
        archived = image(item.item_id, each.url) if is_picture(each) else None
        url = published_url(archived or each.url)
        if url is None or len(found) == _MOST_OF_A_KIND:
            continue
        length = each.length if each.length is not None and 0 <= each.length <= _LARGEST_LENGTH else None
        known_type = kind if _MEDIA_TYPE.fullmatch(kind) else None
        found.setdefault(url, Enclosure(url=url, type=known_type, length=length))
    return tuple(found.values())


def _feed_title(feed: SourceFeed) -> str:
    return one_line(feed.title, limit=MOST_TITLE_CHARACTERS) or feed.id


def _copy(topic: TopicSpec, item: Candidate) -> Copy:
    return Copy(member=str(topic.of[item.member]), title=_feed_title(item.feed), url=published_url(item.link))


# The facts of the topic itself in both of its documents.

GENERATOR = "rss_pipeline"
"""Without a version: each release would change every document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedHead:
    """A topic, without its entries."""

    id: str
    title: str
    link: str | None
    hubs: tuple[str, ...]
    urls: PublicUrls | None
    """None if the documents have no public URL."""
    expired: bool
    """No longer published: readers need not come again."""


def feed_head(topic: TopicSpec, *, installation: UUID, urls: PublicUrls | None, expired: bool) -> FeedHead:
    hubs = dict.fromkeys(filter(None, map(published_url, topic.hub)))
    return FeedHead(
        id=topic_urn(installation, topic.id),
        title=topic_title(topic),
        link=published_url(topic.link),
        hubs=tuple(hubs),
        urls=urls,
        expired=expired,
    )


def topic_title(topic: TopicSpec) -> str:
    """The topic's title, else its id."""
    return one_line(topic.title, limit=MOST_TITLE_CHARACTERS) or topic.id
