"""The HTML of an item as it is shown: without what runs, with absolute links and images; and its text.

It is the same for pages, apps and topics, and depends on the item and its feed's addresses only: archived
images are put in when it is served (`with_images`).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from html import escape, unescape
from typing import Literal

import nh3

from rss_pipeline.collector.images.overloaded import has_overloaded_tag
from rss_pipeline.collector.images.render import render
from rss_pipeline.collector.parse.links import web_base
from rss_pipeline.collector.sanitize.text import legal, one_line

MOST_HTML_CHARACTERS = 1_000_000
"""Longer HTML is not read: only its scripts and inline images could keep it above what a document holds."""
_MOST_OPEN_TAGS = 250
"""html5ever takes time by the square of the depth: 2,000 unclosed `<font>`s are 2 s (nh3 0.3.8)."""
_MOST_TAGS = 10_000
_MOST_FORMATTING_TAGS = 1_000
"""Open ones are opened again in each paragraph."""
READ_FOR_TEXT = 20_000
"""Characters of HTML, from its beginning, that a text is made of."""
_FEW_ATTRIBUTES_CHARACTERS = 4_000


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TAGS = _names(
    """a abbr acronym address article aside audio b bdi bdo big blockquote br caption center cite code col
    colgroup
    dd del details dfn div dl dt em figcaption figure footer h1 h2 h3 h4 h5 h6 header hgroup hr i img ins kbd
    li main mark nav ol p picture pre q rp rt rtc ruby s samp section small source span strike strong sub
    summary sup table tbody td tfoot th thead time tr track tt u ul var video wbr"""
)
_ATTRIBUTES = {
    "*": {"dir", "id", "lang", "title"},
    "a": {"href", "hreflang", "name"},
    "audio": {"src", "controls"},
    "col": {"span"},
    "colgroup": {"span"},
    "data": {"value"},
    "del": {"datetime"},
    "details": {"open"},
    "img": {"src", "alt", "width", "height"},
    "ins": {"datetime"},
    "li": {"value"},
    "ol": {"start", "type", "reversed"},
    "source": {"src", "type"},
    "td": {"colspan", "rowspan", "headers", "align"},
    "th": {"colspan", "rowspan", "headers", "align", "scope"},
    "time": {"datetime"},
    "track": {"src", "kind", "srclang", "label"},
    "video": {"src", "poster", "controls", "width", "height"},
}
_SCHEMES = {"http", "https", "mailto"}
_DROPPED_WITH_CONTENT = {"script", "style", "noscript", "template", "title", "object", "svg", "math"}
_REFERENCES = ("href", "src", "poster")
"""The attributes above that hold a URL. `cite` is not among them: nh3 leaves it relative, and no reader shows
it."""
_STARTS = {
    name: [
        (f"{name}={quote}{start}", start != "/") for quote in "\"'" for start in ("https://", "/", "http://")
    ]
    for name in _REFERENCES
}
"""The usual beginnings of references, and if they make these absolute; the commonest first."""
_LONGER_NAMES = {"href": "hreflang", "src": "srcset", "poster": "posters"}
"""Attributes with longer names that contain these, and that do not begin a reference in the same way."""
_ORIGIN = re.compile(r"https?://[A-Za-z0-9.-]+(?::[0-9]+)?(?=[/?#]|\Z)")
_MOST_CLEANERS = 64
"""Each has some 20 KB."""
_IMAGE_SIGNS = ("<img", "<picture", "<noscript", "<amp-img", "srcset")
"""In lower case: without one of them there is no image, as `render` has it."""

_IMAGE = re.compile(r'(<img(?: (?!src=)[a-z-]++="[^"<>]*+")*+ src=")([^"<>]*+)')
_WITH_ATTRIBUTES = re.compile(r"<[a-zA-Z][^ <>]*+ [^<>]*+>")
_ID = re.compile(r' (?:id|name)="[^"]*+"')
_LINK = re.compile(r"<a((?: [^<>]*+)?)>")
_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*)")
_UNCOUNTED = _names(
    # These are closed by the next of their kind, or have no end tag.
    """area base br col embed hr img input link meta param source track wbr
    p li dd dt td th tr tbody thead tfoot option"""
)
_FORMATTING = _names("b big code em font i nobr s small strike strong tt u")
_COMMENT = re.compile(r"<!--(?:-?>|.*?(?:--!?>|\Z))", re.DOTALL)
"""As a browser reads it: `<!-->` and `<!--->` are whole; `--!>` and the end of the text end one too."""
_BLOCK = re.compile(
    r"</?(?:p|div|br|hr|li|ul|ol|dl|dt|dd|h[1-6]|tr|td|th|table|blockquote|pre|section|article|figure"
    r"|figcaption|header|footer)\b",
    re.IGNORECASE,
)
_TO_TEXT = nh3.Cleaner(tags=set(), attributes={}, clean_content_tags=_DROPPED_WITH_CONTENT)


def safe_html(html: str, *, bases: Sequence[str | None]) -> str | None:
    """`html` with nothing in it that runs, loads a page or leads nowhere; None if it cannot be read safely.

    Each image names its file by an absolute `src` only, since scripts that load images late do not run in a
    feed reader. References are resolved against the first usable of `bases`. In the result a `<` or `>` is
    always the bracket of a tag, and each attribute is written as `name="value"`. It has the publisher's ids
    (and names of `<a>`): who shows it needs `without_ids`, or gives them names of its own (page_html.py).
    """
    if len(html) > MOST_HTML_CHARACTERS or not _is_safe(html):
        return None
    lowered = html.lower()
    if any(sign in lowered for sign in _IMAGE_SIGNS):
        html = render(html, archived=_EveryImage(), bases=bases)
        lowered = html.lower()
    return legal(_cleaned(_encodable(html), lowered, bases)).strip()


def with_images(html: str, image: Callable[[str], str | None]) -> str:
    """`safe_html`'s result with other images: `image` gives the URL to put for an image's, or None.

    A fragment stays behind the URL: `image` is asked without it.
    """
    if "<img" not in html:
        return html

    def placed(found: re.Match[str]) -> str:
        url, mark, fragment = unescape(found[2]).partition("#")
        new = image(url)
        return found[0] if new is None else found[1] + escape(new + mark + fragment)

    return _IMAGE.sub(placed, html)


def without_ids(html: str) -> str:
    """`safe_html`'s result without the publisher's ids: on another page they would be parts of that page."""
    if ' id="' not in html and ' name="' not in html:
        return html
    return _WITH_ATTRIBUTES.sub(lambda found: _ID.sub("", found[0]), html)


def with_link_rel(html: str, rel: str) -> str:
    """`safe_html`'s result with this `rel` in every link."""
    return _LINK.sub(rf'<a\1 rel="{rel}">', html)


def text_of(html: str | None, *, limit: int) -> str:
    """The text of HTML on one line, cut after `limit` characters; empty if there is none."""
    start = _encodable((html or "")[:READ_FOR_TEXT])
    if not start or not _is_safe(start):
        return ""
    text = _TO_TEXT.clean(_BLOCK.sub(r" \g<0>", start))
    return one_line(unescape(text), limit=limit)


def _cleaned(html: str, lowered: str, bases: Sequence[str | None]) -> str:
    """Sanitized; to make a cleaner takes as long as to clean a short item, so one that is ready is used where
    it will do."""
    starts = _starts(lowered)
    if starts == "absolute":
        return _cleaner("deny").clean(html)
    base = next((usable for each in bases if (usable := web_base(each))), None)
    if base is None:
        return _cleaner("deny").clean(html)
    origin = _ORIGIN.match(base) if starts == "rooted" else None
    try:
        if origin is not None:
            return _cleaner(origin[0]).clean(html)
        return _new_cleaner(base).clean(html)
    except ValueError:
        # A base that its parser refuses: the item is published without relative links.
        return _cleaner("deny").clean(html)


def _starts(lowered: str) -> Literal["absolute", "rooted", "any"]:
    """The certain beginnings of the references of this HTML: all with a scheme of the web; or some with
    `/`, so that of a base only scheme and host count (RFC 3986 5.2.2)."""
    found: Literal["absolute", "rooted"] = "absolute"
    for name, starts in _STARTS.items():
        left = lowered.count(name)
        left -= lowered.count(_LONGER_NAMES[name]) if left else 0
        for start, is_absolute in starts if left else ():
            count = lowered.count(start)
            left -= count
            if count and not is_absolute:
                found = "rooted"
            if not left:
                break
        if left:
            return "any"
    return found


@lru_cache(maxsize=_MOST_CLEANERS)
def _cleaner(base: str) -> nh3.Cleaner:
    return _new_cleaner(base)


def _new_cleaner(base: str) -> nh3.Cleaner:
    """One that resolves relative references against `base`, or drops them if that is `deny`."""
    return nh3.Cleaner(
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        clean_content_tags=_DROPPED_WITH_CONTENT,
        url_schemes=_SCHEMES,
        url_relative="deny" if base == "deny" else ("rewrite_with_base", base),
        link_rel=None,
    )


class _EveryImage(Mapping[str, str]):
    """Each image URL for itself: `render` writes it into `src`."""

    def __getitem__(self, url: str) -> str:
        return url

    def __iter__(self) -> Iterator[str]:
        raise TypeError("every URL is a key")

    def __len__(self) -> int:
        return 1


def _is_safe(html: str) -> bool:
    """False for HTML that takes the parsers long: a tag of many attributes, hundreds of open tags."""
    many_attributes = len(html) > _FEW_ATTRIBUTES_CHARACTERS and has_overloaded_tag(html)
    return not many_attributes and (html.count("<") <= _MOST_OPEN_TAGS or not _is_deep(html))


def _is_deep(html: str) -> bool:
    """True if more than 250 elements seem to be open at once, or more could be than is bearable.

    An end tag counts only for an open element of its name. Some that count close nothing, e.g. one in an
    attribute or in a cell of a table; so start tags have a limit of their own.
    """
    opened: Counter[str] = Counter()
    depth = starts = formatting = 0
    for end, name in _TAG.findall(_COMMENT.sub("", html)):
        name = name.lower()
        if name in _UNCOUNTED:
            continue
        if not end:
            opened[name] += 1
            depth += 1
            starts += 1
            formatting += name in _FORMATTING
            if depth > _MOST_OPEN_TAGS or starts > _MOST_TAGS or formatting > _MOST_FORMATTING_TAGS:
                return True
        elif opened[name]:
            opened[name] -= 1
            depth -= 1
    return False


def _encodable(text: str) -> str:
    """Without lone surrogates, which nh3 does not take."""
    return text.encode("utf-8", "ignore").decode()
