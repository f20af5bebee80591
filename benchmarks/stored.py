"""What a poll left in its RSS_PIPELINE_HOME, read from outside to hold it against what was served."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFeed:
    """A feed's row, as far as it is checked here, and what hangs on it."""

    id: str
    items: int
    duplicate_guids: int
    """Guids that came again in its last document, as the poll noted."""
    is_cut_off: bool
    """The document ends inside an item, which is not stored; its validators are not kept either."""
    etag: str | None
    last_modified: str | None
    was_stored: bool
    backups: tuple[Path, ...]


def stored_feeds(home: Path) -> dict[str, StoredFeed]:
    """Every feed of the home by id."""
    with _database(home) as connection:
        rows = connection.execute(
            """SELECT id, last_change, cut_hash IS NOT NULL, last_etag, last_modified, last_success_at,
            (SELECT count(*) FROM items WHERE feed_id = feeds.id) FROM feeds"""
        ).fetchall()
    return {
        id: StoredFeed(
            id=id,
            items=items,
            duplicate_guids=json.loads(change or "{}").get("duplicate_guids", 0),
            is_cut_off=bool(is_cut_off),
            etag=etag,
            last_modified=last_modified,
            was_stored=success is not None,
            backups=tuple(sorted((home / "objects" / "backups" / id).glob("*.xml"))),
        )
        for id, change, is_cut_off, etag, last_modified, success, items in rows
    }


def totals(home: Path) -> dict[str, int]:
    """How many items, image tasks and backups there are."""
    with _database(home) as connection:
        counted = {
            table: int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
            for table in ("items", "image_tasks")
        }
    return {**counted, "backups": sum(1 for _ in (home / "objects" / "backups").glob("*/*.xml"))}


@contextmanager
def _database(home: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{(home / 'rss.sqlite').as_uri()}?mode=ro", uri=True)) as connection:
        yield connection
