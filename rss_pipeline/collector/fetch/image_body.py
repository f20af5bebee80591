"""An image on its way from the wire: small in memory, large in a file, given up as soon as it is none.

Not here: the caps (`body.py`), and which bytes are an image (`image_types.py`).
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from rss_pipeline.collector.fetch.image_types import (
    SIGNATURE_BYTES,
    ImageType,
    image_type,
    may_become_an_image,
    not_an_image,
)
from rss_pipeline.collector.http.body import BodyDecoder, spooling
from rss_pipeline.collector.http.client import FetchPolicy, HttpResponse
from rss_pipeline.collector.http.errors import FetchError

MEMORY_BYTES = 1_000_000
"""A larger body goes to the spool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image that has come whole."""

    type: ImageType
    size: int
    """Bytes of the body."""
    body: bytes | Path = field(repr=False)
    """A large one lies in the spool, until it has been kept."""
    url: str
    """Of the hop that gave it."""


async def receive_image(
    answer: HttpResponse, path: Path, *, policy: FetchPolicy, host: str, url: str
) -> Image:
    """Read a 200's body; one above `MEMORY_BYTES` goes to `path`. The caller removes what was begun there.

    Raises `FetchError`, for what is no image after its first bytes; `InfrastructureError` for the spool.
    """
    unpacking = BodyDecoder(answer, policy)
    head = _Head(host)
    held = bytearray()
    file: BinaryIO | None = None
    try:
        async for chunk in answer.chunks():
            for piece in unpacking.feed(chunk):
                if file is not None:
                    with spooling(path):
                        file.write(piece)
                    continue
                held += piece
                head.look(held)
                if len(held) > MEMORY_BYTES:
                    with spooling(path):
                        file = path.open("wb")
                        file.write(held)
                    held.clear()
        unpacking.finish()
        if file is not None:
            with spooling(path):
                file.close()
    finally:
        if file is not None:
            file.close()
    kind = head.verdict(held)
    return Image(type=kind, size=unpacking.size, body=path if file else bytes(held), url=url)


class _Head:
    """Tells an image by its first bytes, looking again each time they have doubled."""

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
                raise self._trouble(head)
            self._due = 2 * len(held)

    def verdict(self, held: bytearray) -> ImageType:
        """At the body's end, however short it was."""
        if self._kind is None:
            self._kind = image_type(bytes(held))
        if self._kind is None:
            raise self._trouble(bytes(held))
        return self._kind

    def _trouble(self, head: bytes) -> FetchError:
        return FetchError(
            "not_an_image" if head else "empty_body", not_an_image(self._host, head), status=200
        )
