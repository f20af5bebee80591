"""The feed at an address that a person typed: the address itself, a feed that its page names, a usual place.

Nothing is stored here, and feeds.yaml is not read; add_feed.py does both.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import urljoin

from rss_pipeline.collector.fetch.feed_round import fetch_feeds
from rss_pipeline.collector.models.failure import Failure, FailureKind
from rss_pipeline.collector.models.feed import Access, Feed, FeedAddress
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.collector.models.outcome import Document, NotBegun, Parsed
from rss_pipeline.collector.registry.feed_url import feed_id, read_url
from rss_pipeline.features import FEATURES
from rss_pipeline.pipeline.adding.offer import Offer
from rss_pipeline.pipeline.session.parser_pool import WorkerFailure
from rss_pipeline.pipeline.session.parser_tasks import ParseTask, named_feeds, parse_document
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.pipeline.visits.fetch import checks
from rss_pipeline.pipeline.visits.parse import unreadable

USUAL_PLACES = ("feed/", "feed.xml", "rss.xml", "atom.xml", "index.xml", "rss/")
"""Below a page's folder and, where they differ, `feed/` below its host: few, for each is a request."""

LOOKS, LOOK_SECONDS = 20, 0.5
"""For the turn at a host that another run holds; a poll makes way after three seconds and a request."""

TURN_SECONDS = 120.0
"""For the turn at a host that limits the rate of requests: most allow one a minute or more."""

_NOT_THERE: frozenset[FailureKind] = frozenset({"html", "not_a_feed", "empty_body", "http_status", "gone"})
"""Failures of a guessed address after which another one may do; after others (429, time-out) it may not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A feed: where it is, and its document, which is in the spool."""

    url: str
    """The requested address, or where it has moved to for good."""
    is_typed: bool
    """`url` is the address that was typed."""
    document: Document
    parsed: Parsed
    others: tuple[str, ...] = ()
    """Further feeds that the page names."""

    @property
    def title(self) -> str | None:
        """The feed's own."""
        return self.parsed.header.title

    @property
    def count(self) -> int:
        """Items that the document lists."""
        return self.parsed.items_seen


def find_feed(session: Session, url: str, *, access: Access, allow_private: bool) -> Found | Offer | Failure:
    """Request `url` (without userinfo) and, if it is a web page, the feeds that it names, then usual places.

    Each request is guarded and paced as in a poll, and waits some seconds for its turn where another run
    requests from the host. `access` goes to `url` only. Where there is no feed, features may offer what they
    find in the document.
    """
    with session.leases.without_feeds() as lease:
        return _find(session, lease, url, access=access, allow_private=allow_private)


def _find(
    session: Session, lease: str, url: str, *, access: Access, allow_private: bool
) -> Found | Offer | Failure:
    page, result = _visit(session, lease, url, access=access, allow_private=allow_private)
    if isinstance(result, Parsed):
        return _found(url, result, access)
    if page is None or result.kind != "html":
        return result
    named = _named(session, page)
    first: Failure | None = None
    for each in named:
        _, outcome = _visit(session, lease, each, allow_private=allow_private)
        if isinstance(outcome, Parsed):
            found = _found(each, outcome, Access())
            others = tuple(other for other in named if other != each)
            return replace(found, is_typed=False, others=others)
        message = f"The web page names the feed {each}, but: {outcome.message}"
        first = first or replace(outcome, message=message)
    if first is not None:
        return first
    why = ""
    for each in usual_places(page.response.url):
        _, outcome = _visit(session, lease, each, allow_private=allow_private)
        if isinstance(outcome, Parsed):
            return replace(_found(each, outcome, Access()), is_typed=False)
        if outcome.kind not in _NOT_THERE:
            break
    else:
        # What a password brings is not for a page that everybody gets.
        for feature in FEATURES if access.is_open else ():
            if feature.without_feed is not None:
                offer = feature.without_feed.load()(session, lease, page, allow_private)
                if not isinstance(offer, str):
                    return offer
                why = f" {offer}"
    return replace(
        result,
        message="This is a web page that names no feed, and there is none in the usual places"
        f" ({', '.join('/' + place for place in USUAL_PLACES)}). Look on the page for a link to RSS or Atom,"
        f" and add that address.{why}",
    )


def usual_places(page: str) -> Iterator[str]:
    """Addresses of feeds that many sites use, beside the page first."""
    below_page = [urljoin(page, place) for place in USUAL_PLACES]
    yield from dict.fromkeys([*below_page, urljoin(page, "/feed/"), urljoin(page, "/feed.xml")])


def _found(url: str, parsed: Parsed, access: Access) -> Found:
    moved_to = parsed.document.response.moved_to
    # A password in feeds.yaml belongs to the address that it was written for.
    is_moved = moved_to is not None and moved_to != url and access.is_open
    return Found(
        url=moved_to if is_moved and moved_to else url,
        is_typed=not is_moved,
        document=parsed.document,
        parsed=parsed,
    )


def _visit(
    session: Session, lease: str, url: str, *, access: Access | None = None, allow_private: bool
) -> tuple[Document | None, Parsed | Failure]:
    """Request one address and read its document; the document, if one came, and what it is."""
    feed = feed_at(url, allow_private=allow_private)
    if isinstance(feed, Failure):
        return None, feed
    outcome = request_document(session, lease, feed, access)
    if isinstance(outcome, Failure):
        return None, outcome
    task = ParseTask(feed=feed, document=outcome, now=session.run.clock())
    [(_, result)] = session.parser_pool.map(parse_document, [task])
    if isinstance(result, WorkerFailure):
        return outcome, unreadable(outcome, result)
    return outcome, result


def feed_at(url: str, *, allow_private: bool) -> Feed | Failure:
    """A feed that is not stored, for one request of an address; a failure if it is none."""
    try:
        registered = read_url(url.replace("${", "$${"), {})
    except ValueError as error:
        return Failure(kind="bad_url", message=f"{error}.")
    return Feed(
        # No feed's: one that was at this address and has another now may have the id. A hold is known by its
        # address all the same.
        id=f"-{feed_id(registered.url, registered.host)}",
        url=registered.url,
        address=FeedAddress(host=registered.host),
        allow_private=allow_private,
    )


def request_document(
    session: Session, lease: str, feed: Feed, access: Access | None = None
) -> Document | Failure:
    """Request one address in its host's turn, guarded, paced and checked as in a poll; the document is
    spooled."""
    if not _turn_comes(session, lease, feed.address.host):
        message = f"Another run requests from {feed.address.host} at this moment. Try again in a minute."
        return Failure(kind="host_on_hold", message=message)
    [outcome] = fetch_feeds(
        [(feed, access or Access())],
        policy=replace(session.policy, round_seconds=TURN_SECONDS),
        spool=session.spool.folder,
        clock=session.run.clock,
        pace=session.politeness.pace,
        holds=session.politeness.holds,
        other_runs=session.other_runs,
        check_of=checks(session.run),
    )
    session.politeness.keep_holds()
    match outcome:
        case Document() | Failure():
            return outcome
        case OnHold():
            return Failure(kind="host_on_hold", message=f"{outcome}. Try again after that.")
        case _:
            why = outcome.reason if isinstance(outcome, NotBegun) else None
            message = f"{feed.address.host} was not requested{f': {why}' if why else ''}. Try again later."
            return Failure(kind="host_on_hold", message=message)


def _turn_comes(session: Session, lease: str, host: str) -> bool:
    """Take the host for this run; False if another run has not freed it within some seconds."""
    for look in range(LOOKS):
        if session.leases.has_host(host):
            return True
        taken = session.leases.take_host(host)
        if taken.requested_elsewhere:
            session.politeness.pace.requested_elsewhere([host])
        if taken.is_ours:
            return True
        if look == 0:
            session.leases.await_host(lease, host)
        time.sleep(LOOK_SECONDS)
    return False


def _named(session: Session, page: Document) -> list[str]:
    [(_, result)] = session.parser_pool.map(named_feeds, [page])
    return [] if isinstance(result, WorkerFailure) else result
