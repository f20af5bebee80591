"""The body of an image: a small one in memory, a large one in a file, and an error as soon as it is no image.

Not here: the limits on size (`http/body.py`), and the detection of image types (`image_types.py`).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from rss_pipeline.collector.fetch.image_types import (
    AVIF,
    BMP,
    GIF,
    HEIC,
    HEIF,
    JPEG,
    PNG,
    PROLOG_BYTES,
    SIGNATURE_BYTES,
    SVG,
    WEBP,
    ImageType,
    image_type,
    may_become_an_image,
    not_an_image,
)
from rss_pipeline.collector.http.body import BodyDecoder
from rss_pipeline.collector.http.client import FetchPolicy, HttpResponse
from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.models.item import ImageSize
from rss_pipeline.errors import spooling

MEMORY_BYTES = 1_000_000
"""A larger body goes to the spool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A complete image."""

    type: ImageType
    size: int
    """Bytes of the body."""
    body: bytes | Path = field(repr=False)
    """Bytes, or for a large image a file in the spool, which is removed after it was stored."""
    url: str
    """The URL of the response, after redirects."""
    pixels: ImageSize | None = None
    """As its first bytes give it."""


async def receive_image(
    answer: HttpResponse, path: Path, *, policy: FetchPolicy, host: str, url: str
) -> Image:
    """Read the body of a 200; one above `MEMORY_BYTES` goes to `path`.

    Raises `FetchError`, for a body that is no image after its first bytes, and `InfrastructureError` if the
    spool cannot be written. The caller then removes the incomplete file.
    """
    decoder = BodyDecoder(answer, policy)
    detector = _TypeDetector(host)
    held = bytearray()
    pixels: ImageSize | None = None
    file: BinaryIO | None = None
    try:
        async for chunk in answer.chunks():
            for piece in decoder.feed(chunk):
                if file is not None:
                    with spooling(path):
                        file.write(piece)
                    continue
                held += piece
                detector.look(held)
                if len(held) > MEMORY_BYTES:
                    pixels = image_size(detector.verdict(held), bytes(held))
                    with spooling(path):
                        file = path.open("wb")
                        file.write(held)
                    held.clear()
        decoder.finish()
        if file is not None:
            with spooling(path):
                file.close()
    finally:
        if file is not None:
            file.close()
    kind = detector.verdict(held)
    if file is None:
        pixels = image_size(kind, bytes(held))
    return Image(type=kind, size=decoder.size, body=path if file else bytes(held), url=url, pixels=pixels)


class _TypeDetector:
    """Detects the type of an image by its first bytes; checks again each time they have doubled."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._kind: ImageType | None = None
        self._due = SIGNATURE_BYTES

    def look(self, held: bytearray) -> None:
        if self._kind is not None or len(held) < self._due:
            return
        head = bytes(held[: 2 * SIGNATURE_BYTES]) if self._due == SIGNATURE_BYTES else bytes(held)
        self._kind = image_type(head)
        if self._kind is None:
            head = bytes(held)
            if not may_become_an_image(head):
                raise self._error(head)
            self._due = 2 * len(held)

    def verdict(self, held: bytearray) -> ImageType:
        """The type at the end of the body, however short it is. Raises `FetchError`."""
        if self._kind is None:
            self._kind = image_type(bytes(held))
        if self._kind is None:
            raise self._error(bytes(held))
        return self._kind

    def _error(self, head: bytes) -> FetchError:
        return FetchError(
            "not_an_image" if head else "empty_body", not_an_image(self._host, head), status=200
        )


# The size of an image in pixels, read from its first bytes. No I/O; nothing is decoded.

HEAD_BYTES = 1_000_000
"""Bytes that are read: cameras and editors put thumbnails and profiles before the size of a JPEG."""
MOST_PIXELS = 100_000
"""A side that is longer is a mistake or an attack."""

_MOST_BOXES = 1_000
_MOST_ENTRIES = 500
_ROOT_SVG = re.compile(r"<(?:[\w.-]+:)?svg(?=[\s/>])[^>]*")
_SVG_LENGTH = r"""(?<![\w:.-]){}\s*=\s*["']\s*([0-9]{{1,6}}(?:\.[0-9]{{0,9}})?)(?:px)?\s*["']"""
_SVG_WIDTH = re.compile(_SVG_LENGTH.format("width"))
_SVG_HEIGHT = re.compile(_SVG_LENGTH.format("height"))
_SVG_VIEW_BOX = re.compile(
    r"""(?<![\w:.-])viewBox\s*=\s*["']\s*[-+0-9.e]+[\s,]+[-+0-9.e]+[\s,]+"""
    r"""([0-9]{1,6}(?:\.[0-9]{0,9})?)[\s,]+([0-9]{1,6}(?:\.[0-9]{0,9})?)\s*["']"""
)


def image_size(kind: ImageType, head: bytes) -> ImageSize | None:
    """The size of the image of this type with these first bytes; None if they do not give it."""
    read = _READERS.get(kind)
    size = read(head[:HEAD_BYTES]) if read is not None else None
    if size is None or not all(1 <= side <= MOST_PIXELS for side in size):
        return None
    return ImageSize(*size)


_Size = tuple[int, int]


def _png(head: bytes) -> _Size | None:
    """PNG 11.2.1 (W3C): IHDR comes first."""
    return (_big(head, 16, 4), _big(head, 20, 4)) if head[12:16] == b"IHDR" else None


def _gif(head: bytes) -> _Size:
    return _little(head, 6, 2), _little(head, 8, 2)


def _webp(head: bytes) -> _Size | None:
    """RFC 9649 2.5 to 2.7."""
    match head[12:16]:
        case b"VP8X":
            return _little(head, 24, 3) + 1, _little(head, 27, 3) + 1
        case b"VP8L" if head[20:21] == b"\x2f" and len(head) >= 25:
            bits = _little(head, 21, 4)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 " if head[23:26] == b"\x9d\x01\x2a":
            return _little(head, 26, 2) & 0x3FFF, _little(head, 28, 2) & 0x3FFF
    return None


def _bmp(head: bytes) -> _Size:
    """A negative height is that of an image stored from its top."""
    if _little(head, 14, 4) == 12:
        return _little(head, 18, 2), _little(head, 20, 2)
    return _little(head, 18, 4), abs(int.from_bytes(head[22:26], "little", signed=True))


def _jpeg(head: bytes) -> _Size | None:
    """ITU T.81 B.1 and B.2.2; turned as Exif says, which browsers obey."""
    at = 2
    is_turned: bool | None = None
    while at + 4 <= len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if marker == 0xFF:
            # A byte of filling before a marker.
            at += 1
            continue
        if marker == 0x01 or 0xD0 <= marker <= 0xD8:
            at += 2
            continue
        length = _big(head, at + 2, 2)
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = _big(head, at + 5, 2), _big(head, at + 7, 2)
            return (height, width) if is_turned else (width, height)
        if marker in (0xD9, 0xDA) or length < 2:
            return None
        # Only the first: 30,000 of them would take seconds.
        if marker == 0xE1 and is_turned is None and head[at + 4 : at + 10] == b"Exif\0\0":
            is_turned = _is_turned(head[at + 10 : at + 2 + length])
        at += 2 + length
    return None


def _is_turned(tiff: bytes) -> bool:
    """True if the orientation of this Exif data lays the image on its side (Exif 2.32 4.6.4 A)."""
    if tiff[:4] == b"II*\0":
        number = _little
    elif tiff[:4] == b"MM\0*":
        number = _big
    else:
        return False
    start = number(tiff, 4, 4)
    for entry in range(min(number(tiff, start, 2), _MOST_ENTRIES)):
        at = start + 2 + 12 * entry
        if number(tiff, at, 2) == 0x0112:
            return 5 <= number(tiff, at + 8, 2) <= 8
    return False


def _heif(head: bytes) -> _Size | None:
    """ISO/IEC 14496-12 8.11 and 23008-12 6.5: the extent of the primary item, turned as its `irot` says."""
    meta = _box(head, b"meta")[4:]
    properties = _box(meta, b"iprp")
    items = _box(meta, b"pitm")
    primary = _big(items, 4, 2 if items[:1] == b"\0" else 4)
    known = list(_boxes(_box(properties, b"ipco")))
    size: _Size | None = None
    is_turned = False
    for index in _properties_of(primary, _box(properties, b"ipma")):
        name, body = known[index - 1] if 0 < index <= len(known) else (b"", b"")
        if name == b"ispe":
            size = _big(body, 4, 4), _big(body, 8, 4)
        elif name == b"irot":
            is_turned = bool(_big(body, 0, 1) & 1)
    return (size[1], size[0]) if size is not None and is_turned else size


def _properties_of(item: int, associations: bytes) -> list[int]:
    """The indexes, from 1, of an item's properties in a body of `ipma`."""
    version, flags = _big(associations, 0, 1), _big(associations, 1, 3)
    of_id, of_index = 2 if version == 0 else 4, 2 if flags & 1 else 1
    at = 8
    for _ in range(min(_big(associations, 4, 4), _MOST_BOXES)):
        id, count = _big(associations, at, of_id), _big(associations, at + of_id, 1)
        at += of_id + 1
        if id == item:
            essential = 1 << (8 * of_index - 1)
            places = range(at, at + count * of_index, of_index)
            return [_big(associations, place, of_index) & (essential - 1) for place in places]
        at += count * of_index
    return []


def _box(data: bytes, name: bytes) -> bytes:
    """The body of the first box of this name; empty if there is none."""
    return next((body for each, body in _boxes(data) if each == name), b"")


def _boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Name and body of each box; a size of 1 is followed by a longer one, of 0 means the rest."""
    at = 0
    for _ in range(_MOST_BOXES):
        if at + 8 > len(data):
            return
        size, start = _big(data, at, 4), 8
        if size == 1:
            size, start = _big(data, at + 8, 8), 16
        elif size == 0:
            size = len(data) - at
        if size < start:
            return
        yield data[at + 4 : at + 8], data[at + start : at + size]
        at += size


def _svg(head: bytes) -> _Size | None:
    """SVG 2 8.12: the lengths in pixels of the root, or else its viewBox."""
    root = _ROOT_SVG.search(head[:PROLOG_BYTES].replace(b"\0", b"").decode("latin-1"))
    if root is None:
        return None
    width, height = _SVG_WIDTH.search(root[0]), _SVG_HEIGHT.search(root[0])
    if width and height:
        return round(float(width[1])), round(float(height[1]))
    box = _SVG_VIEW_BOX.search(root[0])
    return (round(float(box[1])), round(float(box[2]))) if box else None


def _big(data: bytes, at: int, count: int) -> int:
    return int.from_bytes(data[at : at + count], "big")


def _little(data: bytes, at: int, count: int) -> int:
    return int.from_bytes(data[at : at + count], "little")


_READERS: dict[ImageType, Callable[[bytes], _Size | None]] = {
    PNG: _png,
    GIF: _gif,
    WEBP: _webp,
    BMP: _bmp,
    JPEG: _jpeg,
    AVIF: _heif,
    HEIC: _heif,
    HEIF: _heif,
    SVG: _svg,
}
