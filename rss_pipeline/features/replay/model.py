"""The values of a replay: a backup that is read again, and its outcome."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from rss_pipeline.collector.http.redaction import Secrets
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.outcome import Document, Parsed, Pending
from rss_pipeline.features.feature import InReplay
from rss_pipeline.pipeline.visits.identify import Planned

FINDINGS_KEPT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One item on which a backup, read again, and the items table do not agree, or did not."""

    item_id: str
    title: str | None
    what: Literal["new", "gone", "differs"]
    fields: tuple[str, ...] = ()
    """The columns that the parser reads differently now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemBefore:
    """An item that was stored of a backup, as it was before the replay."""

    title: str | None
    base_url: str | None
    differs: bool
    """The parser reads it differently now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A backup read again; in a dry run nothing of it was written."""

    parsed: Parsed
    new_ids: tuple[str, ...]
    """Items to search for images: inserted and not known to show none, or rewritten."""
    items_new: int
    written: Mapping[str, str | None] = field(default_factory=dict)
    """Items that are stored now as the backup reads: inserted, or rewritten at an instant."""
    items_gone: int = 0
    """Stored of this backup, and not found in it by the parser now. Never deleted."""
    items_differ: int = 0
    items_repaired: int = 0
    stored: Mapping[str, ItemBefore] = field(default_factory=dict)
    """In a dry run and in a repair, by id, the items that were stored of it and are still in it."""
    items_cut: int = 0
    """New items that are too large for the database and were cut."""
    findings: tuple[Difference, ...] = ()
    """The first of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoLongerRead:
    """A backup that gave items once and cannot be read as a feed now: the parser's fault."""

    failure: Failure
    items_gone: int
    findings: tuple[Difference, ...]
    """The first of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A backup that cannot be replayed: it vanished, or its metadata is not a backup's."""

    message: str


BackupOutcome = Pending | Document | Failure | Parsed | Replayed | NoLongerRead | Unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupVisit:
    """One backup of a feed on its way through a replay. It has no lease, and its feed is not closed."""

    feed: Feed
    backup_key: str
    backup_bytes: int
    following: str | None = None
    """The key of the feed's next backup."""
    dry_run: bool = False
    """Write nothing; report what would be written, and what differs."""
    repair: bool = False
    """Also rewrite items that were stored of this backup and that the parser reads differently now."""
    secrets: Secrets = field(default_factory=Secrets)
    """The secrets of the registry now, and those that the backup's metadata marks in it."""
    retired_since: datetime | None = None
    """Also bring back items that were retired since then, by the database's clock."""
    handled: set[str] = field(default_factory=set, repr=False, compare=False)
    """Items that earlier backups of the feed brought; shared by its visits, which go one after the other."""
    features: tuple[InReplay, ...] = field(default=(), repr=False, compare=False)
    """The work of features beside the replay of the feed; shared as `handled` is."""
    planned: Planned = field(default_factory=dict, repr=False, compare=False)
    """In a dry run, the items that earlier backups would have brought; shared as `handled` is."""
    outcome: BackupOutcome = field(default_factory=Pending)

    @property
    def key(self) -> str:
        """Its name among the replay's backups."""
        return self.backup_key


BackupVisits = list[BackupVisit]
