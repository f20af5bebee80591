"""Answers that are put together from compressed parts."""

import gzip as reference
from datetime import UTC, datetime

import orjson
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.api.google_reader.entries import Entry, Origin, entry_as_json, own_part, shared_part
from rss_pipeline.api.packed import Packed, PackedParts, gzip, plain

PARTS = st.lists(
    st.one_of(
        st.binary(max_size=300).map(Packed.of),
        st.binary(max_size=300).map(lambda text: Packed.of(text * 500)),
        st.binary(max_size=300).map(Packed.short),
        st.just(Packed.short(b"x" * 65_535)),
    ),
    max_size=8,
)


@given(PARTS)
def test_parts_in_any_order_are_one_stream_of_gzip(parts: list[Packed]) -> None:
    # Checks the checksum and the length as well.
    assert reference.decompress(gzip(parts)) == plain(parts) == b"".join(part.plain for part in parts)


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
    entry = Entry(
        number=1_763_822_000_123_456,
        origin=origin,
        title=title,
        link=None,
        authors=("Ann",),
        published=datetime(2025, 11, 1, tzinfo=UTC),
        updated=datetime(2025, 11, 2, tzinfo=UTC),
        html=html,
        categories=tuple(categories),
        enclosures=(),
        is_read=is_read,
        is_starred=is_starred,
    )
    parts = own_part(origin, is_read=is_read, is_starred=is_starred) + shared_part(entry)
    assert orjson.loads(parts) == orjson.loads(orjson.dumps(entry_as_json(entry)))


def test_a_part_is_known_in_its_version_for_an_hour() -> None:
    now = 0.0
    kept = PackedParts(seconds=lambda: now, most_bytes=100_000)
    part = kept.keep("a", Packed.of(b"text"), "1")
    now = 3599.0
    assert kept.known("a", "1") is part
    assert kept.known("a", "2") is None
    assert kept.known("b", "1") is None
    now = 3600.0
    assert kept.known("a", "1") is None


def test_several_parts_are_known_together_or_not_at_all() -> None:
    parts = PackedParts(seconds=lambda: 0.0, most_bytes=100_000)
    kept = [parts.keep(key, Packed.of(key.encode()), "1") for key in ("a", "b")]
    assert parts.known_of([("b", "1"), ("a", "1")]) == kept[::-1]
    assert parts.known_of([("a", "1"), ("b", "2")]) is None
    assert parts.known_of([("a", "1"), ("c", "1")]) is None
    assert parts.known_of([]) == []


def test_parts_that_were_used_longest_ago_make_room() -> None:
    kept = PackedParts(seconds=lambda: 0.0, most_bytes=20_000)
    parts = [Packed.short(bytes([n]) * 1_000) for n in range(20)]
    for n, part in enumerate(parts):
        kept.keep(n, part)
        kept.known(0)
        assert kept.size <= 20_000
    assert kept.known(0) is parts[0]
    assert kept.known(19) is parts[19]
    assert kept.known(1) is None
    kept.keep("large", Packed.short(b"x" * 9_000))
    assert kept.known("large") is None
