"""The op backup: each new document into the object store as it was served."""

from dataclasses import replace

from rss_pipeline.collector.models.outcome import Document
from rss_pipeline.errors import StorageRejected
from rss_pipeline.pipeline.visits.close import close, rejected
from rss_pipeline.pipeline.visits.in_parallel import in_parallel
from rss_pipeline.pipeline.visits.session import Session
from rss_pipeline.pipeline.visits.visit import Visit, Visits
from rss_pipeline.storage.backups.backups import newest_same_backup, put_backup


def backup(session: Session, visits: Visits) -> Visits:
    """Put each new document into the object store as it was served, before anything reads it."""

    def one(visit: Visit, document: Document) -> Visit:
        feed = visit.feed
        try:
            if feed.unfinished.was_interrupted:
                known = newest_same_backup(session.objects, feed.id, document.content_hash)
                if known is not None:
                    # The visit that took it never closed: its items, if any, carry that fetch time.
                    response = replace(document.response, fetched_at=known.fetched_at)
                    return replace(visit, outcome=replace(document, response=response, backup_key=known.key))
            key = put_backup(session.objects, feed, document)
        except StorageRejected as error:
            # Its bytes are not at fault, so they may come again: with other headers they can be kept.
            failure = replace(rejected(document, str(error)), document_hash=None)
            return replace(visit, outcome=failure)
        return replace(visit, outcome=replace(document, backup_key=key))

    return close(session, in_parallel(session, "backup", visits, Document, one))
