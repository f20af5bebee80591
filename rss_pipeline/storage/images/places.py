"""The places of archived images: those of private feeds where nobody reads them, others where everybody may.

Which keys and which bucket that is, is image_keys.py's and backends/s3/objects.py's. A new image is put into
the right place; here are those that were stored before their feed became private, or before there was a
public bucket.
"""

from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from rss_pipeline.batched import batched
from rss_pipeline.errors import DatabaseFull, ObjectStoreUnavailable
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.feeds.predicates import PRIVATE
from rss_pipeline.storage.objects import (
    IMAGES,
    PRIVATE_IMAGES,
    ObjectInfo,
    ObjectStore,
    PublicBucket,
    public_url,
)
from rss_pipeline.storage.sql import compact
from rss_pipeline.storage.stale import mark_stale

_AT_ONCE = 200
_THREADS = 8
_MOST_COUNTED = 1_000


@dataclass(slots=True)
class Moved:
    """Objects that were moved, or are to be."""

    private: int = 0
    """Images of private feeds, away from the public place."""
    public: int = 0
    """Images and topics, into the public bucket."""


def to_move(database: Database, objects: ObjectStore) -> Moved:
    """The objects in the wrong place; each number stops at 1,000."""
    private = (info for feed_id in _private_feeds(database, objects) for info in _images(objects, feed_id))
    return Moved(
        private=sum(1 for _ in islice(private, _MOST_COUNTED)),
        public=sum(1 for _ in islice(_unmoved(database, objects), _MOST_COUNTED)),
    )


def move(
    database: Database, objects: ObjectStore, *, on_moved: Callable[[int], None] = lambda _: None
) -> Moved:
    """Move every object into its place. After an interruption the next call continues."""
    moved = Moved()
    # First: what is private must not come into the public bucket.
    moved.private = move_private(database, objects, on_moved=on_moved)
    if not isinstance(objects, PublicBucket):
        return moved
    with ThreadPoolExecutor(_THREADS, "move") as pool:
        for some in batched(_unmoved(database, objects), _AT_ONCE):
            public = sum(pool.map(objects.move_to_public, some))
            moved.public += public
            on_moved(public)
    return moved


def move_private(
    database: Database,
    objects: ObjectStore,
    *,
    on_moved: Callable[[int], None] = lambda _: None,
    feeds: Collection[str] | None = None,
    most: int | None = None,
) -> int:
    """Move images of private feeds, or of some of them, away from the place that everybody may read; how
    many. It ends once `most` are moved."""
    number = 0
    with ThreadPoolExecutor(_THREADS, "move") as pool:
        for feed_id in _private_feeds(database, objects):
            if feeds is not None and feed_id not in feeds:
                continue
            for some in batched(_images(objects, feed_id), _AT_ONCE):
                if most is not None and number >= most:
                    return number
                keys = [info.key for info in some]
                try:
                    list(pool.map(lambda key: objects.copy(key, _private(key)), keys))
                    _record(database, feed_id, keys)
                except (DatabaseFull, ObjectStoreUnavailable):
                    # Of an item that is removed before they are made again, copies would be left.
                    with suppress(ObjectStoreUnavailable):
                        objects.delete_many(_unnamed(database, feed_id, map(_private, keys)))
                    raise
                objects.delete_many(keys)
                number += len(keys)
                on_moved(len(keys))
    return number


def _private(key: str) -> str:
    return PRIVATE_IMAGES + key.removeprefix(IMAGES)


def _private_feeds(database: Database, objects: ObjectStore) -> list[str]:
    if public_url(objects, f"{IMAGES}x") is None:
        return []
    rows = database.query(f"SELECT id FROM feeds WHERE {PRIVATE} ORDER BY id", name="list private feeds").rows
    return [row["id"] for row in rows]


def _images(objects: ObjectStore, feed_id: str) -> Iterable[ObjectInfo]:
    return objects.list(f"{IMAGES}{feed_id}/")


def _unmoved(database: Database, objects: ObjectStore) -> Iterable[ObjectInfo]:
    """The objects that belong into the public bucket. Images of unknown feeds stay: they may be private."""
    if not isinstance(objects, PublicBucket):
        return
    rows = database.query(f"SELECT id FROM feeds WHERE NOT ({PRIVATE})", name="list public feeds").rows
    public = {row["id"] for row in rows}
    for info in objects.list_unmoved():
        if not info.key.startswith(IMAGES) or info.key.split("/", 2)[1] in public:
            yield info


def _unnamed(database: Database, feed_id: str, keys: Iterable[str]) -> list[str]:
    """The keys that no row has. An earlier move may have been killed after it had written its rows."""
    found = database.query(
        """SELECT r2_key FROM image_tasks WHERE item_id IN (SELECT id FROM items WHERE feed_id = ?)
        AND r2_key IS NOT NULL""",
        [feed_id],
        name="read keys of images",
    )
    named = {row["r2_key"] for row in found.rows}
    return [key for key in keys if key not in named]


def _record(database: Database, feed_id: str, keys: list[str]) -> None:
    database.batch(
        [
            *mark_stale(compact([feed_id])),
            Statement(
                f"""UPDATE image_tasks SET r2_key = '{PRIVATE_IMAGES}' || substr(r2_key, {len(IMAGES) + 1})
                WHERE item_id IN (SELECT id FROM items WHERE feed_id = ?)
                AND r2_key IN (SELECT value FROM json_each(?))""",
                [feed_id, compact(keys)],
                name="record moved images",
            ),
        ]
    )
