"""The search for the feed of an address that a user named: found, subscribed for that user, and visited.

It belongs to a run (refresh_run.py): the reader makes no request to a publisher. An address is searched as
`rss-pipeline add` does it, but never with a password and never in a private network.
"""

from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Access
from rss_pipeline.collector.registry.feed_url import completed, literal, read_url, same_as
from rss_pipeline.errors import StorageRejected
from rss_pipeline.features import FEED_KEYS
from rss_pipeline.pipeline.adding.add_feed import remember_choice, visit_found
from rss_pipeline.pipeline.adding.find_feed import Found, find_feed
from rss_pipeline.pipeline.adding.offer import Offer
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.pipeline.visits.visit import Stored, Visits
from rss_pipeline.reader.subscribe import AddressedFeed, known_feeds, named_statements, plan_subscriptions
from rss_pipeline.storage.accounts import user_rows as users
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.feeds.feed_row import urls_by_id
from rss_pipeline.storage.feeds.subscribed import add_feeds, set_key
from rss_pipeline.storage.refresh.open_requests import OpenRequest
from rss_pipeline.storage.subscriptions.listing import look_for_feed, subscription_count
from rss_pipeline.storage.subscriptions.subscriptions import MAX_SUBSCRIPTIONS, Wanted, subscribe

_REFUSED = "The feed could not be subscribed."
_TOO_MANY = f"There would be more than {MAX_SUBSCRIPTIONS:,} subscriptions."


def search(session: Session, request: OpenRequest) -> tuple[Row, Visits]:
    """Find the feed, subscribe to it, and store the items of the document that the search has brought.

    Return the result that the task shows, and the visit of a feed that is new.
    """
    try:
        address = read_url(literal(completed(request.address or "")), {})
    except ValueError as error:
        return _failed("bad_url", f"{error}."), []
    if address.username is not None or address.password is not None:
        return _failed("bad_url", "An address with a name or a password cannot be subscribed."), []
    run = session.run
    run.objects.probe()
    session.politeness.read()
    found = find_feed(session, address.url, access=Access(), allow_private=False)
    if isinstance(found, Failure):
        return _failed(found.kind, found.message), []
    if isinstance(found, Offer) and not request.wishes.takes_offer:
        return {"outcome": "offered", "offer": found.shown()}, []
    if isinstance(found, Offer):
        chosen = found.choosing(request.wishes.choice)
        if chosen is None:
            # The page has changed since.
            return {"outcome": "offered", "offer": found.shown()}, []
        found = chosen
    return _subscribed(session, request, found)


def _subscribed(session: Session, request: OpenRequest, found: Found | Offer) -> tuple[Row, Visits]:
    database, now = session.run.database, session.run.clock()
    registered = read_url(literal(found.url), {})
    feed = AddressedFeed(url=registered.url, host=registered.host, same_as=same_as(registered.url))
    user_id, wishes = request.user_id, request.wishes
    count, stored, *taken = database.batch([subscription_count(user_id), *named_statements(user_id, [feed])])
    plan = plan_subscriptions([feed], stored.rows, urls_by_id(taken))
    stored_feed = known_feeds(stored.rows).get(feed.same_as)
    accepted = found if isinstance(found, Offer) and stored_feed and stored_feed["may_accept"] else None
    if stored_feed is not None and not plan.wanted:
        if accepted is not None:
            return _accepted(session, stored_feed["id"], accepted)
        return {"outcome": "known", "feed_id": stored_feed["id"]}, []
    if int(count.rows[0]["n"]) >= MAX_SUBSCRIPTIONS:
        return _failed("too_many", _TOO_MANY), []
    [chosen] = plan.wanted
    wanted = Wanted(
        feed_id=chosen.feed_id,
        url=chosen.url,
        title=wishes.title,
        folder=wishes.folder,
        wished_interval=wishes.wished_interval,
        full_text=wishes.full_text,
    )
    try:
        *_, subscribed = database.batch(
            [
                *add_feeds(plan.new, now=now),
                *(set_key([new.id], found.key, found.value) for new in plan.new if isinstance(found, Offer)),
                *subscribe(user_id, [wanted], at=now),
                users.note_change(user_id),
                look_for_feed(user_id, wanted.feed_id),
            ]
        )
    except StorageRejected:
        # The user was removed meanwhile.
        return _failed("refused", _REFUSED), []
    if not subscribed.rows:
        # The feed got another address meanwhile.
        return _failed("refused", _REFUSED), []
    if accepted is not None:
        return _accepted(session, wanted.feed_id, accepted)
    if not plan.new:
        return {"outcome": "subscribed", "feed_id": wanted.feed_id}, []
    remember_choice(session, wanted.feed_id, found)
    return _visited(session, wanted.feed_id, found)


def _accepted(session: Session, feed_id: str, offer: Offer) -> tuple[Row, Visits]:
    """Have a known feed take an offer of its document, and visit it with that."""
    database, key = session.run.database, FEED_KEYS[offer.key]
    assert key.accept is not None
    database.batch([set_key([feed_id], offer.key, offer.value)])
    value = database.query(
        f"SELECT {offer.key} AS value FROM feeds WHERE id = ?", [feed_id], name="read a key of a feed"
    ).rows[0]["value"]
    database.batch(key.accept.load()(feed_id, value, offer))
    return _visited(session, feed_id, offer)


def _visited(session: Session, feed_id: str, found: Found | Offer) -> tuple[Row, Visits]:
    visit = visit_found(session, feed_id, found, {})
    items_new = visit.outcome.items_new if isinstance(visit.outcome, Stored) else 0
    return {"outcome": "subscribed", "feed_id": feed_id, "items_new": items_new}, [visit]


def _failed(kind: str, message: str) -> Row:
    return {"outcome": "failed", "error_kind": kind, "error": message}
