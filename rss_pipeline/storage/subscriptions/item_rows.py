"""Items as a user sees them: with the user's title of the feed, and whether they are read and starred."""

import json
from datetime import datetime
from typing import Any, NamedTuple

from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.storage.database import Result
from rss_pipeline.storage.feeds.subscribed import shown_url
from rss_pipeline.storage.items.bodies import BodyKey, body_version, repaired_at
from rss_pipeline.storage.items.items import stored_authors


class ItemRow(NamedTuple):
    """An item without its content, as it was read: what has to be made of a value is made where it is
    used, since a page has hundreds of items. Instants are text in the fields, aware and in UTC in the
    properties."""

    id: str
    arrived: int
    """Its arrival number: the id that Google Reader clients have, and the key of pages."""
    feed_id: str
    feed_title: str | None
    """The user's own, or else the feed's."""
    stored_feed_url: str
    feed_link: str | None
    language: str | None
    """The feed's, as it says."""
    folder: str | None
    """The user's."""
    title: str | None
    link: str | None
    base_url: str | None
    comments_url: str | None
    """The page on which readers discuss the item."""
    author: str | None
    authors_json: str | None
    published: str
    date_source: str
    updated: str | None
    collected: str
    categories_json: str
    enclosures_json: str
    read: int
    starred: str | None
    body_version: str
    """The version of its body (storage.items.bodies)."""

    @property
    def feed_url(self) -> str:
        return shown_url(self.stored_feed_url)

    @property
    def authors(self) -> tuple[str, ...]:
        return stored_authors({"author": self.author, "authors": self.authors_json})

    @property
    def published_at(self) -> datetime:
        return datetime.fromisoformat(self.published)

    @property
    def is_dated(self) -> bool:
        """False where the feed gave no date that can be read: `published_at` is the time of fetching."""
        return self.date_source == "feed"

    @property
    def updated_at(self) -> datetime | None:
        return from_instant(self.updated)

    @property
    def categories(self) -> tuple[str, ...]:
        return tuple(_values(self.categories_json))

    @property
    def enclosures(self) -> tuple[Enclosure, ...]:
        return tuple(Enclosure(**enclosure) for enclosure in _values(self.enclosures_json))

    @property
    def files(self) -> tuple[Enclosure, ...]:
        """The enclosures without pictures: where the content is, these are mostly shown in it."""
        return tuple(each for each in self.enclosures if not (each.type or "").startswith("image/"))

    @property
    def is_read(self) -> bool:
        return bool(self.read)

    @property
    def is_starred(self) -> bool:
        return self.starred is not None

    @property
    def starred_at(self) -> datetime | None:
        return from_instant(self.starred)

    @property
    def body_key(self) -> BodyKey:
        """Its body in the version that was read."""
        return BodyKey(
            id=self.id,
            arrived=self.arrived,
            title=self.title,
            link=self.link,
            base_url=self.base_url,
            enclosures_json=self.enclosures_json,
            feed_link=self.feed_link,
            feed_url=self.stored_feed_url,
            version=self.body_version,
        )

    @property
    def is_repaired(self) -> bool:
        """True if there are earlier versions of it."""
        return repaired_at(self.body_version) is not None


ITEM_COLUMNS = f"""i.id, i.arrived, i.feed_id, coalesce(s.title, f.title) AS feed_title,
  f.url AS stored_feed_url, f.link AS feed_link, f.language, s.folder, i.title,
  i.link, i.base_url, i.comments_url, i.author, i.authors AS authors_json, i.pub_date AS published,
  i.pub_date_source AS date_source,
  i.updated_at AS updated, i.created_at AS collected, i.categories AS categories_json,
  i.enclosures AS enclosures_json, coalesce(t.is_read, CAST(i.arrived <= s.read_up_to AS INTEGER)) AS read,
  t.starred_at AS starred, {body_version(items="i", feeds="f")} AS body_version"""
"""The fields of ItemRow."""
ITEM_FROM = """CROSS JOIN items AS i ON i.rowid = page.place
  CROSS JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = i.feed_id
  CROSS JOIN feeds AS f ON f.id = i.feed_id
  LEFT JOIN item_states AS t ON t.user_id = s.user_id AND t.feed_id = i.feed_id AND t.arrived = i.arrived"""
"""From `page.place`, the row id of an item; binds the user's id."""


def item_rows(result: Result) -> list[ItemRow]:
    """Rows with ITEM_COLUMNS."""
    return list(map(ItemRow._make, result.columns(*ItemRow._fields)))


def _values(text: str) -> list[Any]:
    """A JSON list. Most are empty, and a page has hundreds."""
    return [] if text == "[]" else json.loads(text)
