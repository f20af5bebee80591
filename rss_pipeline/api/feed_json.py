"""A subscribed feed in the JSON API: its members, described for the OpenAPI document, and made from a row."""

from typing import Any

from pydantic import BaseModel, Field

from rss_pipeline.reader.failures import shown_error, shown_kind
from rss_pipeline.reader.feed_queries import FeedRow
from rss_pipeline.reader.feed_queries import Health as HealthWord
from rss_pipeline.reader.item_queries import FeedOfPage

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
    "full_text": False,
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
        " `unlisted`, `unused`: not visited at all; `unwatched`: a name and a page without a feed."
    )
    summary: str = Field(description="The state in a sentence.")
    error_kind: str | None = Field(description="The kind of the last visit's error, for programs.")
    reason: str | None = Field(description="The last visit's error in words.")
    failing_since: str | None
    last_success_at: str | None
    may_accept: bool = Field(
        default=False,
        description="True for a page without the list that it had: `POST /api/feeds` with its `url` shows"
        " what would be collected now, and with `page: true` takes it.",
    )


class Visit(BaseModel):
    """The next visit."""

    at: str
    reason: str | None = Field(description="How the time was chosen, or why it or its host is on hold.")
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
    full_text: bool = Field(description="You want the articles behind its new items.")
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


_SUMMARIES: dict[str, str] = {
    "ok": "It is read without an error.",
    "new": "It was not visited yet.",
    "warning": "It is read, but something about its documents is odd.",
    "moved": "It is read at another address.",
    "gone": "The publisher has removed this feed for good.",
    **dict.fromkeys(
        ("disabled", "unlisted", "unused"),
        "It is not collected: it is switched off, or no longer registered.",
    ),
    "unwatched": "It is a name and a page for people: nothing is collected of it.",
}


_REBUILT = "The page was rebuilt; its entries were found again."


def _summary(row: FeedRow) -> str | None:
    if row.is_rebuilt:
        return _REBUILT
    of_warning = row.validators_notice if row.health == "warning" else None
    return of_warning or _SUMMARIES.get(row.health)


def feed_json(row: FeedRow) -> dict[str, Any]:
    """The members of `Feed`. A list has thousands: to take the row apart at once is what makes this fast."""
    # fmt: off
    (feed_id, title, own_title, _, link, description, folder, position, interval, full_text, added,
     read_at, unread, version, changed, health, kind, error, fails_since, visit_at, visit_reason,
     success_at, _, may_accept, _) = row
    # fmt: on
    kind, reason = (
        (kind and shown_kind(kind), shown_error(kind, error)) if row.last_visit_failed else (None, None)
    )
    visit = f"Next visit at {visit_at}"
    return {
        "id": feed_id,
        "title": title,
        "own_title": own_title,
        "description": description,
        "url": row.url,
        "site_url": link,
        "folder": folder,
        "position": position,
        "interval": interval,
        "full_text": bool(full_text),
        "added_at": added,
        "last_read_at": read_at,
        "is_unread": unread > 0,
        "unread": unread,
        "version": version,
        "updated_at": changed,
        "health": {
            "status": health,
            "summary": _summary(row) or _failing(fails_since, reason),
            "error_kind": kind and shown_kind(kind),
            "reason": reason,
            "failing_since": fails_since,
            "last_success_at": success_at,
            "may_accept": bool(may_accept),
        },
        "next_visit": {
            "at": visit_at,
            "reason": visit_reason,
            "summary": _sentence(f"{visit}: {visit_reason}") if visit_reason else f"{visit}.",
        }
        if row.is_collected
        else None,
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


def _failing(since: str | None, reason: str | None) -> str:
    known = "" if since is None else f" since {since}"
    return _sentence(f"It fails{known}: {reason or 'no reason is known'}")


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
