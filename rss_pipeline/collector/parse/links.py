"""The resolution of published references to absolute URLs.

No request is made, and no address is checked; `collector.http` does that.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from unicodedata import normalize
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

MAX_LINK_CHARACTERS = 8_000
"""The length that every server should accept (RFC 9110 4.1). Without a limit, a base of a megabyte would be
repeated in each of 5,000 links."""

PAGE = re.compile(r"\s*(?:text/|application/)?x?html", re.IGNORECASE)
"""The media types of pages, of which one is an entry's link if there are several alternates."""
ALTERNATE = re.compile(r"(?:http://www\.iana\.org/assignments/relation/)?alternate", re.IGNORECASE)
"""The relation of a link to the item's own page (RFC 4287, 4.2.7.2)."""
_REPLIES = re.compile(r"(?:http://www\.iana\.org/assignments/relation/)?replies", re.IGNORECASE)
"""The relation of a link to what others say of the item (RFC 4685, 4): a page, or a feed."""
_FEED_TYPE = re.compile(r"application/(?:(?:atom|rss|rdf)\+xml|xml|(?:feed\+)?json)|text/xml", re.IGNORECASE)

_SCHEME = re.compile(r"\A([A-Za-z][A-Za-z0-9+.-]*):")
_WEB = ("http", "https")
SCHEMES = frozenset(("http", "https", "ftp", "gemini", "gopher", "ipfs", "news", "mailto", "magnet", "ed2k"))
"""The schemes of links. Of the others, some run code where a reader shows them (javascript:, data:), some
lead into the reader's own machine (file:, blob:), and some start its programs (ms-msdt:, search-ms:)."""
_ROOTED_PATH = re.compile(r"/\S+")
_STATED_PATH = re.compile(r"\A(?!(?:[A-Za-z][A-Za-z0-9+.-]*:|[0-9.]+\Z))[^\s./?]*[./?]\S+")
_UNSEEN = re.compile(r"[\t\r\n]")


_ENDING = re.compile(r"\.(?:x?html?|php|aspx?|jsp)\Z", re.IGNORECASE)


def last_part(url: str) -> str | None:
    """The last part of an address's path, without its ending: its page's name wherever the site puts it. None
    where a query names the page, and of a site's first page.

    >>> last_part("https://example.org/2024/05/a-title.html"), last_part("//example.org/a-title/index.php")
    ('a-title', 'a-title')
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    names = [_ENDING.sub("", each) for each in parts.path.split("/") if each]
    if names and names[-1].lower() in ("index", "default"):
        names.pop()
    return unquote(names[-1]) if names and not parts.query else None


_AUTHORITY = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^\x00-\x20\x7f\\/?#\[\]<>\"^`{|}]*@)?"
    r"(?:\[[0-9A-Fa-f:.]+\]|(?P<host>[^\s\x00-\x20\x7f\\/?#@:\[\]<>\"^`{|}%]+))(?::(?P<port>[0-9]{0,5}))?(?=[/?#]|\Z)"
)
_HOSTLESS = re.compile(r"\A(?:(?:https?|ftp):(?!//)|[/\\]{2}(?<!//)|/{3})", re.IGNORECASE)
"""Browsers find a host in these, or a path beside the page that shows them: `/\\host`, `https:settings`."""
_EDGES = "".join(map(chr, range(0x21)))
"""The characters that a browser cuts around a reference."""


def browsers_agree(reference: str) -> bool:
    """Return True unless browsers (the URL standard of the WHATWG) read scheme or host of a reference
    otherwise than RFC 3986, or cannot read them: what a link names has to be what it leads to.

    >>> browsers_agree("https:settings"), browsers_agree("https://a.example/")
    (False, True)
    """
    text = reference.strip(_EDGES)
    if "\t" in text or "\n" in text or "\r" in text:
        text = _UNSEEN.sub("", text)
    if _HOSTLESS.match(text):
        return False
    scheme = _SCHEME.match(text)
    if scheme is None:
        return not text.startswith("//") or _has_plain_authority(f"https:{text}")
    return not text.startswith("//", scheme.end()) or _has_plain_authority(text)


def _has_plain_authority(url: str) -> bool:
    found = _AUTHORITY.match(url)
    if found is None or int(found["port"] or 0) > 65_535:
        return False
    host = found["host"] or ""
    # Browsers take other dots and letters of another width for those of ASCII.
    return host.isascii() or not ("。" in host or normalize("NFKC", host) != normalize("NFC", host))


_PLAIN_BASE = re.compile(r"https?://[A-Za-z0-9][A-Za-z0-9.-]*/[!-\"$->A-~]*")
"""It is its own base, without `#`, `?` and `@`; to read a URL into parts takes ten times as long as this."""


_PLAIN = re.compile(r"https?://[A-Za-z0-9][A-Za-z0-9.-]*/[!-~]*")
"""Nothing is changed in such a URL."""


@lru_cache(maxsize=512)
def web_base(url: str | None) -> str | None:
    """`url` without userinfo, as a base for other references; None if it is not an absolute http(s) URL."""
    if not url:
        return None
    if _PLAIN_BASE.fullmatch(url):
        return url
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return None
    if parts.scheme not in _WEB or not parts.hostname or not browsers_agree(url.strip()):
        return None
    # A password in the base would be repeated in every reference, and stored with it.
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def absolute(reference: str | None, bases: Iterable[str | None]) -> str | None:
    """`reference` as an absolute URL, resolved against the first usable of `bases`.

    None for an empty one, for one with a scheme that is not of `SCHEMES`, for one of more than 8,000
    characters, for one that browsers read otherwise (`browsers_agree`), and for one that cannot be resolved:
    `urljoin` raises on some (`http://[`), and one bad URL must not cost an item.
    """
    if reference and len(reference) <= MAX_LINK_CHARACTERS and _PLAIN.fullmatch(reference):
        return reference
    text = _UNSEEN.sub("", (reference or "").strip().strip(_EDGES)).replace(" ", "%20")
    if not text or len(text) > MAX_LINK_CHARACTERS or not browsers_agree(text):
        return None
    scheme = _SCHEME.match(text)
    try:
        if scheme is None:
            base = next((usable for each in bases if (usable := web_base(each))), None)
            if base is None:
                base = "https:" if text.startswith("//") else None
            if base is None:
                return None
            text = urljoin(base, text)
        parts = urlsplit(text)
        if parts.scheme not in SCHEMES or (parts.scheme in _WEB and not parts.hostname):
            return None
    except ValueError:
        return None
    return text if len(text) <= MAX_LINK_CHARACTERS else None


def is_discussion(relation: str | None, media_type: str | None) -> bool:
    """True for the attributes of a link to the page on which an item is discussed; not for one to a feed."""
    kind = (media_type or "").partition(";")[0].strip()
    return _REPLIES.fullmatch((relation or "").strip()) is not None and not _FEED_TYPE.fullmatch(kind)


def comments_url(
    references: Iterable[str | None], bases: Iterable[str | None], *, page: str | None
) -> str | None:
    """The first of these references to a web page, resolved; `#comments` is on the item's own page."""
    bases = tuple(bases)
    for each in references:
        found = absolute(each, (page, *bases) if (each or "").strip().startswith("#") else bases)
        if found is not None and is_web(found):
            return found
    return None


def is_path(guid: str, *, is_stated: bool) -> bool:
    """True if a permalink without scheme and host is a path (RSS 2.0: `isPermaLink` is true unless stated).

    By default most guids are no address at all; where the publisher states it, they are also no number.
    """
    return (_STATED_PATH if is_stated else _ROOTED_PATH).fullmatch(guid) is not None


def may_be_web(reference: str) -> bool:
    """True if a reference is relative, or begins with http(s): it may lead to a web page."""
    scheme = _SCHEME.match(reference)
    return scheme is None or scheme[1].lower() in _WEB


def is_web(url: str) -> bool:
    """True if `url` is an absolute http(s) URL with a host."""
    return web_base(url) is not None
