"""A new feed: found, written into feeds.yaml, and visited once, with the document that the search brought.

The search is find_feed.py's, the file pipeline.registry.write_entries'.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Access, FeedSpec
from rss_pipeline.collector.models.outcome import NotModified, Pending
from rss_pipeline.collector.registry.feed_url import completed, literal, read_url, same_as
from rss_pipeline.collector.registry.new_entries import NewEntry
from rss_pipeline.features import FEED_KEYS
from rss_pipeline.pipeline.adding.find_feed import Found, find_feed
from rss_pipeline.pipeline.adding.offer import Offer
from rss_pipeline.pipeline.registry.sync import sync_registry
from rss_pipeline.pipeline.registry.write_entries import registered, write_feeds
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.pipeline.visits.claim import Accesses, claim_named
from rss_pipeline.pipeline.visits.session_steps import STEPS, close
from rss_pipeline.pipeline.visits.visit import Visit
from rss_pipeline.storage.feeds.registered import registry_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """A feed that is in feeds.yaml now."""

    id: str
    url: str
    title: str | None
    items: int
    """Listed by its document."""
    next_at: datetime | None
    """None: another run visits its host just now, and visits it next."""
    next_reason: str
    others: tuple[str, ...]
    """Further feeds that the web page names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyListed:
    """A feed that feeds.yaml has."""

    id: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """An address without a feed, and what would be collected of it; nothing was written."""

    offer: Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAdded:
    """Nothing was written; the sentence says why and what to do."""

    kind: str
    message: str


def prepare(session: Session, *, environ: Mapping[str, str]) -> None:
    """Check what every `add` needs, and load the holds of hosts.

    Raises:
        RegistryError: feeds.yaml has mistakes.
        InfrastructureError: a store cannot work now.
    """
    run = session.run
    if registered(run.settings.feeds_file, environ=environ):
        sync_registry(run.database, run.settings, now=run.clock(), environ=environ)
    run.objects.probe()
    session.politeness.read()


def add(
    session: Session,
    text: str,
    *,
    environ: Mapping[str, str],
    allow_private: bool = False,
    title: str | None = None,
    folder: str | None = None,
    takes: Callable[[Offer], Offer | None] = lambda _: None,
) -> Added | AlreadyListed | Offered | NotAdded:
    """Find the feed at an address that a person typed, write it into feeds.yaml and store its items.

    `takes` is called with the offer for an address without a feed, and returns it, or one of its choices, if
    that is wanted.

    After `prepare`. An `add` that fails leaves feeds.yaml as it was.

    Raises:
        RegistryError: feeds.yaml cannot be written.
        InfrastructureError: a store failed; a feed that is in feeds.yaml by then is visited by the next poll.
    """
    settings = session.run.settings
    try:
        typed = completed(text)
        address = read_url(typed, environ)
    except ValueError as error:
        return NotAdded(kind="bad_url", message=str(error))
    specs = registered(settings.feeds_file, environ=environ)
    if (listed := _listed(specs, address.url)) is not None:
        spec = next(each for each in specs if each.id == listed.id)
        return _accepted(session, spec, environ=environ, takes=takes) or listed
    access = Access(username=address.username, password=address.password)
    found = find_feed(session, address.url, access=access, allow_private=allow_private)
    if isinstance(found, Failure):
        hint = ""
        if found.kind == "blocked_address" and not allow_private:
            hint = " With `add`, --allow-private writes that."
        return NotAdded(kind=found.kind, message=found.message + hint)
    if (listed := _listed(registered(settings.feeds_file, environ=environ), found.url)) is not None:
        return listed
    keys: dict[str, str] = {}
    if isinstance(found, Offer):
        if (taken := takes(found)) is None:
            return Offered(offer=found)
        found = taken
        keys[found.key] = found.value
    is_typed = found.url == address.url
    entry = NewEntry(
        url=typed if is_typed else literal(found.url),
        title=title,
        folder=folder,
        allow_private=allow_private,
        feature_keys=keys,
    )
    rows = registry_rows(session.run.database)
    [spec] = write_feeds(settings.feeds_file, [entry], environ=environ, rows=rows)
    return _added(session, spec, found, environ=environ)


def _added(session: Session, spec: FeedSpec, found: Found | Offer, *, environ: Mapping[str, str]) -> Added:
    visit = _visited(session, spec, found, environ=environ)
    return Added(
        id=spec.id,
        url=spec.url,
        title=found.title,
        items=found.count,
        next_at=visit.next.at if visit.next else None,
        next_reason=visit.next.reason if visit.next else "another run visits its host now, and it next",
        others=found.others,
    )


def _accepted(
    session: Session,
    spec: FeedSpec,
    *,
    environ: Mapping[str, str],
    takes: Callable[[Offer], Offer | None],
) -> Added | Offered | None:
    """The offer for a listed feed of another kind, again: what a person confirms is read from then on."""
    name = next((name for name in spec.feature_keys if FEED_KEYS[name].accept is not None), None)
    if name is None or not spec.access.is_open:
        return None
    found = find_feed(session, spec.url, access=spec.access, allow_private=spec.allow_private)
    if not isinstance(found, Offer):
        return None
    if (taken := takes(found)) is None:
        return Offered(offer=found)
    found = taken
    accept = FEED_KEYS[name].accept
    assert accept is not None
    sync_registry(session.run.database, session.run.settings, now=session.run.clock(), environ=environ)
    session.run.database.batch(accept.load()(spec.id, spec.feature_keys[name], found))
    return _added(session, spec, found, environ=environ)


def _listed(specs: Sequence[FeedSpec], url: str) -> AlreadyListed | None:
    wanted = same_as(url)
    return next(
        (AlreadyListed(id=spec.id, url=spec.url) for spec in specs if same_as(spec.url) == wanted), None
    )


def _visited(session: Session, spec: FeedSpec, found: Found | Offer, *, environ: Mapping[str, str]) -> Visit:
    """The visit of a new feed by the steps of a poll, without a second request."""
    run = session.run
    synced = sync_registry(run.database, run.settings, now=run.clock(), environ=environ)
    remember_choice(session, spec.id, found)
    return visit_found(session, spec.id, found, synced.accesses)


def remember_choice(session: Session, feed_id: str, found: Found | Offer) -> None:
    """Give a new feed the memory of the choice that it was added with, before its first visit."""
    if not isinstance(found, Offer) or not found.is_chosen:
        return
    if (accept := FEED_KEYS[found.key].accept) is not None:
        session.run.database.batch(accept.load()(feed_id, found.value, found))


def visit_found(session: Session, id: str, found: Found | Offer, accesses: Accesses) -> Visit:
    """Visit a stored feed by the steps of a poll, with the document that the search has brought."""
    [visit] = claim_named(session, [id], accesses, suspects=())
    if not isinstance(visit.outcome, Pending):
        return visit
    response = replace(found.document.response, requested_url=visit.feed.requested_url)
    if response.url == visit.feed.requested_url:
        response = replace(response, moved_to=None)
    if found.document.content_hash == visit.feed.http.content_hash:
        # It was collected before, and its last document is still the current one.
        unchanged = NotModified(response=response, body_bytes=found.document.body_bytes)
        visits = close(session, [replace(visit, outcome=unchanged)])
    else:
        visits = [replace(visit, outcome=replace(found.document, response=response))]
        for step in STEPS[1:]:
            visits = step(session, visits)
    session.leases.end({visit.token})
    return visits[0]
