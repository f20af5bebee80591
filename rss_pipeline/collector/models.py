"""The frozen values that travel between the rooms.

No behaviour beyond what a value knows of itself, and no I/O. Instants are aware datetimes in UTC.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, get_args

Clock = Callable[[], datetime]
"""Gives the present instant, aware, in UTC. Tests pass their own."""

ItemKey = Literal["guid", "link", "title+date"]
GuidSource = Literal["guid", "link", "hash"]

FailureKind = Literal[
    "timeout",
    "dns",
    "connect",
    "tls",
    "bad_url",
    "blocked_address",
    "redirect",
    "http_status",
    "gone",
    "rate_limited",
    "challenge",
    "unexpected_304",
    "no_content",
    "empty_body",
    "html",
    "too_large",
    "truncated",
    "bad_compression",
    "not_a_feed",
    "not_an_image",
    "parse_timeout",
    "parse_memory",
    "crashed",
    "storage_rejected",
    "host_on_hold",
]

FAILURE_KINDS: frozenset[str] = frozenset(get_args(FailureKind))
NETWORK_KINDS: frozenset[str] = frozenset({"timeout", "dns", "connect"})
"""Kinds that our own broken network would cause as well as the publisher's."""
UNASKED_KINDS: frozenset[str] = frozenset({"blocked_address", "bad_url"})
"""Kinds found before a connection is made: they say nothing of the network, neither up nor down."""


FOREVER_DAYS = 36_500
"""What `keep: forever` means: a hundred years."""


def utc_now() -> datetime:
    """The machine's clock, in UTC."""
    return datetime.now(UTC)


def instant(value: datetime) -> str:
    """`YYYY-MM-DDTHH:MM:SSZ`, the form of every instant in the stores. Fractions are cut."""
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def from_instant(text: str | None) -> datetime | None:
    """The inverse of `instant`; None for None."""
    return None if text is None else datetime.fromisoformat(text)


def item_id(feed_id: str, guid: str) -> str:
    """32 hex digits that name an item: SHA-256 of feed id and guid."""
    return hashlib.sha256(f"{feed_id}\0{guid}".encode()).hexdigest()[:32]


def image_task_id(item: str, url: str) -> str:
    """32 hex digits that name an image task: SHA-256 of item id and image URL."""
    return hashlib.sha256(f"{item}\0{url}".encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What only the registry knows and nothing else may keep: extra headers and a password.

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
    """One feed as feeds.yaml asks for it. `url` has neither userinfo nor fragment."""

    url: str
    id: str
    host: str
    title: str | None = None
    interval: timedelta | None = None
    """None is `auto`."""
    key: ItemKey = "guid"
    images: bool = True
    keep_days: int | None = None
    """Age at which items are retired; None is the setting's."""
    enabled: bool = True
    allow_private: bool = False
    access: Access = field(default_factory=Access)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whereabouts:
    """Where a feed is asked, and where a permanent redirect says it is."""

    fetch_url: str | None
    """Asked instead of the registered URL; None is that one."""
    host: str
    """Of the URL that is asked."""
    move_url: str | None = None
    """Where a chain of permanent redirects leads that is not adopted (yet)."""
    move_since: datetime | None = None
    """Since when every answer led there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """One row of the feeds table, as a claim gives it."""

    id: str
    url: str
    host: str
    title: str | None = None
    link: str | None = None
    fetch_url: str | None = None
    """Where to ask instead of `url`, once a permanent redirect is believed."""
    move_url: str | None = None
    """Where permanent redirects lead that are not believed, or not yet."""
    move_since: datetime | None = None
    interval: timedelta | None = None
    key: ItemKey = "guid"
    images: bool = True
    allow_private: bool = False
    needs_access: bool = False
    """The registry holds headers or a password for it."""
    last_etag: str | None = None
    last_modified: str | None = None
    validators_url: str | None = None
    """The URL whose response gave the validators: they go to that hop only."""
    content_hash: str | None = None
    """Of the last stored document."""
    failed_hash: str | None = None
    """Of the last document that could not be parsed or stored; None once one was stored. A 304 leaves it."""
    last_error_kind: FailureKind | None = None
    last_error: str | None = None
    charset: str | None = None
    """The codec that last decoded this feed: a hint for undeclared documents."""
    language: str | None = None
    consecutive_failures: int = 0
    unclosed_claims: int = 0
    """Claims, this one included, since the last one that ended in a close."""
    backup_unsure: bool = False
    """A run that claimed it failed before the close: its document may have a backup already."""
    images_pending: bool = False
    """Items of it were stored whose images were not looked for."""
    next_fetch_at: datetime | None = None
    last_fetched_at: datetime | None = None
    last_visited_at: datetime | None = None
    """The end of the last visit, whether or not the host answered."""
    last_success_at: datetime | None = None
    last_body_at: datetime | None = None
    """When a 200 with a document was last seen; long ago means nothing but 304 since."""
    created_at: datetime | None = None
    host_answered: bool = False
    """At its last visit this feed's host answered (whatever the status)."""
    rhythm: tuple[datetime, ...] = ()
    """Publication times of the newest items of its last document, newest first."""
    ttl: timedelta | None = None
    """What the last document's `<ttl>` (or sy:updatePeriod) asked for."""
    skip_hours: frozenset[int] = frozenset()
    """UTC hours 0 to 23 in which the last document asked not to be fetched (RSS skipHours)."""
    skip_days: frozenset[int] = frozenset()
    """Weekdays, Monday 0, likewise (RSS skipDays)."""
    max_age: int | None = None
    """Seconds for which the answer that brought it said it stays fresh, or a later 304 did."""
    items_listed: int | None = None
    """By the last stored document; None where that is not known."""
    planned_at: datetime | None = None
    """When the last visit that went well meant the next one to be."""
    gaps: int = 0
    """Documents, so far, that had no item in common with the one before: items were probably missed."""
    last_gap_at: datetime | None = None
    gap_halvings: int = 0
    """How often the interval was halved for it, before what has recovered since `halved_at`."""
    halved_at: datetime | None = None

    @property
    def whereabouts(self) -> Whereabouts:
        return Whereabouts(
            fetch_url=self.fetch_url, host=self.host, move_url=self.move_url, move_since=self.move_since
        )

    @property
    def was_interrupted(self) -> bool:
        """An earlier claim never closed: backup, items or images may be there half."""
        return self.backup_unsure or self.unclosed_claims > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """Claimed and not asked yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenBack:
    """Claimed, not begun before the round's time was over; released, still due."""

    reason: str | None = None
    """Why its turn did not come, as the rest of a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostHold:
    """No request to this host before `until`, a whole second."""

    host: str
    until: datetime
    reason: str
    times: int = 1
    """How often it asked for a pause with no other answer in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedHold:
    """No request for this feed before `until`, a whole second, whatever its host is asked besides."""

    feed_id: str
    host: str
    """The one that said so: a redirect may have led away from the feed's own."""
    until: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OnHold:
    """Not asked, or not to the end: the host whose turn it was has asked for a pause. No failure."""

    hold: HostHold | FeedHold

    def __str__(self) -> str:
        return f"{self.hold.host} asked for a pause until {instant(self.hold.until)} ({self.hold.reason})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What a visit keeps of the answer's head, whatever became of the body."""

    status: int
    requested_url: str
    url: str
    """Of the hop that answered last, without userinfo."""
    fetched_at: datetime
    fetch_ms: int
    content_type: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    max_age: int | None = None
    """Seconds the answer says it stays fresh: Cache-Control max-age less Age, else Expires less Date. Of a
    304 that says nothing, what the stored answer said."""
    retry_after: int | None = None
    """Seconds this answer asks us to stay away, at most 86,400: some servers say so with every answer."""
    conditional: bool = False
    """The request that was answered carried validators."""
    moved_to: str | None = None
    """`url` where redirects led to it and each of them was permanent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotModified:
    """The stored document is still the current one: a 304, or a 200 with the same bytes."""

    response: Response
    body_bytes: int = 0
    """0 for a 304; for same bytes, the bytes that came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The feed's trouble: a kind for programs, a sentence for a person."""

    kind: FailureKind
    message: str
    status: int | None = None
    retry_after: int | None = None
    """Seconds the server asked us to stay away, at most 86,400."""
    fetched_at: datetime | None = None
    fetch_ms: int | None = None
    answered: bool = False
    """The host answered over HTTP, whatever it said."""
    host: str | None = None
    """Of the hop that failed: a redirect may have led away from the feed's own."""
    document_hash: str | None = None
    """Of the document that could not be parsed or stored."""
    body_bytes: int | None = None
    backup_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A 200 with bytes other than the stored document's. The body lies in the run's spool folder."""

    response: Response
    path: Path
    """Bytes as served, content-decoded, not charset-decoded."""
    body_bytes: int
    content_hash: str
    """Hex SHA-256 of body, NUL and the Content-Type's charset parameter (lower case, or nothing)."""
    backup_key: str | None = None
    """Set once the document is in the object store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enclosure:
    url: str
    type: str | None = None
    length: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One item as published. Raw where a promise says so: `guid` and `content_html` byte for byte."""

    guid: str
    guid_source: GuidSource
    link: str | None = None
    title: str | None = None
    author: str | None = None
    pub_date: datetime | None = None
    """None where the document gives none that can be read strictly; never a guess."""
    pub_date_raw: str | None = None
    updated_at: datetime | None = None
    categories: tuple[str, ...] = ()
    enclosures: tuple[Enclosure, ...] = ()
    summary: str | None = None
    content_html: str | None = None
    base_url: str | None = None
    """xml:base in force for the content, resolved; None where the document sets none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedFeed:
    """A document read: the feed's own fields and its items in document order."""

    format: str
    """rss20, rss10, rss091, atom10, atom03, json11, cdf ... (feedparser's names; json* are ours)."""
    title: str | None
    link: str | None
    language: str | None = None
    charset: str
    """The Python codec that decoded the document."""
    charset_rule: Literal[
        "bom", "nul-pattern", "http", "utf-8", "declaration", "detected", "hint", "fallback"
    ]
    repairs: tuple[str, ...] = ()
    """What had to be mended before the document could be read, in words."""
    items: tuple[Item, ...] = ()
    duplicate_guids: tuple[str, ...] = ()
    """Guids that came again in this document; the first item with each was kept."""
    dropped_items: int = 0
    """Items beyond the cap of items a document."""
    ttl: timedelta | None = None
    skip_hours: frozenset[int] = frozenset()
    skip_days: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class NextVisit:
    """When a feed is due again and why, in a sentence with the inputs."""

    at: datetime
    reason: str
