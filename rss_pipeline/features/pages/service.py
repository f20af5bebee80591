"""The look at a page before it is a source: one guarded and paced request, and what its robots.txt says.

Nothing is stored of the page.
"""

from dataclasses import dataclass, replace

from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.outcome import Document
from rss_pipeline.features.pages.model import AUTO, Detected
from rss_pipeline.pipeline.adding.find import feed_at, request_document
from rss_pipeline.pipeline.session.parser_pool import WorkerFailure
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.pipeline.visits.parse import unreadable


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
        document = request_document(session, lease, replace(feed, feature_keys={"page": AUTO}))
    if isinstance(document, Failure):
        return document
    [(_, result)] = session.parser_pool.map(detect_document, [document])
    if isinstance(result, WorkerFailure):
        return unreadable(document, result)
    return Preview(url=document.response.url, detected=result)


def detect_document(document: Document) -> Detected:
    """The list of a spooled page; runs in a parser process."""
    from rss_pipeline.features.pages.detect import detect
    from rss_pipeline.features.pages.page import decode_page

    text = decode_page(document.path.read_bytes(), document.response.content_type).text
    return detect(text, document.response.url)
