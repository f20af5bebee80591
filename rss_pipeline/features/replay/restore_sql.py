"""Restoring a lost database beside its items: unregistered feeds, the state of feeds, and archived images.

Every statement may be repeated: what is known already stays as it is. Items are in sql.py.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Feed, ValidatorsState
from rss_pipeline.collector.models.item import ImageSize
from rss_pipeline.collector.models.outcome import Parsed
from rss_pipeline.collector.models.shard import bucket_of
from rss_pipeline.storage.accounts import user_rows as users
from rss_pipeline.storage.accounts.user_rows import note_change_of_items
from rss_pipeline.storage.backups.backups import Backup
from rss_pipeline.storage.backups.user_states import (
    KeptMarks,
    KeptStars,
    KeptSubscription,
    UserHead,
)
from rss_pipeline.storage.database import Database, Row, Statement
from rss_pipeline.storage.feeds.closing_parts import SET_DOCUMENT, document_row, from_json
from rss_pipeline.storage.feeds.predicates import OPEN
from rss_pipeline.storage.feeds.recount import recount
from rss_pipeline.storage.feeds.subscribed import NewFeed, add_feeds
from rss_pipeline.storage.objects import ObjectInfo
from rss_pipeline.storage.sql import FIELD, NUMBER_FIELD, chunked, compact, storable
from rss_pipeline.storage.stale import follow_subscriptions, mark_stale_if, mark_stale_of
from rss_pipeline.storage.subscriptions.chosen import Chosen
from rss_pipeline.storage.subscriptions.item_states import mark_items
from rss_pipeline.storage.subscriptions.subscriptions import JOINABLE, restore_address

REASON = "restored from its backups: due at once"
_PAGE = 5_000


def add_unregistered(database: Database, feed_id: str, backup: Backup, *, now: datetime) -> str:
    """Insert a row for a feed that only its backups know, not scheduled, and return the URL it has now.

    Its URL is the requested URL of its newest backup. If another feed has that URL, `#` and the feed's own id
    are added to it: it is not requested while the feed is not registered. Its items are kept as long as that
    backup says; where it does not, retention leaves them alone.
    """
    parts = urlsplit(backup.requested_url)
    url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))
    host = parts.hostname or ""
    database.query(
        """INSERT INTO feeds (id, url, host, bucket, registered, item_key, keep_days, keep_unknown, title,
          next_fetch_at, created_at)
        SELECT ?, CASE WHEN EXISTS (SELECT 1 FROM feeds WHERE url = j.url AND id <> j.id)
          THEN j.url || '#' || j.id ELSE j.url END, ?, ?, 0, ?, ?, ?, NULL, ?, ?
        FROM (SELECT ? AS id, ? AS url) AS j WHERE true ON CONFLICT (id) DO NOTHING""",
        [
            feed_id,
            host,
            bucket_of(host),
            backup.item_key or "guid",
            backup.keep_days,
            int(not backup.is_keep_known),
            instant(now),
            instant(backup.fetched_at),
            feed_id,
            url,
        ],
        name="add unregistered feed",
    )
    return str(
        database.query("SELECT url FROM feeds WHERE id = ?", [feed_id], name="read feed url").rows[0]["url"]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedState:
    """The state of a feed when its newest backups were taken."""

    feed: Feed
    earliest: datetime
    """The time of its oldest backup."""
    newest: Parsed | None = None
    """The newest whole document with stored items."""
    cut: Parsed | None = None
    """A newer document, which was cut off."""
    failure: Failure | None = None
    """The failure of a newer document, which could not be read."""


_RESTORED = (
    "last_success_at",
    "last_fetched_at",
    "last_visited_at",
    "failed_hash",
    "failed_version",
    "last_error_kind",
    "last_error",
    "consecutive_failures",
    "failing_since",
    "schedule_reason",
    "schedule_kind",
    "next_fetch_at",
)
_RESTORE = f"""UPDATE feeds SET {SET_DOCUMENT}, {from_json(*_RESTORED)}, host_answered = 1,
  created_at = min(created_at, {FIELD.format("created_at")}),
  first_stored_at = coalesce(first_stored_at, (SELECT min(created_at) FROM items WHERE feed_id = feeds.id))
  FROM (SELECT ? AS value) AS v
  WHERE feeds.id = {FIELD.format("id")} AND feeds.content_hash IS NULL
    AND (feeds.last_visited_at IS NULL OR {FIELD.format("content_hash")} IS NOT NULL)
  RETURNING id"""


def restore_state(database: Database, state: FeedState, *, now: datetime) -> bool:
    """Write a feed's state, due at `now`; False if a visit since then has written a newer one.

    Only after all its items are stored: its validators would hide what is not.
    """
    newest, failure = state.newest, state.failure
    stored_at: str | None = None
    document: Row = {"cuts": 0}
    failed_at = None if failure is None or failure.fetched_at is None else instant(failure.fetched_at)
    if (last := state.cut or newest) is not None:
        # A cut document leaves the validators of the whole one before, or none.
        known = state.feed if newest is None else _with_document(state.feed, newest)
        document = document_row(known, last)
        stored_at = instant(last.document.response.fetched_at)
    wanted: Row = {
        "id": state.feed.id,
        **document,
        "last_success_at": stored_at,
        "last_fetched_at": failed_at or stored_at,
        "last_visited_at": failed_at or stored_at,
        "failed_hash": failure and failure.document_hash,
        "failed_version": failure and failure.parser_version,
        "last_error_kind": failure and failure.kind,
        "last_error": failure and storable(failure.message[:2000]),
        "consecutive_failures": 0 if failure is None else 1,
        "failing_since": failed_at,
        "schedule_reason": REASON,
        "schedule_kind": None,
        "created_at": instant(state.earliest),
        "next_fetch_at": instant(now),
    }
    *_, restored = database.batch(
        [
            *mark_stale_if(
                state.feed.id,
                "EXISTS (SELECT 1 FROM feeds WHERE id = ? AND content_hash IS NULL)",
                [state.feed.id],
            ),
            Statement(_RESTORE, [compact(wanted)], name="restore feed state"),
        ]
    )
    return bool(restored.rows)


def _with_document(feed: Feed, parsed: Parsed) -> Feed:
    """The feed with the validators and the hash of this document."""
    response = parsed.document.response
    http = replace(
        feed.http,
        etag=response.etag,
        last_modified=response.last_modified,
        validators_url=response.url if response.etag or response.last_modified else None,
        validators_state=ValidatorsState(dated=response.fetched_at),
        content_hash=parsed.document.content_hash,
    )
    return replace(feed, http=http)


def task_keys(database: Database, feed_id: str) -> dict[str, str | None]:
    """A feed's image tasks by id, each with the key of its object if it has one."""
    keys: dict[str, str | None] = {}
    for page in _task_pages(database, feed_id):
        keys.update((row["id"], row["r2_key"] if row["status"] == "success" else None) for row in page)
    return keys


def _task_pages(database: Database, feed_id: str) -> Iterator[list[Row]]:
    item, task = "", ""
    while True:
        page = database.query(
            """SELECT t.id, t.item_id, t.r2_key, t.status FROM items JOIN image_tasks AS t
            ON t.item_id = items.id
            WHERE items.feed_id = ? AND (t.item_id, t.id) > (?, ?) ORDER BY t.item_id, t.id LIMIT ?""",
            [feed_id, item, task, _PAGE],
            name="read image tasks of a feed",
        ).rows
        if not page:
            return
        yield page
        item, task = page[-1]["item_id"], page[-1]["id"]


def adopt(
    database: Database,
    images: Mapping[str, ObjectInfo],
    *,
    pixels_of: Callable[[ObjectInfo], ImageSize | None] = lambda _: None,
) -> int:
    """Make these objects, by task id, the images of their tasks, and return how many were new to theirs.

    A task that a run is downloading at this moment is left to that run, which finds the object.
    """
    adopted = 0

    def row(task: str, info: ObjectInfo) -> str:
        pixels = pixels_of(info)
        sides = (pixels.width, pixels.height) if pixels is not None else (None, None)
        return compact([task, info.key, info.size, instant(info.modified), *sides])

    for chunk in chunked(row(task, info) for task, info in images.items()):
        *_, result = database.batch(
            [
                note_change_of_items(),
                *mark_stale_of(
                    """SELECT items.feed_id FROM json_each(?) AS j
                    JOIN image_tasks AS t ON t.id = json_extract(j.value, '$[0]')
                    JOIN items ON items.id = t.item_id WHERE t.status <> 'success'""",
                    [chunk],
                ),
                Statement(
                    """UPDATE image_tasks SET status = 'success', r2_key = json_extract(j.value, '$[1]'),
                bytes = CAST(json_extract(j.value, '$[2]') AS INTEGER),
                updated_at = json_extract(j.value, '$[3]'),
                width = CAST(json_extract(j.value, '$[4]') AS INTEGER),
                height = CAST(json_extract(j.value, '$[5]') AS INTEGER),
                last_error = NULL, last_error_kind = NULL, next_attempt_at = NULL
                FROM json_each(?) AS j
                WHERE image_tasks.id = json_extract(j.value, '$[0]') AND status <> 'success'
                  AND lease_token IS NULL RETURNING image_tasks.id""",
                    [chunk],
                    name="adopt images",
                ),
            ]
        )
        adopted += len(result.rows)
    return adopted


# Statements that give users back what their backups hold; all may be repeated.
# A user is marked until all is back (storage.accounts.user_rows).

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
    ids = [one.feed_id for one in subscriptions]
    return [*statements, *follow_subscriptions(ids, head.id), *recount(ids, at=at)]


# All items up to the last visit that the backup knows count as read, or none; the marks follow.
_SUBSCRIBE = f"""INSERT INTO subscriptions
    (user_id, feed_id, title, folder, position, wished_interval, read_up_to, added_at, last_read_at, origin,
    full_text_after, leads)
  SELECT ?, feeds.id, {FIELD.format("title")}, {FIELD.format("folder")},
    {NUMBER_FIELD.format("position")}, {NUMBER_FIELD.format("wished_interval")},
    CASE WHEN {NUMBER_FIELD.format("rest_is_read")} = 1 THEN coalesce((
      SELECT max(i.arrived) FROM items AS i INDEXED BY items_age
      WHERE i.feed_id = feeds.id AND i.created_at <= {FIELD.format("known_until")}), 0) ELSE 0 END,
    {FIELD.format("added_at")}, {FIELD.format("last_read_at")}, {FIELD.format("origin")},
    CASE WHEN {NUMBER_FIELD.format("full_text")} = 1 THEN coalesce((
      SELECT max(i.arrived) FROM items AS i WHERE i.feed_id = feeds.id), 0) END,
    {NUMBER_FIELD.format("leads")}
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
