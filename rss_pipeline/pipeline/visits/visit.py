"""A visit: one feed's passage through one run, or one backup's. A value that the ops hand on.

It holds no body: bodies and parsed items lie as files in the run's spool folder, so memory does not grow with
the batch. What happens to a visit is in steps.py.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Access, Feed, NextVisit
from rss_pipeline.collector.models.hints import PublisherHints
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.collector.models.outcome import Document, GivenBack, NotModified, Pending


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A document read. Its rows lie at `path` (RowChunks, each pickled alone), insert-ready."""

    document: Document
    path: Path
    items_seen: int
    duplicate_guids: int
    dropped_items: int
    format: str
    title: str | None
    link: str | None
    language: str | None
    charset: str
    charset_rule: str
    repairs: tuple[str, ...]
    bad_dates: tuple[tuple[str, str], ...]
    """Raw date and title of items whose date could not be read."""
    hints: PublisherHints


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A document whose items are in the database; the visit is closed."""

    parsed: Parsed
    new_ids: tuple[str, ...]
    """Items whose images are to be looked for: inserted now, and not known to show none."""
    items_new: int
    """Counted by the backup key, so also those a crashed run stored of the same document."""
    is_gap: bool = False
    """It had no item in common with the document before: items were probably missed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One item on which a backup, read again, and the items table do not agree, or did not."""

    item_id: str
    title: str | None
    what: Literal["new", "gone", "differs"]
    fields: tuple[str, ...] = ()
    """The columns that read otherwise now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A backup read again; in a dry run nothing of it was written."""

    parsed: Parsed
    new_ids: tuple[str, ...]
    """Items whose images are to be looked for: inserted and not known to show none, or rewritten."""
    items_new: int
    items_gone: int = 0
    """Stored of this backup, and not listed by it as it reads now. Never deleted."""
    items_differ: int = 0
    items_repaired: int = 0
    findings: tuple[Finding, ...] = ()
    """The first of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoLongerRead:
    """A backup that gave items once and cannot be read as a feed now: the parser's fault."""

    failure: Failure
    items_gone: int
    findings: tuple[Finding, ...]
    """The first of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A backup that cannot be replayed: it vanished, or does not say what it is."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Asked for by hand, but it may not be visited; the sentence says why and what to do."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOff:
    """Asked in vain, for our own network went down during the round: due in five minutes, no failure."""

    message: str
    """What the attempt failed with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldElsewhere:
    """Asked for by hand, but another run is at this feed or at its host: waited for at the end."""


Outcome = (
    Pending
    | GivenBack
    | OnHold
    | CutOff
    | NotModified
    | Failure
    | Document
    | Parsed
    | Stored
    | Replayed
    | NoLongerRead
    | Unreadable
    | Refused
    | HeldElsewhere
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Which backup a visit reads again instead of asking the publisher, and what for.

    Such a visit has no lease and closes nothing.
    """

    backup_key: str
    backup_bytes: int
    dry_run: bool = False
    """Write nothing; tell what would be written, and what differs."""
    repair: bool = False
    """Also rewrite items that were stored of this backup and read otherwise now."""
    handled: set[str] = field(default_factory=set, repr=False, compare=False)
    """Items that earlier backups of the feed brought; shared by its visits, which go one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A claimed feed and how far it came. `next` is set once the visit is closed."""

    feed: Feed
    token: str
    access: Access = field(default_factory=Access, repr=False)
    outcome: Outcome = field(default_factory=Pending)
    next: NextVisit | None = None
    lost: bool = False
    """The lease lapsed and another run took the feed over: nothing of this visit was written."""
    replay: Replay | None = None

    @property
    def key(self) -> str:
        """What tells it from the run's other visits: a replay has one of each backup of a feed."""
        return self.feed.id if self.replay is None else self.replay.backup_key


Visits = list[Visit]
