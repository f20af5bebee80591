"""A document's failure: it cannot be read as a feed, or a store refuses something of it."""

from typing import cast

from rss_pipeline.collector.models.failure import FAILURE_KINDS, Failure, FailureKind
from rss_pipeline.collector.models.outcome import Document
from rss_pipeline.collector.parse.parser_version import parser_version
from rss_pipeline.pipeline.session.parser_pool import WorkerFailure


def unreadable(document: Document, failure: WorkerFailure) -> Failure:
    """The failure of a document that no worker could read."""
    response = document.response
    return Failure(
        kind=_failure_kind(failure.kind),
        message=failure.message,
        status=response.status,
        fetched_at=response.fetched_at,
        fetch_ms=response.fetch_ms,
        answered=True,
        retry_after=response.usable_seconds or None,
        document_hash=document.content_hash,
        parser_version=parser_version(),
        body_bytes=document.body_bytes,
        backup_key=document.backup_key,
        new_backup_bytes=document.new_backup_bytes,
    )


def rejected(document: Document, message: str) -> Failure:
    """The failure of a document of which a store refuses something."""
    return unreadable(document, WorkerFailure("storage_rejected", message))


def _failure_kind(kind: str) -> FailureKind:
    """A kind that an exception carried as text."""
    return cast("FailureKind", kind) if kind in FAILURE_KINDS else "not_a_feed"
