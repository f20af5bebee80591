"""The frozen values that travel between the rooms.

No behaviour beyond what a value knows of itself, and no I/O. Instants are aware datetimes in UTC.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from rss_pipeline.collector.models.failure import FailureKind
from rss_pipeline.collector.models.hints import PublisherHints

ItemKey = Literal["guid", "link", "title+date"]


FOREVER_DAYS = 36_500
"""What `keep: forever` means: a hundred years."""


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
    hints: PublisherHints = field(default_factory=PublisherHints)
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
class NextVisit:
    """When a feed is due again and why, in a sentence with the inputs."""

    at: datetime
    reason: str


PROMINENT_FAILURES = 10


MAX_URL_CHARACTERS = 2_000
