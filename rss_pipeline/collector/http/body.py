"""Response bodies: content-decoded, counted, cut off at the policy's limits; a document goes to its file.

No decision on the content: documents are parsed later, and `fetch/image_body.py` checks images.
"""

import hashlib
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rss_pipeline.collector.http.client import FetchPolicy, HttpResponse
from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.http.headers import charset_of, content_codings
from rss_pipeline.errors import spooling

# gzip and deflate decompressed in small steps, with a check that the stream is complete.
#
# No HTTP and no limit on size: the caller counts the pieces and stops. httpx's own decoder returns a
# decompression bomb as one chunk (257 bytes became 314 MB), and accepts a truncated or a multi-member stream
# as complete.

Coding = Literal["gzip", "deflate"]

STEP_BYTES = 64 * 1024
MAX_MEMBERS = 1_000
"""bgzip writes members of 64 KB; a stream of empty members would keep the processor busy for minutes."""

_MAGIC = b"\x1f\x8b\x08"
_GZIP, _ZLIB, _RAW = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS


class Inflate:
    """Turns gzip bytes (RFC 1952), or those of deflate (RFC 1950, or RFC 1951 alone as many servers send it),
    into pieces of at most 64 KB. Raises `FetchError`.

    All members of a gzip stream are read. What follows a complete member, or a complete deflate stream, and
    is no member is ignored, as gzip(1) and browsers do: scripts print a line break behind their output.
    """

    def __init__(self, coding: Coding) -> None:
        self._coding = coding
        self._member: zlib._Decompress | None = None
        self._members = 0
        self._held = b""
        """Bytes too few to tell what begins with them."""
        self._is_over = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data and not self._is_over:
            if self._member is None:
                data = self._begin(self._held + data)
                if self._member is None:
                    return
            try:
                piece = self._member.decompress(data, STEP_BYTES)
            except zlib.error:
                raise FetchError(
                    "bad_compression",
                    f"The body is declared as {self._coding} but is not, or is damaged; the publisher has to "
                    "fix it.",
                ) from None
            if piece:
                yield piece
            if self._member.eof:
                data, self._member = self._member.unused_data, None
            else:
                data = self._member.unconsumed_tail

    def finish(self) -> None:
        """Raise `FetchError` if the end of the stream is missing; call it after the last bytes."""
        if self._member is not None or self._held:
            raise FetchError(
                "truncated", f"The {self._coding} stream ends too early; the next visit requests it again."
            )

    def _begin(self, data: bytes) -> bytes:
        """The bytes that a new member begins with; none if `data` is held until there is more, or ignored."""
        self._held = b""
        wbits: int | None
        if self._members:
            data = data.lstrip(b"\0")  # gzip(1) and tapes pad with zeros
            wbits = _GZIP if self._coding == "gzip" and data.startswith(_MAGIC) else None
            # A stream that was cut off within the head of its next member is not complete.
            is_open = self._coding == "gzip" and _MAGIC.startswith(data)
        else:
            wbits = _GZIP if self._coding == "gzip" else _deflate_wbits(data)
            is_open = wbits is None
            if wbits == _GZIP:
                self._coding = "gzip"
        if wbits is None:
            self._held, self._is_over = (data, False) if is_open else (b"", True)
            return b""
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise FetchError("bad_compression", f"The gzip stream has more than {MAX_MEMBERS:,} members.")
        self._member = zlib.decompressobj(wbits=wbits)
        return data


def _deflate_wbits(start: bytes) -> int | None:
    """The format that the first two bytes of a `deflate` body are in; None if there are fewer."""
    if len(start) < 2:
        return None
    if start.startswith(_MAGIC[:2]):  # a wrong name; no deflate data begin so
        return _GZIP
    has_head = start[0] & 0x0F == 8 and int.from_bytes(start[:2], "big") % 31 == 0  # RFC 1950 2.2
    return _ZLIB if has_head else _RAW


@dataclass(frozen=True, slots=True)
class SpooledBody:
    """A body in the spool: its size in bytes, and its hash as `Document.content_hash` defines it."""

    size: int
    content_hash: str


async def save_body(answer: HttpResponse, path: Path, *, policy: FetchPolicy) -> SpooledBody:
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
    return SpooledBody(decoder.size, digest.hexdigest())


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
        self._is_coded = self._inflate is not None
        announced = answer.head.first("content-length") or ""
        # Refused before a byte of the body is read; h11 has checked that the header is a number.
        if announced.isdecimal() and int(announced[:20]) > policy.max_wire_bytes:
            raise _too_large(f"has {int(announced[:20]):,}", policy.max_wire_bytes)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        most = self._policy.max_wire_bytes
        self._wire += len(chunk)
        if self._wire > most:
            raise _too_large(f"has more than {most:,}", most)
        if not self._is_coded and self._wire == len(chunk) and chunk.startswith(_MAGIC):
            # A file that somebody packed, feed.xml.gz, or a server that does not say that it packs.
            self._inflate = Inflate("gzip")
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
