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

from rss_pipeline.collector.images.archived import render
from rss_pipeline.collector.images.find import has_overloaded_tag, in_lower_case
from rss_pipeline.collector.parse.links import SCHEMES, browsers_agree, web_base
from rss_pipeline.collector.sanitize import mathml, svg
from rss_pipeline.collector.sanitize.markup import ATTRIBUTES, DROPPED_WITH_CONTENT, TAGS, names
from rss_pipeline.collector.sanitize.readable import readable
from rss_pipeline.collector.sanitize.replace import (
    EMBEDDED,
    HERE,
    ID_PREFIX,
    REPLACED,
    has_anchors,
    has_posts,
    replaced,
)
from rss_pipeline.collector.sanitize.text import cut, legal, one_line

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
_OWN_ID = re.compile(f"{ID_PREFIX}[0-9a-f]{{8}}-[A-Za-z0-9_.-]+")
_ORIGIN = re.compile(r"https?://[A-Za-z0-9.-]+(?::[0-9]+)?(?=[/?#]|\Z)")
_INLINE_IMAGE = re.compile(
    r"data:image/(?:avif|bmp|gif|jpe?g|png|webp|x-icon);base64,[A-Za-z0-9+/ \t\n\r]++=*+[ \t\n\r]*+",
    re.IGNORECASE,
)
"""An image that is written in its own address: nothing is requested for it, and nothing in it runs. A drawing
(SVG) is none of them."""
_DATA = re.compile(r"[\0-\x20]*+" + r"[\t\n\r]*+".join("data:"), re.IGNORECASE)
"""As a browser reads a scheme: without the blanks in it."""
_MOST_CLEANERS = 64
"""Each has some 20 KB."""
_IMAGES = frozenset(("img", "picture", "noscript", "amp-img", "amp-anim"))
"""Elements without which, and without a `srcset`, there is no image, as `render` has it."""

_UNUSUAL_REFERENCE = re.compile(
    r'(?:href|src|poster)="(?!https?://[A-Za-z0-9.-]{1,250}(?::[0-9]{1,4})?[/?#"]|#|data:image/|mailto:)'
)
_ANY_TAG_WRITTEN = re.compile("<[a-z][^<>]*+>")
_WRITTEN_REFERENCE = re.compile(r' (?:href|src|poster)="([^"]*+)"')
_IMAGE = re.compile(r'(<img(?: (?!src=)[a-z-]++="[^"<>]*+")*+ src=")([^"<>]*+)')
_POSTER = re.compile(r'(<video(?: (?!poster=)[a-z-]++="[^"<>]*+")*+ poster=")([^"<>]*+)')
_LINK = re.compile(r"<a((?: [^<>]*+)?)>")
_NAME = re.compile("<([a-z][^\t\n\f\r />]*)")
_TAG = re.compile("<(/?)([a-z][^\t\n\f\r />]*)()")
_DRAWN_TAG = re.compile("<(/?)([a-z][^\t\n\f\r />]*+)([^<>]*+)")
"""With the end of the tag, which says in SVG and MathML if it is an end tag too. Of text in lower case."""
_UNCOUNTED = names(
    # These are closed by the next of their kind, or have no end tag. None has a `k`: Python takes the Kelvin
    # sign for one in lower case, HTML does not.
    """area base br col embed hr img input meta param source wbr
    p li dd dt td th tr tbody thead tfoot option"""
)
_FORMATTING = names("b big code em font i nobr s small strike strong tt u")
_COMMENT = re.compile(r"<!--(?:-?>|.*?(?:--!?>|\Z))", re.DOTALL)
"""As a browser reads it: `<!-->` and `<!--->` are whole; `--!>` and the end of the text end one too."""
_BLOCK = re.compile(
    r"<(?=/?(?:p|div|br|hr|li|ul|ol|dl|dt|dd|h[1-6]|tr|td|th|table|blockquote|pre|section|article|figure"
    r"|figcaption|header|footer)\b)",
    re.IGNORECASE,
)
_DRAWING = re.compile(r"<svg\b.*?(?:</svg\s*+>|\Z)", re.DOTALL | re.IGNORECASE)
_WORDS_OF_DRAWING = re.compile(r"<(?:title|text|tspan)\b[^<>]*+>([^<>]++)", re.IGNORECASE)
_MOST_WORDS_OF_DRAWING = 2_000
_TO_TEXT = nh3.Cleaner(tags=set(), attributes={}, clean_content_tags=set(DROPPED_WITH_CONTENT))


def safe_html(html: str, *, bases: Sequence[str | None]) -> str | None:
    """`html` with nothing in it that runs, loads a page or leads nowhere; None if it cannot be read safely.

    Each image names its file by an absolute `src` only, since scripts that load images late do not run in a
    feed reader. References are resolved against the first usable of `bases`. In the result a `<` or `>` is
    always the bracket of a tag, and each attribute is written as `name="value"`.
    """
    if len(html) > MOST_HTML_CHARACTERS:
        return None
    # Its patterns take 0.06 s to compile, and a reader or a command seldom sanitizes.
    from rss_pipeline.collector.sanitize.simple import simple_html

    if (simple := simple_html(html)) is not None:
        return simple
    return sanitized(html, bases=bases)


def sanitized(html: str, *, bases: Sequence[str | None]) -> str | None:
    """`safe_html` of any HTML of bearable length."""
    lowered = in_lower_case(html)
    tags = Counter(_NAME.findall(lowered))
    if not _is_safe(html, lowered, tags):
        if "svg" not in tags:
            return None
        # One drawing of many elements may be all that takes long.
        html = _DRAWING.sub(_words_of_drawing, html)
        lowered = html.lower()
        tags = Counter(_NAME.findall(lowered))
        if not _is_safe(html, lowered, tags):
            return None
    if not _IMAGES.isdisjoint(tags) or "srcset" in lowered:
        html = render(html, archived=_EVERY_IMAGE, bases=bases)
        lowered = in_lower_case(html)
    html = readable(_encodable(html), tags)
    is_replaced = not REPLACED.isdisjoint(tags) or has_posts(lowered) or has_anchors(html, lowered)
    if is_replaced:
        html = replaced(html, bases)
        lowered = html.lower()
    cleaned = _cleaned(html, lowered, bases, has_all=is_replaced)
    if is_replaced:
        cleaned = cleaned.replace(f'href="{HERE}#{ID_PREFIX}', f'href="#{ID_PREFIX}')
    cleaned = legal(cleaned)
    if _UNUSUAL_REFERENCE.search(cleaned):
        cleaned = _ANY_TAG_WRITTEN.sub(_with_agreed_references, cleaned)
    return cleaned.strip()


def _with_agreed_references(tag: re.Match[str]) -> str:
    return _WRITTEN_REFERENCE.sub(
        lambda found: found[0] if browsers_agree(unescape(found[1])) else "", tag[0]
    )


def with_images(html: str, image: Callable[[str], str | None]) -> str:
    """`safe_html`'s result with other images and posters: `image` gives the URL to put for one, or None.

    A fragment stays behind the URL: `image` is asked without it.
    """
    if "<img" not in html and "<video" not in html:
        return html

    def placed(found: re.Match[str]) -> str:
        url, mark, fragment = unescape(found[2]).partition("#")
        new = image(url)
        return found[0] if new is None else found[1] + escape(new + mark + fragment)

    return _POSTER.sub(placed, _IMAGE.sub(placed, html))


def with_marks(html: str, mark: str) -> str:
    """`safe_html`'s result with this text before and behind the URL of each image and poster, as it is
    written."""

    # A template of `re` takes three times as long as this.
    def marked(found: re.Match[str]) -> str:
        return f"{found[1]}{mark}{found[2]}{mark}"

    html = _IMAGE.sub(marked, html)
    return _POSTER.sub(marked, html) if "<video" in html else html


def with_link_rel(html: str, rel: str) -> str:
    """`safe_html`'s result with this `rel` in every link."""
    return _LINK.sub(lambda found: f'{found[0][:-1]} rel="{rel}">', html)


def text_of(html: str | None, *, limit: int) -> str:
    """The text of HTML on one line, cut after `limit` characters; empty if there is none."""
    start = in_words((html or "")[:READ_FOR_TEXT])
    if not start:
        return ""
    text = _TO_TEXT.clean(_BLOCK.sub(" <", start))
    return one_line(unescape(text), limit=limit)


def in_words(html: str, bases: Sequence[str | None] = ()) -> str:
    """`html` with words for what is no text: the link of a frame, a formula, the texts of a drawing.

    Not sanitized: a text is to be made of it. Empty if it cannot be read safely.
    """
    lowered = html.lower()
    tags = Counter(_NAME.findall(lowered))
    html = _encodable(html)
    if len(html) > MOST_HTML_CHARACTERS or not _is_safe(html, lowered, tags):
        return ""
    html = readable(html, tags)
    is_replaced = not REPLACED.isdisjoint(tags) or has_posts(lowered)
    return replaced(html, bases, in_words=True) if is_replaced else html


def _words_of_drawing(drawing: re.Match[str]) -> str:
    words = " ".join(" ".join(_WORDS_OF_DRAWING.findall(drawing[0])).split())
    return escape(cut(unescape(words), limit=_MOST_WORDS_OF_DRAWING), quote=False)


def _cleaned(html: str, lowered: str, bases: Sequence[str | None], *, has_all: bool) -> str:
    """Sanitized; to make a cleaner takes as long as to clean a short item, so one that is ready is used where
    it will do. `has_all` if it may hold formulas, drawings and ids."""
    starts = _starts(lowered, has_posters=has_all)
    has_data = "data:image/" in lowered
    if starts == "absolute":
        return _cleaner("deny", has_all, has_data).clean(html)
    base = next((usable for each in bases if (usable := web_base(each))), None)
    if base is None:
        return _cleaner("deny", has_all, has_data).clean(html)
    origin = _ORIGIN.match(base) if starts == "rooted" else None
    try:
        if origin is not None:
            return _cleaner(origin[0], has_all, has_data).clean(html)
        return _new_cleaner(base, has_all, has_data).clean(html)
    except ValueError:
        # A base that its parser refuses: the item is published without relative links.
        return _cleaner("deny", has_all, has_data).clean(html)


def _starts(lowered: str, *, has_posters: bool) -> Literal["absolute", "rooted", "any"]:
    """The certain beginnings of the references of this HTML: all with a scheme of the web; or some with
    `/`, so that of a base only scheme and host count (RFC 3986 5.2.2)."""
    found: Literal["absolute", "rooted"] = "absolute"
    for name, starts in _STARTS.items():
        if name == "poster" and not has_posters:
            continue
        left = lowered.count(name)
        for start, is_absolute in starts if left else ():
            count = lowered.count(start)
            left -= count
            if count and not is_absolute:
                found = "rooted"
            if not left:
                break
        if left and left != lowered.count(_LONGER_NAMES[name]):
            return "any"
    return found


@lru_cache(maxsize=_MOST_CLEANERS)
def _cleaner(base: str, has_all: bool, has_data: bool) -> nh3.Cleaner:
    return _new_cleaner(base, has_all, has_data)


def _new_cleaner(base: str, has_all: bool, has_data: bool) -> nh3.Cleaner:
    """One that resolves relative references against `base`, or drops them if that is `deny`; with `has_all`,
    one that leaves formulas, drawings and ids; with `has_data`, images in their own address."""
    further = {**svg.ELEMENTS, **mathml.ELEMENTS} if has_all else {}
    generic = ATTRIBUTES["*"] | ({"id"} if has_all else set())
    return nh3.Cleaner(
        tags=set(TAGS | further.keys()),
        attributes={
            **ATTRIBUTES,
            **{name: set(attributes) for name, attributes in further.items()},
            "*": generic,
        },
        attribute_filter=_without_data if has_data else _filtered if has_all else None,
        allowed_classes={"a": {EMBEDDED}} if has_all else None,
        clean_content_tags=set(DROPPED_WITH_CONTENT - further.keys()),
        url_schemes={*SCHEMES, "data"} if has_data else set(SCHEMES),
        url_relative="deny" if base == "deny" else ("rewrite_with_base", base),
        link_rel=None,
    )


def _without_data(tag: str, attribute: str, value: str) -> str | None:
    """As `_filtered`, and None for a `data:` that is anything but an image in an `<img>`."""
    if attribute in _REFERENCES and _DATA.match(value):
        return value if (tag, attribute) == ("img", "src") and _INLINE_IMAGE.fullmatch(value) else None
    return _filtered(tag, attribute, value)


def _filtered(tag: str, attribute: str, value: str) -> str | None:
    """The value of an attribute that its table allows, or None: of ids, and in formulas and drawings."""
    if attribute == "id":
        return value if _OWN_ID.fullmatch(value) else None
    if tag in svg.ELEMENTS:
        if attribute == "href":
            return value if value.startswith(f"{HERE}#") and _OWN_ID.fullmatch(value, len(HERE) + 1) else None
        return svg.value(attribute, value)
    return mathml.value(attribute, value) if tag in mathml.ELEMENTS else value


class _EveryImage(Mapping[str, str]):
    """Each image URL for itself: `render` writes it into `src`."""

    def __getitem__(self, url: str) -> str:
        return url

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        # Not empty: each URL is a key.
        return 1


_EVERY_IMAGE = _EveryImage()


def _is_safe(html: str, lowered: str, tags: Mapping[str, int]) -> bool:
    """False for HTML that takes the parsers long: a tag of many attributes, hundreds of open tags.

    `lowered` is it in lower case, `tags` has the number of its start tags by name.
    """
    if len(html) > _FEW_ATTRIBUTES_CHARACTERS and has_overloaded_tag(html):
        return False
    starts = sum([count for name, count in tags.items() if name not in _UNCOUNTED])
    return starts <= _MOST_OPEN_TAGS or not _is_deep(lowered, is_drawn="svg" in tags or "math" in tags)


def _is_deep(lowered: str, *, is_drawn: bool) -> bool:
    """True if more than 250 elements seem to be open at once, or more could be than is bearable.

    An end tag counts only for an open element of its name. Some that count close nothing, e.g. one in an
    attribute or in a cell of a table; so start tags have a limit of their own.
    """
    opened: Counter[str] = Counter()
    depth = starts = formatting = 0
    tag = _DRAWN_TAG if is_drawn else _TAG
    for end, name, rest in tag.findall(_COMMENT.sub("", lowered)):
        if name in _UNCOUNTED:
            continue
        if (opened["svg"] or opened["math"]) and rest.endswith("/") and not end and name not in TAGS:
            # Closed there, unless the drawing has ended before: so it may be one that is open.
            starts += 1
            if starts > _MOST_TAGS:
                return True
        elif not end:
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
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "ignore").decode()
    return text


# The words of an item, for an index of all items.

_REST = r"""[^>"']*+(?:"[^"]*+(?:"|\Z)[^>"']*+|'[^']*+(?:'|\Z)[^>"']*+)*+(?:>|\Z)"""
_HIDDEN = re.compile(
    rf"<!--.*?(?:-->|\Z)|<(script|style|template|noscript|svg|math|iframe)\b{_REST}.*?(?:</\1\s*+>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_WITHIN_WORDS = re.compile(
    rf"</?(?:a|abbr|b|big|code|em|font|i|ins|mark|s|small|span|strong|sub|sup|u|wbr)(?![\w-]){_REST}",
    re.IGNORECASE,
)
"""Tags at which a word goes on."""
_ANY_TAG = re.compile(rf"</?[a-zA-Z]{_REST}|<[!?][^>]*+(?:>|\Z)")
_HIDES = re.compile(
    "<(?:!--|script|style|template|noscript|svg|math|iframe|object|embed|area|lite-|amp-|m(?:ml)?:)",
    re.IGNORECASE,
)


def plain_text(html: str) -> str:
    """The text of HTML in linear time: without tags, scripts and comments, with its entities as characters.

    It is read with expressions and not as a tree, which takes five times as long; what a browser would read
    otherwise is a word more or less. The words of frames, formulas and drawings are those of `in_words`.
    """
    if "<" in html:
        if _HIDES.search(html) is not None or has_posts(html):
            html = _HIDDEN.sub(" ", in_words(html) or html)
        html = _ANY_TAG.sub(" ", _WITHIN_WORDS.sub("", html))
    return unescape(html) if "&" in html else html
