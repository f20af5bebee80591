"""gzip undone under our own eyes: in small steps, member after member, to its very end.

No HTTP and no caps: whoever reads the pieces counts them and stops. httpx's own decoder makes one
chunk of a bomb (257 bytes became 314 MB) and takes a truncated or a multi-member stream for whole.
"""

import zlib
from collections.abc import Iterator

from rss_pipeline.collector.http.errors import FetchError

STEP_BYTES = 64 * 1024
MAX_MEMBERS = 1_000
"""bgzip makes one of 64 KB; a stream of empty members would keep the processor busy for minutes."""

_GZIP = 16 + zlib.MAX_WBITS


class Gunzip:
    """Feed it the wire's bytes, take pieces of at most 64 KB. Raises `FetchError` (RFC 1952)."""

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
                    "The answer says it is gzip and is not, or is damaged; the publisher has to mend it.",
                ) from None
            if piece:
                yield piece
            if self._member.eof:
                data, self._member = self._member.unused_data, None
            else:
                data = self._member.unconsumed_tail

    def finish(self) -> None:
        """To be called at the end of the wire's bytes: raises where gzip's own end is missing."""
        if self._member is not None:
            raise FetchError("truncated", "The answer's gzip stops before its end; it is asked for again.")

    def _next_member(self, data: bytes) -> bytes:
        if self._members:
            data = data.lstrip(b"\0")  # gzip(1) and tapes pad with zeros
        if not data:
            return data
        if self._members and data[0] != 0x1F:
            raise FetchError("bad_compression", "The answer has something else after the end of its gzip.")
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise FetchError("bad_compression", f"The answer's gzip has more than {MAX_MEMBERS:,} members.")
        self._member = zlib.decompressobj(wbits=_GZIP)
        return data
