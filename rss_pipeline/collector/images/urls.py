"""The absolute URLs of image references.

References are found in HTML by `find.py`; references of any kind are resolved in `parse/links.py`.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar
from urllib.parse import urldefrag, urlsplit

from rss_pipeline.collector.parse.image_references import NOT_FETCHED
from rss_pipeline.collector.parse.links import MAX_LINK_CHARACTERS, absolute, web_base

_PLAIN = re.compile(
    r"\A(?P<start>(?:[^#\s]*(?<!/)/)?|[^#\s?]*\?)"
    r"[\w-][\w.~%!$&'()*+,=@-]*(?:\?[\w.~%!$&'()*+,=@:?-]+)?"
)
"""A last path segment other than `..`, after a folder other than a bare host; or a query."""


def resolver(bases: Sequence[str | None]) -> Callable[[str], str | None]:
    """`image_url` against the first usable of `bases`, for many references."""
    base = usable_base(bases)
    known: dict[str, str | None] = {}

    def resolve(reference: str) -> str | None:
        head, _, fragment = reference.partition("#")
        if fragment.strip():
            reference = head + "#x"
        if reference in known:
            return known[reference]
        # Most references differ only in their last segment, and `urljoin` takes ten times as long as this.
        plain = _PLAIN.fullmatch(reference)
        if plain is None:
            url = image_url(reference, base)
        else:
            start = plain["start"]
            begin = _begin(start, base)
            url = begin and begin + reference[len(start) :]
            url = url if url and len(url) <= MAX_LINK_CHARACTERS else None
        known[reference] = url
        return url

    return resolve


_ABSOLUTE = re.compile(r"https?://[A-Za-z0-9][A-Za-z0-9.-]*/[!-~]*")
"""Nothing is changed in such a URL, and to read it into parts takes twenty times as long as this."""


@lru_cache(maxsize=256)
def _begin(start: str, base: str | None) -> str | None:
    """The URL of a reference that begins so, without its last segment; a feed's items have it in common."""
    if _ABSOLUTE.fullmatch(start):
        return start
    example = image_url(start + "x", base)
    return example and example[:-1]


def usable_base(bases: Sequence[str | None]) -> str | None:
    """The first of `bases` that references can be resolved against, without a password."""
    return next((usable for each in bases if (usable := web_base(each))), None)


def image_url(reference: str, base: str | None) -> str | None:
    """The URL of an image reference: absolute, http(s), without fragment; None if it has none.

    `#` alone leads to the page itself, a port beyond 65535 nowhere.
    """
    if NOT_FETCHED.match(reference) or not reference.partition("#")[0].strip():
        return None
    url = absolute(reference, (base,))
    return urldefrag(url).url if url and web_base(url) and _has_port(url) else None


def _has_port(url: str) -> bool:
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False


# The URLs by which images were known while references were resolved against the feed's link first.
#
# Images that were archived then are shown until `replay --repair` has given their tasks the URLs of today.
# This module can go once no archive has such tasks.

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
