"""Statements that subscribe, edit and unsubscribe, for one batch each; all may be repeated.

Each keeps the feeds in step: `registered`, the shortest wished interval, and since when a feed is unused.
Which feed an address is, and whether it may be fetched at all, is decided in reader.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.shard import bucket_of
from rss_pipeline.storage.database import Result, Statement, Value
from rss_pipeline.storage.feeds.predicates import OPEN, UNUSED
from rss_pipeline.storage.feeds.recount import recount, recount_without
from rss_pipeline.storage.feeds.registered import OF_OLD_ADDRESS
from rss_pipeline.storage.feeds.stored_holds import leave_address
from rss_pipeline.storage.feeds.subscribed import NewFeed
from rss_pipeline.storage.refresh.new_addresses import NOT_OWNER, give_turn_anew, hold_until_turn, leave_queue
from rss_pipeline.storage.sql import FIELD, NUMBER_FIELD, chunked, compact, number
from rss_pipeline.storage.stale import follow_subscriptions, mark_stale

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
    full_text: bool = False
    origin: Literal["list"] | None = None


# The document that has the first item too many counts as read; of its items, `_KEEP_FRESH` keeps some unread.
_READ_UP_TO = f"""coalesce((SELECT max(i.arrived) FROM items AS i INDEXED BY items_age
  WHERE i.feed_id = new.feed_id AND i.created_at = (
    SELECT n.created_at FROM items AS n INDEXED BY items_of_feed
    WHERE n.feed_id = new.feed_id ORDER BY n.arrived DESC LIMIT 1 OFFSET {FRESH_ITEMS})), 0)"""
# Below zero, the number shows the next two statements that the subscription is new. The last one ends that.
_SUBSCRIBE = f"""INSERT INTO subscriptions
    (user_id, feed_id, title, folder, wished_interval, full_text_after, origin, position, read_up_to,
     added_at)
  SELECT ?, new.feed_id, new.title, new.folder, new.wished_interval,
    CASE WHEN new.full_text = 1 THEN coalesce(
      (SELECT max(i.arrived) FROM items AS i WHERE i.feed_id = new.feed_id), 0) END, new.origin,
    (SELECT coalesce(max(position), 0) FROM subscriptions WHERE user_id = ?) + new.n,
    -1 - {_READ_UP_TO}, ?
  FROM (SELECT feeds.id AS feed_id, {FIELD.format("title")} AS title, {FIELD.format("folder")} AS folder,
      {NUMBER_FIELD.format("wished_interval")} AS wished_interval,
      {NUMBER_FIELD.format("full_text")} AS full_text, {FIELD.format("origin")} AS origin,
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
            "full_text": int(one.full_text),
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
    ids = [one.feed_id for one in wanted]
    return [*statements, *follow_subscriptions(ids, user_id), *recount(ids, at=at)]


def unsubscribe(user_id: str, feed_ids: Sequence[str], *, at: datetime) -> list[Statement]:
    """End these subscriptions, with their read states and stars."""
    return [
        Statement(
            "DELETE FROM subscriptions WHERE user_id = ? AND feed_id IN (SELECT value FROM json_each(?))",
            [user_id, compact(list(feed_ids))],
            name="unsubscribe feeds",
        ),
        *follow_subscriptions(feed_ids, user_id),
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
# A switch that is on stays as it was.
_FULL_TEXT = """full_text_after = CASE WHEN ? = 1 THEN coalesce(full_text_after,
  (SELECT max(i.arrived) FROM items AS i WHERE i.feed_id = subscriptions.feed_id), 0) END"""


def edit(user_id: str, feed_id: str, changes: Mapping[str, object], *, at: datetime) -> list[Statement]:
    """Change these columns of a subscription; the first statement changes no row where there is none. `title`
    None is the feed's own, `folder` None is none; `wished_interval` is in seconds, None is what the schedule
    finds; with `full_text` the user wants the articles of items that arrive from now on."""
    columns = {name: cast("Value", changes[name]) for name in _EDITED if name in changes}
    assigned, params = [f"{name} = ?" for name in columns], list(columns.values())
    if "full_text" in changes:
        assigned, params = [*assigned, _FULL_TEXT], [*params, int(bool(changes["full_text"]))]
    statement = Statement(
        f"UPDATE subscriptions SET {', '.join(assigned) or 'position = position'}"
        " WHERE user_id = ? AND feed_id = ?",
        [*params, user_id, feed_id],
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


# Statements on the folders of a user, for one batch each; all may be repeated.
#
# A folder is there while a subscription names it, or while it has a row of its own: one that was made by name
# stays when its last feed leaves it.

MAX_FOLDERS = 1_000
"""Folders of one user that were made by name."""


def list_folders(user_id: str) -> Statement:
    """A query for the names of all folders, for `folder_names`."""
    return Statement(
        """SELECT name FROM folders WHERE user_id = ?
        UNION SELECT folder FROM subscriptions WHERE user_id = ? AND folder IS NOT NULL ORDER BY 1""",
        [user_id, user_id],
        name="list folders",
        is_kept=True,
    )


def folder_names(result: Result) -> list[str]:
    """The folders that `list_folders` found, sorted."""
    return [row["name"] for row in result.rows]


def add_folders(user_id: str, names: Sequence[str]) -> Statement:
    """Make these folders, which may stay empty; beyond MAX_FOLDERS none is made."""
    return Statement(
        f"""INSERT INTO folders (user_id, name) SELECT ?, j.value FROM json_each(?) AS j
        WHERE {number("j.key")} + (SELECT count(*) FROM folders WHERE user_id = ?) < {MAX_FOLDERS}
        ON CONFLICT DO NOTHING""",
        [user_id, compact(list(names)), user_id],
        name="add folders",
    )


def rename_folder(user_id: str, name: str, new: str) -> list[Statement]:
    """Give a folder another name; where there is one of that name, the two become one."""
    if name == new:
        return []
    return [
        Statement(
            """INSERT INTO folders (user_id, name) SELECT user_id, ? FROM folders
            WHERE user_id = ? AND name = ? ON CONFLICT DO NOTHING""",
            [new, user_id, name],
            name="add renamed folder",
        ),
        _delete(user_id, name),
        Statement(
            "UPDATE subscriptions SET folder = ? WHERE user_id = ? AND folder = ?",
            [new, user_id, name],
            name="move feeds to renamed folder",
        ),
    ]


def remove_folder(user_id: str, name: str) -> list[Statement]:
    """Remove a folder; its feeds stay, in none."""
    return [
        _delete(user_id, name),
        Statement(
            "UPDATE subscriptions SET folder = NULL WHERE user_id = ? AND folder = ?",
            [user_id, name],
            name="take feeds out of folder",
        ),
    ]


def _delete(user_id: str, name: str) -> Statement:
    return Statement(
        "DELETE FROM folders WHERE user_id = ? AND name = ?", [user_id, name], name="delete folder"
    )


_OTHERS = "EXISTS (SELECT 1 FROM subscriptions AS o WHERE o.feed_id = feeds.id AND o.user_id <> ?)"
_MAY_CHANGE = f"""(feeds.listed = 0 AND (NOT {NOT_OWNER} OR NOT {_OTHERS})
  AND EXISTS (SELECT 1 FROM subscriptions AS s WHERE s.feed_id = feeds.id AND s.user_id = ?)
  AND NOT EXISTS (SELECT 1 FROM feeds AS f WHERE f.url = ?))"""
"""The user may change the address of this feed, and no feed has the new one. Binds the user three times, and
the new URL."""
_FORGOTTEN = ", ".join(
    f"{column} = {value}"
    for column, value in {
        "fetch_url": "NULL",
        "move_url": "NULL",
        "move_since": "NULL",
        "answered_url": "NULL",
        "items_listed": "NULL",
        "not_before": "NULL",
        **OF_OLD_ADDRESS,
    }.items()
)
_REASON = "it has another address"


def look_at_address(user_id: str, feed_id: str) -> Statement:
    """A query for `url`, `listed`, `has_others` and `is_owner`: one row if the user subscribes to this feed.
    `has_others`: so do others; `is_owner`: the user is the owner of the installation."""
    return Statement(
        f"""SELECT feeds.url, feeds.listed, {_OTHERS} AS has_others, NOT {NOT_OWNER} AS is_owner
        FROM subscriptions AS s CROSS JOIN feeds ON feeds.id = s.feed_id
        WHERE s.user_id = ? AND s.feed_id = ?""",
        [user_id, user_id, user_id, feed_id],
        name="look at the address of a feed",
    )


def change_address(user_id: str, feed_id: str, *, url: str, host: str, now: datetime) -> list[Statement]:
    """Statements that give a feed another URL, as far as its user may do that; the one named CHANGE changes
    one row then. The feed is due, and for a user with many new addresses it waits for its turn.

    Its items, subscriptions and backups stay. Nothing of the old address holds for it any more. A feed that
    nobody uses makes room for it: its items stay until it is removed, and no one can name it.
    """
    may = [user_id, user_id, user_id, url]
    return [
        Statement(
            f"UPDATE feeds SET url = url || '#' || id WHERE url = ? AND {UNUSED}",
            [url],
            name="free the address of an unused feed",
        ),
        *give_turn_anew(user_id, feed_id, condition=_MAY_CHANGE, params=may, now=now),
        *mark_stale(compact([feed_id])),
        *leave_address(f"SELECT id FROM feeds WHERE id = ? AND {_MAY_CHANGE}", [feed_id, *may]),
        Statement(
            """UPDATE users SET state_version = state_version + 1 WHERE id <> ? AND id IN (
              SELECT user_id FROM subscriptions WHERE feed_id = ?)""",
            [user_id, feed_id],
            name="note a changed address",
        ),
        Statement(
            f"""UPDATE feeds SET url = ?, host = ?, bucket = ?, next_fetch_at = ?, schedule_reason = ?,
              {_FORGOTTEN} WHERE id = ? AND {_MAY_CHANGE}""",
            [url, host, bucket_of(host), instant(now), _REASON, feed_id, *may],
            name=CHANGE,
        ),
        *hold_until_turn(user_id, [feed_id], now=now, has_new_address=True),
    ]


def restore_address(feed: NewFeed, *, only_where: str, now: datetime) -> list[Statement]:
    """Statements that give a feed, if this condition holds, the address to which a user had changed it.

    A feed for which it holds as well makes room for it, as for `change_address`.
    """
    return [
        Statement(
            f"""UPDATE feeds SET url = url || '#' || id WHERE url = ? AND id <> ? AND {only_where}
              AND EXISTS (SELECT 1 FROM feeds AS f WHERE f.id = ? AND f.listed = 0)""",
            [feed.url, feed.id, feed.id],
            name="free an address that is restored",
        ),
        Statement(
            f"""UPDATE feeds SET url = ?, host = ?, bucket = ?, next_fetch_at = ?, schedule_reason = ?,
              {_FORGOTTEN} WHERE id = ? AND {only_where}
              AND NOT EXISTS (SELECT 1 FROM feeds AS f WHERE f.url = ?)""",
            [feed.url, feed.host, bucket_of(feed.host), instant(now), _REASON, feed.id, feed.url],
            name="restore the address of a feed",
        ),
    ]


CHANGE = "change the address of a feed"
