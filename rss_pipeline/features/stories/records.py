"""Items as a window keeps them: the heaviest terms, and the packed text."""

import zlib
from array import array
from collections.abc import Iterable

from rss_pipeline.features.stories.model import Entry

TITLE_CHARACTERS = 300
_SEPARATOR = "\0"
_AS_TIME = "="
"""The publisher's date is the item's time."""
_SAMPLE_BYTES = 16_384


def packed(
    entry: Entry, repeated: tuple[int, ...], terms: list[int], weights: list[int], sample: bytes
) -> bytes:
    """Terms with weights of one byte, the item, and the places of sentences that its feed had repeated."""
    published = "" if entry.published is None else repr(entry.published)
    fields = (
        entry.id,
        entry.feed,
        entry.title,
        entry.link or "",
        _AS_TIME if published and entry.published == entry.time else published,
        f"{entry.language or ''} {' '.join(map(str, repeated))}".rstrip(),
        entry.text,
    )
    text = _SEPARATOR.join(each.replace(_SEPARATOR, " ") for each in fields)
    # Without a header and a checksum, which take six bytes of each item.
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=sample)
    data = packer.compress(text.encode("utf-8", "surrogatepass")) + packer.flush()
    return b"".join((bytes((len(terms),)), array("I", terms).tobytes(), bytes(weights), data))


def sampled(texts: Iterable[bytes]) -> bytes:
    """The sample that others are packed with."""
    return b"".join(texts)[-_SAMPLE_BYTES:]


def vector(record: bytes) -> tuple["array[int]", bytes]:
    """The terms with their weights."""
    count = record[0] if record else 0
    ends = 1 + 4 * count
    if len(record) < ends + count:
        # Its file was cut short meanwhile.
        return array("I"), b""
    return array("I", record[1:ends]), record[ends : ends + count]


def text(record: bytes, sample: bytes) -> bytes:
    """The packed text of a record, which was packed with that sample; nothing if it is damaged."""
    try:
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS, zdict=sample)
        return unpacker.decompress(record[1 + 5 * record[0] :])
    except (zlib.error, IndexError):
        return b""


def entry(text: bytes, time: float) -> tuple[Entry, tuple[int, ...]]:
    """The item of that time, and the places; an empty one of a damaged text."""
    try:
        id, feed, title, link, published, language, rest = text.decode("utf-8", "surrogatepass").split(
            _SEPARATOR
        )
        language, _, repeated = language.partition(" ")
        return Entry(
            id=id,
            feed=feed,
            title=title,
            text=rest,
            link=link or None,
            published=(time if published == _AS_TIME else float(published)) if published else None,
            language=language or None,
        ), tuple(map(int, repeated.split()))
    except ValueError:
        return Entry(id="", feed="", title="", text=""), ()
