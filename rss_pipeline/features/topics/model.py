"""Topics: groups of feeds and streams that are published as one feed, as feeds.yaml describes them."""

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from rss_pipeline.collector.models.feed import Member

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
        )
