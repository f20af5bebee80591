"""The op backup: each new document into the object store as it was served; and how one is read back."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rss_pipeline.collector.http.redaction import Secrets
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.collector.models.outcome import Document, Parsed, Response
from rss_pipeline.errors import BackupUnreadable, ObjectStoreUnavailable, StorageRejected, file_error
from rss_pipeline.features import FEED_KEYS
from rss_pipeline.pipeline.session.backup_budget import BackupBudget
from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.pipeline.visits.close import Close, release_on_hold
from rss_pipeline.pipeline.visits.in_parallel import STORE_THREADS, in_parallel
from rss_pipeline.pipeline.visits.parse import rejected
from rss_pipeline.pipeline.visits.visit import Visit, Visits
from rss_pipeline.storage.backups.backups import (
    Backup,
    Places,
    describe_backup,
    newest_same_backup,
    put_again,
    put_backup,
)
from rss_pipeline.storage.objects import ObjectStore, OnOneDisk

logger = logging.getLogger(__name__)


def backup(
    visits: Visits, *, run: RunContext, budget: BackupBudget, objects: ObjectStore, close: Close
) -> Visits:
    """Put each new document into the object store as it was served, before anything reads it.

    A larger one beyond the `budget` of its user is dropped: it comes again on the next day, for its feed
    keeps its validators.
    """
    budget.read(
        {
            visit.feed.id: visit.outcome.body_bytes
            for visit in visits
            if isinstance(visit.outcome, Document) and visit.feed.brought_by
        }
    )

    def one(visit: Visit, document: Document) -> Visit:
        feed = visit.feed
        if document.backup_key is not None:
            # It could not be read while others were requested.
            return visit
        try:
            # An interrupted visit may have taken its backup, and a document that failed before has one: newer
            # parsers read it again.
            if feed.unfinished.was_interrupted or feed.http.failed_hash == document.content_hash:
                known = newest_same_backup(objects, feed.id, document.content_hash)
                if known is not None:
                    # The visit that took it never closed: its items, if any, carry that fetch time.
                    response = replace(document.response, fetched_at=known.fetched_at)
                    return replace(visit, outcome=replace(document, response=response, backup_key=known.key))
            if (hold := budget.take(feed, document.body_bytes)) is not None:
                logger.warning("%s: %s (RSS_USER_BACKUP_MB_PER_DAY)", feed.url, hold.reason)
                return replace(visit, outcome=OnHold(hold=hold))
            key = put_backup(objects, feed, document, secrets=_marks(visit, document))
        except StorageRejected as error:
            # Its bytes are not at fault, so they may come again: with other headers they can be kept.
            failure = replace(rejected(document, str(error)), document_hash=None)
            return replace(visit, outcome=failure)
        return replace(visit, outcome=replace(document, backup_key=key, new_backup_bytes=document.body_bytes))

    threads = objects.puts_at_once if isinstance(objects, OnOneDisk) else STORE_THREADS
    visits = in_parallel("backup", visits, Document, one, progress=run.progress, threads=threads)
    return close(release_on_hold(visits, database=run.database, clock=run.clock))


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedBackup:
    """A backup as the document that it was."""

    feed: Feed
    """As it was then: the codec that it had shown, and what identified its items."""
    document: Document
    secrets: Secrets
    """The ones that the backup's metadata marks in it."""


def remember(visit: Visit, parsed: Parsed, *, objects: ObjectStore) -> None:
    """Put a document's backup again with what features remember of it, if no backup before it shows that."""
    feed, document = visit.feed, parsed.document
    found = {
        name: text
        for name in feed.feature_keys
        if (remembers := FEED_KEYS[name].remembers) is not None
        and (text := remembers.load()(feed, parsed)) is not None
    }
    if found:
        put_again(objects, replace(feed, later_memories=found), document, secrets=_marks(visit, document))


def _marks(visit: Visit, document: Document) -> Places:
    secrets = Secrets.of(visit.access)
    return secrets.marks(document.path.read_bytes()) if secrets.plain else ()


def open_backup(
    feed: Feed, key: str, *, objects: ObjectStore, folder: Path, following: str | None = None
) -> OpenedBackup | None:
    """The backup under this key, with its body in a file of this folder; None where it is gone.

    `following` is the key of the next one, which has the memories after it; after the newest, the feed has.

    Raises:
        BackupUnreadable: its metadata is not a backup's.
        ObjectStoreUnavailable: the file cannot be written.
    """
    found = objects.get(key)
    if found is None:
        return None
    body, info = found
    backup = describe_backup(info)
    path = folder / key.replace("/", "@")
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
        feed_charset=feed.http.charset,
    )
    http = replace(feed.http, charset=backup.hint)
    # A page's document was no feed, and one from before it was a page is.
    keys = {name: text for name, text in feed.feature_keys.items() if FEED_KEYS[name].reads is None}
    return OpenedBackup(
        feed=replace(
            feed,
            key=backup.item_key or feed.key,
            http=http,
            feature_keys={**keys, **backup.keys},
            memories=backup.memories,
            later_memories=_memories_after(feed, backup, following, objects),
        ),
        document=document,
        secrets=Secrets.marked(body, backup.secrets),
    )


def _memories_after(
    feed: Feed, backup: Backup, following: str | None, objects: ObjectStore
) -> Mapping[str, str]:
    if backup.after or not any(FEED_KEYS[name].memory for name in backup.keys):
        return backup.after
    if following is None:
        return feed.memories
    info = objects.head(following)
    try:
        return {} if info is None else describe_backup(info).memories
    except BackupUnreadable:
        return {}
