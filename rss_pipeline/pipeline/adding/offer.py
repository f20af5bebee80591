"""An offer: what would be collected of a document that is no feed, for a person to confirm."""

from dataclasses import asdict, dataclass, replace
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
class OfferedChoice:
    """Other entries of the same document, which a person may choose."""

    name: str
    """The same when the document is requested again."""
    is_link: bool
    """True for another link of the same entries, False for another list."""
    value: str
    """The value of the offer's key."""
    count: int
    entries: tuple[OfferedEntry, ...]
    """The first five."""
    memory: str

    def shown(self) -> dict[str, Any]:
        """The choice for programs, and for the page of a task."""
        return {
            "name": self.name,
            "kind": "link" if self.is_link else "list",
            "count": self.count,
            "entries": [asdict(entry) for entry in self.entries],
        }


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
    choices: tuple[OfferedChoice, ...] = ()
    is_chosen: bool = False
    """It is one of the choices: only its memory finds it again."""

    @property
    def url(self) -> str:
        """The address of the document, or where it has moved to for good."""
        return self.document.response.moved_to or self.document.response.requested_url

    def choosing(self, name: str | None) -> "Offer | None":
        """The offer of the choice of this name, itself for none; None where there is no such choice."""
        if name is None:
            return self
        for each in self.choices:
            if each.name == name:
                return replace(
                    self,
                    value=each.value,
                    count=each.count,
                    entries=each.entries,
                    memory=each.memory,
                    is_sure=False,
                    is_chosen=True,
                )
        return None

    def shown(self) -> dict[str, Any]:
        """The offer for programs, and for the page of a task."""
        return {
            "url": self.url,
            "title": self.title,
            "is_sure": self.is_sure,
            "count": self.count,
            "entries": [asdict(entry) for entry in self.entries],
            "evidence": list(self.evidence),
            "choices": [each.shown() for each in self.choices],
        }
