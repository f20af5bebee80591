"""A feed: as the registry lists it, and as the feeds table knows it.

Values only. Their columns are in storage.feeds.feed_row. Instants are aware datetimes in UTC.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from rss_pipeline.collector.models.failure import FailureKind
from rss_pipeline.collector.models.hold import LedTo
from rss_pipeline.collector.models.item import FeedHeader, PublisherHints

ItemKey = Literal["guid", "link", "title+date"]


FOREVER_DAYS = 36_500
"""`keep: forever`: a hundred years."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Extra headers and a password: only the registry knows them, and nothing else may keep them.

    Neither value shows in a repr. `Authorization` goes to the registered origin only.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    @property
    def is_open(self) -> bool:
        return not self.headers and self.username is None and self.password is None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedSpec:
    """One feed as feeds.yaml lists it. `url` has neither userinfo nor fragment."""

    url: str
    id: str
    host: str
    has_own_id: bool = False
    """Its entry has the id; otherwise it is made from the URL."""
    title: str | None = None
    folder: str | None = None
    """The group in which readers show it; `/` separates the levels."""
    interval: timedelta | None = None
    """None is `auto`."""
    key: ItemKey = "guid"
    images: bool = True
    keep_days: int | None = None
    """Age at which items are retired; None is the setting's."""
    max_size: int | None = None
    """The most bytes of its document, as sent and decompressed; None is the setting's."""
    enabled: bool = True
    """False: it is not visited."""
    watched: bool = True
    """False for a name and a page in lists of feeds, without any source: never enabled."""
    allow_private: bool = False
    """It and its images may be at its own host although that is private."""
    private_hosts: tuple[str, ...] = ()
    """Names, addresses and networks that it opens besides its own host."""
    access: Access = field(default_factory=Access)
    shared: bool = False
    """Users of the reader may subscribe to it by its address although it is not public."""
    feature_keys: Mapping[str, str] = field(default_factory=dict)
    """Keys that features add, by name; each value is the text of a column."""

    @property
    def is_public(self) -> bool:
        """Anybody gets the same document: it needs no headers, no password and no private host."""
        return self.access.is_open and not self.allow_private and not self.private_hosts


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedAddress:
    """The address of a feed's requests, and the target of a permanent redirect."""

    host: str
    """Host of the URL that is requested."""
    fetch_url: str | None = None
    """Requested instead of the registered URL, once a permanent redirect is adopted."""
    move_url: str | None = None
    """Target of a chain of permanent redirects that is not adopted, or not yet."""
    move_since: datetime | None = None
    """Time since which every answer has led there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    """ETag and Last-Modified as a URL gave them with a stored document. They go to that URL only."""

    url: str
    etag: str | None = None
    last_modified: str | None = None
    dated: datetime | None = None
    """The Date of the answer that gave `last_modified`, else our clock then."""
    false: int = 0
    """Documents in a row that came under them although they had not changed: these are not sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatorsState:
    """More about a feed's validators than their values."""

    dated: datetime | None = None
    """`Validators.dated` of the newest ones."""
    false: int = 0
    """`Validators.false` of the newest ones."""
    checked_at: datetime | None = None
    """The last request without validators that was to check them, and failed."""
    others: tuple[Validators, ...] = ()
    """The last ones that came from other URLs with a stored document, the latest first: some addresses lead
    to one mirror after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpState:
    """A feed's last documents and answers, as far as the next request needs them."""

    etag: str | None = None
    last_modified: str | None = None
    validators_url: str | None = None
    """The URL that gave the two validators: they go to that hop only."""
    validators_state: ValidatorsState = field(default_factory=ValidatorsState)
    content_hash: str | None = None
    """Hash of the last stored document."""
    failed_hash: str | None = None
    """Hash of the last document that could not be parsed or stored. Storing a document clears it, a 304 does
    not."""
    failed_version: str | None = None
    """The parsers' version that failed on it: another version reads the same document again."""
    cut_hash: str | None = None
    """Hash of the last document, if it was cut off: it was stored as far as it goes, and `content_hash` and
    the validators are those of the whole one before."""
    cuts: int = 0
    """Answers in a row that were cut off documents, the last one included."""
    charset: str | None = None
    """The codec that last decoded this feed: a hint for undeclared documents."""
    former_charset: str | None = None
    """The last other codec before it: stored items may have identities as that read them."""
    last_body_at: datetime | None = None
    """The last 200 with a document; long ago means nothing but 304 since."""
    host_answered: bool = False
    """The host answered the last visit, with any status."""
    network: str | None = None
    """The network that the host was last in (`network_of`)."""

    def validators_at(self, url: str, *, requested_url: str) -> Validators | None:
        """The validators of the last document that was stored from this URL."""
        is_newest = url == (self.validators_url or requested_url) and (self.etag or self.last_modified)
        others = (each for each in self.validators_state.others if each.url == url)
        return self.newest_validators(url) if is_newest else next(others, None)

    def newest_validators(self, url: str) -> Validators:
        """The validators of the last stored document, which came from `url`."""
        return Validators(
            url=url,
            etag=self.etag,
            last_modified=self.last_modified,
            dated=self.validators_state.dated or self.last_body_at,
            false=self.validators_state.false,
        )

    def codecs_after(self, header: FeedHeader) -> tuple[str | None, str | None]:
        """`charset` and `former_charset` after this document; one of ASCII alone keeps both."""
        if self.charset is None or self.charset == header.charset:
            return header.charset, self.former_charset
        if header.is_ascii:
            return self.charset, self.former_charset
        return header.charset, self.charset


@dataclass(frozen=True, slots=True, kw_only=True)
class GapHistory:
    """Documents without an item in common with the one before: items were probably missed."""

    count: int = 0
    last_at: datetime | None = None
    halvings: int = 0
    """Halvings of the interval because of gaps, before the recovery since `halved_at`."""
    halved_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleState:
    """Times of a feed's visits, and the values that the next interval follows from."""

    next_fetch_at: datetime | None = None
    planned_at: datetime | None = None
    """The next visit as the last successful one planned it."""
    last_fetched_at: datetime | None = None
    """The last answer, with any status."""
    last_visited_at: datetime | None = None
    """The end of the last visit, answered or not."""
    last_success_at: datetime | None = None
    hints: PublisherHints = field(default_factory=PublisherHints)
    outage_pauses: int = 0
    """Visits in a row that an outage of our own network postponed."""
    items_listed: int | None = None
    """By the last stored document; None if unknown."""
    gaps: GapHistory = field(default_factory=GapHistory)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureHistory:
    """Failures since the last success."""

    in_a_row: int = 0
    since: datetime | None = None
    """The first failure of this row of them, or of the last one."""
    last_kind: FailureKind | None = None
    last_message: str | None = None
    reported_kind: FailureKind | None = None
    """The kind of the failure that was last reported to Dagster."""
    reported_at: datetime | None = None
    """The time of that failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedWork:
    """Traces of visits that never ended in a close."""

    claims: int = 0
    """Claims, the present one included, since the last one that ended in a close."""
    backup_unsure: bool = False
    """A run failed between claim and close: the document may have a backup already."""
    images_pending: bool = False
    """Some stored items were not searched for images."""

    @property
    def was_interrupted(self) -> bool:
        """An earlier claim never closed: its backup, items or images may be half there."""
        return self.backup_unsure or self.claims > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """One row of the feeds table, as a claim reads it."""

    id: str
    url: str
    address: FeedAddress
    title: str | None = None
    link: str | None = None
    language: str | None = None
    created_at: datetime | None = None
    interval: timedelta | None = None
    """From the registry, as the next seven; None is `auto`."""
    key: ItemKey = "guid"
    images: bool = True
    keep_days: int | None = None
    max_size: int | None = None
    allow_private: bool = False
    private_hosts: tuple[str, ...] = ()
    feature_keys: Mapping[str, str] = field(default_factory=dict)
    memories: Mapping[str, str] = field(default_factory=dict)
    """The memories of features from one document to the next, by the same names; each a text of a column."""
    later_memories: Mapping[str, str] = field(default_factory=dict)
    """The memories after this document, where it is read again."""
    led_to: LedTo | None = None
    """A redirect of the last visit that was not followed, for it asked to wait."""
    wished_interval: timedelta | None = None
    """The shortest that a subscriber wishes; None if none wishes any."""
    auto_is_wished: bool = False
    """True if feeds.yaml lists the feed, or a subscriber leaves the interval to `auto`."""
    needs_access: bool = False
    """The registry holds headers or a password for it."""
    brought_by: str = ""
    """The users that it is visited for, by whom polls are shared; empty for those of feeds.yaml."""
    counted_day: str | None = None
    """The UTC day of the next two, `YYYY-MM-DD`."""
    day_items: int = 0
    """New items on that day."""
    day_backup_bytes: int = 0
    """Bytes of new backups on that day."""
    http: HttpState = field(default_factory=HttpState)
    schedule: ScheduleState = field(default_factory=ScheduleState)
    failures: FailureHistory = field(default_factory=FailureHistory)
    unfinished: UnfinishedWork = field(default_factory=UnfinishedWork)

    @property
    def requested_url(self) -> str:
        """The adopted address, else the registered one."""
        return self.address.fetch_url or self.url


ScheduleKind = Literal["interval", "failure", "hold", "our_outage", "unreadable_registry", "skip_hours"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NextVisit:
    """The time at which a feed is due again, and the reason, a sentence with the inputs."""

    at: datetime
    reason: str
    """For people only; code goes by `kind`."""
    kind: ScheduleKind = "interval"
    not_before: datetime | None = None
    """The instant before which the publisher, or our limit of backups, wants no visit, whatever interval is
    wished from now on."""


NOT_ANSWERING_FAILURES = 3
"""Failures in a row from which on a feed that was read before counts as not answering: one or two are usual.
A feed that was never read has probably a mistake in its address, and counts from the first failure on."""


PROMINENT_FAILURES = 10


USUAL_BYTES = 20_000_000
"""The most of a document, decompressed, unless the registry or a setting says otherwise."""


MAX_URL_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class Member:
    """A feed, or a stream of it."""

    feed_id: str
    stream: str | None = None

    def __str__(self) -> str:
        return self.feed_id if self.stream is None else f"{self.feed_id}/{self.stream}"

    @classmethod
    def of(cls, text: str) -> "Member":
        """The inverse of `str`."""
        feed_id, slash, stream = text.partition("/")
        return cls(feed_id, stream if slash else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """A user's wishes for a subscription. The interval is in seconds, None is what the schedule finds."""

    title: str | None = None
    folder: str | None = None
    wished_interval: int | None = None
    takes_offer: bool = False
    """Take what is offered of an address without a feed."""
    choice: str | None = None
    """The name of the choice of an offer that is taken; None for the offer itself."""
    full_text: bool = False


# The content of feeds.yaml: feeds, and what features have there.


@dataclass(frozen=True, slots=True)
class Registry:
    """Feeds in the order of the file, and by key, such as `topics`, the values of features."""

    feeds: tuple[FeedSpec, ...] = ()
    of_features: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


EXAMPLE_URLS = frozenset(
    {
        "https://xkcd.com/atom.xml",
        "https://feeds.bbci.co.uk/news/world/rss.xml",
        "https://lwn.net/headlines/rss",
        "https://daringfireball.net/feeds/json",
        "https://www.ruanyifeng.com/blog/atom.xml",
        "https://www.solidot.org/index.rss",
        "https://b.hatena.ne.jp/hotentry/it.rss",
        "https://www.heise.de/rss/heise-atom.xml",
        "https://www.lemonde.fr/rss/une.xml",
        "https://habr.com/ru/rss/articles/",
    }
)
"""The feeds of the feeds.yaml that comes with the program: it says that they are to be replaced."""
