"""The rules by which a reference names a picture of an item: type, name of the file, sizes of one picture.

Which of an item's pictures is shown is decided by collector.sanitize.shown.
"""

import re
from urllib.parse import parse_qsl, urlsplit

from rss_pipeline.collector.models.item import Enclosure

IMAGE = "image/*"
"""The type of an image for which the publisher named none."""

_UNKNOWN_TYPES = frozenset(("", "application/octet-stream", "binary/octet-stream"))
_NAME = re.compile(r"\.(?:jpe?g|jfif|png|gif|webp|avif|hei[cf]|bmp|svg)(?:[!:@~][^/]*)?\Z", re.IGNORECASE)
"""Behind the extension, some hosts name the size: `a.jpg!w640`, `a.jpg:large`."""
_SIZE_IN_NAME = re.compile(
    # WordPress and those who write as it does.
    r"(?:[-_][0-9]{2,4}x[0-9]{2,4}|-scaled|@[23]x)+(?=\.[a-z]+\Z)"
    r"|(?<=/)s[0-9]{2,4}(?:-[a-z0-9-]+)?(?=/[^/]*\Z)"  # Blogger
    r"|=[swh][0-9]{2,4}(?:-[a-z0-9-]+)?\Z"  # Google's hosts
    r"|[!:@~][^/]*\Z",
    re.IGNORECASE,
)
_SIZES_IN_QUERY = frozenset(
    [
        "auto",
        "crop",
        "dpr",
        "fit",
        "fm",
        "format",
        "h",
        "height",
        "q",
        "quality",
        "resize",
        "s",
        "size",
        "ssl",
        "strip",
        "sz",
        "w",
        "width",
        "zoom",
    ]
)


def is_picture(enclosure: Enclosure) -> bool:
    """True for an enclosure that is an image by its type, or, where that says nothing, by its name."""
    kind = (enclosure.type or "").partition(";")[0].strip().lower()
    if kind.startswith("image/"):
        return True
    return (kind in _UNKNOWN_TYPES or "/" not in kind) and has_picture_name(enclosure.url)


def has_picture_name(url: str) -> bool:
    """True if the path of a URL ends like the name of an image file."""
    return _NAME.search(url.partition("#")[0].partition("?")[0]) is not None


def picture_key(url: str) -> str:
    """The same text for the URLs of one picture in several sizes, as far as URLs tell.

    They differ in scheme, in the size within the name (`-300x200`, `/s72-c/`), in parameters for the size,
    and, where the path is that of an image file, in any parameter.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    path = _SIZE_IN_NAME.sub("", parts.path)
    query = ""
    if not has_picture_name(parts.path):
        pairs = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=None)
        query = "&".join(f"{name}={value}" for name, value in pairs if name.lower() not in _SIZES_IN_QUERY)
    return f"{parts.netloc.lower()}{path}?{query}"
