"""A list of feeds into a user's subscriptions: all of it in one transaction, or nothing.

How a list is read is upload.py's. Nothing is fetched: new feeds are due, and the polls that follow visit
them as any other, paced and with back-off.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rss_pipeline.batched import batched
from rss_pipeline.collector.registry.feed_url import feed_id, free_id, other_form
from rss_pipeline.collector.registry.yaml_nodes import Mistake
from rss_pipeline.errors import StorageRejected
from rss_pipeline.features.opml.upload import ListedFeed, OpmlRefused, UploadedList, read_upload
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.addresses import address_policy, known_feeds
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Row, Statement
from rss_pipeline.storage.feeds.feeds import stored_urls, urls_by_id
from rss_pipeline.storage.feeds.subscribed import NewFeed, add_feeds
from rss_pipeline.storage.refresh.new_addresses import (
    Queue,
    give_turns,
    hold_until_turn,
    queue_of,
    read_queue,
)
from rss_pipeline.storage.subscriptions.folders import add_folders
from rss_pipeline.storage.subscriptions.listing import named_feeds, subscription_count
from rss_pipeline.storage.subscriptions.subscriptions import MAX_SUBSCRIPTIONS, Wanted, subscribe

_FEEDS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedList:
    """The feeds of a list: what became of them."""

    added: int
    """New subscriptions."""
    known: int
    """Subscribed already; they keep their titles and folders."""
    merged: int
    """Further outlines of a feed that the list has more than once."""
    queue: Queue = field(default_factory=Queue)
    """The user's new addresses that wait for their turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPlan:
    """The rows to write for a list."""

    new: tuple[NewFeed, ...]
    wanted: tuple[Wanted, ...]
    known: int


def import_list(caller: Caller, body: bytes, *, settings: Settings) -> ImportedList:
    """Subscribe to the feeds of an OPML file, in three requests to the database. Of those that are new to the
    installation, so many an hour are due (storage/refresh/new_addresses.py).

    Belongs into a thread: a list of 1 MB takes about a second.

    Raises:
        OpmlRefused: with all mistakes of the list; nothing was written.
        NoSession, DatabaseUnavailable: as Caller's methods.
    """
    # Before a second is spent on the list of a session that has ended.
    [count] = caller.read(subscription_count(caller.user_id))
    upload = read_upload(body, address_policy(settings))
    stored, *taken = caller.read(*listed_statements(caller.user_id, upload))
    upload.check(known_feeds(stored.rows))
    plan = plan_import(upload, stored.rows, urls_by_id(taken))
    if int(count.rows[0]["n"]) + len(plan.wanted) > MAX_SUBSCRIPTIONS:
        raise _refused(
            f"with its {len(plan.wanted):,} new feeds there would be more than {MAX_SUBSCRIPTIONS:,}"
            " subscriptions; split the list, or unsubscribe some feeds"
        )
    queue = Queue()
    if plan.wanted or upload.empty_folders:
        try:
            *_, queued = caller.write(
                *_statements(caller, plan),
                add_folders(caller.user_id, upload.empty_folders),
                read_queue(caller.user_id, now=caller.clock()),
            )
        except StorageRejected:
            raise _refused("the list does not fit into one request; shorten folders or split it") from None
        queue = queue_of(queued)
    return ImportedList(added=len(plan.wanted), known=plan.known, merged=upload.merged, queue=queue)


def listed_statements(user_id: str, upload: UploadedList) -> list[Statement]:
    """Queries for the feeds at the hosts of this list, and for the feeds with the ids that new ones would
    have (`stored_urls`)."""
    hosts = sorted({feed.host for feed in upload.feeds})
    ids = (feed_id(url, feed.host) for feed in upload.feeds for url in (feed.url, other_form(feed.url)))
    return [named_feeds(user_id, hosts), *stored_urls(ids)]


def plan_import(upload: UploadedList, stored: Iterable[Row], taken: Mapping[str, str]) -> ImportPlan:
    """The feeds to add and to subscribe, from the rows of `named_feeds`, and the URLs of `stored_urls`.

    A feed that users may not subscribe by its address is as good as unknown: its public form is added, which
    is requested without the headers and passwords of feeds.yaml. So no user learns whether there is one.
    """
    rows = list(stored)
    urls = {row["url"] for row in rows}
    by_address = known_feeds(rows)
    new: list[NewFeed] = []
    wanted: list[Wanted] = []
    known = 0
    for feed in upload.feeds:
        stored_feed = by_address.get(feed.same_as)
        if stored_feed is None:
            added = _new_feed(feed, urls, taken)
            new.append(added)
            wanted.append(Wanted(feed_id=added.id, url=added.url, title=feed.title, folder=feed.folder))
        elif stored_feed["subscribed"]:
            known += 1
        else:
            wanted.append(_wanted(feed, stored_feed))
    return ImportPlan(new=tuple(new), wanted=tuple(wanted), known=known)


def _new_feed(feed: ListedFeed, urls: set[str], taken: Mapping[str, str]) -> NewFeed:
    url = feed.url if feed.url not in urls else other_form(feed.url)
    return NewFeed(id=free_id(url, feed.host, taken), url=url, host=feed.host)


def _wanted(feed: ListedFeed, row: Mapping[str, str | None]) -> Wanted:
    # A title that is the feed's own is not the user's: it would stay when the feed changes its title.
    title = feed.title if feed.title != row["title"] else None
    return Wanted(feed_id=str(row["id"]), url=row["url"], title=title, folder=feed.folder)


def _statements(caller: Caller, plan: ImportPlan) -> list[Statement]:
    now = caller.clock()
    ids = [wanted.feed_id for wanted in plan.wanted]
    statements = give_turns(caller.user_id, ids, now=now) if ids else []
    for some in batched(plan.new, _FEEDS_AT_ONCE):
        statements += add_feeds(some, now=now)
    if ids:
        statements += subscribe(caller.user_id, plan.wanted, at=now)
        statements += hold_until_turn(caller.user_id, ids, now=now)
    return statements


def _refused(sentence: str) -> OpmlRefused:
    return OpmlRefused([Mistake(0, "", sentence)])
