"""The HTML of items as topics publish it; for one run, an item that several topics show is cleaned once."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from rss_pipeline.collector.images.former_urls import former_base, former_url
from rss_pipeline.collector.images.urls import usable_base
from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.collector.sanitize.html import with_images
from rss_pipeline.collector.sanitize.shown import files_beside, first_picture, shown_html
from rss_pipeline.features.topics.values import Candidate, PublicImage

MOST_CHARACTERS = 8_000_000
"""At most 4 bytes each."""


@dataclass(frozen=True, slots=True)
class Published:
    """The HTML of an item with public copies of its images."""

    html: str
    files: tuple[Enclosure, ...] = ()
    """The enclosures that it does not show."""
    image: str | None = None
    """The URL of the picture that it begins with."""


PublishedHtml = Callable[[str, Candidate, PublicImage], Published | None]
"""`published_html`, or one that remembers what it did."""


def published_html(html: str, candidate: Candidate, image: PublicImage) -> Published | None:
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
    return Published(placed, files, first_picture(placed))


_Known = tuple[tuple[str, tuple[Enclosure, ...]], Published | None]
"""The content and the enclosures of an item, and what was made of them."""


class HtmlCache:
    """`published_html` with a memory, in which those that were used longest ago make room."""

    def __init__(self, *, most_characters: int = MOST_CHARACTERS) -> None:
        self._most = most_characters
        self._size = 0
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, html: str, candidate: Candidate, image: PublicImage) -> Published | None:
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
