"""Items of a user read from the stores and made into entries."""

from collections.abc import Hashable, Sequence

from rss_pipeline.api.google_reader.entries import Entry, Origin, own_part, shared_part
from rss_pipeline.api.gzip_member import Packed, PackedParts
from rss_pipeline.reader.bodies import Bodies, Body
from rss_pipeline.reader.items import ItemRow
from rss_pipeline.storage.database import Database

_AT_ONCE_BYTES = 2_000_000
"""Bytes of kept HTML that one thread has in memory; so many threads may do so as there are."""


def entries_of(rows: Sequence[ItemRow], bodies: Bodies, database: Database) -> list[Entry]:
    """The entries of these rows, with their bodies; it belongs into a thread.

    An app shows HTML without our cookie, so an archived image without a public URL stays at its publisher.
    """
    found = bodies.all_of(database, [row.body_key for row in rows], shown="public")
    return [_entry(row, found.get(row.id)) for row in rows]


def kept_entries(rows: Sequence[ItemRow], bodies: Bodies, database: Database) -> list[Entry] | None:
    """The entries of these rows, if none has to be sanitized."""
    known = bodies.known({row.id: row.body_version for row in rows}, shown="public")
    if len(known) == len(rows):
        return [_entry(row, known[row.id]) for row in rows]
    entries: list[Entry] = []
    while left := rows[len(entries) :]:
        found, further = bodies.page(
            database, [row.body_key for row in left], shown="public", sanitizes=False
        )
        if len(further) == len(left):
            return None
        entries += [_entry(row, found.get(row.id)) for row in left[: len(left) - len(further)]]
    return entries


def packed_items(
    rows: Sequence[ItemRow],
    bodies: Bodies,
    parts: PackedParts,
    database: Database,
    *,
    as_gzip: bool,
    sanitizes: bool,
) -> tuple[dict[int, tuple[Packed, Packed]], Sequence[ItemRow]]:
    """The first of these items as JSON in two parts, by number, and the items that are left: those beyond
    some MB of HTML, and from the first one on that has to be sanitized unless `sanitizes`. With `as_gzip` the
    parts are there as deflate, too. It belongs into a thread."""
    known = parts.known([(row.id, row.body_version) for row in rows])
    shared = {row.id: part for row, part in zip(rows, known, strict=True) if part is not None}
    keys = [row.body_key for row in rows if row.id not in shared]
    found, left = bodies.page(database, keys, shown="public", sanitizes=sanitizes, most_bytes=_AT_ONCE_BYTES)
    done = len(rows) if not left else next(n for n, row in enumerate(rows) if row.id == left[0].id)
    for row in rows[:done]:
        part = shared.get(row.id)
        if part is None or (as_gzip and part.deflated is None):
            pieces = shared_part(_entry(row, found.get(row.id))) if part is None else part.pieces
            part = Packed.of(*pieces) if as_gzip else Packed(pieces)
            shared[row.id] = parts.keep(row.id, part, row.body_version)
    own = _own(rows[:done], parts)
    return {row.arrived: (one, shared[row.id]) for row, one in zip(rows, own, strict=False)}, rows[done:]


def _own(rows: Sequence[ItemRow], parts: PackedParts) -> list[Packed]:
    known = parts.known([(_own_key(row), "") for row in rows])
    return [part or _made_own(row, parts) for row, part in zip(rows, known, strict=True)]


def _made_own(row: ItemRow, parts: PackedParts) -> Packed:
    made = own_part(_origin(row), is_read=row.is_read, is_starred=row.is_starred)
    return parts.keep(_own_key(row), Packed.of(made))


def _own_key(row: ItemRow) -> tuple[Hashable, ...]:
    return (
        row.feed_id,
        row.feed_title,
        row.stored_feed_url,
        row.feed_link,
        row.folder,
        row.read,
        row.starred is not None,
    )


def _origin(row: ItemRow) -> Origin:
    return Origin(
        feed_id=row.feed_id,
        title=row.feed_title or row.feed_url,
        url=row.feed_url,
        site=row.feed_link,
        folder=row.folder,
    )


def _entry(row: ItemRow, body: Body | None) -> Entry:
    # An item that went between the two requests is shown as it was, without its content.
    body = body or Body.of(row.title or "", "")
    published = row.published_at
    return Entry(
        number=row.arrived,
        origin=_origin(row),
        title=body.title,
        link=row.link,
        authors=row.authors or ((row.author,) if row.author else ()),
        published=published,
        updated=row.updated_at or published,
        html_json=body.html_json,
        categories=row.categories,
        enclosures=body.files,
        is_read=row.is_read,
        is_starred=row.starred_at is not None,
    )
