"""The op backup: each new document into the object store as it was served."""

from dataclasses import replace

from rss_pipeline.collector.http.redaction import Secrets
from rss_pipeline.collector.models.outcome import Document
from rss_pipeline.errors import StorageRejected
from rss_pipeline.pipeline.visits.close import Close
from rss_pipeline.pipeline.visits.in_parallel import in_parallel
from rss_pipeline.pipeline.visits.visit import Visit, Visits, rejected
from rss_pipeline.progress import Progress
from rss_pipeline.storage.backups.backups import newest_same_backup, put_backup
from rss_pipeline.storage.objects import ObjectStore


def backup(visits: Visits, *, objects: ObjectStore, progress: Progress, close: Close) -> Visits:
    """Put each new document into the object store as it was served, before anything reads it."""

    def one(visit: Visit, document: Document) -> Visit:
        feed = visit.feed
        try:
            # An interrupted visit may have taken its backup, and a document that failed before has one: newer
            # parsers read it again.
            if feed.unfinished.was_interrupted or feed.http.failed_hash == document.content_hash:
                known = newest_same_backup(objects, feed.id, document.content_hash)
                if known is not None:
                    # The visit that took it never closed: its items, if any, carry that fetch time.
                    response = replace(document.response, fetched_at=known.fetched_at)
                    return replace(visit, outcome=replace(document, response=response, backup_key=known.key))
            secrets = Secrets.of(visit.access)
            marks = secrets.marks(document.path.read_bytes()) if secrets.plain else ()
            key = put_backup(objects, feed, document, secrets=marks)
        except StorageRejected as error:
            # Its bytes are not at fault, so they may come again: with other headers they can be kept.
            failure = replace(rejected(document, str(error)), document_hash=None)
            return replace(visit, outcome=failure)
        return replace(visit, outcome=replace(document, backup_key=key, new_backup_bytes=document.body_bytes))

    return close(in_parallel("backup", visits, Document, one, progress=progress))
