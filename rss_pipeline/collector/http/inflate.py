"""gzip and deflate decompressed in small steps, with a check that the stream is complete.

No HTTP and no limit on size: the caller counts the pieces and stops. httpx's own decoder returns a
decompression bomb as one chunk (257 bytes became 314 MB), and accepts a truncated or a multi-member stream
as complete.
"""

import zlib
from collections.abc import Iterator
from typing import Literal

from rss_pipeline.collector.http.errors import FetchError

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
