"""The HTML of items as topics publish it; for one run, an item that several topics show is cleaned once."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import partial

from rss_pipeline.collector.sanitize.html import with_images, without_ids
from rss_pipeline.collector.sanitize.shown import shown_html
from rss_pipeline.pipeline.topics.values import Candidate, PublicImage

MOST_CHARACTERS = 8_000_000
"""At most 4 bytes each."""

PublishedHtml = Callable[[str, Candidate, PublicImage], str | None]
"""`published_html`, or one that remembers what it did."""


def published_html(html: str, candidate: Candidate, image: PublicImage) -> str | None:
    """`shown_html` of an item, with public copies of its images; None also if nothing is left of it."""
    feed = candidate.feed
    bases = (candidate.base_url, candidate.link, feed.link, feed.url)
    cleaned = shown_html(html, candidate.enclosures, bases=bases)
    return with_images(without_ids(cleaned), partial(image, candidate.item_id)) if cleaned else None


class HtmlCache:
    """`published_html` with a memory, in which those that were used longest ago make room."""

    def __init__(self, *, most_characters: int = MOST_CHARACTERS) -> None:
        self._most = most_characters
        self._size = 0
        self._known: OrderedDict[str, tuple[str, str | None]] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, html: str, candidate: Candidate, image: PublicImage) -> str | None:
        """The item's HTML as it is published. Safe to call from several threads."""
        with self._lock:
            known = self._taken(candidate.item_id)
        # A repair may have changed it since.
        if known is None or known[0] != html:
            known = html, published_html(html, candidate, image)
        with self._lock:
            self._taken(candidate.item_id)
            self._known[candidate.item_id] = known
            self._size += _size(known)
            while self._size > self._most:
                self._taken(next(iter(self._known)))
        return known[1]

    def _taken(self, item_id: str) -> tuple[str, str | None] | None:
        known = self._known.pop(item_id, None)
        if known is not None:
            self._size -= _size(known)
        return known


def _size(known: tuple[str, str | None]) -> int:
    return len(known[0]) + len(known[1] or "")
