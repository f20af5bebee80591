"""Elements that no feed reader shows as they are, replaced by what it can show, before HTML is sanitized.

Frames, plug-ins and posts of other sites leave a link, `<noscript>` the picture that nothing beside it shows,
a video that has no file its poster, a checkbox its sign, parts of a picture their links; formulas and
drawings are brought into the form of their tables. Fragments of links that lead to an element in the same
HTML lead there. In words, formulas and drawings leave their text.

It is read by html5ever, and what comes out is read and cleaned by nh3 again. So nothing here decides what is
safe.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from html import escape, unescape
from urllib.parse import unquote, urlsplit

import nh3

from rss_pipeline.collector.parse.image_references import LAZY_SRC, may_stand_in
from rss_pipeline.collector.parse.links import SCHEMES, absolute, is_web, web_base
from rss_pipeline.collector.sanitize import mathml, svg
from rss_pipeline.collector.sanitize.embeds import POST_SIGNS, POST_TAGS, player, post
from rss_pipeline.collector.sanitize.markup import (
    ATTRIBUTES,
    TAGS,
    Element,
    names,
    parsed,
    start_tag,
    with_attribute,
)
from rss_pipeline.collector.sanitize.readable import DRAWN, MATHJAX, PREFIXED_ROOTS

ID_PREFIX = "user-content-"
"""The start of each id in sanitized HTML: none is a name of a page's own, and none hides one of its scripts'
(DOM clobbering). A hash of the HTML follows, so that two items on one page have no id in common."""
HERE = "https://here.invalid/"
"""In links, the HTML itself: nh3 would resolve a bare `#fragment` against the item's page."""
EMBEDDED = "embedded"
"""The class of links that were frames, for the reader's pages."""

_FRAMES = frozenset(("iframe", "embed", "object", "amp-iframe"))
_VIDEO_IDS = {
    "amp-youtube": ("data-videoid", "https://www.youtube.com/watch?v="),
    "lite-youtube": ("videoid", "https://www.youtube.com/watch?v="),
    "amp-vimeo": ("data-videoid", "https://vimeo.com/"),
    "amp-dailymotion": ("data-videoid", "https://www.dailymotion.com/video/"),
}
_MEDIA = {"video": "video", "audio": "audio", "amp-video": "video", "amp-audio": "audio"}
_PICTURES = frozenset(("amp-img", "amp-anim"))
REPLACED = frozenset(
    ("noscript", "input", "area", *_PICTURES, *_FRAMES, *_VIDEO_IDS, *POST_TAGS, *_MEDIA)
) | (DRAWN | PREFIXED_ROOTS)
"""Names of elements, in lower case, without which HTML stays as it is but for `has_anchors`, `has_posts` and
`FOREIGN` of readable.py."""


_SOURCE_TYPES = re.compile(r"(image|audio|video)/", re.IGNORECASE)
_FILE_TYPES = {
    **dict.fromkeys(("png", "jpg", "jpeg", "gif", "webp", "svg", "avif"), "image"),
    **dict.fromkeys(("mp3", "m4a", "ogg", "oga", "opus", "flac"), "audio"),
    **dict.fromkeys(("mp4", "m4v", "webm", "ogv"), "video"),
}
_PARAMETERS = frozenset(("movie", "src", "url", "filename", "file", "data"))
_HIDDEN = re.compile(r"display:none|visibility:hidden")
_LENGTH = re.compile(r"[0-9]{1,5}")
_STYLED_LENGTH = re.compile(r"(?<![a-z-])(width|height):([0-9]{1,5})(?=px|;|\Z)")
_LINK_TARGET = re.compile("""(?<!&)#([^"'<> \t\r\n]{1,200})""")
_ID = re.compile("""[ \t\r\n](?:id|name|ID|NAME|Id|Name)=["']?([^"'<> \t\r\n]{1,200})""")
_UNFIT = re.compile("[^A-Za-z0-9_.-]+")
_SIZE = re.compile(
    r"[-_@](?:[0-9]{2,5}x[0-9]{2,5}|[0-9]{2,5}w?|[1-4]x|scaled|small|medium|large|thumb|lqip|blur)\Z"
)
_WORD = re.compile(r"\w+")
_SAYS_NOTHING = names(
    """a at audio content embed embedded external frame from iframe item media page player podcast post video
    viewer web widget"""
)
_MOST_TITLE = 200
_HOLDS_MEDIA = re.compile("<(?:img|amp-img|amp-anim|picture|iframe|embed|object|video|audio)", re.IGNORECASE)


_PARSER = nh3.Cleaner(
    tags=set(
        TAGS
        | (REPLACED - PREFIXED_ROOTS)
        | MATHJAX
        | {"param"}
        | svg.ELEMENTS.keys()
        | svg.KNOWN
        | mathml.ELEMENTS.keys()
        | mathml.KNOWN
    ),
    attributes={
        **{name: set(found) for name, found in (*svg.ELEMENTS.items(), *mathml.ELEMENTS.items())},
        **ATTRIBUTES,
        "*": set(
            names(
                """id name class style hidden title dir lang alt width height src href poster type data value
                controls aria-hidden aria-label videoid srcdoc encoding open close separators cite checked"""
            )
        ),
        "foreignObject": {"x", "y", "transform"},
    },
    generic_attribute_prefixes={"data-"},
    clean_content_tags={"script", "style", "template", "noembed", "noframes"},
    # What is `data:` is judged as it is sanitized.
    url_schemes={*SCHEMES, "data"},
    link_rel=None,
)
"""It reads and writes HTML so that `markup` can read it, and leaves what is needed to decide."""


def has_anchors(html: str, lowered: str) -> bool:
    """True if a fragment in it may be the name of one of its elements. `lowered` is it in lower case."""
    # Most fragments are numbers of characters.
    if (" id=" not in lowered and " name=" not in lowered) or html.count("#") == html.count("&#"):
        return False
    ids = set(_ID.findall(html))
    targets = set(_LINK_TARGET.findall(html)) if ids else set()
    return not ids.isdisjoint(targets) or any(
        unescape(each) in {unquote(unescape(target)) for target in targets}
        or each.removeprefix(ID_PREFIX) in targets
        for each in ids
    )


def has_posts(lowered: str) -> bool:
    """True if an element may stand for a post of another site that a script would show."""
    return "-" in lowered and any(sign in lowered for sign in POST_SIGNS)


def replaced(html: str, bases: Sequence[str | None], *, in_words: bool = False) -> str:
    """`html` with what can be shown in the place of each of these elements. It is not sanitized.

    References are resolved against the first usable of `bases`; they are not changed in what stays.
    """
    prefix = f"{ID_PREFIX}{blake2b(html.encode('utf-8', 'replace'), digest_size=4).hexdigest()}-"
    root = parsed(_PARSER.clean(html))
    work = _Work(tuple(bases), in_words)
    work.walk(root)
    work.unwrap_noscripts()
    if not in_words:
        work.lead_to_ids(prefix)
    return root.written()


@dataclass(slots=True, eq=False)
class _Picture:
    """An `<img>`, and how many texts are before it."""

    element: Element
    attributes: dict[str, str]
    texts: int
    is_taken: bool = False
    """It is the same picture as one in a `<noscript>`."""


@dataclass(slots=True)
class _Work:
    """One item's HTML while elements are replaced."""

    bases: tuple[str | None, ...]
    in_words: bool
    pictures: list[_Picture] = field(default_factory=list)
    noscripts: list[tuple[Element, str, int, int]] = field(default_factory=list)
    """Each with the HTML in it, and the number of texts and of pictures before it."""
    sources: set[str] = field(default_factory=set)
    """The addresses that are shown or linked to: pages of frames, files, pictures."""
    drawings: svg.Drawings = field(default_factory=svg.Drawings)
    ids: dict[str, Element] = field(default_factory=dict)
    links: list[tuple[Element, str]] = field(default_factory=list)
    """Links within the HTML and the id that they name."""
    searched: set[Element] = field(default_factory=set)
    texts: int = 0
    _known: dict[str, bool] = field(default_factory=dict)

    def walk(self, root: Element) -> None:
        """Replace what is below `root`; what is in a `<noscript>` is left for later."""
        left: list[Element | str] = list(reversed(root.children))
        while left:
            node = left.pop()
            if isinstance(node, str):
                self.texts += bool(node.replace("&nbsp;", "").strip())
                continue
            self._note_id(node)
            if node.name in DRAWN:
                self._draw(node)
                continue
            if (act := _ACTS.get(node.name)) is not None:
                act(self, node)
            left += reversed(node.children)

    def _draw(self, element: Element) -> None:
        if element.name == "svg":
            words = self.drawings.add(element)
            words = f" {words} " if words else ""
        else:
            words = mathml.formula(element, self.searched)
        if self.in_words:
            element.become(escape(words, quote=False))
        for each in element.elements():
            self._note_id(each)

    def _note_id(self, element: Element) -> None:
        if ' id="' not in element.start and not (element.name == "a" and ' name="' in element.start):
            return
        attributes = element.attributes()
        for id in (attributes.get("id"), attributes.get("name") if element.name == "a" else None):
            if id:
                self.ids.setdefault(id, element)

    # Frames, objects, players.

    def frame(self, element: Element) -> None:
        attributes = element.attributes()
        self._link(element, attributes, self._source(attributes), has_document="srcdoc" in attributes)

    def video_id(self, element: Element) -> None:
        name, start = _VIDEO_IDS[element.name]
        attributes = element.attributes()
        id = attributes.get(name, "")
        self._link(element, attributes, start + id if id else None)

    def object(self, element: Element) -> None:
        attributes = element.attributes()
        named = [
            found.get("value", "")
            for each in element.children
            if isinstance(each, Element) and each.name == "param"
            if (found := each.attributes()).get("name", "").lower() in _PARAMETERS
        ]
        url = self._web(attributes.get("data")) or self._source(attributes)
        url = url or next(filter(None, map(self._web, named)), None)
        inner = [each for each in element.children if not isinstance(each, Element) or each.name != "param"]
        if not any(isinstance(each, Element) for each in inner):
            inner = inner if url is None else []
        self._link(element, attributes, url, inner=inner)

    def _link(
        self,
        element: Element,
        attributes: dict[str, str],
        url: str | None,
        *,
        inner: Sequence[Element | str] = (),
        has_document: bool = False,
    ) -> None:
        """Let the element become what is at `url`: a link, a picture or a player.

        `inner` is what it holds for those who cannot see it; `has_document` that its page is in the HTML.
        """
        found = player(url) if url else None
        if found is None and _is_hidden(attributes):
            element.become()
            return
        if url is None:
            page = next((usable for each in self.bases if (usable := web_base(each))), None)
            if has_document and page:
                element.become(*_embedded_link(page, f"Embedded page at {_host(page)}"))
            elif self.in_words and not page and _is_relative(attributes.get("src") or attributes.get("data")):
                element.become(" Embedded page ", *inner)
            else:
                element.become(*inner)
            return
        page = url if found is None else found.page
        if page in self.sources:
            element.become(*inner)
            return
        self.sources.add(page)
        kind = None if found else _kind(url, attributes.get("type", ""))
        if kind == "image":
            has_own = any(isinstance(each, Element) and each.name in ("img", "svg") for each in inner)
            picture = start_tag("img", {"src": url, "alt": attributes.get("title", "")})
            element.become(*(inner if has_own else [picture]))
        elif kind is not None:
            element.become(start_tag(kind, {"src": url, "controls": ""}), *inner, f"</{kind}>")
        else:
            site = found.site if found else _host(url)
            what = f"{found.kind.capitalize()} at {site}" if found else f"Embedded page at {site}"
            title = _title(attributes, site)
            link = _embedded_link(page, f"{what}: {title}" if title else what, is_player=found is not None)
            element.become(*link, *inner)

    def media(self, element: Element) -> None:
        """A video or audio: with a file that scripts would load, and without any, its poster."""
        attributes = element.attributes()
        kind = _MEDIA[element.name]
        poster = self._web(attributes.get("poster")) or self._web(attributes.get("data-poster"))
        own = self._source({name: text for name, text in attributes.items() if name != "data-poster"})
        inner = [each for each in element.elements() if each.name == "source"]
        for each in inner:
            given = each.attributes()
            if "src" not in given and (source := self._source(given)):
                each.start = with_attribute(each.start, "src", source)
        if own is None and not any(' src="' in each.start for each in inner):
            written = start_tag("img", {"src": poster, "alt": attributes.get("title", "")}) if poster else ""
            element.become(written, *(each for each in element.children if each not in inner))
            return
        self.sources |= {own} if own else set()
        element.start = f"<{kind}" + element.start[len(element.name) + 1 :]
        element.name = kind
        if own and "src" not in attributes:
            element.start = with_attribute(element.start, "src", own)
        if poster and "poster" not in attributes:
            element.start = with_attribute(element.start, "poster", poster)
        if "controls" not in attributes:
            # Scripts would start it, or `autoplay`, which goes; sound alone is not seen without.
            element.start = with_attribute(element.start, "controls", "")

    def post(self, element: Element) -> None:
        """A post of another site: what it says here, or a link to it."""
        attributes = element.attributes()
        url = post(element.name, attributes)
        if url is None or element.words() or any(each.name in ("img", "a") for each in element.elements()):
            return
        self._link(element, attributes, url)

    def area(self, element: Element) -> None:
        """A part of a picture that is a link: the link stands behind it."""
        attributes = element.attributes()
        url, words = self._web(attributes.get("href")), attributes.get("alt") or attributes.get("title")
        if url is not None and url not in self.sources:
            self.sources.add(url)
            element.become(*_embedded_link(url, words or _host(url)))
        elif self.in_words and url is None and words and _is_relative(attributes.get("href")):
            element.become(f" {escape(words, quote=False)} ")
        else:
            element.become()

    def input(self, element: Element) -> None:
        """A checkbox of a list of tasks, or a button that is a picture."""
        attributes = element.attributes()
        if attributes.get("type", "").lower() == "image" and not _is_hidden(attributes):
            self.amp_image(element)
        elif attributes.get("type", "").lower() == "checkbox" and not _is_hidden(attributes):
            element.become("\N{BALLOT BOX WITH CHECK}" if "checked" in attributes else "\N{BALLOT BOX}")
        else:
            element.become()

    def title(self, element: Element) -> None:
        """A title of a page in HTML; those of drawings are read there."""
        element.become()

    # Pictures and <noscript>.

    def amp_image(self, element: Element) -> None:
        kept = ("src", "alt", "width", "height", "title")
        attributes = {name: text for name, text in element.attributes().items() if name in kept}
        element.name, element.start, element.children = "img", start_tag("img", attributes), []
        self.picture(element)

    def picture(self, element: Element) -> None:
        self.pictures.append(_Picture(element, element.attributes(), self.texts))

    def noscript(self, element: Element) -> None:
        written = unescape("".join(each for each in element.children if isinstance(each, str)))
        element.become()
        if _HOLDS_MEDIA.search(written):
            self.noscripts.append((element, written, self.texts, len(self.pictures)))

    def unwrap_noscripts(self) -> None:
        """Let each `<noscript>` become what it holds, if that shows something that nothing else does."""
        beside = self.pictures
        self.sources |= {url for each in beside if (url := self._shown(each.attributes))}
        # None can hold another one; one that seems to is left out.
        for element, written, texts, place in tuple(self.noscripts):
            held = parsed(_PARSER.clean(written))
            around = [each for each in beside[max(place - 1, 0) : place + 1] if each.texts == texts]
            if self._is_new(held, around):
                self.pictures = []
                self.walk(held)
                self.sources |= {url for each in self.pictures if (url := self._shown(each.attributes))}
                element.become(*held.children)

    def _is_new(self, held: Element, around: Sequence[_Picture]) -> bool:
        """True if a `<noscript>` shows something that its HTML does not. What has its place goes then."""
        is_new = False
        for each in held.elements():
            attributes = each.attributes()
            if each.name == "img" or each.name in _PICTURES:
                url = self._shown(attributes)
                if url is None or url in self.sources or _is_hidden(attributes):
                    continue
                is_new |= not _is_beside(attributes, url, around, self._shown)
            elif each.name in _FRAMES or each.name in _MEDIA:
                url = self._source(attributes) or self._web(attributes.get("data"))
                found = player(url) if url else None
                is_seen = (found.page if found else url) in self.sources
                is_new |= (
                    url is not None and not is_seen and (found is not None or not _is_hidden(attributes))
                )
        return is_new

    def _shown(self, attributes: dict[str, str]) -> str | None:
        """The URL of the picture that an image shows without scripts, but for what a placeholder is."""
        url = self._web(attributes.get("src"))
        return None if url is None or may_stand_in(url) else url

    def _source(self, attributes: dict[str, str]) -> str | None:
        """The URL of a frame or file: its own, or the one that a script would put there."""
        if url := self._web(attributes.get("src")):
            return url
        for name, text in attributes.items():
            is_lazy = name in LAZY_SRC or (name.startswith("data-") and text.startswith(("http", "//")))
            if is_lazy and (url := self._web(text)):
                return url
        return None

    def _web(self, reference: str | None) -> str | None:
        url = absolute(reference, self.bases) if reference else None
        return url if url and is_web(url) else None

    # Links within the HTML.

    def link(self, element: Element) -> None:
        head, _, fragment = element.attributes().get("href", "").partition("#")
        if fragment and (not head or self._is_here(head)):
            self.links.append((element, fragment))

    def _is_here(self, head: str) -> bool:
        if head not in self._known:
            url = absolute(head, self.bases)
            self._known[head] = url is not None and _page(url) in {
                _page(base) for each in self.bases if (base := web_base(each))
            }
        return self._known[head]

    def lead_to_ids(self, prefix: str) -> None:
        """Let links within the HTML, and references of drawings, name their elements by ids with this prefix.

        No other element keeps its id. A link to nothing here goes on leading to the article's page.
        """
        new: dict[str, str] = {}
        named: dict[Element, str] = {}

        def name_of(id: str) -> str | None:
            target = self.ids.get(id)
            if target is None:
                return None
            if id not in new:
                # An element may have been named by both `id` and `name`.
                given = named.get(target)
                new[id] = named[target] = given or f"{prefix}{len(new) + 1}-{_UNFIT.sub('_', id)[:60]}"
            return new[id]

        for element, fragment in self.links:
            for id in (fragment, unquote(fragment), ID_PREFIX + fragment):
                if id in self.ids:
                    element.start = with_attribute(element.start, "href", f"{HERE}#{name_of(id)}")
                    break
        is_bounded = self.drawings.are_bounded(self.ids)
        for _, element, attribute, id in self.drawings.references:
            target = name_of(id) if is_bounded else None
            if target is None and element.name == "use":
                element.become()
                self.drawings.leave_if_empty(element)
                continue
            written = f"{HERE}#{target}" if attribute == "href" else f"url(#{target})"
            element.start = with_attribute(element.start, attribute, None if target is None else written)
        for element in self.ids.values():
            if element.name:
                element.start = with_attribute(element.start, "id", named.get(element))


_ACTS: dict[str, Callable[[_Work, Element], None]] = {
    **dict.fromkeys(("iframe", "embed", "amp-iframe"), _Work.frame),
    **dict.fromkeys(_VIDEO_IDS, _Work.video_id),
    **dict.fromkeys(_MEDIA, _Work.media),
    "object": _Work.object,
    "noscript": _Work.noscript,
    "img": _Work.picture,
    **dict.fromkeys(_PICTURES, _Work.amp_image),
    **dict.fromkeys((*POST_TAGS, "blockquote", "div"), _Work.post),
    "input": _Work.input,
    "area": _Work.area,
    "a": _Work.link,
    "title": _Work.title,
}


def _embedded_link(url: str, words: str, *, is_player: bool = False) -> Iterator[str]:
    kind = {"class": EMBEDDED} if is_player else {}
    yield from (" ", start_tag("a", {**kind, "href": url}), escape(words, quote=False), "</a> ")


def _is_beside(
    attributes: dict[str, str],
    url: str,
    around: Sequence[_Picture],
    shown: Callable[[dict[str, str]], str | None],
) -> bool:
    """True if a picture of a `<noscript>` is shown beside it, perhaps smaller.

    One that waits for a script, and shows nothing without, goes.
    """
    for each in around:
        if each.is_taken:
            continue
        other = shown(each.attributes)
        if other is None:
            each.is_taken = True
            each.element.become()
            return False
        is_lazy = any(name in LAZY_SRC or name.startswith("data-") for name in each.attributes)
        has_same_alt = attributes.get("alt", "").strip() == each.attributes.get("alt", "").strip() != ""
        if is_lazy or has_same_alt or _stem(url) == _stem(other):
            each.is_taken = True
            return True
    return False


def _is_relative(reference: str | None) -> bool:
    """True for a reference that leads somewhere from a page that is not known here."""
    return bool(reference) and urlsplit(reference or "").scheme == ""


def _stem(url: str) -> str:
    """The name of a file without what says its size."""
    name = urlsplit(url).path.rsplit("/", 1)[-1].rpartition(".")[0].lower()
    while name and (shorter := _SIZE.sub("", name)) != name:
        name = shorter
    return name or url


def _is_hidden(attributes: dict[str, str]) -> bool:
    """True for what is not there for readers: it counts them, or a script uses it."""
    style = "".join(attributes.get("style", "").lower().split())
    if "hidden" in attributes or _HIDDEN.search(style):
        return True
    sides = dict(_STYLED_LENGTH.findall(style))
    for side in ("width", "height"):
        if found := _LENGTH.match(attributes.get(side, "").strip()):
            sides[side] = found[0] + attributes[side].strip()[found.end() :].removesuffix("px")
    return len(sides) == 2 and all(text in ("0", "1") for text in sides.values())


def _kind(url: str, type: str) -> str | None:
    """Image, audio or video, if a file is one by its type or else by its name."""
    if type:
        found = _SOURCE_TYPES.match(type.strip())
        return found[1].lower() if found else None
    return _FILE_TYPES.get(urlsplit(url).path.rpartition(".")[2].lower())


def _title(attributes: dict[str, str], site: str) -> str:
    """The title that a publisher gives to a frame; empty if it says only that it is one."""
    title = " ".join((attributes.get("title") or attributes.get("aria-label") or "").split())[:_MOST_TITLE]
    said = {word.lower() for word in _WORD.findall(title)}
    return "" if said <= _SAYS_NOTHING | {word.lower() for word in _WORD.findall(site)} else title


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "another site").removeprefix("www.")[:80]


def _page(url: str) -> str:
    """A page's address in one form, without its scheme and fragment."""
    host, slash, path = url.partition("#")[0].partition("://")[2].partition("/")
    return f"{host.lower()}{slash}{path}".rstrip("/")
