"""Answers that are put together from compressed parts."""

import gzip as reference
from datetime import UTC, datetime

import orjson
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.api.google_reader.stream_entries import (
    Origin,
    StreamEntry,
    entry_as_json,
    own_part,
    shared_part,
)
from rss_pipeline.api.gzip_member import GzipStream, Packed, PackedParts, gzip, plain

PARTS = st.lists(
    st.one_of(
        st.binary(max_size=300).map(Packed.of),
        st.tuples(st.binary(max_size=300), st.binary(max_size=300)).map(Packed),
        st.binary(max_size=300).map(lambda text: Packed.of(text * 500, text)),
        st.binary(max_size=300).map(Packed.short),
        st.just(Packed.short(b"x" * 65_535)),
    ),
    max_size=8,
)


@given(PARTS)
def test_parts_in_any_order_are_one_stream_of_gzip(parts: list[Packed]) -> None:
    # Checks the checksum and the length as well.
    stream = GzipStream()
    pieces = [stream.of(parts[:3]), stream.of(()), stream.of(parts[3:]), stream.end()]
    assert reference.decompress(b"".join(pieces)) == plain(parts)
    assert (
        reference.decompress(gzip(parts)) == plain(parts) == b"".join(b"".join(part.pieces) for part in parts)
    )


@given(
    title=st.text(),
    folder=st.none() | st.text(),
    html=st.text(),
    categories=st.lists(st.text()),
    is_read=st.booleans(),
    is_starred=st.booleans(),
)
def test_both_parts_of_an_item_are_the_item(
    title: str, folder: str | None, html: str, categories: list[str], is_read: bool, is_starred: bool
) -> None:
    origin = Origin(feed_id="a", title=title, url="https://a.example/", site=None, folder=folder)
    entry = StreamEntry(
        number=1_763_822_000_123_456,
        origin=origin,
        title=title,
        link=None,
        authors=("Ann",),
        published=datetime(2025, 11, 1, tzinfo=UTC),
        updated=datetime(2025, 11, 2, tzinfo=UTC),
        html_json=(orjson.dumps(html)[:3], memoryview(orjson.dumps(html))[3:]),
        categories=tuple(categories),
        enclosures=(),
        is_read=is_read,
        is_starred=is_starred,
    )
    parts = b"".join([own_part(origin, is_read=is_read, is_starred=is_starred), *shared_part(entry)])
    assert orjson.loads(parts) == orjson.loads(orjson.dumps(entry_as_json(entry)))


def test_a_part_is_known_in_its_version_for_an_hour() -> None:
    now = 0.0
    kept = PackedParts(seconds=lambda: now, most_bytes=100_000)
    part = kept.keep("a", Packed.of(b"text"), "1")
    now = 3599.0
    assert kept.known([("a", "2"), ("a", "1"), ("b", "1")]) == [None, part, None]
    now = 3600.0
    assert kept.known([("a", "1")]) == [None]


def test_parts_that_were_used_longest_ago_make_room() -> None:
    kept = PackedParts(seconds=lambda: 0.0, most_bytes=20_000)
    parts = [Packed.short(bytes([n]) * 1_000) for n in range(20)]
    for n, part in enumerate(parts):
        kept.keep(n, part)
        kept.known([(0, "")])
        assert kept.size <= 20_000
    assert kept.known([(n, "") for n in (0, 1, 19)]) == [parts[0], None, parts[19]]
    kept.keep("large", Packed.short(b"x" * 9_000))
    assert kept.known([("large", "")]) == [None]
