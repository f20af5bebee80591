"""Backups into documents of the spool, in slices that bound its size.

Which backups are replayed is replay.py's.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from rss_pipeline.collector.http.redaction import Secrets
from rss_pipeline.collector.models.outcome import Document, Pending, Response
from rss_pipeline.errors import BackupUnreadable, ObjectStoreUnavailable, file_error
from rss_pipeline.features.replay.backup_visit import BackupVisit, BackupVisits, Unreadable
from rss_pipeline.pipeline.session.run_context import Spool
from rss_pipeline.storage.backups.backups import describe_backup
from rss_pipeline.storage.objects import ObjectStore

SLICE_BYTES = 32_000_000
SLICE_BACKUPS = 200
_THREADS = 16


def slices(visits: Iterable[BackupVisit]) -> Iterator[BackupVisits]:
    """Consecutive visits with bodies that may be in the spool at once."""
    some: BackupVisits = []
    size = 0
    for visit in visits:
        if some and (size + visit.backup_bytes > SLICE_BYTES or len(some) == SLICE_BACKUPS):
            yield some
            some, size = [], 0
        some.append(visit)
        size += visit.backup_bytes
    if some:
        yield some


def open_backups(visits: Sequence[BackupVisit], *, objects: ObjectStore, spool: Spool) -> BackupVisits:
    """Bring the backups that are not open yet into the spool, as documents."""
    folder = spool.folder

    def one(visit: BackupVisit) -> BackupVisit:
        return _opened(visit, objects, folder) if isinstance(visit.outcome, Pending) else visit

    with ThreadPoolExecutor(_THREADS) as threads:
        return list(threads.map(one, visits))


def _opened(visit: BackupVisit, objects: ObjectStore, folder: Path) -> BackupVisit:
    found = objects.get(visit.backup_key)
    if found is None:
        message = f"{visit.backup_key} is gone: it was there when the backups were listed"
        return replace(visit, outcome=Unreadable(message=message))
    body, info = found
    try:
        backup = describe_backup(info)
    except BackupUnreadable as error:
        return replace(visit, outcome=Unreadable(message=str(error)))
    path = folder / visit.backup_key.replace("/", "@")
    try:
        path.write_bytes(body)
    except OSError as error:
        raise ObjectStoreUnavailable(
            file_error(f"the spool file {path} cannot be written", error, folder)
        ) from error
    document = Document(
        response=Response(
            status=backup.status,
            requested_url=backup.requested_url,
            url=backup.url,
            fetched_at=backup.fetched_at,
            fetch_ms=0,
            content_type=backup.content_type,
            etag=backup.etag,
            last_modified=backup.last_modified,
        ),
        path=path,
        body_bytes=len(body),
        content_hash=backup.content_hash,
        backup_key=backup.key,
        are_links_shared=backup.are_links_shared,
        are_abouts_shared=backup.are_abouts_shared,
        feed_charset=visit.feed.http.charset,
    )
    # As the feed was then: the codec it had shown, and what identified its items.
    feed = replace(
        visit.feed,
        key=backup.item_key or visit.feed.key,
        http=replace(visit.feed.http, charset=backup.hint),
    )
    secrets = visit.secrets | Secrets.marked(body, backup.secrets)
    return replace(visit, feed=feed, secrets=secrets, outcome=document)
