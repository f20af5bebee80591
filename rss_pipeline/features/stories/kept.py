"""Items as a window keeps them: packed, the older ones in its file, the newer ones in memory."""

import os
import weakref
import zlib
from array import array
from collections.abc import Iterator

from rss_pipeline.features.stories.model import Entry

TITLE_CHARACTERS = 300
_SEPARATOR = "\0"
_FIELDS = 7


def packed(entry: Entry, repeated: tuple[int, ...]) -> bytes:
    """The item, and the places of sentences that its feed had repeated."""
    fields = (
        entry.id,
        entry.feed,
        entry.title,
        entry.link or "",
        "" if entry.published is None else repr(entry.published),
        f"{entry.language or ''} {' '.join(map(str, repeated))}".rstrip(),
        entry.text,
    )
    text = _SEPARATOR.join(each.replace(_SEPARATOR, " ") for each in fields)
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 6)


def unpacked(data: bytes) -> tuple[Entry, tuple[int, ...]]:
    fields = zlib.decompress(data).decode("utf-8", "surrogatepass").split(_SEPARATOR)
    if len(fields) != _FIELDS:
        raise ValueError("not an item of a window")
    id, feed, title, link, published, language, text = fields
    language, _, repeated = language.partition(" ")
    return Entry(
        id=id,
        feed=feed,
        title=title,
        text=text,
        link=link or None,
        published=float(published) if published else None,
        language=language or None,
    ), tuple(map(int, repeated.split()))


class Kept:
    """The packed items in their order. Those that the file has are read from it when they are needed."""

    def __init__(self) -> None:
        self._newer: list[bytes] = []
        self._ends = array("Q", (0,))
        """Ends of the items in the file, behind the first byte of the first one."""
        self._file = -1
        self._start = 0

    def __len__(self) -> int:
        return len(self._ends) - 1 + len(self._newer)

    def append(self, data: bytes) -> None:
        self._newer.append(data)

    def __getitem__(self, at: int) -> bytes:
        older = len(self._ends) - 1
        if at >= older:
            return self._newer[at - older]
        start, end = self._ends[at], self._ends[at + 1]
        return os.pread(self._file, end - start, self._start + start)

    def __iter__(self) -> Iterator[bytes]:
        return map(self.__getitem__, range(len(self)))

    def forget(self, count: int) -> None:
        """Drop the first items."""
        older = min(count, len(self._ends) - 1)
        del self._ends[:older]
        del self._newer[: count - older]

    def moved(self, file: int, start: int, ends: "array[int]") -> None:
        """Take all items from an open file, which this closes when it is not needed any more."""
        self._file, self._start, self._ends, self._newer = file, start, ends, []
        weakref.finalize(self, os.close, file)


def readable(data: bytes) -> tuple[Entry, tuple[int, ...]]:
    """The item; an empty one where its file was damaged since it was opened."""
    try:
        return unpacked(data)
    except (zlib.error, ValueError):
        return Entry(id="", feed="", title="", text=""), ()
