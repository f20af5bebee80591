"""An item in the JSON API: its members, described for the OpenAPI document, and made from a row."""

from collections.abc import Sequence
from typing import Any

import orjson
from pydantic import BaseModel, Field

from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.reader.bodies import Body
from rss_pipeline.reader.item_queries import ItemRow, ordered_ids

EXAMPLE: dict[str, Any] = {
    "id": "0f8fad5bd9cb469fa16570867728950e",
    "cursor": 1795339112000017,
    "feed_id": "daily-planet",
    "feed_title": "The Daily Planet",
    "title": "Water on the moon",
    "url": "https://planet.example/moon",
    "comments_url": "https://planet.example/moon#comments",
    "author": "Lois Lane",
    "authors": ["Lois Lane"],
    "published_at": "2026-11-22T09:00:00Z",
    "is_dated": True,
    "updated_at": None,
    "collected_at": "2026-11-22T09:18:32Z",
    "categories": ["science"],
    "enclosures": [{"url": "https://planet.example/moon.mp3", "type": "audio/mpeg", "length": 4096}],
    "is_read": False,
    "is_starred": True,
    "starred_at": "2026-11-22T09:30:00Z",
    "story": None,
    "html": "<p>Frozen, but <b>water</b>.</p>",
}


class EnclosureJson(BaseModel):
    """A file that belongs to an item, and no picture that its `html` shows."""

    url: str
    type: str | None = Field(description="The media type.")
    length: int | None = Field(description="Bytes, as the feed says.")


class StoryJson(BaseModel):
    """The items of your feeds on one event, or that are copies of one article."""

    id: str = Field(description="The item that leads it; the reasons are at `/api/stories/{id}`.")
    items: list[str] = Field(description="All of them, that one first.")


class ItemHead(BaseModel):
    """An item as the user sees it, without its content. Instants are UTC: `2026-11-22T12:00:00Z`."""

    id: str
    cursor: int = Field(description="Its number in the order of arrival.")
    feed_id: str
    feed_title: str | None
    title: str = Field(description="Plain text; the start of the content for an item without one.")
    url: str | None = Field(description="The item's web page.")
    comments_url: str | None = Field(description="The page where readers discuss it, if the feed names one.")
    author: str | None
    authors: list[str]
    published_at: str
    is_dated: bool = Field(
        description="False where the feed gives no date: `published_at` is then when it was found."
    )
    updated_at: str | None
    collected_at: str
    categories: list[str]
    enclosures: list[EnclosureJson]
    is_read: bool
    is_starred: bool
    starred_at: str | None
    story: StoryJson | None = Field(description="Null for an item that stands alone.")


class Item(ItemHead):
    """An item as the user sees it. Instants are UTC: `2026-11-22T12:00:00Z`."""

    html: str = Field(description="The content, or else the summary, sanitized, with archived images.")

    model_config = {"json_schema_extra": {"example": EXAMPLE}}


def item_json(row: ItemRow, body: Body) -> dict[str, Any]:
    """The members of `Item`, for orjson."""
    return {**head_json(row, body.title, body.files), "html": orjson.Fragment(b"".join(body.html_json))}


def head_json(row: ItemRow, title: str, files: Sequence[Enclosure]) -> dict[str, Any]:
    """The members of `ItemHead`; `files` are the enclosures that are listed."""
    together = ordered_ids(row.together)
    return {
        "id": row.id,
        "cursor": row.arrived,
        "feed_id": row.feed_id,
        "feed_title": row.feed_title,
        "title": title,
        "url": row.link,
        "comments_url": row.comments_url,
        "author": row.author,
        "authors": row.authors,
        "published_at": row.published,
        "is_dated": row.is_dated,
        "updated_at": row.updated,
        "collected_at": row.collected,
        "categories": row.categories,
        "enclosures": [{"url": each.url, "type": each.type, "length": each.length} for each in files],
        "is_read": row.is_read,
        "is_starred": row.is_starred,
        "starred_at": row.starred,
        "story": {"id": together[0], "items": together} if together else None,
    }
