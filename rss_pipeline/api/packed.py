"""Bytes that are kept compressed: an answer of gzip is put together from them, nothing is compressed again.

A part ends with a full flush (zlib's Z_FULL_FLUSH): it ends with a whole byte, and what follows refers to
nothing in it. So parts in any order are one stream of deflate (RFC 1951), and with a head and the checksum of
all bytes one of gzip (RFC 1952).
"""

import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

_LEVEL = 5
_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_END = b"\x03\0"
"""The last block, an empty one."""
_KEPT_SECONDS = 3600.0
_ENTRY_BYTES = 1_000
"""Size of a kept part beside its bytes: its key with the values in it, its version, the entry."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Bytes as they are and as deflate."""

    plain: bytes
    deflated: bytes

    @classmethod
    def of(cls, plain: bytes) -> "Packed":
        """These bytes. Takes some 0.1 ms for 4 KB."""
        compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        return cls(plain, compressor.compress(plain) + compressor.flush(zlib.Z_FULL_FLUSH))

    @classmethod
    def short(cls, plain: bytes) -> "Packed":
        """At most 65,535 bytes, not made smaller: it costs nothing."""
        size = len(plain).to_bytes(2, "little")
        return cls(plain, b"\0" + size + bytes([255 - byte for byte in size]) + plain)

    @property
    def size(self) -> int:
        return len(self.plain) + len(self.deflated)


def plain(parts: Iterable[Packed]) -> bytes:
    """The bytes of all parts."""
    return b"".join([part.plain for part in parts])


def gzip(parts: Sequence[Packed]) -> bytes:
    """The bytes of all parts as gzip."""
    whole = plain(parts)
    tail = zlib.crc32(whole).to_bytes(4, "little") + (len(whole) & 0xFFFFFFFF).to_bytes(4, "little")
    return b"".join([_HEAD, *[part.deflated for part in parts], _END, tail])


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

    def known(self, key: Hashable, version: str = "") -> Packed | None:
        """The part that is kept under this key in this version."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or kept[0] != version or kept[2] <= self._seconds():
                return None
            self._kept.move_to_end(key)
            return kept[1]

    def known_of(self, keys: Iterable[tuple[Hashable, str]]) -> list[Packed] | None:
        """`known` of these keys in these versions; None if one of them is not kept."""
        now, found = self._seconds(), list[Packed]()
        with self._lock:
            for key, version in keys:
                kept = self._kept.get(key)
                if kept is None or kept[0] != version or kept[2] <= now:
                    return None
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
