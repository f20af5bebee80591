"""Bytes that are kept compressed: an answer of gzip is put together from them, nothing is compressed again.

A part ends with a full flush (zlib's Z_FULL_FLUSH): it ends with a whole byte, and what follows refers to
nothing in it. So parts in any order are one stream of deflate (RFC 1951), and with a head and the checksum of
all bytes one of gzip (RFC 1952).
"""

import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from rss_pipeline.collector.sanitize.item_body import Pieces
from rss_pipeline.fast_zlib import compressobj

_LEVEL = 1
"""A third of the time of higher ones for some tenth more bytes: an app loads each item once."""
_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_END = b"\x03\0"
"""The last block, an empty one."""
_COPIED_BYTES = 1_000_000
_KEPT_SECONDS = 3600.0
_ENTRY_BYTES = 1_000
"""Size of a kept part beside its bytes: its key with the values in it, its version, the entry."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Bytes as they are, and as deflate where a client has needed that."""

    pieces: Pieces
    deflated: bytes | None = None
    length: int = field(init=False)
    """Bytes as they are: each answer asks for it, so that it is counted once."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", sum(map(len, self.pieces)))

    @classmethod
    def of(cls, *pieces: bytes | memoryview) -> "Packed":
        """These bytes with both. Takes some 0.1 ms for 4 KB."""
        compressor = compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        # Put together for this, it stays so: a body with images has dozens of pieces, and each answer looks
        # at every one.
        whole = b"".join(pieces)
        deflated = compressor.compress(whole)
        return cls((whole,), deflated + compressor.flush(zlib.Z_FULL_FLUSH))

    @classmethod
    def short(cls, plain: bytes) -> "Packed":
        """At most 65,535 bytes, not made smaller: it costs nothing."""
        size = len(plain).to_bytes(2, "little")
        return cls((plain,), b"\0" + size + bytes([255 - byte for byte in size]) + plain)

    @property
    def size(self) -> int:
        """Bytes of both."""
        return self.length + len(self.deflated or b"")


def plain(parts: Iterable[Packed]) -> bytes:
    """The bytes of all parts."""
    return b"".join([piece for part in parts for piece in part.pieces])


def gzip(parts: Sequence[Packed]) -> bytes:
    """The bytes of all parts as gzip. Each is there as deflate."""
    stream = GzipStream()
    return stream.of(parts) + stream.end()


class GzipStream:
    """Parts as one stream of gzip, some at a time."""

    def __init__(self) -> None:
        self._head = _HEAD
        self._crc = self._size = 0

    def of(self, parts: Sequence[Packed]) -> bytes:
        """The next parts."""
        head, self._head = self._head, b""
        size = sum([part.length for part in parts])
        self._size += size
        # Many short pieces take longer one by one than to be copied.
        pieces = (
            (plain(parts),) if size <= _COPIED_BYTES else chain.from_iterable([part.pieces for part in parts])
        )
        for piece in pieces:
            self._crc = zlib.crc32(piece, self._crc)
        return b"".join([head, *[part.deflated or Packed.of(*part.pieces).deflated or b"" for part in parts]])

    def end(self) -> bytes:
        """The rest, behind all parts."""
        return _END + self._crc.to_bytes(4, "little") + (self._size & 0xFFFFFFFF).to_bytes(4, "little")


class PackedParts:
    """Parts by key and version, of limited size and age. Safe to call from several threads."""

    def __init__(self, *, seconds: Callable[[], float], most_bytes: int) -> None:
        """`seconds` is a clock that never goes back (time.monotonic)."""
        self._seconds = seconds
        self._most = most_bytes
        self._size = 0
        self._kept: OrderedDict[Hashable, tuple[str, Packed, float]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes of what is kept."""
        return self._size

    def known(self, keys: Iterable[tuple[Hashable, str]]) -> list[Packed | None]:
        """The parts that are kept under these keys in these versions, and None for the others."""
        now, found = self._seconds(), list[Packed | None]()
        with self._lock:
            for key, version in keys:
                kept = self._kept.get(key)
                if kept is None or kept[0] != version or kept[2] <= now:
                    found.append(None)
                else:
                    self._kept.move_to_end(key)
                    found.append(kept[1])
        return found

    def keep(self, key: Hashable, part: Packed, version: str = "") -> Packed:
        """Keep this part, and return it; those that were used longest ago make room."""
        with self._lock:
            before = self._kept.pop(key, None)
            if before is not None:
                self._size -= before[1].size + _ENTRY_BYTES
            if part.size <= self._most // 4:
                self._kept[key] = (version, part, self._seconds() + _KEPT_SECONDS)
                self._size += part.size + _ENTRY_BYTES
            while self._size > self._most:
                _, (_, gone, _) = self._kept.popitem(last=False)
                self._size -= gone.size + _ENTRY_BYTES
        return part
