"""A subscribed feed in the JSON API: its members, described for the OpenAPI document, and made from a row."""

from typing import Any

from pydantic import BaseModel, Field

from rss_pipeline.reader.failures import shown_error
from rss_pipeline.reader.feeds import FeedRow
from rss_pipeline.reader.feeds import Health as HealthWord
from rss_pipeline.reader.items import FeedOfPage

EXAMPLE: dict[str, Any] = {
    "id": "daily-planet",
    "title": "The Daily Planet",
    "own_title": None,
    "description": "News of the city, every morning",
    "url": "https://planet.example/feed.xml",
    "site_url": "https://planet.example/",
    "folder": "News",
    "position": 1,
    "interval": None,
    "added_at": "2026-11-20T08:00:00Z",
    "last_read_at": "2026-11-22T08:15:00Z",
    "is_unread": True,
    "unread": 3,
    "version": 1795339112000017,
    "updated_at": "2026-11-22T09:18:32Z",
    "health": {
        "status": "failing",
        "summary": "It fails since 2026-11-22T10:00:00Z: planet.example did not answer within 30 s.",
        "error_kind": "timeout",
        "reason": "planet.example did not answer within 30 s.",
        "failing_since": "2026-11-22T10:00:00Z",
        "last_success_at": "2026-11-22T09:30:00Z",
    },
    "next_visit": {
        "at": "2026-11-22T12:00:00Z",
        "reason": "failed 2 times in a row",
        "summary": "Next visit at 2026-11-22T12:00:00Z: failed 2 times in a row.",
    },
}


class Health(BaseModel):
    """The state of a feed: readable, or failing and since when."""

    status: HealthWord = Field(
        description="`ok`; `new`: not visited yet; `warning`: read with warnings; `moved`: read at"
        " another address; `failing`: the last visit failed; `gone`: the publisher removed it; `disabled`,"
        " `unlisted`, `unused`: not visited at all."
    )
    summary: str = Field(description="The state in a sentence.")
    error_kind: str | None = Field(description="The kind of the last visit's error, for programs.")
    reason: str | None = Field(description="The last visit's error in words.")
    failing_since: str | None
    last_success_at: str | None


class Visit(BaseModel):
    """The next visit."""

    at: str
    reason: str | None = Field(description="How the time was chosen, or that its host is on hold.")
    summary: str = Field(description="Both in a sentence.")


class NamedFeed(BaseModel):
    """A feed as a page of its items names it."""

    id: str
    title: str | None = Field(description="The user's own title, or else the feed's.")
    own_title: str | None = Field(description="The user's own title.")
    description: str | None = Field(description="The feed's description, as plain text.")
    url: str
    site_url: str | None = Field(description="The feed's web page.")
    folder: str | None


class Feed(NamedFeed):
    """A feed as its subscriber sees it. Instants are UTC: `2026-11-22T12:00:00Z`."""

    position: int = Field(description="The place in the user's order.")
    interval: int | None = Field(
        description="Preferred polling interval in seconds; null for what suits the feed."
    )
    added_at: str
    last_read_at: str | None = Field(
        description="The last time that the user marked an item of it as read; null for none."
    )
    is_unread: bool = Field(description="True if an item is unread.")
    unread: int = Field(description="The number of unread items, exact.")
    version: int = Field(
        description="The number of its newest item, 0 for none: pass it to mark-read as `up_to`."
    )
    updated_at: str | None = Field(
        description="Time of the last visit with news: new items, or the first answer after a failure;"
        " without any, of one visit a week."
    )
    health: Health
    next_visit: Visit | None = Field(description="Null for a feed that is not visited.")

    model_config = {"json_schema_extra": {"example": EXAMPLE}}


def feed_json(row: FeedRow) -> dict[str, Any]:
    """The members of `Feed`."""
    return {
        "id": row.feed_id,
        "title": row.title,
        "own_title": row.own_title,
        "description": row.description,
        "url": row.url,
        "site_url": row.link,
        "folder": row.folder,
        "position": row.position,
        "interval": row.wished_interval,
        "added_at": row.added,
        "last_read_at": row.read_at,
        "is_unread": row.unread > 0,
        "unread": row.unread,
        "version": row.version,
        "updated_at": row.changed,
        "health": _health(row),
        "next_visit": _next_visit(row),
    }


def page_of_feed_json(feed: FeedOfPage) -> dict[str, Any]:
    """The members that a page of the items of one feed has beside the items."""
    return {
        "feed": {
            "id": feed.feed_id,
            "title": feed.title,
            "own_title": feed.own_title,
            "description": feed.description,
            "url": feed.url,
            "site_url": feed.link,
            "folder": feed.folder,
        },
        "total": int(feed.total),
        "has_unread": bool(feed.unread),
        "last_read_at": feed.read_at,
    }


def _health(row: FeedRow) -> dict[str, Any]:
    is_failing = row.last_visit_failed
    reason = shown_error(row.error_kind, row.error) if is_failing else None
    return {
        "status": row.health,
        "summary": _summary(row.health, row.fails_since, reason),
        "error_kind": row.error_kind if is_failing else None,
        "reason": reason,
        "failing_since": row.fails_since,
        "last_success_at": row.success_at,
    }


def _summary(status: str, failing_since: str | None, reason: str | None) -> str:
    match status:
        case "failing":
            since = "" if failing_since is None else f" since {failing_since}"
            return _sentence(f"It fails{since}: {reason or 'no reason is known'}")
        case "gone":
            return "The publisher has removed this feed for good."
        case "disabled" | "unlisted" | "unused":
            return "It is not collected: it is switched off, or no longer registered."
        case "new":
            return "It was not visited yet."
        case "moved":
            return "It is read at another address."
        case "warning":
            return "It is read, but something about its documents is odd."
        case _:
            return "It is read without an error."


def _next_visit(row: FeedRow) -> dict[str, Any] | None:
    if not row.is_collected:
        return None
    at = row.visit_at
    why = f": {row.visit_reason}" if row.visit_reason else ""
    return {"at": at, "reason": row.visit_reason, "summary": _sentence(f"Next visit at {at}{why}")}


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
