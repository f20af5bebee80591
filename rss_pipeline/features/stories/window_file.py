"""The file of a window beside the search index: written whole and renamed, checked as it is read.

It holds nothing that the database does not: whatever is wrong with it, `load` returns None and the window is
made again from the items of the last days. It is never in D1.

A line of JSON with the versions and the lengths and checksums of what follows: the columns, the tables of
frequencies, the stories, the packed items. Those are the largest part and are read when they are needed, by
place, so that a file that another process replaced or cut short is harmless.
"""

import json
import os
import sys
import zlib
from array import array
from pathlib import Path
from typing import BinaryIO

from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.features.stories.judge import VERSION
from rss_pipeline.features.stories.window import Story, Window
from rss_pipeline.settings import Settings

FORMAT = 2
_MAGIC = b"rss-pipeline stories\n"
_CHUNK = 1 << 20
_COMPRESSED = ("feeds", "times", "seen", "story_of", "vector_ends", "vector_weights")


def window_path(settings: Settings) -> Path:
    """The window of stories, which may be deleted at any time."""
    return settings.home / "stories.window"


def save(window: Window, path: Path, *, database: str) -> None:
    """Write the window; a process that is killed meanwhile leaves the file as it was.

    `database` is a mark of the database whose items they are.

    Raises:
        DatabaseUnavailable: the file cannot be written.
    """
    beside = path.with_name(f"{path.name}.new")
    columns = _columns(window)
    parts = [(_shuffled(part), last) for part, last in window.postings.parts()]
    columns["postings"] = b"".join(data for data, _ in parts)
    # The packed items are written twice at most: their checksum stands before them.
    ends, checksum = array("Q", (0,)), 0
    for data in window.kept:
        checksum = zlib.crc32(data, checksum)
        ends.append(ends[-1] + len(data))
    columns["ends"] = zlib.compress(ends, 1)
    header = {
        "format": FORMAT,
        "method": VERSION,
        "database": database,
        "order": sys.byteorder,
        "arrived": window.arrived,
        "first": window.first,
        "totals": window.frequencies.totals,
        "sentences": window.boilerplate.added,
        "postings": [[len(data), last] for data, last in parts],
        "columns": [[name, len(data), zlib.crc32(data)] for name, data in columns.items()],
        "items": [ends[-1], checksum],
    }
    line = json.dumps(header).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(beside, "wb") as file:
            file.write(_MAGIC + b"%08x " % zlib.crc32(line) + line + b"\n")
            file.writelines(columns.values())
            start = file.tell()
            for data in window.kept:
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        # What was written is read from there from now on.
        window.kept.moved(os.open(path, os.O_RDONLY), start, ends)
    except OSError as error:
        raise DatabaseUnavailable(f"{path}: {error}; check the path, its rights and the disk") from error


def load(path: Path, *, database: str) -> Window | None:
    """Return the window that was saved, None where there is none that can be used."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        with os.fdopen(os.dup(file), "rb") as opened:
            window = _loaded(opened, file, database)
    except (OSError, ValueError, KeyError, TypeError, IndexError, zlib.error, EOFError):
        window = None
    if window is None:
        os.close(file)
    return window


def _columns(window: Window) -> dict[str, bytes | memoryview]:
    columns: dict[str, bytes | memoryview] = {
        name: zlib.compress(getattr(window, name), 1) for name in _COMPRESSED
    }
    # Hashes are as long compressed as they are.
    columns["vector_terms"] = memoryview(window.vector_terms).cast("B")
    columns["frequencies"] = window.frequencies.dumped()
    columns["boilerplate"] = window.boilerplate.dumped()
    stories = [[number, each.id, each.began, each.latest] for number, each in window.stories.items()]
    columns["stories"] = zlib.compress(json.dumps(stories).encode(), 1)
    return columns


def _loaded(opened: BinaryIO, file: int, database: str) -> Window | None:
    if opened.read(len(_MAGIC)) != _MAGIC:
        return None
    checksum, _, line = opened.readline().rstrip(b"\n").partition(b" ")
    if int(checksum, 16) != zlib.crc32(line):
        return None
    header = json.loads(line)
    mine = {"format": FORMAT, "method": VERSION, "database": database, "order": sys.byteorder}
    if {name: header[name] for name in mine} != mine:
        return None
    window = Window()
    others: dict[str, bytes] = {}
    for name, length, wanted in header["columns"]:
        data = opened.read(length)
        if len(data) != length or zlib.crc32(data) != wanted:
            return None
        if name in _COMPRESSED:
            setattr(window, name, array(getattr(window, name).typecode, zlib.decompress(data)))
        elif name == "vector_terms":
            window.vector_terms = array("I", data)
        else:
            others[name] = data
    start = opened.tell()
    length, wanted = header["items"]
    if _checksum(opened, length) != wanted:
        return None
    window.arrived, window.first = header["arrived"], header["first"]
    window.frequencies.load(others["frequencies"], header["totals"])
    window.boilerplate.load(others["boilerplate"], header["sentences"])
    window.postings.load(_parts(others["postings"], header["postings"]))
    window.kept.moved(file, start, array("Q", zlib.decompress(others["ends"])))
    window.index(
        {
            number: Story(id, began, latest)
            for number, id, began, latest in json.loads(zlib.decompress(others["stories"]))
        }
    )
    return window


def _shuffled(part: "array[int]") -> bytes:
    """The numbers of 8 bytes that rise, by place of their bytes: half of these are hardly compressed else."""
    data = part.tobytes()
    return zlib.compress(b"".join(data[place::8] for place in range(8)), 1)


def _parts(data: bytes, shapes: list[list[int]]) -> "list[tuple[array[int], int]]":
    found, start = [], 0
    for length, last in shapes:
        planes = zlib.decompress(data[start : start + length])
        count = len(planes) // 8
        part = bytearray(len(planes))
        for place in range(8):
            part[place::8] = planes[place * count : (place + 1) * count]
        found.append((array("Q", part), last))
        start += length
    return found


def _checksum(opened: BinaryIO, length: int) -> int | None:
    checksum = 0
    while length:
        data = opened.read(min(length, _CHUNK))
        if not data:
            return None
        checksum, length = zlib.crc32(data, checksum), length - len(data)
    return None if opened.read(1) else checksum
