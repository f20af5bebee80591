"""Lists of feeds from and to other readers: into and out of a user's subscriptions, and feeds.yaml.

A list is imported whole, or not at all with all of its mistakes. Nothing is fetched: new feeds are due, and
the polls that follow visit them as any other, paced and with back-off. The form of OPML is outlines.py's.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from rss_pipeline.batched import batched
from rss_pipeline.collector.http.address_policy import AddressPolicy
from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.http.request_url import request_url
from rss_pipeline.collector.models.feed import FeedSpec
from rss_pipeline.collector.registry.entry import MAX_FOLDER_CHARACTERS
from rss_pipeline.collector.registry.feed_url import literal, read_url, same_as
from rss_pipeline.collector.registry.new_entries import NewEntry
from rss_pipeline.collector.registry.yaml_nodes import Mistake
from rss_pipeline.errors import RssPipelineError, StorageRejected
from rss_pipeline.features import FEED_KEYS
from rss_pipeline.features.opml import UPLOAD_BYTES
from rss_pipeline.features.opml.outlines import OpmlFeed, OpmlLimits, read_opml, read_outlines, write_opml
from rss_pipeline.pipeline.registry.write_entries import registered, write_feeds
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.feed_queries import FeedName
from rss_pipeline.reader.subscribe import (
    AddressedFeed,
    PlannedSubscriptions,
    address_policy,
    known_feeds,
    named_statements,
    plan_subscriptions,
)
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.feeds.feed_row import known_pages, urls_by_id
from rss_pipeline.storage.feeds.registered import registry_rows
from rss_pipeline.storage.feeds.subscribed import (
    MOST_NEW_FEEDS,
    add_feeds_of_list,
    new_feeds_of_day,
    set_key,
)
from rss_pipeline.storage.refresh.new_addresses import (
    Queue,
    give_turns,
    hold_until_turn,
    queue_of,
    read_queue,
)
from rss_pipeline.storage.subscriptions.listing import subscription_count
from rss_pipeline.storage.subscriptions.subscriptions import MAX_SUBSCRIPTIONS, add_folders, subscribe

UPLOAD = OpmlLimits(file_bytes=UPLOAD_BYTES, outlines=10_000, deepest=10, takes_doctype=False)
_PRIVATE = "is in a private network, or at a port that is not open here; remove the outline"


class OpmlRefused(RssPipelineError):
    """A list that was not imported: nothing of it was written. `mistakes` are in the order of its lines."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(self.mistakes)

    def __str__(self) -> str:
        return "\n".join(["The list has mistakes; nothing was imported.", *map(str, self.mistakes)])


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFeed(AddressedFeed):
    """A feed of a list."""

    line: int
    """The line of its first outline."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Keys without which there is no feed at its address."""
    refusal: Mistake | None = None
    """The reason not to request it for a user. A feed that feeds.yaml shares may have such an address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedList:
    """The feeds of a list in its order, each once."""

    feeds: tuple[ListedFeed, ...]
    merged: int
    """Further outlines of a feed that the list has more than once."""
    mistakes: tuple[Mistake, ...] = ()
    empty_folders: tuple[str, ...] = ()
    pages: tuple[ListedFeed, ...] = ()
    """Web pages of which nothing says that they can be collected."""

    def check(self, known: Collection[str]) -> None:
        """Raise OpmlRefused with all mistakes, if there are any.

        `known` has `same_as` of the feeds that users may subscribe to, whatever their addresses.
        """
        refused = [
            feed.refusal
            for feed in (*self.feeds, *self.pages)
            if feed.refusal is not None and feed.same_as not in known
        ]
        if mistakes := [*self.mistakes, *refused]:
            raise OpmlRefused(sorted(mistakes, key=lambda mistake: mistake.line))


def read_upload(body: bytes, policy: AddressPolicy) -> UploadedList:
    """The feeds of an OPML file of at most 1 MB, with its mistakes. An address with a password is one.

    Of two outlines of one feed, the first gives title and folder; what it lacks comes from the others.
    """
    outlines, mistakes, empty, others = read_outlines(body, UPLOAD)
    feeds: dict[str, ListedFeed] = {}
    pages: dict[str, ListedFeed] = {}
    for each, is_feed in [*((each, True) for each in outlines), *((each, False) for each in others)]:
        feed = _listed(each, policy)
        if isinstance(feed, Mistake):
            mistakes.append(feed)
            continue
        of_kind = feeds if is_feed and _may_have(feed.keys) else pages
        first = of_kind.setdefault(feed.same_as, feed)
        of_kind[feed.same_as] = replace(
            first, title=first.title or feed.title, folder=first.folder or feed.folder
        )
    return UploadedList(
        feeds=tuple(feeds.values()),
        merged=len(outlines) + len(others) - len(feeds) - len(pages),
        pages=tuple(page for key, page in pages.items() if key not in feeds),
        mistakes=tuple(mistakes),
        empty_folders=tuple(folder for folder in empty if len(folder) <= MAX_FOLDER_CHARACTERS),
    )


def _listed(outline: OpmlFeed, policy: AddressPolicy) -> ListedFeed | Mistake:
    read = read_url(literal(outline.url), {})
    if read.username is not None or read.password is not None:
        return Mistake(outline.line, "", "xmlUrl: the address has a name or password in it; remove them")
    refusal = None
    try:
        request = request_url(read.url)
        policy.check_unresolved(request.host, request.port)
    except FetchError as error:
        if error.kind != "blocked_address":
            return Mistake(outline.line, "", error.message)
        refusal = Mistake(outline.line, "", f"xmlUrl: the address {_PRIVATE}")
    return ListedFeed(
        url=read.url,
        host=read.host,
        same_as=read.same_as,
        title=outline.title,
        folder=outline.folder,
        line=outline.line,
        refusal=refusal,
        keys=outline.keys,
    )


def _may_have(keys: Mapping[str, str]) -> bool:
    """True if these are keys that users may set."""
    return all(value in (FEED_KEYS[name].in_lists or ()) for name, value in keys.items())


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
    pages: tuple[ListedFeed, ...] = ()
    """Web pages without a feed, which the user may add one by one: each is shown first."""


def import_list(caller: Caller, body: bytes, *, settings: Settings) -> ImportedList:
    """Subscribe to the feeds of an OPML file, in three requests to the database. Of those that are new to the
    installation, so many an hour are due (storage/refresh/new_addresses.py).

    Belongs into a thread: a list of 1 MB takes about a second.

    Raises:
        OpmlRefused: with all mistakes of the list; nothing was written.
        NoSession, DatabaseUnavailable: as Caller's methods.
    """
    # Before a second is spent on the list of a session that has ended.
    now = caller.clock()
    [count, new] = caller.read(subscription_count(caller.user_id), new_feeds_of_day(caller.user_id, now=now))
    upload = read_upload(body, address_policy(settings))
    stored, *taken = caller.read(*named_statements(caller.user_id, (*upload.feeds, *upload.pages)))
    by_address = known_feeds(stored.rows)
    upload.check(by_address)
    plan = plan_subscriptions(upload.feeds, stored.rows, urls_by_id(taken))
    if int(count.rows[0]["n"]) + len(plan.wanted) > MAX_SUBSCRIPTIONS:
        raise _refused(
            f"with its {len(plan.wanted):,} new feeds there would be more than {MAX_SUBSCRIPTIONS:,}"
            " subscriptions; split the list, or unsubscribe some feeds"
        )
    if int(new.rows[0]["n"]) + len(plan.new) > MOST_NEW_FEEDS:
        raise _refused(
            f"with its {len(plan.new):,} new feeds your lists would bring more than {MOST_NEW_FEEDS:,} of"
            " them today (UTC); import the rest tomorrow"
        )
    queue = Queue()
    if plan.wanted or upload.empty_folders:
        try:
            *_, queued = caller.write(
                *_statements(caller, plan, upload.feeds),
                add_folders(caller.user_id, upload.empty_folders),
                read_queue(caller.user_id, now=caller.clock()),
            )
        except StorageRejected:
            raise _refused("the list does not fit into one request; shorten folders or split it") from None
        queue = queue_of(queued)
    known = {key for key, row in by_address.items() if row["subscribed"]}
    pages = tuple(page for page in upload.pages if page.same_as not in known)
    return ImportedList(
        added=len(plan.wanted),
        known=plan.known + len(upload.pages) - len(pages),
        merged=upload.merged,
        queue=queue,
        pages=pages,
    )


def _statements(caller: Caller, plan: PlannedSubscriptions, feeds: Sequence[ListedFeed]) -> list[Statement]:
    now = caller.clock()
    ids = [wanted.feed_id for wanted in plan.wanted]
    statements = give_turns(caller.user_id, ids, now=now) if ids else []
    for some in batched(plan.new, _FEEDS_AT_ONCE):
        statements += add_feeds_of_list(some, user_id=caller.user_id, now=now)
    statements += _keys(plan, {feed.same_as: feed.keys for feed in feeds if feed.keys})
    if ids:
        statements += subscribe(caller.user_id, plan.wanted, at=now)
        statements += hold_until_turn(caller.user_id, ids, now=now)
    return statements


def _keys(plan: PlannedSubscriptions, keys: Mapping[str, Mapping[str, str]]) -> Iterator[Statement]:
    """Statements that give new feeds the keys of their addresses."""
    with_value: dict[tuple[str, str], list[str]] = {}
    for new in plan.new if keys else ():
        for key in keys.get(same_as(new.url), {}).items():
            with_value.setdefault(key, []).append(new.id)
    return (set_key(ids, name, value) for (name, value), ids in with_value.items())


def _refused(sentence: str) -> OpmlRefused:
    return OpmlRefused([Mistake(0, "", sentence)])


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFeed:
    """A subscription, as far as other readers take it."""

    url: str
    """The feed's address, without a password."""
    title: str | None
    """The user's own, or else the feed's."""
    folder: str | None
    html_url: str | None
    keys: Mapping[str, str] = field(default_factory=dict)
    """As OpmlFeed has them."""
    is_watched: bool = True


def export_subscriptions(
    subscriptions: Sequence[ExportedFeed], folders: Iterable[str] = (), *, now: datetime
) -> bytes:
    """The subscriptions in their order, each folder at the place of its first feed; `folders` are all of the
    user's, also those without feeds."""
    full = {each.folder for each in subscriptions}
    return write_opml(
        (
            OpmlFeed(
                url=each.url,
                title=each.title,
                folder=each.folder,
                html_url=each.html_url,
                keys=each.keys,
                is_watched=each.is_watched,
            )
            for each in subscriptions
        ),
        title="Subscriptions in rss_pipeline",
        created=now,
        empty_folders=[name for name in folders if name not in full],
    )


def subscribed(feeds: Sequence[FeedName]) -> list[ExportedFeed]:
    """The feeds of a user as a list has them."""
    return [
        ExportedFeed(
            url=each.url,
            title=each.title,
            folder=each.folder,
            html_url=each.link,
            keys=each.listed_keys,
            is_watched=each.is_watched,
        )
        for each in feeds
    ]


# An OPML file into feeds.yaml, feeds.yaml as OPML.


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """The feeds of an OPML file: what became of them."""

    ids: tuple[str, ...]
    """The added feeds."""
    ids_known: tuple[str, ...]
    """Already in feeds.yaml, where their entries stay as they are."""
    merged: int
    """Further outlines of a feed that the file lists more than once."""
    in_several: tuple[tuple[str, str, str], ...]
    """URL, folder kept and other folder of feeds that the file lists in more than one."""
    pages: tuple[OpmlFeed, ...]
    """Web pages that were not added: what would be collected of each is to be confirmed."""

    @property
    def added(self) -> int:
        return len(self.ids)

    @property
    def known(self) -> int:
        return len(self.ids_known)


def import_opml(
    body: bytes, *, path: Path, database: Database, settings: Settings, environ: Mapping[str, str]
) -> ImportResult:
    """Add the feeds of an OPML file to feeds.yaml: all that are new, or none.

    Two outlines are one feed if their URLs are the same to feeds.yaml. The first gives title and folder; what
    it does not have comes from the others.

    Raises RegistryError: the OPML file has mistakes, or feeds.yaml has.
    """
    specs = registered(settings.feeds_file, environ=environ)
    found = read_opml(body, path=path)
    listed = [*found.feeds, *(page for page in found.pages if not page.is_watched)]
    known = {same_as(spec.url): spec.id for spec in specs}
    feeds: dict[str, OpmlFeed] = {}
    in_several: list[tuple[str, str, str]] = []
    for feed in listed:
        first = feeds.setdefault(feed.same_as, feed)
        if first.folder and feed.folder and first.folder != feed.folder and feed.same_as not in known:
            in_several.append((first.url, first.folder, feed.folder))
        feeds[feed.same_as] = replace(
            first, title=first.title or feed.title, folder=first.folder or feed.folder
        )
    new = [feed for key, feed in feeds.items() if key not in known]
    written: tuple[FeedSpec, ...] = ()
    if new:
        entries = [
            NewEntry(
                url=literal(each.url),
                title=each.title,
                folder=each.folder,
                watch=each.is_watched,
                feature_keys=each.keys,
            )
            for each in new
        ]
        written = write_feeds(settings.feeds_file, entries, environ=environ, rows=registry_rows(database))
    return ImportResult(
        ids=tuple(spec.id for spec in written),
        ids_known=tuple(known[key] for key in feeds if key in known),
        merged=len(listed) - len(feeds),
        in_several=tuple(in_several),
        pages=tuple(
            {
                page.same_as: page
                for page in found.pages
                if page.same_as not in known and page.same_as not in feeds
            }.values()
        ),
    )


def export_opml(
    *, database: Database, settings: Settings, environ: Mapping[str, str], now: datetime
) -> tuple[bytes, int, int]:
    """The feeds of feeds.yaml as OPML; how many they are, and how many of them need a password or headers.

    Passwords and headers are left out. Title and page are the registry's, else the feed's own.
    """
    specs = registered(settings.feeds_file, environ=environ)
    pages = known_pages(database)
    feeds = []
    for spec in specs:
        title, link = pages.get(spec.id, (None, None))
        keys = {name: value for name, value in spec.feature_keys.items() if FEED_KEYS[name].in_lists}
        feeds.append(
            OpmlFeed(
                url=spec.url,
                title=spec.title or title,
                folder=spec.folder,
                html_url=link,
                keys=keys,
                is_watched=spec.watched,
            )
        )
    body = write_opml(feeds, title="Feeds of rss_pipeline", created=now)
    return body, len(specs), sum(not spec.access.is_open for spec in specs)
