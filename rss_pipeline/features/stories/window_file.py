"""The files of a window beside the search index.

They hold nothing that the database does not: whatever is wrong with them, `load` returns None and the window
is made again from the items of the last days. They are never in D1.

Each segment is a file that never changes: its columns, then its records, which are read when they are
needed, by place, so that a file that is deleted or cut short meanwhile is harmless. The counts of terms and
sentences are in another file that never changes. What changes is in one small file, which is written beside
and renamed: a line of JSON with the versions and the other files, then the newest items, what was counted
since the counts were written, and stories. So most polls write this file alone. No disk is waited for: what a
power cut tears is found.
"""

import json
import os
import secrets
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import reduce
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

from rss_pipeline.errors import DatabaseUnavailable, file_error
from rss_pipeline.features.stories.judge import VERSION
from rss_pipeline.features.stories.segments import Newest, Segment, empty
from rss_pipeline.features.stories.window import Story, Window
from rss_pipeline.settings import Settings

FORMAT = 6
_MAGIC = b"rss-pipeline stories\n"
_COMPRESSED_UP_TO = 4_000
"""Items of a window whose counts are compressed: of a larger one they are a small part, and take time."""


def window_path(settings: Settings) -> Path:
    """The window of stories, which may be deleted at any time. Segments have its name with an ending."""
    return settings.home / "stories.window"


def save(window: Window, path: Path, *, database: str) -> None:
    """Write the window; a process that is killed, or has no room, meanwhile leaves the files as they were.

    `database` is a mark of the database whose items they are.

    Raises:
        DatabaseUnavailable: a file cannot be written.
    """
    beside = path.with_name(f"{path.name}.new")
    new = [segment for segment in window.items.segments if not segment.name]
    counts = window.counts
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for segment in new:
            _write(segment, path)
        if window.frequencies.changes is None or not window.boilerplate.is_written:
            _write_counts(window, path)
        beside.write_bytes(_top(window, database))
        os.replace(beside, path)
    except OSError as error:
        window.frequencies.changes = None
        # On a full disk they would take the room that the database needs.
        with suppress(OSError):
            for segment in new:
                path.with_name(f"{path.name}.{segment.name}").unlink(missing_ok=True)
                segment.name = ""
            if window.counts != counts:
                path.with_name(f"{path.name}.{window.counts[0]}").unlink(missing_ok=True)
            beside.unlink(missing_ok=True)
        raise DatabaseUnavailable(file_error(f"{path} cannot be written", error, path.parent)) from error
    used = {window.counts[0], *(segment.name for segment in window.items.segments)}
    for each in path.parent.glob(f"{path.name}.*"):
        if each.name.removeprefix(f"{path.name}.") not in used:
            # Another time.
            with suppress(OSError):
                each.unlink(missing_ok=True)


def load(path: Path, *, database: str) -> Window | None:
    """Return the window that was saved, None where there is none that can be used."""
    try:
        return _loaded(path, database)
    except (OSError, ValueError, KeyError, TypeError, IndexError, zlib.error):
        return None


def _write(segment: Segment, path: Path) -> None:
    segment.name, segment.checksum = secrets.token_hex(8), _checksum(segment.columns)
    place = path.with_name(f"{path.name}.{segment.name}")
    with place.open("xb") as file:
        for column in segment.columns:
            file.write(column)
        file.write(segment.all_records())
    segment.read_from(os.open(place, os.O_RDONLY))


def _read(path: Path, first: int, items: int, terms: int, name: str, checksum: int) -> Segment:
    columns = empty(items, terms)
    with path.with_name(f"{path.name}.{name}").open("rb", buffering=0) as file:
        for column in columns:
            file.readinto(column)
        segment = Segment(first, columns)
        size = file.tell() + segment.ends[-1]
        if _checksum(columns) != checksum or os.fstat(file.fileno()).st_size != size:
            raise ValueError("it is torn, or damaged")
        segment.name, segment.checksum = name, checksum
        segment.read_from(os.dup(file.fileno()))
    return segment


def _checksum(columns: "Iterable[array[Any]]") -> int:
    return reduce(lambda checksum, column: zlib.crc32(column, checksum), columns, 0)


def _write_counts(window: Window, path: Path) -> None:
    many = window.frequencies.many
    tables = window.frequencies.seen, array("I", [*many, *many.values()]), window.boilerplate.known
    level = 1 if len(window) < _COMPRESSED_UP_TO else 0
    # Small numbers and hashes: there are no runs to look for.
    packer = zlib.compressobj(level, strategy=zlib.Z_HUFFMAN_ONLY)
    data = b"".join([*(packer.compress(each) for each in tables), packer.flush()])
    window.counts = secrets.token_hex(8), _lengths(tables)
    with path.with_name(f"{path.name}.{window.counts[0]}").open("xb") as file:
        file.write(data)
    window.frequencies.changes, window.boilerplate.is_written = array("I"), True


def _loaded(path: Path, database: str) -> Window | None:
    data = path.read_bytes()
    start = len(_MAGIC)
    line_end = data.index(b"\n", start)
    checksum, line, rest = data[start : start + 8], data[start + 9 : line_end], memoryview(data)
    if data[:start] != _MAGIC or int(checksum, 16) != zlib.crc32(rest[start + 9 :]):
        return None
    header = json.loads(line)
    mine = {"format": FORMAT, "method": VERSION, "database": database, "order": sys.byteorder}
    if {name: header[name] for name in mine} != mine:
        return None
    types = f"{Newest.TYPES}II{_OF_STORIES}{_OF_TITLES}{'B' * len(header['samples'])}"
    tables = _tables(types, header["tables"], rest[line_end + 1 :])
    newest, tables = tables[: len(Newest.TYPES)], tables[len(Newest.TYPES) :]
    window = Window()
    window.arrived = header["arrived"]
    window.counts = name, sizes = header["counts"]
    counts = zlib.decompress(path.with_name(f"{path.name}.{name}").read_bytes(), bufsize=sum(sizes))
    seen, many, known = _tables("BII", sizes, memoryview(counts))
    window.frequencies.load(seen, many, header["totals"], tables[0])
    window.boilerplate.load(known, tables[1], header["sentences"])
    segments = [_read(path, *each) for each in header["segments"]]
    window.items.load(header["first"], segments, Newest(header["newest"], newest))
    window.load(_stories(*tables[2:8]))
    last, before = len(_OF_STORIES) + 2, len(_OF_STORIES) + 4
    window.titles.last = dict(zip(*tables[last:before], strict=True))
    window.titles.before = dict(zip(*tables[before : before + 2], strict=True))
    window.samples = [*zip(header["samples"], map(bytes, tables[before + 2 :]), strict=True)]
    return window


def _lengths(tables: "Iterable[array[Any] | bytes | bytearray]") -> list[int]:
    return [memoryview(each).nbytes for each in tables]


def _tables(types: str, lengths: Sequence[int], data: memoryview) -> list[Any]:
    """The arrays of these types and lengths (bytes) that follow each other; those of type B as bytes."""
    found: list[Any] = []
    for code, length in zip(types, lengths, strict=False):
        if code == "B":
            found.append(bytearray(data[:length]))
        else:
            found.append(array(code))
            found[-1].frombytes(data[:length])
        data = data[length:]
    return found


_OF_STORIES, _OF_TITLES = "IddIIB", "IHIH"


def _columns(stories: dict[int, Story]) -> "list[array[Any]]":
    """Columns, as they are read in a fraction of the time that their lines in JSON took."""
    all_stories = stories.values()
    return [
        array("I", stories),
        array("d", [each.began for each in all_stories]),
        array("d", [each.latest for each in all_stories]),
        array("I", [len(each.members) for each in all_stories]),
        array("I", chain.from_iterable(each.members for each in all_stories)),
        array("B", json.dumps([each.id for each in all_stories]).encode()),
    ]


def _stories(
    numbers: "array[int]",
    began: "array[float]",
    latest: "array[float]",
    sizes: "array[int]",
    members: "array[int]",
    ids: "array[int]",
) -> dict[int, Story]:
    some = [members[end - length : end] for length, end in zip(sizes, accumulate(sizes), strict=True)]
    return dict(zip(numbers, map(Story, json.loads(bytes(ids)), began, latest, some), strict=True))


def _days(window: Window) -> "Iterator[tuple[Iterable[int], Iterable[int]]]":
    for days in (window.titles.last, window.titles.before):
        yield days.keys(), days.values()


def _top(window: Window, database: str) -> bytes:
    tables = [
        *window.items.newest.columns,
        window.frequencies.changes or array("I"),
        window.boilerplate.changes,
        *_columns(window.stories),
        *(array(code, each) for days in _days(window) for code, each in zip("IH", days, strict=True)),
        *(sample for _, sample in window.samples),
    ]
    header = {
        "format": FORMAT,
        "method": VERSION,
        "database": database,
        "order": sys.byteorder,
        "arrived": window.arrived,
        "first": window.items.first,
        "totals": window.frequencies.totals,
        "sentences": window.boilerplate.added,
        "segments": [
            [each.first, len(each.feeds), len(each.terms), each.name, each.checksum]
            for each in window.items.segments
        ],
        "newest": window.items.newest.first,
        "counts": window.counts,
        "samples": [start for start, _ in window.samples],
        "tables": _lengths(tables),
    }
    rest = b"".join([json.dumps(header).encode(), b"\n", *tables])
    return b"".join([_MAGIC, b"%08x " % zlib.crc32(rest), rest])
