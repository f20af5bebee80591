"""The pictures that a feed names beside an item's HTML: which references are pictures, and their order.

The order is the same for all formats, and is kept with the item's enclosures. Which of them is shown is
decided where the item is shown, by collector.sanitize.shown.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import parse_qsl, urlsplit

from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.collector.parse.image_references import is_tracker_url, shows_picture

IMAGE = "image/*"
"""The type of an image for which the publisher named none."""

_UNKNOWN_TYPES = frozenset(("", "application/octet-stream", "binary/octet-stream"))
_NAME = re.compile(
    r"\.(?:jpe?g|jfif|png|gif|webp|avif|hei[cf]|bmp|svg)(?:[!:@~][^/!:@~]{0,40})?\Z", re.IGNORECASE
)
"""Behind the extension, some hosts name the size: `a.jpg!w640`, `a.jpg:large`."""
_SIZE_IN_NAME = re.compile(
    # WordPress and those who write as it does.
    r"(?:[-_][0-9]{2,4}x[0-9]{2,4}|-scaled|@[23]x){1,3}(?=\.[a-z]{3,5}\Z)"
    r"|(?<=/)s[0-9]{2,4}(?:-[a-z0-9-]{1,20})?(?=/[^/]*+\Z)"  # Blogger
    r"|=[swh][0-9]{2,4}(?:-[a-z0-9-]{1,20})?\Z"  # Google's hosts
    r"|[!:@~][^/!:@~]{0,40}\Z",
    re.IGNORECASE,
)
_SIZES_IN_QUERY = re.compile(
    "auto|crop|dpr|fit|fm|format|h|height|q|quality|resize|s|size|ssl|strip|sz|w|width|zoom", re.IGNORECASE
)
_NAMES_IN_QUERY = re.compile(
    "file|filename|i|id|image|img|key|name|p|path|pic|picture|src|u|url", re.IGNORECASE
)
"""Parameters that say which picture it is, also where the path ends like a file of its own."""
_OTHER_MEDIA = re.compile(
    r"\.(?:mp[34]|m4[abv]|mov|avi|webm|og[gvam]|opus|wav|flac|aac|m3u8|swf|pdf)\Z", re.IGNORECASE
)
_OF_SOUND_AND_FILMS = ("duration", "bitrate", "framerate", "samplingrate", "channels")


def picture_type(attribute: Callable[[str], str | None]) -> str | None:
    """The type of a media:content by its attributes; IMAGE for a picture that none of them and no name tells.

    The medium is often missing as well: then it is a picture by its size, where nothing says that it is a
    sound or a film (`width` and `height` are both's).
    """
    named = (attribute("type") or "").strip()
    if "/" in named:
        return named
    medium = (attribute("medium") or "").strip().lower()
    path = (attribute("url") or "").strip().partition("#")[0].partition("?")[0]
    is_sized = attribute("width") and attribute("height") and not _OTHER_MEDIA.search(path)
    is_other = medium or has_picture_name(path) or any(attribute(name) for name in _OF_SOUND_AND_FILMS)
    return IMAGE if medium == "image" or (is_sized and not is_other) else named or None


def width_of(attribute: Callable[[str], str | None]) -> int:
    """The number in a width attribute; 0 for none."""
    digits = (attribute("width") or "").strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 6 else 0


def pictures_beside(
    content: str | None,
    named: Sequence[Enclosure],
    media: Iterable[tuple[int, Enclosure]],
    images: Iterable[str | None],
) -> tuple[Enclosure, ...]:
    """The pictures of an item beside its content and its `named` enclosures, the best first.

    They are those among its media:content, `media`, the widest first, and the first of `images`: the URLs of
    its thumbnails, the widest first, then of its own image. An item whose content shows a picture has none
    beside it, for that is mostly the same one, and larger: but without named enclosures, `media` are its
    enclosures.
    """
    widest = sorted(media, key=lambda pair: -pair[0])
    found = [each for _, each in widest if is_picture(each) and not is_tracker_url(each.url)]
    first = next((url for url in images if url and not is_tracker_url(url)), None)
    if (found or first) and content and shows_picture(content):
        return () if named else tuple(found)
    return (*found, *([] if first is None else [Enclosure(url=first, type=IMAGE)]))


def with_pictures(enclosures: Iterable[Enclosure], pictures: Sequence[Enclosure]) -> tuple[Enclosure, ...]:
    """An item's files, then its pictures in the order in which one is chosen to be shown.

    These are `pictures` (`pictures_beside`), then the enclosures that are pictures by their type, then those
    by their name.
    """
    files: list[Enclosure] = []
    by_type: list[Enclosure] = []
    by_name: list[Enclosure] = []
    known: dict[str, Enclosure] = {}
    for each in enclosures:
        known.setdefault(each.url, each)
        if not is_picture(each):
            files.append(each)
        else:
            (by_type if _is_image_type(each.type) else by_name).append(each)
    # The enclosure of the same URL says more.
    best = [known.get(each.url, each) for each in pictures]
    return (*files, *{each.url: each for each in (*best, *by_type, *by_name)}.values())


def is_picture(enclosure: Enclosure) -> bool:
    """True for an enclosure that is an image by its type, or, where that says nothing, by its name."""
    kind = (enclosure.type or "").partition(";")[0].strip().lower()
    if _is_image_type(kind):
        return True
    return (kind in _UNKNOWN_TYPES or "/" not in kind) and has_picture_name(enclosure.url)


def _is_image_type(kind: str | None) -> bool:
    return (kind or "").strip().lower().startswith("image/")


def is_file(kind: str | None, url: str | None) -> bool:
    """True for the content of an entry at another URL that is a picture, a sound, a film or a file, and no
    page or text: by its type, or, where it has none, by its name."""
    kind = (kind or "").partition(";")[0].strip().lower()
    if "/" in kind:
        is_text = kind.startswith("text/") or kind.endswith(("xml", "json", "html"))
        return _is_image_type(kind) or not is_text
    path = (url or "").partition("#")[0].partition("?")[0]
    return not kind and bool(has_picture_name(path) or _OTHER_MEDIA.search(path))


def has_picture_name(url: str) -> bool:
    """True if the path of a URL ends like the name of an image file."""
    return _NAME.search(url.partition("#")[0].partition("?")[0]) is not None


def picture_key(url: str) -> str:
    """The same text for the URLs of one picture in several sizes, as far as URLs tell.

    They differ in scheme, in the size within the name (`-300x200`, `/s72-c/`), in parameters for the size,
    and, where the path is that of an image file, in all parameters but those that name a picture.
    """
    try:
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=100) if parts.query else []
    except ValueError:
        return url
    if has_picture_name(parts.path):
        kept = [pair for pair in pairs if _NAMES_IN_QUERY.fullmatch(pair[0])]
    else:
        kept = [pair for pair in pairs if not _SIZES_IN_QUERY.fullmatch(pair[0])]
    return f"{parts.netloc.lower()}{_SIZE_IN_NAME.sub('', parts.path)} {kept}"
