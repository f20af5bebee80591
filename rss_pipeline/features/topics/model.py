"""Topics: groups of feeds and streams that are published as one feed, as feeds.yaml describes them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from rss_pipeline.collector.models.feed import Member
from rss_pipeline.collector.models.item import Enclosure

TopicContent = Literal["full", "summary", "none"]

DEFAULT_TOPIC_ITEMS = 50
DEFAULT_TOPIC_EVERY = timedelta(minutes=15)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    """One topic. `of` is in order of precedence: where an item comes twice, the first member's is taken."""

    id: str
    of: tuple[Member, ...]
    title: str | None = None
    each: int | None = None
    """The newest so many of each member; None: the newest of all."""
    items: int = DEFAULT_TOPIC_ITEMS
    every: timedelta = DEFAULT_TOPIC_EVERY
    """Shortest time between two publications that change it."""
    content: TopicContent = "full"
    link: str | None = None
    """The page that the topic belongs to."""
    hub: tuple[str, ...] = ()
    """WebSub hubs that are notified of a change."""
    public: bool = False
    """Feeds with a password, headers or `allow_private` may be published in it."""
    stories: bool = False
    """Items of several members on one event are one entry."""

    def to_json(self) -> str:
        """One canonical text, as the database keeps it: equal texts are equal topics."""
        keys: dict[str, Any] = {
            "id": self.id,
            "title": self.title,
            "of": [str(member) for member in self.of],
            "each": self.each,
            "items": self.items,
            "every": int(self.every.total_seconds()),
            "content": self.content,
            "link": self.link,
            "hub": list(self.hub),
            "public": self.public,
        }
        # A topic without it is written as it was before there were stories.
        if self.stories:
            keys["stories"] = True
        return json.dumps(keys, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def of_json(cls, text: str) -> "TopicSpec":
        """The inverse of `to_json`."""
        keys = json.loads(text)
        return cls(
            id=keys["id"],
            title=keys["title"],
            of=tuple(map(Member.of, keys["of"])),
            each=keys["each"],
            items=keys["items"],
            every=timedelta(seconds=keys["every"]),
            content=keys["content"],
            link=keys["link"],
            hub=tuple(keys["hub"]),
            public=keys["public"],
            stories=keys.get("stories", False),
        )


# The values from which a topic is published: rows of items and what is known of their feeds.
#
# No value comes from the clock: equal values give equal documents.

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
class MemberOfStory:
    """A place in a story of all."""

    id: str
    joins: tuple[tuple[str, ...], ...] = ()
    """The ids of earlier members: of one that it makes a story with, or of several with which together it
    does."""
    is_moved: bool = False
    """An operator put it there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An item that belongs to a member of a topic. An item of two members is two candidates."""

    member: int
    """The member's index in `TopicSpec.of`."""
    feed: SourceFeed
    item_id: str
    guid: str
    story: MemberOfStory | None = None
    """Its place in a story; None where it stands alone."""
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
