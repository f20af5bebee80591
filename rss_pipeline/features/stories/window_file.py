"""The files of a window beside the search index.

They hold nothing that the database does not: whatever is wrong with them, `load` returns None and the window
is made again from the items of the last days. They are never in D1.

Each segment is a file that never changes: its columns, then its records, which are read when they are
needed, by place, so that a file that is deleted or cut short meanwhile is harmless. What changes is in one
small file, which is written beside and renamed: a line of JSON with the versions and the segments, then
tables and stories. So a poll writes its own items, and what is merged with them. No disk is waited
for: what a power cut tears is found.
"""

import json
import os
import secrets
import sys
import zlib
from array import array
from contextlib import suppress
from itertools import accumulate
from pathlib import Path

from rss_pipeline.errors import DatabaseUnavailable, file_error
from rss_pipeline.features.stories.judge import VERSION
from rss_pipeline.features.stories.segments import TYPES, Segment, lengths
from rss_pipeline.features.stories.window import Story, Window
from rss_pipeline.settings import Settings

FORMAT = 4
_MAGIC = b"rss-pipeline stories\n"
_COMPRESSED_UP_TO = 20_000
"""Items of a window whose tables are compressed: of a larger one they are a small part, and take time."""


def window_path(settings: Settings) -> Path:
    """The window of stories, which may be deleted at any time. Segments have its name with an ending."""
    return settings.home / "stories.window"


def save(window: Window, path: Path, *, database: str) -> None:
    """Write the window; a process that is killed, or has no room, meanwhile leaves the files as they were.

    `database` is a mark of the database whose items they are.

    Raises:
        DatabaseUnavailable: a file cannot be written.
    """
    window.items.seal()
    level = 1 if len(window) < _COMPRESSED_UP_TO else 0
    beside = path.with_name(f"{path.name}.new")
    new = [segment for segment in window.items.segments if not segment.name]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for segment in new:
            _write(segment, path, level)
        beside.write_bytes(_top(window, database, level))
        os.replace(beside, path)
    except OSError as error:
        # On a full disk they would take the room that the database needs.
        with suppress(OSError):
            for segment in new:
                path.with_name(f"{path.name}.{segment.name}").unlink(missing_ok=True)
                segment.name = ""
            beside.unlink(missing_ok=True)
        raise DatabaseUnavailable(file_error(f"{path} cannot be written", error, path.parent)) from error
    used = {segment.name for segment in window.items.segments}
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


def _write(segment: Segment, path: Path, level: int) -> None:
    name = secrets.token_hex(8)
    place = path.with_name(f"{path.name}.{name}")
    columns = zlib.compress(b"".join([each.tobytes() for each in segment.columns]), level)
    segment.name, segment.size = name, len(columns)
    with place.open("xb") as file:
        file.write(columns)
        file.write(segment.all_records())
    segment.read_from(os.open(place, os.O_RDONLY), segment.size)


def _read(path: Path, first: int, items: int, terms: int, name: str, size: int) -> Segment:
    with path.with_name(f"{path.name}.{name}").open("rb") as file:
        columns = [array(code) for code in TYPES]
        sizes = [each.itemsize * length for each, length in zip(columns, lengths(items, terms), strict=True)]
        # Without its length, it is copied a few times.
        data = memoryview(zlib.decompress(file.read(size), bufsize=sum(sizes)))
        for column, length in zip(columns, sizes, strict=True):
            column.frombytes(data[:length])
            data = data[length:]
        segment = Segment(first, columns)
        if os.fstat(file.fileno()).st_size != size + segment.ends[-1]:
            raise ValueError("another length")
        segment.name, segment.size = name, size
        segment.read_from(os.dup(file.fileno()), size)
    return segment


def _loaded(path: Path, database: str) -> Window | None:
    data = path.read_bytes()
    start = len(_MAGIC)
    line_end = data.index(b"\n", start)
    checksum, line = data[start : start + 8], data[start + 9 : line_end]
    if data[:start] != _MAGIC or int(checksum, 16) != zlib.crc32(memoryview(data)[start + 9 :]):
        return None
    header = json.loads(line)
    mine = {"format": FORMAT, "method": VERSION, "database": database, "order": sys.byteorder}
    if {name: header[name] for name in mine} != mine:
        return None
    tables, at = [], line_end + 1
    for length in header["tables"]:
        tables.append(zlib.decompress(data[at : at + length]))
        at += length
    window = Window()
    window.arrived = header["arrived"]
    window.frequencies.load(tables[0], header["totals"])
    window.boilerplate.load(tables[1], header["sentences"])
    window.items.load(header["first"], [_read(path, *each) for each in header["segments"]])
    window.load(_stories(*tables[2:8]))
    window.samples = [(start, table) for start, table in zip(header["samples"], tables[8:], strict=True)]
    return window


def _columns(stories: dict[int, Story]) -> list[bytes]:
    """Columns, as they are read in a fraction of the time that their lines in JSON took."""
    all_stories = stories.values()
    columns = (
        array("I", stories),
        array("d", [each.began for each in all_stories]),
        array("d", [each.latest for each in all_stories]),
        array("I", [len(each.members) for each in all_stories]),
    )
    ids = json.dumps([each.id for each in all_stories]).encode()
    members = b"".join([each.members.tobytes() for each in all_stories])
    return [*(each.tobytes() for each in columns), members, ids]


def _stories(
    numbers: bytes, began: bytes, latest: bytes, sizes: bytes, members: bytes, ids: bytes
) -> dict[int, Story]:
    lengths, whole = array("I", sizes), array("I", members)
    some = [whole[end - length : end] for length, end in zip(lengths, accumulate(lengths), strict=True)]
    stories = map(Story, json.loads(ids), array("d", began), array("d", latest), some)
    return dict(zip(array("I", numbers), stories, strict=True))


def _top(window: Window, database: str, level: int) -> bytes:
    tables = [
        zlib.compress(window.frequencies.seen, level),
        zlib.compress(window.boilerplate.seen, level),
        *(zlib.compress(column, level) for column in _columns(window.stories)),
        *(zlib.compress(sample, level) for _, sample in window.samples),
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
            [each.first, len(each.feeds), len(each.terms), each.name, each.size]
            for each in window.items.segments
        ],
        "samples": [start for start, _ in window.samples],
        "tables": [len(each) for each in tables],
    }
    rest = b"".join([json.dumps(header).encode(), b"\n", *tables])
    return b"".join([_MAGIC, b"%08x " % zlib.crc32(rest), rest])
