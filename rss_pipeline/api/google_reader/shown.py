"""Items of a user read from the stores and made into entries."""

from collections.abc import Hashable, Sequence

from rss_pipeline.api.google_reader.entries import Entry, Origin, own_part, shared_part
from rss_pipeline.api.packed import Packed, PackedParts
from rss_pipeline.pipeline.reading.bodies import Bodies, Body
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.subscriptions.item_rows import ItemRow


def entries_of(rows: Sequence[ItemRow], bodies: Bodies, database: Database) -> list[Entry]:
    """The entries of these rows, with their bodies; it belongs into a thread.

    An app shows HTML without our cookie, so an archived image without a public URL stays at its publisher.
    """
    versions = {row.id: row.body_version for row in rows}
    found = bodies.all_of(database, versions, shown="public")
    # An item that went between the two requests is shown as it was, without its content.
    return [_entry(row, found.get(row.id) or Body(row.title or "", "")) for row in rows]


def kept_entries(rows: Sequence[ItemRow], bodies: Bodies) -> list[Entry] | None:
    """The entries of these rows, if all of their bodies are kept."""
    found = bodies.known({row.id: row.body_version for row in rows}, shown="public")
    return [_entry(row, found[row.id]) for row in rows] if len(found) == len(rows) else None


def packed_items(
    rows: Sequence[ItemRow], bodies: Bodies, parts: PackedParts, database: Database
) -> dict[int, tuple[Packed, Packed]]:
    """These items as JSON in two parts, by number; it belongs into a thread."""
    shared = {row.id: parts.known(row.id, row.body_version) for row in rows}
    missing = [row for row in rows if shared[row.id] is None]
    for row, entry in zip(missing, entries_of(missing, bodies, database), strict=True):
        shared[row.id] = parts.keep(row.id, Packed.of(shared_part(entry)), row.body_version)
    return {row.arrived: (_own(row, parts), part) for row in rows if (part := shared[row.id]) is not None}


def kept_items(rows: Sequence[ItemRow], parts: PackedParts) -> dict[int, tuple[Packed, Packed]] | None:
    """`packed_items`, if all of them are kept."""
    shared = parts.known_of([(row.id, row.body_version) for row in rows])
    if shared is None:
        return None
    own = parts.known_of([(_own_key(row), "") for row in rows]) or [_own(row, parts) for row in rows]
    return {row.arrived: (one, other) for row, one, other in zip(rows, own, shared, strict=True)}


def _own(row: ItemRow, parts: PackedParts) -> Packed:
    key = _own_key(row)
    known = parts.known(key)
    if known is not None:
        return known
    made = own_part(_origin(row), is_read=row.is_read, is_starred=row.is_starred)
    return parts.keep(key, Packed.of(made))


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


def _entry(row: ItemRow, body: Body) -> Entry:
    return Entry(
        number=row.arrived,
        origin=_origin(row),
        title=body.title,
        link=row.link,
        authors=row.authors or ((row.author,) if row.author else ()),
        published=row.published_at,
        updated=row.updated_at or row.published_at,
        html=body.html,
        categories=row.categories,
        enclosures=body.files,
        is_read=row.is_read,
        is_starred=row.starred_at is not None,
    )
