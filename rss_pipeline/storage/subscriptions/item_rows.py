"""Items as a user sees them: with the user's title of the feed, and whether they are read and starred."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.feeds.subscribed import shown_url
from rss_pipeline.storage.items.bodies import body_version
from rss_pipeline.storage.items.items import stored_authors


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRow:
    """An item without its content. Instants are aware, in UTC."""

    id: str
    arrived: int
    """Its arrival number: the id that Google Reader clients have, and the key of pages."""
    feed_id: str
    feed_title: str | None
    """The user's own, or else the feed's."""
    feed_url: str
    feed_link: str | None
    language: str | None
    """The feed's, as it says."""
    folder: str | None
    """The user's."""
    title: str | None
    link: str | None
    author: str | None
    authors: tuple[str, ...]
    published_at: datetime
    is_dated: bool
    """False where the feed gave no date that can be read: `published_at` is the time of fetching."""
    updated_at: datetime | None
    collected_at: datetime
    categories: tuple[str, ...]
    enclosures: tuple[Enclosure, ...]
    is_read: bool
    starred_at: datetime | None
    body_version: str
    """The version of its body (storage.items.bodies)."""

    @property
    def is_repaired(self) -> bool:
        """True if there are earlier versions of it."""
        return json.loads(self.body_version)[_REPAIRED] is not None


_REPAIRED = 3
"""The place in `body_version` of the time of the last repair."""

ITEM_COLUMNS = f"""i.id, i.arrived, i.feed_id, coalesce(s.title, f.title) AS feed_title, f.url AS feed_url,
  f.link AS feed_link, f.language, s.folder, i.title, i.link, i.author, i.authors, i.pub_date,
  i.pub_date_source, i.updated_at, i.created_at, i.categories, i.enclosures,
  coalesce(t.is_read, i.arrived <= s.read_up_to) AS is_read, t.starred_at,
  {body_version(items="i", feeds="f")} AS body_version"""
ITEM_FROM = """CROSS JOIN items AS i ON i.rowid = page.place
  CROSS JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = i.feed_id
  CROSS JOIN feeds AS f ON f.id = i.feed_id
  LEFT JOIN item_states AS t ON t.user_id = s.user_id AND t.feed_id = i.feed_id AND t.arrived = i.arrived"""
"""From `page.place`, the row id of an item; binds the user's id."""


def item_row(row: Row) -> ItemRow:
    """A row with ITEM_COLUMNS."""
    return ItemRow(
        id=row["id"],
        arrived=int(row["arrived"]),
        feed_id=row["feed_id"],
        feed_title=row["feed_title"],
        feed_url=shown_url(row["feed_url"]),
        feed_link=row["feed_link"],
        language=row["language"],
        folder=row["folder"],
        title=row["title"],
        link=row["link"],
        author=row["author"],
        authors=stored_authors(row),
        published_at=datetime.fromisoformat(row["pub_date"]),
        is_dated=row["pub_date_source"] == "feed",
        updated_at=from_instant(row["updated_at"]),
        collected_at=datetime.fromisoformat(row["created_at"]),
        categories=tuple(_values(row["categories"])),
        enclosures=tuple(Enclosure(**enclosure) for enclosure in _values(row["enclosures"])),
        is_read=bool(row["is_read"]),
        starred_at=from_instant(row["starred_at"]),
        body_version=row["body_version"],
    )


def _values(text: str) -> list[Any]:
    """A JSON list. Most are empty, and a page has hundreds."""
    return [] if text == "[]" else json.loads(text)
