"""An offer: what would be collected of a document that is no feed, for a person to confirm."""

from dataclasses import asdict, dataclass
from typing import Any

from rss_pipeline.collector.models.outcome import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedEntry:
    """One of the first entries."""

    title: str | None
    link: str | None
    date: str | None
    """A day, `YYYY-MM-DD`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A document that can be read with a key of a feature."""

    document: Document
    key: str
    """The key in feeds.yaml."""
    value: str
    """Its value, if the person takes the offer."""
    is_sure: bool
    title: str | None
    count: int
    entries: tuple[OfferedEntry, ...]
    """The first five."""
    evidence: tuple[str, ...]
    """Sentences on what was seen."""
    memory: str = ""
    """The memory of the feature if the offer is taken."""
    others: tuple[str, ...] = ()
    """No further feeds: as `Found` has them."""

    @property
    def url(self) -> str:
        """The address of the document, or where it has moved to for good."""
        return self.document.response.moved_to or self.document.response.requested_url

    def shown(self) -> dict[str, Any]:
        """The offer for programs, and for the page of a task."""
        return {
            "url": self.url,
            "title": self.title,
            "is_sure": self.is_sure,
            "count": self.count,
            "entries": [asdict(entry) for entry in self.entries],
            "evidence": list(self.evidence),
        }
