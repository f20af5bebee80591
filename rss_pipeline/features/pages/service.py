"""The look at a page before it is a source: one guarded and paced request, and what its robots.txt says.

Nothing is stored of the page.
"""

import json
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlsplit

from rss_pipeline.collector.models.failure import UNREACHED_KINDS, Failure
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.outcome import Document
from rss_pipeline.features.pages.model import Detected
from rss_pipeline.features.pages.robots import allows, rules_for_us
from rss_pipeline.features.pages.sql import drop_robots, keep_robots, robots_since
from rss_pipeline.pipeline.adding.find import feed_at, request_document
from rss_pipeline.pipeline.session.parser_pool import WorkerFailure
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.pipeline.visits.parse import unreadable

ROBOTS_FOR = timedelta(days=1)
"""A host's robots.txt is requested at most once in this time, whatever came."""
_ROBOTS_BYTES = 500_000
_NOT_ASKED = UNREACHED_KINDS | {"host_on_hold"}
"""Failures after which no server has had the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A page as it would be collected."""

    url: str
    """The address of the document, after redirects."""
    detected: Detected


def preview(session: Session, url: str, *, allow_private: bool) -> Preview | Failure:
    """Request a page, if its robots.txt allows it, and find its list."""
    feed = feed_at(url, allow_private=allow_private)
    if isinstance(feed, Failure):
        return feed
    with session.leases.without_feeds() as lease:
        if (refused := refused_by_robots(session, lease, feed)) is not None:
            return refused
        document = request_document(session, lease, feed)
    if isinstance(document, Failure):
        return document
    [(_, result)] = session.parser_pool.map(detect_document, [document])
    if isinstance(result, WorkerFailure):
        return unreadable(document, result)
    return Preview(url=document.response.url, detected=result)


def detect_document(document: Document) -> Detected:
    """The list of a spooled page; runs in a parser process."""
    from rss_pipeline.features.pages.detect import detect
    from rss_pipeline.features.pages.page import text_of

    text = text_of(document.path.read_bytes(), document.response.content_type)
    return detect(text, document.response.url)


def refused_by_robots(session: Session, lease: str, feed: Feed) -> Failure | None:
    """The failure of a page that its host keeps from robots, or a host that does not say."""
    parts = urlsplit(feed.url)
    origin = f"{parts.scheme}://{parts.netloc}"
    now = session.run.clock()
    known = robots_since(session.run.database, origin, now - ROBOTS_FOR)
    if known is None:
        found = _request_robots(session, lease, f"{origin}/robots.txt", allow_private=feed.allow_private)
        if isinstance(found, Failure):
            return found
        known = found
        session.run.database.batch(
            [
                drop_robots(now - ROBOTS_FOR),
                keep_robots(origin, rules=known[0], refusal=known[1], at=now),
            ]
        )
    rules, refusal = known
    if refusal is not None:
        return Failure(kind="http_status", message=refusal)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    if allows(json.loads(rules or "[]"), path or "/"):
        return None
    message = f"robots.txt of {parts.hostname} keeps this page from programs. Look for a feed of the site."
    return Failure(kind="blocked_address", message=message)


def _request_robots(
    session: Session, lease: str, url: str, *, allow_private: bool
) -> tuple[str | None, str | None] | Failure:
    """The rules as JSON or a sentence on why they are not known; a failure if no server had the request."""
    feed = feed_at(url, allow_private=allow_private)
    found = feed if isinstance(feed, Failure) else request_document(session, lease, feed)
    if isinstance(found, Document):
        text = found.path.read_bytes()[:_ROBOTS_BYTES].decode("utf-8", "replace")
        return json.dumps(rules_for_us(text), ensure_ascii=True), None
    if found.kind in _NOT_ASKED:
        return found
    # RFC 9309, 2.3.1.3: what is not there allows everything; 2.3.1.4: what cannot be read, nothing.
    if found.kind in ("empty_body", "no_content", "gone") or _is_refusal(found.status):
        return "[]", None
    return (
        None,
        f"robots.txt cannot be read, so no page of its host may be: {found.message} Try again tomorrow.",
    )


def _is_refusal(status: int | None) -> bool:
    """True for the statuses of the client's error, but for 429: that is the host's pace."""
    return status is not None and 400 <= status < 500 and status != 429
