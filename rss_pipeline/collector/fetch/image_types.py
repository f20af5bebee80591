"""The detection of image types by the bytes alone: the Content-Type of a server is often wrong.

No I/O. Bytes that are no image get a description, so that a failure says what came instead.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ImageType:
    """A type of image: its file extension and its media type, as they are stored."""

    extension: str
    content_type: str


JPEG = ImageType("jpg", "image/jpeg")
PNG = ImageType("png", "image/png")
GIF = ImageType("gif", "image/gif")
WEBP = ImageType("webp", "image/webp")
AVIF = ImageType("avif", "image/avif")
HEIC = ImageType("heic", "image/heic")
HEIF = ImageType("heic", "image/heif")
BMP = ImageType("bmp", "image/bmp")
ICO = ImageType("ico", "image/x-icon")
SVG = ImageType("svg", "image/svg+xml")

SIGNATURE_BYTES = 512
"""Bytes that are enough to detect each type but SVG."""
PROLOG_BYTES = 65_536
"""Bytes that are searched for `<svg`: editors put licences and entity tables before it."""

_AVIF_BRANDS = frozenset({b"avif", b"avis"})
_HEIC_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"})
_HEIF_BRANDS = frozenset({b"mif1", b"msf1", b"miaf"})

_BMP_HEADERS = frozenset({12, 16, 40, 52, 56, 64, 108, 124})
"""BITMAPCOREHEADER to BITMAPV5HEADER; "BM" alone is also the beginning of texts."""

_UTF_16 = (
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
_DOCTYPE_SVG = re.compile(r"<!DOCTYPE\s+(?:[\w.-]+:)?svg(?=[\s>\[])")
_ROOT_SVG = re.compile(r"<(?:[\w.-]+:)?svg(?=[\s/>])")
_UNFINISHED = re.compile(r"(?:<(?:!-?|!D[A-Z]{0,6}|!DOCTYPE(?:\s+[\w.:-]{0,40})?|[\w.:-]{0,40}))?")
_BLANKS = re.compile(r"\s+")
_SUBSET_END = re.compile(r"\]\s{0,99}>")


def image_type(head: bytes) -> ImageType | None:
    """The type of the image with these first bytes, or None.

    `SIGNATURE_BYTES` bytes are enough, except for SVG: see `may_become_an_image`.
    """
    if head.startswith(b"\xff\xd8\xff"):
        return JPEG
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return PNG
    if head.startswith((b"GIF87a", b"GIF89a")):
        return GIF
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return WEBP
    if head[4:8] == b"ftyp":
        return _heif(head)
    if _is_bmp(head):
        return BMP
    if _is_ico(head):
        return ICO
    return SVG if _is_svg(head) else None


def may_become_an_image(head: bytes) -> bool:
    """True if `head`, of no type yet, ends within the markup that XML allows before an `<svg`."""
    return len(head) < PROLOG_BYTES and _is_svg(head) is None


def not_an_image(host: str, head: bytes) -> str:
    """The message for a 200 with a body that is no image."""
    return f"{host} answered 200 with {_description(head)} instead of an image."


def _heif(head: bytes) -> ImageType | None:
    """ISO/IEC 23008-12 10.2 and the AVIF specification 6: a major brand, or one among the compatible."""
    size = int.from_bytes(head[:4], "big")
    major, compatible = head[8:12], {head[at : at + 4] for at in range(16, min(size, len(head)), 4)}
    if major in _AVIF_BRANDS:
        return AVIF
    if major in _HEIC_BRANDS:
        return HEIC
    if major not in _HEIF_BRANDS:
        return None
    if compatible & _AVIF_BRANDS:
        return AVIF
    return HEIC if compatible & _HEIC_BRANDS else HEIF


def _is_bmp(head: bytes) -> bool:
    if not head.startswith(b"BM") or len(head) < 26:
        return False
    pixels_at, header = int.from_bytes(head[10:14], "little"), int.from_bytes(head[14:18], "little")
    return header in _BMP_HEADERS and pixels_at >= 14 + header


def _is_ico(head: bytes) -> bool:
    """True for a directory of at least one image that begins after the directory; type 2 is a cursor."""
    if not head.startswith(b"\0\0\1\0") or len(head) < 22:
        return False
    count = int.from_bytes(head[4:6], "little")
    size, offset = int.from_bytes(head[14:18], "little"), int.from_bytes(head[18:22], "little")
    return count > 0 and size > 0 and offset >= 6 + 16 * count


def _is_svg(head: bytes) -> bool | None:
    """True if the root is `<svg`; None if `head` ends before the root."""
    text = _text(head)
    at = _behind_misc(text, 0)
    if at is not None and _DOCTYPE_SVG.match(text, at):
        end = _end_of_doctype(text, at)
        at = None if end is None else _behind_misc(text, end)
    if at is None:
        return None
    if _ROOT_SVG.match(text, at):
        return True
    return None if _UNFINISHED.fullmatch(text, at) else False


def _behind_misc(text: str, at: int) -> int | None:
    """The index after blanks, comments and processing instructions (XML 1.0, production 27); None if one has
    no end. Not a single regular expression: that would take hours on a page of comments."""
    while True:
        blanks = _BLANKS.match(text, at)
        at = at if blanks is None else blanks.end()
        if text.startswith("<!--", at):
            close = "-->"
        elif text.startswith("<?", at):
            close = "?>"
        else:
            return at
        end = text.find(close, at + 2)
        if end < 0:
            return None
        at = end + len(close)


def _end_of_doctype(text: str, at: int) -> int | None:
    """The index after the `>` of a DOCTYPE and its internal subset (Illustrator writes entities there);
    None if it has no end."""
    subset, end = text.find("[", at), text.find(">", at)
    if end >= 0 and not at < subset < end:
        return end + 1
    closed = _SUBSET_END.search(text, subset) if subset >= 0 else None
    return closed.end() if closed else None


def _text(head: bytes) -> str:
    """The beginning as text, in any charset: markup is ASCII in all that occur."""
    head = head[:PROLOG_BYTES].removeprefix(b"\xef\xbb\xbf")
    for start, codec in _UTF_16:
        if head.startswith(start):
            return head.decode(codec, "ignore").removeprefix("\ufeff")
    return head.decode("latin-1")


_SIGNATURES = (
    (b"%PDF-", "a PDF"),
    (b"\0\0\2\0", "a mouse cursor"),
    (b"II*\0", "a TIFF, which browsers do not show,"),
    (b"MM\0*", "a TIFF, which browsers do not show,"),
    (b"8BPS", "a Photoshop file"),
    (b"\0\0\0\x0cJXL \r\n\x87\n", "a JPEG XL, which few browsers show,"),
    (b"\xff\x0a", "a JPEG XL, which few browsers show,"),
    (b"\x1f\x8b", "a gzip file"),
    (b"PK\x03\x04", "a zip file"),
    (b"\x1aE\xdf\xa3", "a video"),
    (b"RIFF", "a sound or a video"),
    (b"ID3", "a sound"),
)
_WEB_PAGE = re.compile(
    r"<(?:!doctype\s+html|(?:html|head|body|title|script|meta|div|h1|p|center)\b)", re.IGNORECASE
)


def _description(head: bytes) -> str:
    for start, words in _SIGNATURES:
        if head.startswith(start):
            return words
    if head[4:8] == b"ftyp":
        return "a video"
    text = _text(head).lstrip()
    if not text:
        return "nothing"
    if _WEB_PAGE.match(text, _behind_misc(text, 0) or 0):
        return "a web page"
    if text.startswith("<"):
        return "XML that is no SVG"
    if re.match(r'\{\s*["}]|\[\s*[\[{"\]0-9]', text):
        return "JSON"
    if not re.search(r"[\x00-\x08\x0e-\x1a\x7f]", text[:SIGNATURE_BYTES]):
        return "plain text"
    return "bytes of an unknown type"
