"""A body on its way from the wire: undone, counted, never longer than it may be; a document's to its file.

No decision about what it is: the parser reads a document later, and `image_body.py` looks at images.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rss_pipeline.collector.http.client import FetchPolicy, HttpResponse
from rss_pipeline.collector.http.errors import FetchError
from rss_pipeline.collector.http.gunzip import Gunzip
from rss_pipeline.collector.http.headers import charset_of, content_codings
from rss_pipeline.errors import InfrastructureError


@dataclass(frozen=True, slots=True)
class Body:
    """What lies in the spool: its size and its hash as `Document.content_hash` defines it."""

    size: int
    content_hash: str


async def save_body(answer: HttpResponse, path: Path, *, policy: FetchPolicy) -> Body:
    """Stream the body to `path`. Raises `FetchError`; the caller removes what was begun.

    A file that cannot be written is no feed's fault: `InfrastructureError`.
    """
    unpacking = BodyDecoder(answer, policy)
    digest = hashlib.sha256()
    with spooling(path), path.open("wb") as file:
        async for chunk in answer.chunks():
            for piece in unpacking.feed(chunk):
                digest.update(piece)
                file.write(piece)
        unpacking.finish()
    if unpacking.size == 0:
        raise FetchError("empty_body", _EMPTY, status=200, body_bytes=0)
    digest.update(b"\0" + charset_of(answer.head.first("content-type")).encode("utf-8"))
    return Body(unpacking.size, digest.hexdigest())


_EMPTY = "200 OK, but the document is empty; if that goes on, its publisher has to look into it."


class BodyDecoder:
    """Feed it the wire's bytes, take the body's, within the policy's caps. All of it raises `FetchError`."""

    def __init__(self, answer: HttpResponse, policy: FetchPolicy) -> None:
        self.size = 0
        """Bytes of the body so far."""
        self._wire = 0
        self._policy = policy
        self._gunzip = _decoder(answer)
        announced = answer.head.first("content-length") or ""
        # Refused before a byte of it is read; h11 has made sure that it is a number.
        if announced.isdecimal() and int(announced[:20]) > policy.max_wire_bytes:
            raise _too_large("is", int(announced[:20]), policy.max_wire_bytes)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        most = self._policy.max_wire_bytes
        self._wire += len(chunk)
        if self._wire > most:
            raise _too_large("is more than", most, most)
        most = self._policy.max_body_bytes
        for piece in (chunk,) if self._gunzip is None else self._gunzip.feed(chunk):
            self.size += len(piece)
            if self.size > most:
                raise _too_large("unpacks to more than", most, most)
            yield piece

    def finish(self) -> None:
        """To be called at the end of the wire's bytes."""
        if self._gunzip is not None:
            self._gunzip.finish()


@contextmanager
def spooling(path: Path) -> Iterator[None]:
    """A spool file that cannot be written is no publisher's fault: `InfrastructureError`."""
    try:
        yield
    except OSError as error:
        raise InfrastructureError(
            f"the spool file {path} cannot be written: {error.strerror or error}"
        ) from error


def _decoder(answer: HttpResponse) -> Gunzip | None:
    codings = content_codings(answer.head.list("content-encoding"))
    if not codings:
        return None
    if len(codings) > 1:
        raise FetchError(
            "bad_compression", f"The answer is packed {len(codings)} times over; it is not unpacked."
        )
    if codings != ["gzip"]:
        raise FetchError(
            "bad_compression",
            f"The answer is packed as {codings[0][:20]!r}, although only gzip was asked for; "
            "the publisher has to mend it.",
        )
    return Gunzip()


def _too_large(what: str, size: int, limit: int) -> FetchError:
    return FetchError("too_large", f"The answer {what} {size:,} bytes; at most {limit:,} are read.")
