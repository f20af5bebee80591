"""The op parse: each backed-up document is read in a worker process, under a time limit.

The workers are in parser_pool.py.
"""

import logging
from dataclasses import replace

from rss_pipeline.collector.http.redaction import scrubbed
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.outcome import Document
from rss_pipeline.pipeline.visits.close import close, unreadable
from rss_pipeline.pipeline.visits.from_backup import open_backups, slices
from rss_pipeline.pipeline.visits.parser_pool import ParseTask, WorkerFailure, parse_document
from rss_pipeline.pipeline.visits.session import Session
from rss_pipeline.pipeline.visits.visit import Parsed, Visit, Visits

logger = logging.getLogger("rss_pipeline")


def parse(session: Session, visits: Visits) -> Visits:
    """Read each backed-up document in a worker process, under the time limit."""
    done: dict[str, Visit] = {}
    for some in slices(visits):
        done |= {visit.key: visit for visit in _parse(session, open_backups(session, some))}
    return close(session, [done.get(visit.key, visit) for visit in visits])


def _parse(session: Session, visits: Visits) -> Visits:
    now = session.clock()
    tasks = {
        visit.key: ParseTask(feed=visit.feed, document=visit.outcome, now=now)
        for visit in visits
        if isinstance(visit.outcome, Document)
    }
    keys = {id(task): key for key, task in tasks.items()}
    accesses = {visit.key: visit.access for visit in visits}
    replayed = {visit.key for visit in visits if visit.replay is not None}
    session.progress.begin("parse", len(tasks))
    outcomes: dict[str, Parsed | Failure] = {}
    for task, result in session.workers.map(parse_document, tasks.values()):
        key = keys[id(task)]
        if isinstance(result, WorkerFailure):
            # The title of an error page may repeat what its server was sent.
            told = WorkerFailure(result.kind, scrubbed(result.message, accesses[key]))
            outcomes[key] = unreadable(task.document, told)
        else:
            outcomes[key] = result
            if key not in replayed:  # When the document came, all this was said.
                _log_reading(task.feed, result)
        if key in replayed:
            task.document.path.unlink(missing_ok=True)
        session.progress.advance("parse")
    return [replace(visit, outcome=outcomes.get(visit.key, visit.outcome)) for visit in visits]


def _log_reading(feed: Feed, parsed: Parsed) -> None:
    for raw, title in parsed.bad_dates:
        logger.warning(
            "unreadable date %r of item %r in %s: the fetch time stands in for it", raw, title, feed.url
        )
    if parsed.duplicate_guids:
        logger.warning(
            "%s lists %d guids twice; the first item of each was kept", feed.url, parsed.duplicate_guids
        )
    if parsed.dropped_items:
        logger.warning("%s: %d items beyond the cap were left out", feed.url, parsed.dropped_items)
    if parsed.charset_rule == "fallback":
        logger.warning("%s: no charset fits; read as %s with replacements", feed.url, parsed.charset)
