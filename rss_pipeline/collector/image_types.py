"""Which kind of image bytes are, by the bytes alone: what a server calls them is often wrong.

No I/O. What is sent on to a reader's browser as an image has been told by these rules and no others.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ImageType:
    """A kind of image, by the names it is stored under."""

    extension: str
    content_type: str


JPEG = ImageType("jpg", "image/jpeg")
PNG = ImageType("png", "image/png")
GIF = ImageType("gif", "image/gif")
WEBP = ImageType("webp", "image/webp")
AVIF = ImageType("avif", "image/avif")
HEIC = ImageType("heic", "image/heic")
BMP = ImageType("bmp", "image/bmp")
ICO = ImageType("ico", "image/x-icon")
SVG = ImageType("svg", "image/svg+xml")


def image_type(head: bytes) -> ImageType | None:
    """The kind of image whose first bytes these are, or None."""
    raise NotImplementedError
