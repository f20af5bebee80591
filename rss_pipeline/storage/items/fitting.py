"""Rows of items that fit into their store: the text is cut, and what else is large is left out. Pure.

A row has at most MAX_VALUE_BYTES without its text in every store, so that nothing works at home alone; the
text may be larger where a store has room (`item_bytes` of storage/database.py).
"""

import re
from collections.abc import Mapping
from typing import Any

from rss_pipeline.errors import StorageRejected
from rss_pipeline.storage.database import MAX_VALUE_BYTES, Row
from rss_pipeline.storage.sql import compact

_OVERHEAD = 2_000
"""Bytes of a row that are not text of the item: feed id, instants, keys, SQLite's own header, and the
sentence about what is cut, so that a row that was cut fits."""
_CERTAINLY_FITS = MAX_VALUE_BYTES - _OVERHEAD
_DROPPED = (
    ("summary", None),
    ("enclosures", "[]"),
    ("categories", "[]"),
    ("authors", None),
    ("title", None),
    ("author", None),
    ("pub_date_raw", None),
    ("comments_url", None),
    ("base_url", None),
    ("link", None),
)
"""Columns in the order in which they are left out, each with what it holds then."""

_EMBEDDED = re.compile(r"""(?<=["'])data:[^"'<>\s]{1000,}""")
_OPEN_ENTITY = re.compile(r"&[#0-9A-Za-z]{0,31}\Z")
_TAG_CHARACTERS = 10_000
"""A `<` further before the end begins no tag, or one that no parser misses."""


def fitted(row: Mapping[str, Any], *, item_bytes: int) -> Row:
    """The row of an item, by column, as a store takes it that has room for `item_bytes` bytes of one.

    From a row that is larger than D1's, images within the text are left out in every store: no reader shows
    them. Then the text is cut to what the rest leaves, at least to half the row: where the rest is larger
    than that, parts of it are left out. `content_omitted` says so. A row that fits is the same. Raises
    `StorageRejected` where the guid alone does not fit.
    """
    # Most rows are far smaller, and a character has at most four bytes.
    if 4 * sum([len(value) for value in row.values() if isinstance(value, str)]) <= _CERTAINLY_FITS:
        return dict(row)
    size = _size(row)
    if size <= MAX_VALUE_BYTES:
        return dict(row)
    cut, changes, limit = dict(row), [], MAX_VALUE_BYTES
    published = row["content_html"] or ""
    text = _EMBEDDED.sub("data:,", published)
    if text != published:
        cut["content_html"] = text
        changes.append("images within its text are left out")
    rest = _size(cut) - _bytes(text)
    most = min(MAX_VALUE_BYTES, item_bytes - min(_bytes(text), item_bytes // 2))
    dropped = []
    for name, empty in _DROPPED:
        if rest <= most:
            break
        cut[name] = empty
        dropped.append(name)
        rest = _size(cut) - _bytes(text)
    if rest > most:
        raise StorageRejected(
            f"an item's guid has {_bytes(row.get('guid')):,} bytes; a row has at most {MAX_VALUE_BYTES:,}"
        )
    if rest + _bytes(text) > item_bytes:
        cut["content_html"] = start_of_html(text, item_bytes - rest)
        changes.append(f"its text ends after {_bytes(cut['content_html']):,} bytes")
        limit = item_bytes
    if dropped:
        changes.append(f"left out: {', '.join(dropped)}")
    if changes:
        cut["content_omitted"] = f"{size:,} bytes do not fit into a row of {limit:,}; {'; '.join(changes)}"
    return cut


def start_of_html(html: str, most: int) -> str:
    """As much of an HTML text as `most` bytes hold, or 1.9 times as many as JSON; no tag or entity is cut."""
    room = most
    while True:
        start = html.encode()[:room].decode(errors="ignore")
        if len(start) < len(html):
            tag = start.find("<", max(start.rfind(">"), len(start) - _TAG_CHARACTERS, 0))
            start = start[:tag] if tag >= 0 else start
            start = _OPEN_ENTITY.sub("", start)
        written = _bytes(compact(start)) - len('""')
        if written <= 1.9 * most:
            return start
        room = int(room * 1.89 * most / written)


def _size(row: Mapping[str, Any]) -> int:
    return _OVERHEAD + sum(
        _bytes(value) for name, value in row.items() if isinstance(value, str) and name != "content_omitted"
    )


def _bytes(text: str | None) -> int:
    return len((text or "").encode())
