"""Copies of one article: the same link, the same text, the same article under a new title and address."""

import html
import re
from collections import Counter
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Literal
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from rss_pipeline.features.stories.model import Entry
from rss_pipeline.features.stories.vocabulary import FUNCTION_WORDS, MONTHS, WEEKDAYS
from rss_pipeline.features.stories.words import TOKEN, bare, hashed, stem, without_spaces

CopyKind = Literal["link", "text", "retitled"]

LEAST_TEXT = 60
"""Letters and digits below which two equal texts with different titles say nothing."""
LEAST_TITLE = 12
"""Letters of a title under which a text may go on in another item."""
LEAST_WORDS = 5
"""Words that say something, in a title that may be a copy without a text: with fewer it may be a column's."""
_OF_A_WORD = 3
"""Characters that say as much as a word in scripts without spaces."""
LEAST_ALONE = 400
"""Letters and digits of a text that makes a copy whatever the titles are."""
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
    r"(?:utm|mtm|pk|hsa|at|ns|sc|wt|vero|oly|mkt|gad|amp)_.*|_ga|_gl|gclsrc|[gw]braid|srsltid|usqp|ttclid|twclid|"
    r"fbclid|gclid|dclid|msclkid|yclid|igshid|mc_[ce]id|_hsenc|_hsmi|"
    r"ref|ref_src|referrer|source|src|from|cmpid?|cid|ocid|ito|smid|partner|feature|sh|share|spm|scm|rss|feed|"
    r"output|outputtype|amp|xtor|ftag|ncid|wprov|guccounter|__twitter_impression|taid|cmp|soc_.*|sr_share",
    re.IGNORECASE,
)
_AMP_PATH = re.compile(r"^/amp(?=/)|/amp/?$|\.amp(?=\.html?$|$)|(?<=[/.-])amp(?=\.html?$)", re.IGNORECASE)
_INDEX = re.compile(r"/(?:index|default)\.(?:html?|php|aspx?)$", re.IGNORECASE)
_COMPARED_WORDS = 30
"""Words of a text of which another one has half, if both are of one link's article."""
_NO_LETTERS = re.compile(r"[\W_]+")
_TAG = re.compile(r"<[^<>]{1,300}>")
_HEX = re.compile(r"&(?:#|[a-z])", re.IGNORECASE)


@lru_cache(64)
def link_key(link: str | None) -> str | None:
    """The address of an article without scheme, `www.`, tracking parameters, AMP and fragment.

    None for an address of a whole site: all items of some feeds have that.
    """
    if not link:
        return None
    try:
        parts = urlsplit(link.strip())
        host = (parts.hostname or "").rstrip(".").removeprefix("www.")
    except ValueError:
        return None
    path = re.sub("//+", "/", unquote(parts.path))
    if host.endswith(".cdn.ampproject.org") or host.startswith("google.") or host == "cdn.ampproject.org":
        found = (
            re.search(r"/(?:amp/)?[sc]/(?:s/)?([^/.]{1,99}\.[^/]{1,199})(?=/)", path)
            if "/amp" in path or "amp" in host
            else None
        )
        if found is not None:
            host, path = found[1].removeprefix("www."), path[found.end() :]
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


@lru_cache(64)
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
    return _without(letters(entry.title), letters(entry.text))


def _without(title: str, text: str) -> str:
    while title and text.startswith(title):
        text = text[len(title) :]
    return text


def is_bare(entry: Entry) -> bool:
    """True for an item that has a title alone."""
    return len(entry.text) <= len(entry.title) + _CUT and bool(entry.title) and not body(entry)


def keys(entry: Entry) -> list[int]:
    """Hashes of which two copies have one in common."""
    found = []
    link = link_key(entry.link)
    if link is not None:
        found.append(hashed("link " + link))
    whole, title = letters(entry.text), letters(entry.title)
    text = _without(title, whole)
    if len(text) >= LEAST_TEXT:
        found.append(hashed("text " + text[:LEAST_TEXT]))
        if whole != text:
            # A copy under another title has this one in its text still.
            found.append(hashed("text " + whole[:LEAST_TEXT]))
        # Of a text with another beginning, such as the name of an agency.
        middle = text[2 * LEAST_TEXT : 3 * LEAST_TEXT]
        if entry.published is not None and len(middle) == LEAST_TEXT:
            found.append(hashed(f"time {entry.feed} {entry.published}"))
    elif not text and is_headline(entry.title):
        found.append(hashed("title " + title))
    return found


def kind_of_copy(one: Entry, other: Entry) -> CopyKind | None:
    """Return how one item is a copy of the other; None if it is none."""
    link = link_key(one.link)
    is_one_link = link is not None and link == link_key(other.link)
    is_one_feed = one.feed == other.feed
    titles = letters(one.title), letters(other.title)
    wholes = letters(one.text), letters(other.text)
    texts = _without(titles[0], wholes[0]), _without(titles[1], wholes[1])
    is_one_title = titles[0] == titles[1]
    if is_one_link and (
        (is_one_title and not is_one_feed)
        or _nearly(*texts, _NEARLY_AT_ONE_TIME)
        or ((is_one_title or not is_one_feed) and _is_like(one, other))
    ):
        return "link"
    if is_one_title and not any(texts):
        return "text" if not is_one_feed and is_headline(one.title) else None
    if is_one_title and _says(titles[0]):
        shorter, longer = sorted(texts, key=len)
        if shorter == longer:
            return "text"
        if len(shorter) >= LEAST_TEXT and longer.startswith(shorter[:-_CUT]):
            return "text"
    is_one_time = one.published is not None and one.published == other.published
    for some in dict.fromkeys((texts, wholes)):
        kind = _of_texts(*some, one, other, is_one_time=is_one_time, is_one_feed=is_one_feed)
        if kind is not None:
            return kind
    return None


def _of_texts(
    text: str, other_text: str, one: Entry, other: Entry, *, is_one_time: bool, is_one_feed: bool
) -> CopyKind | None:
    shorter, longer = sorted((text, other_text), key=len)
    if len(shorter) >= LEAST_ALONE and shorter == longer:
        return "text"
    if not _may_be_one(_digits(one.title), _digits(other.title)):
        return None
    # Texts of one feed are alike by what it repeats in them.
    is_free = is_one_time or not is_one_feed
    if is_free and len(shorter) >= LEAST_TEXT and shorter == longer:
        return "text"
    if is_free and len(shorter) >= LEAST_PREFIX and longer.startswith(shorter[:-_CUT]):
        return "text"
    if not is_free or len(shorter) < LEAST_PREFIX or _digits(one.text) != _digits(other.text):
        return None
    return "retitled" if _nearly(shorter, longer, _NEARLY_AT_ONE_TIME if is_one_time else _NEARLY) else None


def _nearly(one: str, other: str, ratio: float) -> bool:
    """True if so much of the beginnings of both is equal."""
    length = min(len(one), len(other), _COMPARED)
    if length < LEAST_PREFIX:
        return one == other
    one, other = one[:length], other[:length]
    # What is matched is no longer, and each of these takes a tenth of the time of the next one.
    if (Counter(one) & Counter(other)).total() / length < ratio or common_length(one, other) / length < ratio:
        return False
    return SequenceMatcher(None, one, other, autojunk=False).ratio() >= ratio


def common_length(one: str, other: str) -> int:
    """The length of the longest common subsequence. A place of the first text is a bit: one that is left was
    not used so far."""
    places: dict[str, int] = {}
    for at, character in enumerate(one):
        places[character] = places.get(character, 0) | 1 << at
    left = all_places = (1 << len(one)) - 1
    for character in other:
        found = left & places.get(character, 0)
        left = (left + found | left - found) & all_places
    return len(one) - left.bit_count()


def _is_like(one: Entry, other: Entry) -> bool:
    """True if each of two items with one link has half of the other's title, and where a title says little,
    one has half of the other's text: a section has one link for all that it shows, and anybody may give the
    link of another one's article."""
    titles, texts, wholes = (
        [content_words(text) for text in both]
        for both in (
            (one.title, other.title),
            (one.text, other.text),
            (f"{one.title} {one.text}", f"{other.title} {other.text}"),
        )
    )
    if not (has_half(wholes[0], titles[1]) and has_half(wholes[1], titles[0])):
        return False
    is_said = min(sum(title.values()) for title in titles) >= LEAST_WORDS
    return is_said or has_half(wholes[0], texts[1]) or has_half(wholes[1], texts[0])


def has_half(whole: dict[str, int], words: dict[str, int]) -> bool:
    """True if half of the first of these words are among those of the whole."""
    some = list(words)[:_COMPARED_WORDS]
    return 2 * len(whole.keys() & some) >= len(some)


def content_words(text: str) -> dict[str, int]:
    """Stems of the words that say something, or pairs of characters, each with the number of words that it is
    worth; in their order."""
    found: dict[str, int] = {}
    for token in TOKEN.findall(text):
        word = bare(token) if token[-1].isalpha() else ""
        if without_spaces(word):
            for at in range(max(1, len(word) - 1)):
                found.setdefault(word[at : at + 2], at % _OF_A_WORD == _OF_A_WORD - 1)
        elif len(word) > 1 and word not in FUNCTION_WORDS:
            found.setdefault(stem(word), word not in MONTHS and word not in WEEKDAYS)
    return found


def is_headline(title: str) -> bool:
    """True for a title of so many words that two items without a text have it of one event only."""
    return sum(content_words(title).values()) >= LEAST_WORDS


def _says(title: str) -> bool:
    """True for a title of some words, which two articles have by chance less often."""
    return len(title) >= (LEAST_TITLE if title.isascii() else LEAST_TITLE // 2)


def _may_be_one(some: list[str], others: list[str]) -> bool:
    """False for numbers of which each has one that the other has not: the next of a series."""
    return set(some) <= set(others) or set(others) <= set(some)


def _digits(text: str) -> list[str]:
    return re.findall(r"\d+", html.unescape(text[:_COMPARED]))
