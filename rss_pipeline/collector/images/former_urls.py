"""The URLs by which images were known while references were resolved against the feed's link first.

Images that were archived then are shown until `replay --repair` has given their tasks the URLs of today. This
module can go once no archive has such tasks.
"""

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar
from urllib.parse import urlsplit

from rss_pipeline.collector.images.urls import usable_base
from rss_pipeline.collector.parse.links import absolute

Value = TypeVar("Value")


def former_base(bases: Sequence[str | None]) -> str | None:
    """The base that was taken, of an item's xml:base, its link, its feed's link and its feed's URL."""
    base_url, link, feed_link, feed_url = bases
    return usable_base((base_url, feed_link, link, feed_url))


def former_url(url: str, *, base: str | None, former: str | None) -> str | None:
    """The URL that a reference had against `former` if it has `url` against `base`; None if it had the same.

    It is that of a reference relative to a page: a rooted one has the same URL on the same host.
    """
    if base is None or former is None or base == former:
        return None
    try:
        parts, beside = urlsplit(url), urlsplit(base)
    except ValueError:
        return None
    if (parts.scheme, parts.netloc) != (beside.scheme, beside.netloc) or not parts.path:
        return None
    folder = beside.path.rpartition("/")[0] + "/"
    path = parts.path.removeprefix(folder)
    if path == parts.path:
        path = posixpath.relpath(path, folder)
    found = absolute(f"./{path}?{parts.query}" if parts.query else f"./{path}", (former,))
    return found if found != url else None


def with_former_urls(images: Mapping[str, Value], bases: Sequence[str | None]) -> Mapping[str, Value]:
    """Values by the URLs of an item's images, also found by URLs of today where a former one has a value."""
    base, former = usable_base(bases), former_base(bases)
    return images if not images or base == former else _WithFormer(images, base, former)


class _WithFormer(Mapping[str, Value]):
    def __init__(self, images: Mapping[str, Value], base: str | None, former: str | None) -> None:
        self._images = images
        self._base = base
        self._former = former

    def __getitem__(self, url: str) -> Value:
        found = self._images.get(url)
        if found is None:
            known = former_url(url, base=self._base, former=self._former)
            return self._images[known or url]
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._images)

    def __len__(self) -> int:
        return len(self._images)
