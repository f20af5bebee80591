"""Copies of one article: the same link, the same text, the same article under a new title and address."""

import html
import re
from difflib import SequenceMatcher
from typing import Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

from rss_pipeline.features.stories.model import Entry
from rss_pipeline.features.stories.words import hashed

CopyKind = Literal["link", "text", "retitled"]

LEAST_TEXT = 60
"""Letters and digits below which two equal texts with different titles say nothing."""
LEAST_PREFIX = 120
"""Letters and digits of a text that another one continues."""
READ = 1_000
"""Characters of a text that are compared."""
_CUT = 24
"""Letters at the end of a truncated text that are its own: half a word, or a link to the rest."""
_NEARLY = 0.9
_NEARLY_AT_ONE_TIME = 0.8
_COMPARED = 400

_TRACKING = re.compile(
    r"(?:utm|mtm|pk|hsa|at|ns|sc|wt|vero|oly|mkt)_.*|fbclid|gclid|dclid|msclkid|yclid|igshid|mc_[ce]id|_hsenc|_hsmi|"
    r"ref|ref_src|referrer|source|src|from|cmpid?|cid|ocid|ito|smid|partner|feature|sh|share|spm|scm|rss|feed|"
    r"output|outputtype|amp|xtor|ftag|ncid|wprov|guccounter|__twitter_impression|taid|cmp|soc_.*|sr_share",
    re.IGNORECASE,
)
_AMP_PATH = re.compile(r"^/amp(?=/)|/amp/?$|\.amp(?=\.html?$|$)|(?<=[/.-])amp(?=\.html?$)", re.IGNORECASE)
_INDEX = re.compile(r"/(?:index|default)\.(?:html?|php|aspx?)$", re.IGNORECASE)
_NO_LETTERS = re.compile(r"[\W_]+")
_TAG = re.compile(r"<[^<>]{1,300}>")
_HEX = re.compile(r"&(?:#|[a-z])", re.IGNORECASE)


def link_key(link: str | None) -> str | None:
    """The address of an article without scheme, `www.`, tracking parameters, AMP and fragment.

    None for an address of a whole site: all items of some feeds have that.
    """
    if not link:
        return None
    try:
        parts = urlsplit(link.strip())
        host = (parts.hostname or "").removeprefix("www.")
    except ValueError:
        return None
    path = parts.path
    if host.endswith((".cdn.ampproject.org",)) or host in {"google.com", "cdn.ampproject.org"}:
        found = (
            re.search(r"/(?:amp/)?[sc]/(?:s/)?([^/]+\.[^/]+)(/.*)$", path)
            if "/amp" in path or "amp" in host
            else None
        )
        if found is not None:
            host, path = found[1].removeprefix("www."), found[2]
    host = re.sub(r"^(?:amp|m|mobile)\.", "", host)
    path = _INDEX.sub("", _AMP_PATH.sub("", path)).rstrip("/")
    query = [
        (name, value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
        if not _TRACKING.fullmatch(name)
    ]
    fragment = parts.fragment if parts.fragment.startswith(("!", "/")) else ""
    if not host or not (path or query or fragment):
        return None
    return f"{host}{path}?{urlencode(sorted(query))}#{fragment}"


def letters(text: str) -> str:
    """The text's letters and digits in one case: copies differ in entities, marks and spaces."""
    text = text[: 2 * READ]
    for _ in range(2):
        if _HEX.search(text):
            text = html.unescape(text)
    if "<" in text:
        text = _TAG.sub(" ", text)
    return _NO_LETTERS.sub("", text.casefold())[:READ]


def body(entry: Entry) -> str:
    """The `letters` of an item's text, without its title where it begins with that."""
    text, title = letters(entry.text), letters(entry.title)
    return text[len(title) :] if title and text.startswith(title) else text


def keys(entry: Entry) -> list[int]:
    """Hashes of which two copies have one in common."""
    found = []
    link = link_key(entry.link)
    if link is not None:
        found.append(hashed("link " + link))
    text = body(entry)
    if len(text) >= LEAST_TEXT:
        found.append(hashed("text " + text[:LEAST_TEXT]))
        # Of a text with another beginning, such as the name of an agency.
        middle = text[2 * LEAST_TEXT : 3 * LEAST_TEXT]
        if entry.published is not None and len(middle) == LEAST_TEXT:
            found.append(hashed(f"time {entry.feed} {entry.published}"))
    else:
        title = letters(entry.title)
        if len(title) >= 12 and not text:
            found.append(hashed("title " + title))
    return found


def kind_of_copy(one: Entry, other: Entry, *, is_boilerplate: bool = False) -> CopyKind | None:
    """Return how one item is a copy of the other; None if it is none.

    With `is_boilerplate` the feed repeats such texts below different titles, and only a link counts.
    """
    titles = letters(one.title), letters(other.title)
    link = link_key(one.link)
    is_one_link = link is not None and link == link_key(other.link)
    texts = body(one), body(other)
    if is_one_link and (
        one.feed != other.feed or titles[0] == titles[1] or _nearly(*texts, _NEARLY_AT_ONE_TIME)
    ):
        return "link"
    if is_boilerplate:
        return None
    if titles[0] != titles[1] and _digits(one.title) != _digits(other.title):
        return None
    shorter, longer = sorted(texts, key=len)
    if titles[0] == titles[1] and len(titles[0]) >= 12:
        if shorter == longer and (shorter or one.feed != other.feed):
            return "text"
        if len(shorter) >= LEAST_TEXT and longer.startswith(shorter[:-_CUT]):
            return "text"
    if len(shorter) >= LEAST_TEXT and shorter == longer:
        return "text"
    if len(shorter) >= LEAST_PREFIX and longer.startswith(shorter[:-_CUT]):
        return "text"
    if len(shorter) < LEAST_PREFIX:
        return None
    is_one_time = one.published is not None and one.published == other.published
    if _nearly(*texts, _NEARLY_AT_ONE_TIME if is_one_time else _NEARLY) and _digits(one.text) == _digits(
        other.text
    ):
        return "retitled"
    return None


def _nearly(one: str, other: str, ratio: float) -> bool:
    """True if so much of the beginnings of both is equal."""
    length = min(len(one), len(other), _COMPARED)
    if length < LEAST_PREFIX:
        return one == other
    matcher = SequenceMatcher(None, one[:length], other[:length], autojunk=False)
    return matcher.real_quick_ratio() >= ratio and matcher.quick_ratio() >= ratio and matcher.ratio() >= ratio


def _digits(text: str) -> list[str]:
    return re.findall(r"\d+", html.unescape(text[:_COMPARED]))
