"""Statements that give users back what their backups hold; all may be repeated.

A user is marked until all is back (storage.accounts.users). Which feed a subscription becomes is decided in
pipeline.replay.
"""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from rss_pipeline.storage.accounts import users
from rss_pipeline.storage.backups.user_states import KeptMarks, KeptStars, KeptSubscription, UserHead
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.feeds.predicates import OPEN
from rss_pipeline.storage.feeds.recount import recount
from rss_pipeline.storage.feeds.subscribed import NewFeed, add_feeds
from rss_pipeline.storage.sql import FIELD, NUMBER_FIELD, chunked, compact
from rss_pipeline.storage.subscriptions.address import restore_address
from rss_pipeline.storage.subscriptions.chosen import Chosen
from rss_pipeline.storage.subscriptions.states import mark_items
from rss_pipeline.storage.subscriptions.subscriptions import JOINABLE

_VERSIONS_AHEAD = 1_000_000
"""So far is the restored `state_version` ahead of the backup's: what clients have kept since is outdated."""


def stored_feeds(database: Database, subscriptions: Sequence[KeptSubscription]) -> list[dict[str, Any]]:
    """The feeds with an id or a URL of these subscriptions: `id`, `url`, `open`, `last_visited_at`, and
    `is_idle` where only backups know the feed."""
    ids, urls = ([getattr(one, name) for one in subscriptions] for name in ("feed_id", "url"))
    found: dict[str, dict[str, Any]] = {}
    for column, values in (("id", ids), ("url", urls)):
        for chunk in chunked(map(compact, values)):
            rows = database.query(
                f"""SELECT id, url, {OPEN} AS open, last_visited_at, {_IDLE} AS is_idle FROM feeds
                WHERE {column} IN (SELECT value FROM json_each(?)) AND forgotten = 0""",
                [chunk],
                name="find feeds of a restored user",
            ).rows
            found |= {row["id"]: row for row in rows}
    return list(found.values())


_IDLE = "(feeds.listed = 0 AND feeds.registered = 0)"


def restore_user(
    head: UserHead,
    subscriptions: Sequence[KeptSubscription],
    new: Sequence[NewFeed],
    changed: Sequence[NewFeed] = (),
    *,
    at: datetime,
) -> list[Statement]:
    """Add a user with folders and subscriptions, and the new feeds among them, due at `at`; give the
    `changed` feeds their addresses. No item is marked by its id yet."""
    statements = [
        *(statement for feed in changed for statement in restore_address(feed, only_where=_IDLE, now=at)),
        users.begin_restore(
            id=head.id,
            name=head.name,
            # A backup from before there were two keeps the order by arrival.
            preferences=compact({"order": "newest", **head.preferences}),
            version=head.version + _VERSIONS_AHEAD,
            created_at=head.created_at,
        ),
        Statement(
            "INSERT INTO folders (user_id, name) SELECT ?, value FROM json_each(?) WHERE true"
            " ON CONFLICT DO NOTHING",
            [head.id, compact(list(head.folders))],
            name="restore folders",
        ),
        *(add_feeds(new, now=at) if new else []),
    ]
    for chunk in chunked(compact(asdict(one)) for one in subscriptions):
        statements += [
            Statement(_SUBSCRIBE, [head.id, chunk], name="restore subscriptions"),
            Statement(_KEEP_FRESH, [chunk, head.id], name="keep later items unread"),
        ]
    return [*statements, *recount([one.feed_id for one in subscriptions], at=at)]


# All items up to the last visit that the backup knows count as read, or none; the marks follow.
_SUBSCRIBE = f"""INSERT INTO subscriptions
    (user_id, feed_id, title, folder, position, wished_interval, read_up_to, added_at, last_read_at, origin)
  SELECT ?, feeds.id, {FIELD.format("title")}, {FIELD.format("folder")},
    {NUMBER_FIELD.format("position")}, {NUMBER_FIELD.format("wished_interval")},
    CASE WHEN {NUMBER_FIELD.format("rest_is_read")} = 1 THEN coalesce((
      SELECT max(i.arrived) FROM items AS i INDEXED BY items_age
      WHERE i.feed_id = feeds.id AND i.created_at <= {FIELD.format("known_until")}), 0) ELSE 0 END,
    {FIELD.format("added_at")}, {FIELD.format("last_read_at")}, {FIELD.format("origin")}
  FROM json_each(?) AS v CROSS JOIN feeds ON feeds.id = {FIELD.format("feed_id")}
  WHERE {JOINABLE} ON CONFLICT DO NOTHING"""
# Items of a replay do not always arrive in the order of their documents.
_KEEP_FRESH = f"""INSERT INTO item_states (user_id, feed_id, arrived, item_id, is_read)
  SELECT s.user_id, i.feed_id, i.arrived, i.id, 0
  FROM json_each(?) AS v
  CROSS JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = {FIELD.format("feed_id")}
  CROSS JOIN items AS i INDEXED BY items_age ON i.feed_id = s.feed_id
    AND i.created_at > {FIELD.format("known_until")} AND i.arrived <= s.read_up_to
  WHERE true ON CONFLICT DO NOTHING"""


def restore_marks(user_id: str, marks: KeptMarks) -> list[Statement]:
    """Mark these items, of those that are stored."""
    return mark_items(user_id, Chosen.by_ids(marks.ids), is_read=marks.is_read)


def restore_stars(user_id: str, stars: KeptStars) -> list[Statement]:
    """Give these items their stars; the first statement's `changes` are those that came back."""
    return [
        Statement(
            """INSERT INTO item_states (user_id, feed_id, arrived, item_id, starred_at)
            SELECT s.user_id, i.feed_id, i.arrived, i.id, json_extract(j.value, '$[1]')
            FROM json_each(?) AS j CROSS JOIN items AS i ON i.id = json_extract(j.value, '$[0]')
            CROSS JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = i.feed_id
            WHERE i.arrived IS NOT NULL
            ON CONFLICT (user_id, feed_id, arrived) DO UPDATE SET starred_at = excluded.starred_at""",
            [compact([list(each) for each in stars.stars]), user_id],
            name="restore stars",
        )
    ]
