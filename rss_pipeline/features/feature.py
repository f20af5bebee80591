"""The points of extension: all that a feature may add to the rest, on one page.

A feature is a package in this folder. Its docstring is its front page, and its `FEATURE` is the one list of
what it adds. A part is named, not imported: nothing of a feature is loaded before it is used, and the rest of
the project asks `FEATURES` and names no feature. To remove a feature, remove its folder, its line in
`FEATURES`, and the features that name it in `needs`.

Two things need no field: a feature's templates (`search/search.html`), and its style sheets and scripts
(`static_url("plots.css")`), are found in its folder.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

if TYPE_CHECKING:
    import click
    import dagster as dg
    from fastapi import APIRouter
    from prometheus_client.core import Metric

    from rss_pipeline.api.google_reader.call import FeatureCall
    from rss_pipeline.cli.output.status_table import StatusLook, StatusSection
    from rss_pipeline.cli.reader import ChildProcess
    from rss_pipeline.collector.fetch.feed_visit import RequestCheck
    from rss_pipeline.collector.models.clock import Clock
    from rss_pipeline.collector.models.feed import Feed, FeedSpec
    from rss_pipeline.collector.models.item import ParsedFeed
    from rss_pipeline.collector.models.outcome import Document, DocumentPart, Parsed
    from rss_pipeline.collector.registry.load import KnownFeeds
    from rss_pipeline.collector.registry.yaml_nodes import Mistake, Node
    from rss_pipeline.environment import EnvironmentReader
    from rss_pipeline.extras import Extra
    from rss_pipeline.features.health.model import Check, Finding
    from rss_pipeline.orchestration.parts import Building, DagsterParts
    from rss_pipeline.pipeline.adding.offer import Offer
    from rss_pipeline.pipeline.registry.sync import KeyChanges, RegistrySync
    from rss_pipeline.pipeline.session.parser_pool import ParserPool
    from rss_pipeline.pipeline.session.parser_tasks import ParseTask
    from rss_pipeline.pipeline.session.run_context import RunContext, Spool
    from rss_pipeline.pipeline.session.session import Session
    from rss_pipeline.reader.query import Query
    from rss_pipeline.settings import Settings
    from rss_pipeline.storage.database import Database, Row, Statement, Value
    from rss_pipeline.storage.objects import ObjectStore
    from rss_pipeline.storage.subscriptions.folding import Folding
    from rss_pipeline.storage.subscriptions.item_query import ItemCondition

    ItemStatements = Callable[[Sequence[str]], Iterator[list[Statement]]]

    EventBatches = Iterator[list[dg.AssetMaterialization]]

    PollEvents = Callable[[dg.OpExecutionContext, Session, Collection[str]], EventBatches]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemNote:
    """A note on an item: a sentence below its text, and a button among its links."""

    sentence: str | None = None
    is_quiet: bool = False
    """The sentence answers the key alone that presses the button, where there is none."""
    button: str = ""
    action: str | None = None
    """The address that the button posts to, with `value` as `show`; None for no button."""
    value: str = ""
    is_coming: bool = False
    """The text will change in a moment."""


@dataclass(frozen=True)
class Part(Generic[T]):
    """An object of a feature, such as `Part("topics.cli:publish")`, imported when it is asked for."""

    name: str
    """The module below rss_pipeline.features, a colon, and the name there."""

    def load(self) -> T:
        """Return the object. Raise ImportError or AttributeError where there is none."""
        return cast("T", _load(self.name))


@cache
def _load(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(import_module(f"rss_pipeline.features.{module}"), attribute)


@dataclass(frozen=True)
class AfterPoll:
    """A last step of each poll, such as the publication of what changed."""

    op: "Part[dg.OpDefinition]"
    """The op after `report`. Its configuration has `later`: leave it to the job."""
    job: "Part[dg.JobDefinition]"
    """The same work by itself: `rss-pipeline poll` runs it after its last round, if it is due."""
    is_due: "Part[Callable[[Database, datetime], bool]]"
    """True if the job has work at this instant; a small query."""


class InReplay(Protocol):
    """The work of a feature in the replay of one feed, whose backups come in the order of their time."""

    def inserting(
        self, parsed: "Parsed", ids: "Sequence[str]", came: str, params: "Sequence[Value]"
    ) -> "Iterator[list[Statement]]":
        """Groups of statements for items of a backup: the first goes into the batch that inserts them. `came`
        is the condition that one of them is new."""

    def others(
        self, parsed: "Parsed", ids: "Sequence[str]", inserted: "Set[str]"
    ) -> "Iterator[list[Statement]]":
        """Groups of statements for these items of a backup, but for those that were inserted."""

    def add(self, parsed: "Parsed") -> None:
        """Take in a backup whose items are stored."""

    def end(self, database: "Database") -> None:
        """Record that all backups were read."""


@dataclass(frozen=True)
class Replaying:
    """Work beside each replay, such as the judgement of a feed's streams."""

    of_feed: "Part[Callable[[Feed], InReplay]]"
    """The work in the replay of this feed."""
    events: "Part[Callable[[Database, dg.DagsterInstance, Collection[str]], EventBatches]] | None" = None
    """Events after the replay of these feeds, by their ids."""


@dataclass(slots=True, kw_only=True)
class ReadAgain:
    """The result of reading a feature's objects again."""

    read: int = 0
    changed: int = 0
    shown: int = 0
    """Changed ones with a text that is shown now."""
    unread: list[tuple[str, str]] = field(default_factory=list)
    """Keys, and why they could not be read."""


class ReadsAgain(Protocol):
    """The work of a feature in `replay --pages`."""

    def __call__(
        self,
        run: "RunContext",
        *,
        pool: "ParserPool",
        spool: "Spool",
        feed_ids: Collection[str],
        dry_run: bool = False,
        is_restore: bool = False,
    ) -> ReadAgain:
        """Read the objects of these feeds' items again. `is_restore`: the database was lost."""


@dataclass(frozen=True)
class FeedKey:
    """A key of a feed in feeds.yaml, with a column of the same name in the table of feeds.

    Its value is a text. `needs_tree` to `before_request` are for feeds with the key: visits of others load
    nothing.
    """

    read: "Part[Callable[[Node, str, Mapping[str, str], list[Mistake]], str | None]]"
    """The value of a node at a place as text, None for none; with the environment and the mistakes so far."""
    register: "Part[Callable[[Sequence[FeedSpec]], list[Statement]]]"
    """Statements in the batch that writes these feeds of feeds.yaml, if one of them has the key or had it."""
    leave: "Part[Callable[[str], list[Statement]]] | None" = None
    """Statements in the batch that takes feeds out of feeds.yaml, a JSON list of ids."""
    stays: bool = False
    """True for a key that a feed keeps when it leaves feeds.yaml and users go on with it."""
    in_lists: Collection[str] | None = None
    """The values that users' lists of feeds may have, of a key without which its address is no feed: lists
    have it, and those of feeds.yaml any value."""
    memory: str | None = None
    """A column of the table of feeds with what the feature keeps from one document to the next: each claim
    and each backup has it, as they have the key."""
    remembers: "Part[Callable[[Feed, Parsed], str | None]] | None" = None
    """The memory after a document before which there was none, for its backup: no later one may come."""
    accept: "Part[Callable[[str, str, Offer], list[Statement]]] | None" = None
    """Statements after which the feed with an id, and a value of the key, takes what was offered of its
    document."""
    may_accept: str = ""
    """The condition, in SQL, on a stored feed for which a user may take an offer: its document is no feed, or
    not what it was."""
    reads: "Part[Callable[..., ParsedFeed]] | None" = None
    """The reader of the feed's documents in place of the usual ones: of a ParseTask and the bytes, with
    `keep_tree`. A replay reads each document by the key and the memories of then, before it and after it."""
    least_interval: timedelta | None = None
    """The shortest interval that `auto` gives the feed."""
    before_request: "Part[Callable[[Database, Clock], RequestCheck]] | None" = None
    """Makes the check of a round before each request of the feed."""
    needs_tree: "Part[Callable[[Feed], bool]] | None" = None
    """True if `parse` needs the tree of the document."""
    parse: "Part[Callable[[ParseTask, ParsedFeed, ParsedFeed], DocumentPart]] | None" = None
    """The work of the parser process beside the items: of the document as it was read, with its tree and with
    secrets, and of the one without them."""
    with_items: "Part[Callable[[Feed, str, Parsed], ItemStatements]] | None" = None
    """Groups of statements for these items of a document that is stored under a lease: the first one goes
    into the batch that inserts them."""
    at_close: "Part[Callable[[Feed, str, Parsed], list[Statement]]] | None" = None
    """Statements in the batch that closes the visit, before that."""


@dataclass(frozen=True)
class RegistryKey:
    """A key of feeds.yaml besides `feeds`, such as `topics`, with values of its own."""

    name: str
    read: "Part[Callable[[Node | None, KnownFeeds, Mapping[str, str], list[Mistake]], tuple[Any, ...]]]"
    """The values, from the key's node, the feeds that they may name, and the environment; mistakes are added
    to the list."""
    stored: "Part[Statement]"
    """The query of what the database has of them: each sync reads it, with the feeds, in one batch."""
    write: "Part[Callable[[Database, tuple[Any, ...], Sequence[Row]], KeyChanges]]"
    """Write the values, as far as they are others than the rows of `stored`."""
    refuses_url: "Part[Callable[[str, Mapping[str, str]], str | None]] | None" = None
    """The sentence about a feed that may not be in feeds.yaml, by its URL and the environment."""


@dataclass(frozen=True)
class OwnSettings:
    """The settings that a feature reads from variables of its own."""

    read: "Part[Callable[[EnvironmentReader], object | None]]"
    """Reads them at each start, and adds what is wrong; `Settings.of` has the value. None: it is off."""
    servers: tuple[str, ...] = ()
    """Variables that name its servers, maybe with a password. Where one is wrong, `doctor` goes by none."""


@dataclass(frozen=True, kw_only=True)
class UserRows:
    """A table of users' own, of which each user's backup has the rows."""

    table: str
    columns: Mapping[str, str]
    """The columns that are kept, texts, each with the pattern that its values match; the first one identifies
    a row of a user."""
    restore: "Part[Callable[[str, str], list[Statement]]]"
    """Statements that give a user rows: a JSON list of lists, in the order of the columns."""


@dataclass(frozen=True)
class NeededPackages:
    """Packages that a feature needs, and that may be missing: `up`, `status` and `doctor` say so."""

    extra: "Extra"
    is_on: "Part[Callable[[Database, Settings], bool]]"
    """True where the feature is switched on."""


@dataclass(frozen=True)
class UserText:
    """The HTML of an item that some users see in place of all others; the item's id is `{item}`."""

    version: str
    """An SQL expression for its version as `{user}` sees it; NULL for a user who does not."""
    html: str
    """An SQL expression for it."""


@dataclass(frozen=True)
class UserWork:
    """Work that a user of the reader waits for. `up` runs its job within seconds of the act, which sets the
    mark of reader/refresh.py; elsewhere a sensor of the feature does."""

    next_at: "Part[Callable[[Database], datetime | None]]"
    """The time of the first that waits; None where nothing does."""
    job: "Part[dg.JobDefinition]"
    reason: str
    """The sentence on why it runs."""


@dataclass(frozen=True)
class UpFlag:
    """A flag of `up` for installations of a kind."""

    help: str
    check: "Part[Callable[[Settings, bool], None]]"
    """Refuses a start, by a ClickException, that is not of the installation's kind."""
    within: "Part[Callable[[Settings], AbstractContextManager[None]]]"
    """Entered before anything is started, and left last, where the flag is given."""


@dataclass(frozen=True)
class Feature:
    """The list of what one feature adds. Each field is a point of extension; most features use a few."""

    name: str
    """The name of its package."""
    needs: tuple[str, ...] = ()
    """The features that it uses: they cannot be removed without it. There are no circles."""
    after_poll: AfterPoll | None = None
    """A step at the end of each poll."""
    automations: "Callable[[Settings], Collection[str]]" = lambda _: ()
    """The names of its sensors and schedules that are on from the start."""
    backlog_advice: "tuple[Part[Callable[[Database, Settings], str | None]], ...]" = ()
    """Sentences on what to add where feeds wait, by its figures; None where it is off."""
    beside_reader: "tuple[Part[Callable[[Settings], AbstractContextManager[bool]]], ...]" = ()
    """Work of a thread in the reader's own process, as long as it serves; True where it has to go on while
    nobody reads."""
    checks: "tuple[Part[Sequence[Check]], ...]" = ()
    """Health checks. Only the feature health loads them: such a module may import its model.py, without a
    need for it."""
    clean: "Part[Callable[[Database, ObjectStore, Settings, datetime], Mapping[str, str]]] | None" = None
    """The removal of what is past its time, in each clean that may remove something; keys that the store did
    not delete, with the reason."""
    commands: Mapping[str, "Part[click.Command]"] = field(default_factory=dict)
    """Commands of `rss-pipeline`, by name."""
    copied_tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Tables that a copy takes along, by name: the columns of the primary key, the first one text. A table
    comes after those it refers to."""
    dagster: "Part[Callable[[Building], DagsterParts]] | None" = None
    """Assets, checks, jobs, schedules, sensors and resources, for all definitions."""
    doctor: "Mapping[str, Part[Callable[[Settings], Finding | None]]]" = field(default_factory=dict)
    """Looks of `doctor` at what a check of the database cannot see, by the name of what they find."""
    end_lost_runs: "tuple[Part[Callable[[dg.DagsterInstance, Settings], list[str]]], ...]" = ()
    """An end for runs on other machines that have lost their process; the ids of these."""
    feed_keys: Mapping[str, FeedKey] = field(default_factory=dict)
    """Keys of a feed in feeds.yaml, by name."""
    forget: "Part[Callable[[ObjectStore, str], Mapping[str, str]]] | None" = None
    """The removal of a forgotten feed's objects; keys that the store did not delete, with the reason."""
    follow_subscriptions: "Part[Callable[[Sequence[str], str | None], list[Statement]]] | None" = None
    """Statements in each batch by which a user, or with None several users, subscribe to these feeds or leave
    them, behind that (storage/stale.py)."""
    folding: "Part[Folding] | None" = None
    """Items that lists of several feeds show as one entry (subscriptions/folding.py); one feature has it."""
    item_condition: "Part[ItemCondition] | None" = None
    """A condition on the items that lists, counts, marks and search show (subscriptions/item_query.py)."""
    item_note: "Part[Callable[[str, str], Query[ItemNote | None]]] | None" = None
    """A note below an item's text on its page, of the user and the item by their ids."""
    item_text: str | None = None
    """An SQL expression for the HTML that is shown, searched and published in place of an item's own, by
    `{item}`, its id; NULL for none. Where it changes, the item gets a row in item_versions."""
    item_text_of_user: UserText | None = None
    """The HTML that users see in place of all this who requested it. One feature has it."""
    metrics: "tuple[Part[Callable[[Database], Callable[[datetime], Iterable[Metric]]]], ...]" = ()
    """Metrics for Prometheus: read once a minute, and told for the time of each scrape."""
    packages: NeededPackages | None = None
    """Packages without which it does not work. A page asks `is_installed("full_text")`."""
    partition_keys: "Part[Callable[[Database, dg.DagsterInstance, RegistrySync], None]] | None" = None
    """Partition keys of its own, brought up to date after each sync of feeds.yaml."""
    poll_events: "Part[PollEvents] | None" = None
    """Events in a poll's report after those of these feeds, which changed (in a backfill: were read)."""
    poll_waits: "Part[Callable[[Database], bool]] | None" = None
    """True where work waits for a poll for which no feed need be due."""
    read_again: "Part[ReadsAgain] | None" = None
    """Reads again what it keeps of items in the object store, without a request."""
    reader_calls: Mapping[str, "Part[FeatureCall]"] = field(default_factory=dict)
    """Calls of the Google Reader API, by name: `subscription/export`."""
    reader_larger_bodies: Mapping[str, int] = field(default_factory=dict)
    """Bytes of a body by path, for addresses that take more than others."""
    reader_longer_addresses: Mapping[str, int] = field(default_factory=dict)
    """Bytes of an address by path, likewise."""
    reader_objects: tuple["Part[Callable[[Settings, bool], AbstractContextManager[object]]]", ...] = ()
    """An object each that the reader keeps while it runs (`Stores.of`). Called with True where the reader's
    processes start just now."""
    reader_page_parts: str | None = None
    """A template with parts of the reader's own pages, each a macro named by its place: `header()`,
    `menu_on_phones()`, `menu()`, `keys()`, `no_feeds()`, `adding()`, `feed(feed)`, `feed_form(feed)` in its
    settings, `feed_edit(feed)` below them, `feed_failed(feed)` after a visit in vain, `entry(entry, source)`
    of several items, `item(item)` among others, `offer(preferences)` above a list."""
    reader_pages: tuple["Part[APIRouter]", ...] = ()
    """Pages; api/pages/render.py says how one is made."""
    reader_problems: Mapping[str, tuple[int, str, str]] = field(default_factory=dict)
    """Kinds of errors of the JSON API: the status, what it is, and what to do."""
    reader_processes: tuple["Part[Callable[[Settings], ChildProcess]]", ...] = ()
    """Processes that run as long as the reader does."""
    reader_routers: tuple["Part[APIRouter]", ...] = ()
    """Routers of the JSON API, made by `api.routing.api_router`."""
    reader_settings: Mapping[str, str] = field(default_factory=dict)
    """Pages among the settings: their names by address."""
    registry_key: RegistryKey | None = None
    """A key of feeds.yaml."""
    replaying: Replaying | None = None
    """Work beside each replay."""
    restored: "Part[Callable[[Database], None]] | None" = None
    """A note in a database whose feeds and items were restored: what the feature keeps among the backups is
    to be read again."""
    settings: OwnSettings | None = None
    """Its own variables."""
    stale: "Part[Statement] | None" = None
    """A statement for each batch that changes what items of some feeds show. `{feeds}` in it becomes the
    condition on a feed's id, such as `= ?` (storage/stale.py)."""
    without_feed: "Part[Callable[[Session, str, Document, bool], Offer | str]] | None" = None
    """An offer for a web page that has no feed: with the lease and the document of the request, and whether
    it may be on a private host. A sentence on why, where it finds nothing in it either."""
    status: "tuple[Part[Callable[[StatusLook], StatusSection | None]], ...]" = ()
    """Sections of `status`, each read once in its database; None for one with nothing to say."""
    up_flags: Mapping[str, UpFlag] = field(default_factory=dict)
    """Flags of `rss-pipeline up`, by name without the two hyphens."""
    user_rows: Mapping[str, UserRows] = field(default_factory=dict)
    """Rows in the backup of each user, and in its restore, by their name in its lines."""
    user_work: UserWork | None = None
    """Work that users wait for."""


# Points that no feature of today uses. The first that needs one adds its field above, and reads it there:
#
# - keys of a topic in feeds.yaml
# - a schema of its tables (today's are in storage/schema.sql), local files, and how retention, `forget` and
#   export treat them; what spares an item from retention
# - statements in the batches of a visit (pipeline/visits) that insert items and close it, of any feed
# - a transform for search, a filter, a word of the search box, what else is marked with
#   an item, entries in the list of feeds, tags of apps (reader/item_queries.py, reader/feed_queries.py)
# - fields of a feed and of an item in the JSON API, entries of an item's page, actions on an item
# - preferences of a user and of a subscription; ways to log in; parts of statistics; columns of `status`
