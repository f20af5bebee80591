"""Response bodies: content-decoded, counted, cut off at the policy's limits; a document goes to its file.

No decision on the content: documents are parsed later, and `fetch/image_body.py` checks images.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rss_pipeline.collector.http.client import FetchPolicy, HttpResponse
from rss_pipeline.collector.http.errors import FetchError
from rss_pipeline.collector.http.headers import charset_of, content_codings
from rss_pipeline.collector.http.inflate import Coding, Inflate
from rss_pipeline.errors import spooling


@dataclass(frozen=True, slots=True)
class Body:
    """A body in the spool: its size in bytes, and its hash as `Document.content_hash` defines it."""

    size: int
    content_hash: str


async def save_body(answer: HttpResponse, path: Path, *, policy: FetchPolicy) -> Body:
    """Stream the body to `path`.

    Raises `FetchError`, and `InfrastructureError` if the file cannot be written. The caller then removes the
    incomplete file.
    """
    decoder = BodyDecoder(answer, policy)
    digest = hashlib.sha256()
    with spooling(path), path.open("wb") as file:
        async for chunk in answer.chunks():
            for piece in decoder.feed(chunk):
                digest.update(piece)
                file.write(piece)
        decoder.finish()
    if decoder.size == 0:
        raise FetchError("empty_body", _EMPTY, status=200, body_bytes=0)
    digest.update(b"\0" + charset_of(answer.head.first("content-type")).encode("utf-8"))
    return Body(decoder.size, digest.hexdigest())


_EMPTY = "200 OK, but the document is empty; if this continues, its publisher has to fix it."


class BodyDecoder:
    """Turns the bytes of the connection into those of the body, within the policy's limits.

    Each of its methods raises `FetchError`. Of a body that decompresses to more than the limit nothing more
    is given, but it is counted to its end, or to four times the limit: so the error says what limit it needs.
    """

    def __init__(self, answer: HttpResponse, policy: FetchPolicy) -> None:
        self.size = 0
        """Bytes of the body so far."""
        self._wire = 0
        self._policy = policy
        self._inflate = _decoder(answer)
        announced = answer.head.first("content-length") or ""
        # Refused before a byte of the body is read; h11 has checked that the header is a number.
        if announced.isdecimal() and int(announced[:20]) > policy.max_wire_bytes:
            raise _too_large(f"has {int(announced[:20]):,}", policy.max_wire_bytes)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        most = self._policy.max_wire_bytes
        self._wire += len(chunk)
        if self._wire > most:
            raise _too_large(f"has more than {most:,}", most)
        most = self._policy.max_body_bytes
        for piece in (chunk,) if self._inflate is None else self._inflate.feed(chunk):
            self.size += len(piece)
            if self.size > _COUNTED * most:
                raise _too_large(f"decompresses to more than {_COUNTED * most:,}", most)
            if self.size <= most:
                yield piece

    def finish(self) -> None:
        """Check that the body is complete and within the limit; call it after the last bytes."""
        if self._inflate is not None:
            self._inflate.finish()
        if self.size > self._policy.max_body_bytes:
            raise _too_large(f"decompresses to {self.size:,}", self._policy.max_body_bytes)


_COUNTED = 4


def _decoder(answer: HttpResponse) -> Inflate | None:
    codings = content_codings(answer.head.list("content-encoding"))
    if not codings:
        return None
    if len(codings) > 1:
        raise FetchError(
            "bad_compression", f"The body is compressed {len(codings)} times; only one coding is read."
        )
    coding = _READ.get(codings[0])
    if coding is None:
        raise FetchError(
            "bad_compression",
            f"The body is compressed with {codings[0][:20]!r}, although the request accepts only gzip; "
            "the publisher has to fix it.",
        )
    return Inflate(coding)


_READ: Mapping[str, Coding] = {"gzip": "gzip", "deflate": "deflate"}
"""The codings that are read: gzip, and deflate, which servers send although the request did not offer it."""


def _too_large(size: str, limit: int) -> FetchError:
    return FetchError(
        "too_large",
        f"The body {size} bytes; at most {limit:,} are read.",
        advice="To read such a large feed, set max_size for it in feeds.yaml, or RSS_MAX_FEED_MB for all "
        "feeds.",
    )
