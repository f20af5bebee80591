"""The pages of articles in the object store, as they were served, and what of them expires."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from rss_pipeline.batched import batched
from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.collector.models.outcome import Document, Response
from rss_pipeline.features.full_text import sql
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore

PAGES = "pages/"
_AT_ONCE = 500


def page_key(feed_id: str, item_id: str) -> str:
    """The key of the page behind an item."""
    return f"{PAGES}{feed_id}/{item_id}.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPage:
    """A page as it was served."""

    document: Document
    for_all: bool
    """False: its article was for those alone who requested it."""


def open_page(objects: ObjectStore, key: str, folder: Path) -> KeptPage | None:
    """The page under this key, in a file of this folder; None where it is gone."""
    got = objects.get(key)
    if got is None:
        return None
    body, info = got
    path = folder / key.replace("/", "@")
    path.write_bytes(body)
    about = json.loads(info.metadata.get("rss-pipeline", "{}"))
    url = about.get("url") or ""
    response = Response(
        status=200,
        requested_url=url,
        url=url,
        fetched_at=from_instant(about.get("fetched_at")) or info.modified,
        fetch_ms=0,
        content_type=about.get("content_type"),
    )
    document = Document(response=response, path=path, body_bytes=len(body), content_hash="", backup_key=key)
    return KeptPage(document=document, for_all=about.get("for_all", True))


def forget_pages(objects: ObjectStore, feed_id: str) -> Mapping[str, str]:
    """Remove the pages of a feed that is forgotten."""
    refused: dict[str, str] = {}
    for some in batched(objects.list(f"{PAGES}{feed_id}/"), _AT_ONCE):
        refused |= objects.delete_many([info.key for info in some])
    return refused


def clean_pages(
    database: Database, objects: ObjectStore, settings: Settings, now: datetime
) -> Mapping[str, str]:
    """Remove the pages of items that are gone, and those as old as backups may be, but for starred items."""
    before = now - timedelta(days=settings.backup_days)
    refused: dict[str, str] = {}
    for some in batched(objects.list(PAGES), _AT_ONCE):
        ids = {info.key: info.key.rpartition("/")[2].removesuffix(".html") for info in some}
        [found] = database.batch([sql.pages_of(list(ids.values()))])
        is_starred = {row["item_id"]: bool(row["starred"]) for row in found.rows}
        gone = [
            info.key
            for info in some
            # False for an item that is gone.
            if not is_starred.get(ids[info.key], False)
            and (info.modified < before or ids[info.key] not in is_starred)
        ]
        if not gone:
            continue
        left = objects.delete_many(gone)
        refused |= left
        keys = [key for key in gone if key not in left]
        database.batch([sql.forget_pages(keys, [ids[key] for key in keys])])
    return refused
