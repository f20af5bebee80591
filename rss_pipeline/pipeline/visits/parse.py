"""The op parse: each document with a backup is read in a worker process, under a time limit.

The workers are in parser_pool.py.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar, cast

from rss_pipeline.collector.http.redaction import Secrets
from rss_pipeline.collector.models.failure import FAILURE_KINDS, Failure, FailureKind
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.outcome import Document, Parsed
from rss_pipeline.collector.models.warning import false_validators
from rss_pipeline.collector.parse.parser_version import parser_version
from rss_pipeline.pipeline.session.parser_pool import ParserPool, WorkerFailure
from rss_pipeline.pipeline.session.parser_tasks import ParseTask, SearchOfAll, parse_document, was_read
from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.pipeline.visits.close import Close
from rss_pipeline.pipeline.visits.in_parallel import LARGE_BYTES
from rss_pipeline.pipeline.visits.visit import Visit, Visits
from rss_pipeline.progress import Progress
from rss_pipeline.storage.database import item_bytes
from rss_pipeline.storage.kept_html import is_kept

logger = logging.getLogger(__name__)


Job = TypeVar("Job")


def parse(visits: Visits, *, run: RunContext, pool: ParserPool, close: Close) -> Visits:
    """Read each backed-up document in a worker process, under the time limit."""
    now = run.clock()
    search = SearchOfAll(most=run.settings.images_per_item, is_kept=is_kept(run.database))
    jobs = [
        (
            visit,
            ParseTask(
                feed=visit.feed,
                document=visit.outcome,
                now=now,
                secrets=Secrets.of(visit.access),
                item_bytes=item_bytes(run.database),
                search=search if _is_first(visit.feed, visit.outcome) else None,
            ),
        )
        for visit in visits
        if isinstance(visit.outcome, Document)
    ]
    done: dict[str, Visit] = {}
    for visit, outcome in parse_documents(jobs, pool=pool, progress=run.progress):
        if isinstance(outcome, Parsed):
            outcome = _with_false_validators(outcome)
            _log_reading(visit.feed, outcome)
        done[visit.feed.id] = replace(visit, outcome=outcome)
    return close([done.get(visit.feed.id, visit) for visit in visits])


def _with_false_validators(parsed: Parsed) -> Parsed:
    count = parsed.document.response.false_validators
    if not count or parsed.cut_off:
        return parsed
    return replace(parsed, warnings=(*parsed.warnings, false_validators(count)))


def _is_first(feed: Feed, document: Document) -> bool:
    """True if all items of a document are new; a large one is searched by itself, with limits of its own."""
    return feed.http.last_body_at is None and document.body_bytes <= LARGE_BYTES


def parse_documents(
    jobs: Sequence[tuple[Job, ParseTask]], *, pool: ParserPool, progress: Progress
) -> Iterator[tuple[Job, Parsed | Failure]]:
    """The result of each task beside its job, as they come."""
    owners = {id(task): job for job, task in jobs}
    progress.begin("parse", len(jobs))
    ended = []
    for task, result in pool.map(parse_document, [task for _, task in jobs]):
        job = owners[id(task)]
        if isinstance(result, WorkerFailure) and was_read(task):
            # Its HTML takes too long, or ends a worker.
            ended.append((job, replace(task, search=None)))
        elif isinstance(result, WorkerFailure):
            # The title of an error page may repeat what its server was sent.
            failure = replace(result, message=task.secrets.removed(result.message))
            yield job, unreadable(task.document, failure)
        else:
            yield job, result
        progress.advance("parse")
    if ended:
        yield from parse_documents(ended, pool=pool, progress=progress)


def _log_reading(feed: Feed, parsed: Parsed) -> None:
    for raw, title in parsed.bad_dates:
        logger.warning(
            "unreadable date %r of item %r in %s: the fetch time is used instead", raw, title, feed.url
        )
    if parsed.duplicate_guids > parsed.shared_guids:
        twice = parsed.duplicate_guids - parsed.shared_guids
        logger.warning("%s lists %d items twice; the first of each was kept", feed.url, twice)
    for warning in parsed.warnings:
        logger.warning("%s: %s", feed.url, warning.sentence)
    if parsed.header.charset_rule == "fallback":
        logger.warning("%s: no charset fits; read as %s with replacements", feed.url, parsed.header.charset)


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
        # Without a version the same bytes are read again at the next visit.
        parser_version=None if failure.may_pass else parser_version(),
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
