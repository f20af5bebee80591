"""Items into a file: JSON lines, or Parquet where pyarrow is installed.

Whole or not at all: a file appears under its name once it is complete. Items are read by feed_reader.py; the
command is cli's.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Literal, Protocol, Self, get_args

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import Member
from rss_pipeline.collector.models.plain_text import json_text
from rss_pipeline.errors import ExportRefused, disk_full, disk_is_full
from rss_pipeline.extras import PARQUET
from rss_pipeline.pipeline.read.feed_reader import FeedReader, Since, position
from rss_pipeline.progress import Progress
from rss_pipeline.storage.items.cursor import Position
from rss_pipeline.storage.items.stored_items import StoredItem, feeds_with_items

# The names of the formats of an export, apart: the command lists them without its parsers.

Format = Literal["jsonl", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)


ROWS_AT_ONCE = 2_000
CHARACTERS_AT_ONCE = 8_000_000
"""Size of a row group of Parquet, which is kept in memory until it is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """The result of an export. The next one starts at `cursor`, behind all that was stored before."""

    items: int
    feeds: int
    cursor: str


def export(
    reader: FeedReader,
    target: Path | IO[bytes],
    *,
    format: Format,
    feeds: Sequence[str] | None = None,
    since: Since = None,
    html: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write the items of these feeds (ids, or `feed/stream`; None: of all feeds) that came in behind `since`,
    feed by feed.

    What comes in meanwhile is left to the next export, which starts at the `cursor` of this one's result. A
    row has the fields of `StoredItem`; `html` only where it is requested. Memory does not grow with the
    number of items. A file at `target`, or where a link there leads, is replaced at the end, at once; an open
    one, a pipe or a device is written to as it is.

    Raises:
        ExportRefused: pyarrow is missing, or the file cannot be written.
        ValueError: `since` is not a cursor of this project, or a datetime without a time zone.
        InfrastructureError: a store cannot be read now; the file is as it was.
    """
    writer_of = _writer(format)
    until, start = Position.of(reader.end()), position(since)
    streams = None if feeds is None else _streams(feeds)
    ids = [id for id in feeds_with_items(reader.database, since=start) if streams is None or id in streams]
    if progress is not None:
        progress.begin("export", len(ids))
    written = 0
    with _opened(target) as file, writer_of(file, html) as writer:
        for id in ids:
            wanted = None if streams is None else streams[id]
            for item in reader.items(id, streams=wanted, since=since, html=html):
                if Position.of(item.cursor) > until:
                    break
                writer.write(item)
                written += 1
            if progress is not None:
                progress.advance("export")
    return Exported(items=written, feeds=len(ids), cursor=str(until))


def _streams(members: Iterable[str]) -> dict[str, list[str] | None]:
    """The streams of each feed; None where the feed itself is among the members."""
    found: dict[str, list[str] | None] = {}
    for member in map(Member.of, members):
        streams = found.setdefault(member.feed_id, [])
        if member.stream is None:
            found[member.feed_id] = None
        elif streams is not None:
            streams.append(member.stream)
    return found


@contextmanager
def _opened(target: Path | IO[bytes]) -> Iterator[IO[bytes]]:
    if not isinstance(target, Path):
        yield target
        return
    # A link stays, and the file that it leads to is replaced.
    place = Path(os.path.realpath(target))
    partial = place.with_name(f".{place.name}.{os.getpid()}.partial")
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                yield file
            return
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(place)
    except OSError as error:
        if disk_is_full(error):
            raise ExportRefused(f"{disk_full(place.parent)}. {target} was not written") from error
        raise ExportRefused(f"{target}: {error.strerror or error}; check the folder and the disk") from error
    finally:
        partial.unlink(missing_ok=True)


class _Writer(Protocol):
    def __enter__(self) -> Self: ...

    def __exit__(self, kind: object, *error: object) -> None: ...

    def write(self, item: StoredItem) -> None: ...


def _writer(format: Format) -> Callable[[IO[bytes], bool], _Writer]:
    if format == "jsonl":
        return _JsonLines
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise ExportRefused(f"{PARQUET.not_imported(error)} Or export jsonl.") from error
    return _Parquet


class _JsonLines:
    """A JSON object a line, UTF-8, instants as `YYYY-MM-DDTHH:MM:SSZ`."""

    def __init__(self, file: IO[bytes], html: bool) -> None:
        self._file = file
        self._html = html

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *error: object) -> None: ...

    def write(self, item: StoredItem) -> None:
        row = {name: _plain(value) for name, value in _fields(item, html=self._html)}
        self._file.write(json_text(row, separators=(",", ":")).encode() + b"\n")


def _plain(value: Any) -> Any:
    return instant(value) if isinstance(value, datetime) else value


def _fields(item: StoredItem, *, html: bool) -> Iterator[tuple[str, Any]]:
    for name in _names(html=html):
        value = getattr(item, name)
        if name == "enclosures":
            yield name, [asdict(enclosure) for enclosure in value]
        else:
            yield name, list(value) if isinstance(value, tuple) else value


def _names(*, html: bool) -> Iterable[str]:
    return [field.name for field in fields(StoredItem) if html or field.name != "html"]


class _Parquet:
    """Row groups of bounded size, compressed with zstd; instants as timestamps in UTC."""

    def __init__(self, file: IO[bytes], html: bool) -> None:
        import pyarrow.parquet

        self._arrow: Any = pyarrow
        self._schema = _schema(html=html)
        self._file = pyarrow.parquet.ParquetWriter(file, self._schema, compression="zstd")
        self._html = html
        self._rows: list[dict[str, Any]] = []
        self._characters = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        try:
            if kind is None:
                self._flush()
        finally:
            self._file.close()

    def write(self, item: StoredItem) -> None:
        row = dict(_fields(item, html=self._html))
        self._rows.append(row)
        self._characters += sum(len(value) for value in row.values() if isinstance(value, str))
        if len(self._rows) >= ROWS_AT_ONCE or self._characters >= CHARACTERS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._file.write_table(self._arrow.Table.from_pylist(self._rows, schema=self._schema))
        self._rows, self._characters = [], 0


def _schema(*, html: bool) -> Any:
    import pyarrow as pa

    moment = pa.timestamp("ms", tz="UTC")
    enclosure = pa.struct([("url", pa.string()), ("type", pa.string()), ("length", pa.int64())])
    others = {
        "published_at": moment,
        "updated_at": moment,
        "collected_at": moment,
        "is_dated": pa.bool_(),
        "authors": pa.list_(pa.string()),
        "categories": pa.list_(pa.string()),
        "enclosures": pa.list_(enclosure),
    }
    required = {"id", "feed_id", "guid", "published_at", "is_dated", "collected_at", "cursor"}
    return pa.schema(
        pa.field(name, others.get(name, pa.string()), nullable=name not in required)
        for name in _names(html=html)
    )
