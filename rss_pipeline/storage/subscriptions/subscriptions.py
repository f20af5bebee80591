"""Statements that subscribe, edit and unsubscribe, for one batch each; all may be repeated.

Each keeps the feeds in step: `registered`, the shortest wished interval, and since when a feed is unused.
Which feed an address is, and whether it may be fetched at all, is decided in reader.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.database import Statement, Value
from rss_pipeline.storage.feeds.predicates import OPEN
from rss_pipeline.storage.feeds.recount import recount, recount_without
from rss_pipeline.storage.refresh.new_addresses import leave_queue
from rss_pipeline.storage.sql import FIELD, NUMBER_FIELD, chunked, compact, number

MAX_SUBSCRIPTIONS = 3_000
"""The most subscriptions of one user."""
FRESH_ITEMS = 50
"""The most items of a known feed that are unread when it is subscribed."""

JOINABLE = f"(forgotten = 0 AND {OPEN})"
"""The condition on `feeds` that any user may subscribe to it: what feeds.yaml opens with a password, with
headers or into a private network is for no one else unless it says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A known feed to subscribe. `wished_interval` is in seconds; None is what the schedule finds. `origin`
    is `list` where it comes with feeds.yaml and the user has not chosen it. One that was looked up by its
    address is subscribed only while it has that `url`."""

    feed_id: str
    url: str | None = None
    title: str | None = None
    folder: str | None = None
    wished_interval: int | None = None
    origin: Literal["list"] | None = None


# The document that has the first item too many counts as read; of its items, `_KEEP_FRESH` keeps some unread.
_READ_UP_TO = f"""coalesce((SELECT max(i.arrived) FROM items AS i INDEXED BY items_age
  WHERE i.feed_id = new.feed_id AND i.created_at = (
    SELECT n.created_at FROM items AS n INDEXED BY items_of_feed
    WHERE n.feed_id = new.feed_id ORDER BY n.arrived DESC LIMIT 1 OFFSET {FRESH_ITEMS})), 0)"""
# Below zero, the number shows the next two statements that the subscription is new. The last one ends that.
_SUBSCRIBE = f"""INSERT INTO subscriptions
    (user_id, feed_id, title, folder, wished_interval, origin, position, read_up_to, added_at)
  SELECT ?, new.feed_id, new.title, new.folder, new.wished_interval, new.origin,
    (SELECT coalesce(max(position), 0) FROM subscriptions WHERE user_id = ?) + new.n,
    -1 - {_READ_UP_TO}, ?
  FROM (SELECT feeds.id AS feed_id, {FIELD.format("title")} AS title, {FIELD.format("folder")} AS folder,
      {NUMBER_FIELD.format("wished_interval")} AS wished_interval, {FIELD.format("origin")} AS origin,
      row_number() OVER (ORDER BY {number("v.key")}) AS n
    FROM json_each(?) AS v CROSS JOIN feeds ON feeds.id = {FIELD.format("feed_id")}
    WHERE {JOINABLE} AND coalesce({FIELD.format("url")}, feeds.url) = feeds.url AND NOT EXISTS (
      SELECT 1 FROM subscriptions WHERE user_id = ? AND feed_id = feeds.id)) AS new
  WHERE (SELECT count(*) FROM subscriptions WHERE user_id = ?) + new.n <= {MAX_SUBSCRIPTIONS}
  ON CONFLICT DO NOTHING"""
# A document lists its newest item first, so the order of arrival within it is not that of age.
_KEEP_FRESH = f"""INSERT INTO item_states (user_id, feed_id, arrived, item_id, is_read)
  SELECT fresh.user_id, fresh.feed_id, fresh.arrived, fresh.id, 0
  FROM (SELECT s.user_id, s.read_up_to, n.id, n.feed_id, n.arrived,
      row_number() OVER (PARTITION BY n.feed_id ORDER BY n.pub_date DESC, n.arrived) AS nth
    FROM subscriptions AS s
    CROSS JOIN items AS n INDEXED BY items_age ON n.feed_id = s.feed_id AND n.arrived <= -1 - s.read_up_to
      AND n.created_at = (SELECT m.created_at FROM items AS m INDEXED BY items_of_feed
        WHERE m.feed_id = s.feed_id AND m.arrived = -1 - s.read_up_to)
    WHERE s.user_id = ? AND s.read_up_to < 0) AS fresh
  WHERE fresh.nth <= {FRESH_ITEMS} - (SELECT count(*) FROM items AS a INDEXED BY items_of_feed
    WHERE a.feed_id = fresh.feed_id AND a.arrived > -1 - fresh.read_up_to)
  ON CONFLICT DO NOTHING"""
_CHOOSE = f"""UPDATE subscriptions SET origin = NULL WHERE user_id = ? AND origin = 'list' AND feed_id IN (
  SELECT {FIELD.format("feed_id")} FROM json_each(?) AS v WHERE {FIELD.format("origin")} IS NULL)"""
_BEGIN = "UPDATE subscriptions SET read_up_to = -1 - read_up_to WHERE user_id = ? AND read_up_to < 0"


def joinable_listed() -> Statement:
    """A query for `id` and `folder` of the feeds of feeds.yaml that any user may subscribe."""
    return Statement(
        f"SELECT id, folder FROM feeds WHERE listed = 1 AND {JOINABLE} ORDER BY id LIMIT {MAX_SUBSCRIPTIONS}",
        name="find listed feeds to subscribe",
    )


def joinable_named(feed_ids: Sequence[str]) -> Statement:
    """A query for `id` and `folder` of those of these feeds that any user may subscribe."""
    return Statement(
        f"""SELECT id, folder FROM feeds WHERE id IN (SELECT value FROM json_each(?)) AND {JOINABLE}
        ORDER BY id""",
        [compact(list(feed_ids))],
        name="find named feeds to subscribe",
    )


def count_listed() -> Statement:
    """A query for `listed`, the number of feeds of feeds.yaml, and `joinable`, the number of those that any
    user may subscribe."""
    return Statement(
        f"""SELECT count(*) AS listed, count(CASE WHEN {OPEN} THEN 1 END) AS joinable
        FROM feeds WHERE listed = 1 AND forgotten = 0""",
        name="count listed feeds to subscribe",
    )


def subscribe(user_id: str, wanted: Sequence[Wanted], *, at: datetime) -> list[Statement]:
    """Subscribe known feeds. Those that are subscribed already stay as they are, but for their origin: a feed
    that came with feeds.yaml and is chosen now is the user's own. Feeds that are unknown or
    private, and those beyond MAX_SUBSCRIPTIONS, are left out.

    The newest FRESH_ITEMS of a feed are unread, older ones are read.
    """
    found = [
        {
            "feed_id": one.feed_id,
            "url": one.url,
            "title": one.title,
            "folder": one.folder,
            "wished_interval": one.wished_interval,
            "origin": one.origin,
        }
        for one in wanted
    ]
    statements = []
    for chunk in chunked(map(compact, found)):
        statements += [
            Statement(
                _SUBSCRIBE, [user_id, user_id, instant(at), chunk, user_id, user_id], name="subscribe feeds"
            ),
            Statement(_KEEP_FRESH, [user_id], name="keep new items unread"),
            Statement(_BEGIN, [user_id], name="begin subscriptions"),
            Statement(_CHOOSE, [user_id, chunk], name="note chosen feeds"),
        ]
    return [*statements, *recount([one.feed_id for one in wanted], at=at)]


def unsubscribe(user_id: str, feed_ids: Sequence[str], *, at: datetime) -> list[Statement]:
    """End these subscriptions, with their read states and stars."""
    return [
        Statement(
            "DELETE FROM subscriptions WHERE user_id = ? AND feed_id IN (SELECT value FROM json_each(?))",
            [user_id, compact(list(feed_ids))],
            name="unsubscribe feeds",
        ),
        leave_queue(user_id, feed_ids, now=at),
        *recount(feed_ids, at=at),
    ]


def unsubscribe_all(user_id: str, *, at: datetime) -> list[Statement]:
    """End all subscriptions of a user; goes before the deletion of the user into its batch."""
    # First the feeds, for afterwards they are not known any more.
    return [
        recount_without(user_id, at=at),
        Statement("DELETE FROM subscriptions WHERE user_id = ?", [user_id], name="unsubscribe all feeds"),
    ]


_EDITED = ("title", "folder", "position", "wished_interval")


def edit(user_id: str, feed_id: str, changes: Mapping[str, object], *, at: datetime) -> list[Statement]:
    """Change these columns of a subscription; the first statement changes no row where there is none. `title`
    None is the feed's own, `folder` None is none; `wished_interval` is in seconds, None is what the schedule
    finds."""
    columns = {name: cast("Value", changes[name]) for name in _EDITED if name in changes}
    assigned = ", ".join(f"{name} = ?" for name in columns) or "position = position"
    statement = Statement(
        f"UPDATE subscriptions SET {assigned} WHERE user_id = ? AND feed_id = ?",
        [*columns.values(), user_id, feed_id],
        name="edit subscription",
    )
    return [statement, *(recount([feed_id], at=at) if "wished_interval" in columns else [])]


def place(user_id: str, positions: Mapping[str, int]) -> Statement:
    """Put feeds, by id, at these places in the user's order."""
    return Statement(
        f"""UPDATE subscriptions SET position = {number("j.value")} FROM json_each(?) AS j
        WHERE user_id = ? AND feed_id = j.key AND position <> {number("j.value")}""",
        [compact(dict(positions)), user_id],
        name="place subscriptions",
    )
