"""The look at a page before it is a source: its list, if robots.txt allows to read it.

Nothing is stored of the page.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from typing import TypeVar

from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.http.request_url import request_url
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.outcome import Document
from rss_pipeline.features.pages import AUTO, CONFIRMED
from rss_pipeline.features.pages.known import Known, home_of
from rss_pipeline.features.pages.links import guids_of
from rss_pipeline.features.pages.model import Choice, Detected, Entry
from rss_pipeline.features.pages.permission import ROBOTS_FOR, check, keep, read_rules
from rss_pipeline.features.pages.sql import robots_since
from rss_pipeline.pipeline.adding.find_feed import feed_at, request_document
from rss_pipeline.pipeline.adding.offer import Offer, OfferedChoice, OfferedEntry
from rss_pipeline.pipeline.session.parser_pool import WorkerFailure
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.pipeline.visits.parse import unreadable
from rss_pipeline.reader.failures import shown_error

T = TypeVar("T")
_SHOWN = 5

logger = logging.getLogger(__name__)


def preview(session: Session, url: str, *, allow_private: bool) -> Detected | Failure:
    """Request a page, if its robots.txt allows it, and find its list."""
    feed = feed_at(url, allow_private=allow_private)
    if isinstance(feed, Failure):
        return feed
    with session.leases.without_feeds() as lease:
        document = request_document(session, lease, replace(feed, feature_keys={"page": AUTO}))
    return document if isinstance(document, Failure) else _detected(session, document)


def offer(session: Session, lease: str, document: Document, allow_private: bool) -> Offer | str:
    """The list of a page without a feed, which was requested as a feed; a sentence where it has none, or
    where robots.txt keeps it from programs."""
    refused = _refusal(session, lease, document.response.url, allow_private=allow_private)
    if refused is not None:
        return refused
    read = _read(session, document, detect_with_choices)
    if isinstance(read, Failure):
        return f"Nor can its entries be found: {read.message}"
    found, others = read
    if found.verdict == "none":
        return " ".join(found.evidence)
    home = home_of(document.response.url)
    return Offer(
        document=document,
        key="page",
        value=AUTO if found.verdict == "certain" else CONFIRMED,
        is_sure=found.verdict == "certain",
        title=found.title or None,
        count=len(found.entries),
        entries=_offered(found.entries),
        evidence=found.evidence,
        memory=_memory(found.entries, found.structure, home),
        choices=tuple(
            OfferedChoice(
                name=each.name,
                is_link=each.is_link,
                value=CONFIRMED,
                count=len(each.entries),
                entries=_offered(each.entries),
                memory=_memory(each.entries, each.structure, home),
            )
            for each in others
        ),
    )


def _offered(entries: Sequence[Entry]) -> tuple[OfferedEntry, ...]:
    """The first entries of a list."""
    return tuple(
        OfferedEntry(title=entry.title, link=entry.link, date=_day(entry.date)) for entry in entries[:_SHOWN]
    )


def _memory(entries: Sequence[Entry], structure: str, home: str) -> str:
    """The memory of a page that had this list."""
    return Known.of_list(guids_of(entries), structure=structure, home=home, entries=entries).to_text()


def _day(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


def _refusal(session: Session, lease: str, url: str, *, allow_private: bool) -> str | None:
    """The sentence on why the page may not be collected."""
    address = request_url(url)
    origin, now = address.site.decode(), session.run.clock()
    known = robots_since(session.run.database, origin, now - ROBOTS_FOR)
    try:
        if known is None:
            feed = feed_at(f"{origin}/robots.txt", allow_private=allow_private)
            found = feed if isinstance(feed, Failure) else request_document(session, lease, feed)
            known = read_rules(found)
            session.run.database.batch(keep(origin, known, at=now))
        check(address, known)
    except FetchError as error:
        logger.info("%s is not collected: %s", url, error.message)
        return shown_error(error.kind, error.message)
    return None


def _detected(session: Session, document: Document) -> Detected | Failure:
    return _read(session, document, detect_document)


def _read(session: Session, document: Document, read: Callable[[Document], T]) -> T | Failure:
    [(_, result)] = session.parser_pool.map(read, [document])
    return unreadable(document, result) if isinstance(result, WorkerFailure) else result


def detect_with_choices(document: Document) -> tuple[Detected, tuple[Choice, ...]]:
    """The same, and what a person may choose in its place."""
    from rss_pipeline.features.pages.detect import choices
    from rss_pipeline.features.pages.page import decode_page

    text = decode_page(document.path.read_bytes(), document.response.content_type).text
    return detect_document(document), choices(text, document.response.url)


def detect_document(document: Document) -> Detected:
    """The list of a spooled page; runs in a parser process."""
    from rss_pipeline.features.pages.detect import detect
    from rss_pipeline.features.pages.page import decode_page

    text = decode_page(document.path.read_bytes(), document.response.content_type).text
    return detect(text, document.response.url)
