"""A visit: one feed's passage through one run. A value that the ops hand on.

It holds no body: bodies and parsed items are files in the run's spool folder, so memory does not grow with
the batch. The steps of a visit are fetch.py, backup.py, parse.py, store.py and extract_images.py.
"""

from dataclasses import dataclass, field

from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Access, Feed, NextVisit
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.collector.models.outcome import CutOff, Document, NotBegun, NotModified, Parsed, Pending


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A document with its items in the database; the visit is closed."""

    parsed: Parsed
    new_ids: tuple[str, ...]
    """Items to search for images: inserted now, and not known to show none."""
    imageless_ids: tuple[str, ...] = ()
    """The other items inserted now."""
    items_new: int
    """Counted by the backup key, so also those a crashed run stored of the same document."""
    are_images_written: bool = False
    """The images of these items are in the database."""
    is_gap: bool = False
    """It had no item in common with the document before: items were probably missed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Requested by hand, but it may not be visited; the sentence says why and what to do."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldElsewhere:
    """Requested by hand, but another run holds this feed or its host: waited for at the end."""


Outcome = (
    Pending
    | NotBegun
    | OnHold
    | CutOff
    | NotModified
    | Failure
    | Document
    | Parsed
    | Stored
    | Refused
    | HeldElsewhere
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A claimed feed and its outcome so far. `next` is set once the visit is closed."""

    feed: Feed
    token: str
    access: Access = field(default_factory=Access, repr=False)
    outcome: Outcome = field(default_factory=Pending)
    next: NextVisit | None = None
    lost: bool = False
    """The lease lapsed and another run took the feed over: nothing of this visit was written."""

    @property
    def key(self) -> str:
        """Its name among the run's visits."""
        return self.feed.id


Visits = list[Visit]
