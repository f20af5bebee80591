"""Outcomes of a visit: never requested, not modified, a document fetched, a document parsed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from rss_pipeline.collector.models.clock import LONGEST
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import FeedAddress, GapHistory, NextVisit
from rss_pipeline.collector.models.hold import FeedHold, OnHold
from rss_pipeline.collector.models.item import FeedHeader, Moved
from rss_pipeline.collector.models.warning import FeedWarning


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """Claimed and not requested yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotBegun:
    """Claimed, not begun before the round's time was over; released, still due."""

    reason: str | None = None
    """The reason, as the rest of a sentence."""
    not_before: datetime | None = None
    """The time until which a redirect of the visit asked to wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The head of an answer, as far as a visit keeps it."""

    status: int
    requested_url: str
    url: str
    """URL of the last hop, without userinfo."""
    fetched_at: datetime
    fetch_ms: int
    content_type: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    dated: datetime | None = None
    """The answer's Date, else our clock."""
    sends_validators: bool = True
    """False if neither validator is to be sent back: there is none, or none that can be true."""
    false_validators: int = 0
    """Documents in a row, with this one, that came under validators that had not changed."""
    max_age: int | None = None
    """Seconds for which the answer stays fresh: Cache-Control max-age less Age, else Expires less Date. For a
    304 without either, the value of the stored answer."""
    retry_after: int | None = None
    """Retry-After in seconds, at most 86,400: some servers send it with every answer."""
    conditional: bool = False
    """The request that was answered carried validators."""
    network: str | None = None
    """The network of the host that was requested first; None behind an outbound proxy."""
    ahead: int | None = None
    """Seconds by which our clock is ahead of the answer's Date; None where it has none."""
    moved_to: str | None = None
    """`url` if redirects led to it and each of them was permanent."""

    @property
    def usable_seconds(self) -> int:
        """Seconds for which this answer is not to be requested again if it is an error, such as a page for
        people in place of the feed: by Retry-After, or for as long as it is fresh, at most a day."""
        return max(self.retry_after or 0, min(self.max_age or 0, LONGEST // timedelta(seconds=1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class NotModified:
    """The stored document is still the current one: a 304, or a 200 with the same bytes."""

    response: Response
    body_bytes: int = 0
    """0 for a 304; for same bytes, the bytes that came."""
    cut_off: bool = False
    """The same bytes are not the stored document's: they are those of the cut one that came after it."""

    @property
    def came_in_vain(self) -> bool:
        """The bytes came whole, and no validator would have spared them: there is none to be sent, or the
        server does not keep to those that were sent."""
        response = self.response
        has_validators = response.sends_validators and bool(response.etag or response.last_modified)
        return self.body_bytes > 0 and (response.conditional or not has_validators)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A 200 with bytes other than the stored document's. The body is in the run's spool folder."""

    response: Response
    path: Path
    """Bytes as served, content-decoded, not charset-decoded."""
    body_bytes: int
    content_hash: str
    """Hex SHA-256 of body, NUL and the Content-Type's charset parameter (lower case, or nothing)."""
    backup_key: str | None = None
    """Set once the document is in the object store."""
    new_backup_bytes: int = 0
    """Bytes of that backup if this visit made it; 0 for one that was there."""
    are_links_shared: bool = True
    """False for a backup of an earlier version, which stored the first item of a link alone, by the link."""
    are_abouts_shared: bool = True
    """The same of items whose rdf:about is their link."""
    feed_charset: str | None = None
    """For a backup: the codec of the newest document of its feed, which may have stored its items."""


FetchOutcome = NotModified | Document | Failure | NotBegun | OnHold
"""The outcome of a feed's requests."""


class DocumentPart(Protocol):
    """The findings of a feature in a document beside its items, as a value that can be pickled."""

    @property
    def warnings(self) -> tuple[FeedWarning, ...]:
        """Warnings that the feed carries because of them."""
        ...

    def renamed(self, ids: Mapping[str, str]) -> "DocumentPart":
        """The same with these ids of items, old to new; an item without an entry is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A document parsed. Its rows are in the file `path` (RowChunks, each pickled alone), ready to insert."""

    document: Document
    path: Path
    header: FeedHeader
    items_seen: int
    duplicate_guids: int
    dropped_items: int
    shared_guids: int = 0
    without_guid: int = 0
    """Items with a link and no guid: their identity depends on what is stored."""
    has_former_guids: bool = False
    """Items of it may be stored under what a former codec of the feed read of their identities."""
    moved: Moved | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    """New guids that it gives to stored items, each with the guid that its item keeps; to be written before
    its items. Its rows have the guids that are kept."""
    cut_off: bool = False
    """Items may be missing: what is stored of it is no reason for a 304."""
    bad_dates: tuple[tuple[str, str], ...]
    """Raw date and title of items with a date that could not be read."""
    warnings: tuple[FeedWarning, ...] = ()
    """Warnings that the feed carries from this document on."""
    parts: Mapping[str, DocumentPart] = field(default_factory=dict)
    """The work of features beside the items, by the feed's key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOff:
    """Requested in vain, or not at all, for our own network went down. No failure; due after `pause`."""

    message: str = ""
    """The sentence that the attempt failed with."""
    pause: timedelta = timedelta(minutes=5)
    retry_after: int | None = None
    """Seconds that a redirect of the visit asked to wait."""
    before_any_answer: bool = False
    """No feed has ever been answered: a first start without network."""


# Ending of a visit: when its feed is visited next and why, where it is requested, what a gap would change.
#
# Values only; collector.schedule.after_visit makes them and storage.feeds.closings writes them.


@dataclass(frozen=True, slots=True, kw_only=True)
class IfGap:
    """The ending if all items of the document turn out to be new, so that items were probably missed."""

    next: NextVisit
    gaps: GapHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The next visit of a feed, its address, the other ending that a gap would mean, and a hold."""

    next: NextVisit
    address: FeedAddress
    if_gap: IfGap | None = None
    """None if new items alone would not show a gap."""
    hold: FeedHold | None = None
    """No visit before its end, also none by hand: the feed has written its most backups of a day."""
