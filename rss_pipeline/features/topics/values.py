"""The values from which a topic is published: rows of items and what is known of their feeds.

No value comes from the clock: equal values give equal documents.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models.item import Enclosure

PublicImage = Callable[[str, str], str | None]
"""The public URL of the archived copy of an image, by its item's id and its absolute URL, or None.

Each item has a copy of its own, which goes with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFeed:
    """The feed that an item comes from."""

    id: str
    url: str
    """The URL in feeds.yaml, without a password. It is part of ids, so not the target of a redirect."""
    title: str | None = None
    link: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An item that belongs to a member of a topic. An item of two members is two candidates."""

    member: int
    """The member's index in `TopicSpec.of`."""
    feed: SourceFeed
    item_id: str
    guid: str
    link: str | None = None
    title: str | None = None
    authors: tuple[str, ...] = ()
    pub_date: datetime
    """As published; for an item without a date, the time of its first request."""
    updated_at: datetime | None = None
    created_at: datetime
    is_dated: bool = True
    """False if `pub_date` is not the publisher's."""
    is_of_first_document: bool = False
    """The item was in the first document that was stored of its feed."""
    categories: tuple[str, ...] = ()
    enclosures: tuple[Enclosure, ...] = ()
    summary: str | None = None
    content_html: str | None = None
    base_url: str | None = None

    @property
    def sort_date(self) -> datetime:
        """The publisher's date, but never later than the first time that the item was seen.

        So a date in the future does not keep an item on top, and a feed that changes its dates does not bring
        its items back.
        """
        return min(self.pub_date, self.created_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicUrls:
    """The public URLs of a topic's two documents."""

    atom: str
    json: str
