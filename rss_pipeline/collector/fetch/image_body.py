"""The body of an image: a small one in memory, a large one in a file, and an error as soon as it is no image.

Not here: the limits on size (`http/body.py`), and the detection of image types (`image_types.py`).
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from rss_pipeline.collector.fetch.image_sizes import image_size
from rss_pipeline.collector.fetch.image_types import (
    SIGNATURE_BYTES,
    ImageType,
    image_type,
    may_become_an_image,
    not_an_image,
)
from rss_pipeline.collector.http.body import BodyDecoder
from rss_pipeline.collector.http.client import FetchPolicy, HttpResponse
from rss_pipeline.collector.http.errors import FetchError
from rss_pipeline.collector.models.image_size import ImageSize
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
