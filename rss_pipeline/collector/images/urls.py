"""The absolute URLs of image references.

References are found in HTML by `find.py`; references of any kind are resolved in `parse/links.py`.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
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
