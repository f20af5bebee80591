"""gzip decompression in small steps, member by member, with a check that the stream is complete.

No HTTP and no limit on size: the caller counts the pieces and stops. httpx's own decoder returns a
decompression bomb as one chunk (257 bytes became 314 MB), and accepts a truncated or a multi-member stream
as complete.
"""

import zlib
from collections.abc import Iterator

from rss_pipeline.collector.http.errors import FetchError

STEP_BYTES = 64 * 1024
MAX_MEMBERS = 1_000
"""bgzip writes members of 64 KB; a stream of empty members would keep the processor busy for minutes."""

_GZIP = 16 + zlib.MAX_WBITS


class Gunzip:
    """Turns gzip bytes (RFC 1952) into pieces of at most 64 KB. Raises `FetchError`."""

    def __init__(self) -> None:
        self._member: zlib._Decompress | None = None
        self._members = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._member is None:
                data = self._next_member(data)
                if self._member is None:
                    return
            try:
                piece = self._member.decompress(data, STEP_BYTES)
            except zlib.error:
                raise FetchError(
                    "bad_compression",
                    "The body is declared as gzip but is not, or is damaged; the publisher has to fix it.",
                ) from None
            if piece:
                yield piece
            if self._member.eof:
                data, self._member = self._member.unused_data, None
            else:
                data = self._member.unconsumed_tail

    def finish(self) -> None:
        """Raise `FetchError` if the end of the gzip stream is missing; call it after the last bytes."""
        if self._member is not None:
            raise FetchError("truncated", "The gzip stream ends too early; the next visit requests it again.")

    def _next_member(self, data: bytes) -> bytes:
        if self._members:
            data = data.lstrip(b"\0")  # gzip(1) and tapes pad with zeros
        if not data:
            return data
        if self._members and data[0] != 0x1F:
            raise FetchError("bad_compression", "The body has other bytes after the end of its gzip stream.")
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise FetchError("bad_compression", f"The gzip stream has more than {MAX_MEMBERS:,} members.")
        self._member = zlib.decompressobj(wbits=_GZIP)
        return data
