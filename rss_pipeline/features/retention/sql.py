"""Retention: the items past their age, their rows and objects, and the statements that delete them.

An item's age counts from the later of two instants: when its document was fetched (`created_at`, by the clock
of the machine that fetched it) and when it came in (`arrived`, by the database's clock). A clock that was
slow for a day ages nothing, and what a replay brings in is kept its whole time. An item that a user starred
has no age.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.collector.models.identity import MAX_TITLE_CHARACTERS
from rss_pipeline.errors import DatabaseFull
from rss_pipeline.storage.accounts.user_rows import note_change_of_items
from rss_pipeline.storage.database import Database, Row, Statement, Value
from rss_pipeline.storage.feeds.predicates import POLLED
from rss_pipeline.storage.images.places import ImagePlace, StoredImage, stored_images
from rss_pipeline.storage.kept_html import drop_where
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.sql import DB_NOW, LIVE_TOKENS_NOW, compact
from rss_pipeline.storage.stale import mark_stale, mark_stale_of

SLICE_ITEMS = 500
SLICE_TASKS = 4_000
"""With these a slice is a few hundred KB in memory and one parameter below 1 MB."""

# Bound: now, and the days of feeds that name none. Feeds that left the registry keep theirs.
_BEFORE = "?, '-' || coalesce(feeds.keep_days, CAST(? AS INTEGER)) || ' days'"
_ARRIVED_BEFORE = f"CAST(strftime('%s', {_BEFORE}) AS INTEGER) * 1000000"


def _is_due(items: str) -> str:
    """The condition that an item of `feeds` is past its time and has no star; binds now and the days twice.
    All of it is in the indexes items_age and item_states_kept."""
    return f"""{items}.created_at < strftime('%Y-%m-%dT%H:%M:%SZ', {_BEFORE})
      AND ({items}.arrived IS NULL OR {items}.arrived < {_ARRIVED_BEFORE}) AND feeds.keep_unknown = 0
      AND {_without_star(items)}"""


def _without_star(items: str) -> str:
    return f"""NOT EXISTS (SELECT 1 FROM item_states AS star INDEXED BY item_states_kept
      WHERE star.feed_id = {items}.feed_id AND star.arrived = {items}.arrived
        AND star.starred_at IS NOT NULL)"""


def _due_params(now: datetime, keep_days: int) -> list[Value]:
    return [instant(now), keep_days, instant(now), keep_days]


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkPlace:
    """The position of a walk over the due items; items before it are not read again."""

    feed_id: str = ""
    created_at: str = ""
    row: int = 0


START = WalkPlace()


@dataclass(frozen=True, slots=True, kw_only=True)
class DueImage:
    """An image task of an item that is due. `size` is in bytes; `is_live`: a running download holds it."""

    id: str
    item_id: str
    position: int
    r2_key: str | None
    size: int
    lease_token: str | None
    is_live: bool

    @property
    def was_interrupted(self) -> bool:
        """A killed run may have stored its object without recording it."""
        return self.lease_token is not None and not self.is_live

    @property
    def as_known(self) -> str:
        """The values that must not have changed when the row is deleted."""
        return f"{self.id}|{self.r2_key or ''}|{self.lease_token or ''}"


_AS_KNOWN = "t.id || '|' || coalesce(t.r2_key, '') || '|' || coalesce(t.lease_token, '')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Some due items (id to feed id), all their tasks, or the next of a single item's very many."""

    items: Mapping[str, str]
    tasks: Sequence[DueImage]
    versions: Mapping[str, int]
    """Item id to how many earlier versions it has, where it has any."""
    is_part: bool
    """More tasks of the one item here follow; its row must stay until they are gone."""


def count_due(database: Database, now: datetime, *, keep_days: int) -> int:
    """The number of items past their age."""
    rows = database.query(
        f"""SELECT count(*) AS n FROM feeds CROSS JOIN items
        ON items.feed_id = feeds.id AND {_is_due("items")}""",
        _due_params(now, keep_days),
        name="count items past their age",
    ).rows
    return int(rows[0]["n"])


def count_others(database: Database, feeds: Sequence[str], now: datetime, *, keep_days: int) -> int:
    """The number of items of these feeds that are not past their age."""
    if not feeds:
        return 0
    rows = database.query(
        f"""SELECT count(*) AS n FROM feeds CROSS JOIN items ON items.feed_id = feeds.id
        WHERE feeds.id IN (SELECT value FROM json_each(?)) AND NOT ({_is_due("items")})""",
        [compact(list(feeds)), *_due_params(now, keep_days)],
        name="count items of unused feeds",
    ).rows
    return int(rows[0]["n"])


def last_visit(database: Database) -> datetime | None:
    """The end of the last visit of any feed, answered or not."""
    rows = database.query("SELECT max(last_visited_at) AS at FROM feeds", name="read last visit").rows
    return from_instant(rows[0]["at"])


def due_slices(
    database: Database, now: datetime, *, keep_days: int, most: int | None = None
) -> Iterator[Slice]:
    """Every item past its time at `now`, oldest of each feed first, in slices that fit into memory, of at
    most `most` items.

    A slice is read when it is requested: items that the last slice left behind are not met again.
    """
    after = START
    while rows := database.query(
        due_sql(SLICE_ITEMS if most is None else most),
        due_params(after, now, keep_days),
        name="find items past their age",
    ).rows:
        last = rows[-1]
        after = WalkPlace(feed_id=last["feed_id"], created_at=last["created_at"], row=int(last["place"]))
        yield from _with_tasks(database, {row["id"]: row["feed_id"] for row in rows})


def due_sql(most: int = SLICE_ITEMS) -> str:
    """A query for at most so many due items behind a place: of its feed first, then of the feeds after it,
    each feed through its index.

    A feed's own slice is cut before it is sorted: else the first look at a feed would read all it has due.
    """
    found = "items.id, items.feed_id, items.created_at, items.rowid AS place"
    oldest = f"ORDER BY created_at, rowid LIMIT {most}"
    due = f"SELECT rowid FROM items AS i WHERE i.feed_id = feeds.id AND {_is_due('i')}"
    order = f"ORDER BY feeds.id, items.created_at, items.rowid LIMIT {most}"
    return f"""SELECT * FROM (
        SELECT {found} FROM feeds CROSS JOIN items
        ON items.rowid IN ({due} AND (i.created_at, i.rowid) > (?, ?) {oldest})
        WHERE feeds.id = ? {order})
      UNION ALL SELECT * FROM (
        SELECT {found} FROM feeds CROSS JOIN items ON items.rowid IN ({due} {oldest})
        WHERE feeds.id > ? {order})
      LIMIT {most}"""


def due_params(after: WalkPlace, now: datetime, keep_days: int) -> list[Value]:
    """The parameters of `due_sql`."""
    cutoff = _due_params(now, keep_days)
    return [*cutoff, after.created_at, after.row, after.feed_id, *cutoff, after.feed_id]


def _with_tasks(database: Database, items: Mapping[str, str]) -> Iterator[Slice]:
    ids = list(items)
    tasks, versions = _tasks(database, ids, after="")
    if len(tasks) <= SLICE_TASKS:
        yield Slice(items=items, tasks=tasks, versions=versions, is_part=False)
    elif len(ids) > 1:
        for half in (ids[: len(ids) // 2], ids[len(ids) // 2 :]):
            yield from _with_tasks(database, {id: items[id] for id in half})
    else:
        while len(tasks) > SLICE_TASKS:
            part = tasks[:SLICE_TASKS]
            yield Slice(items=items, tasks=part, versions={}, is_part=True)
            tasks, versions = _tasks(database, ids, after=part[-1].id)
        yield Slice(items=items, tasks=tasks, versions=versions, is_part=False)


def _tasks(database: Database, ids: Sequence[str], *, after: str) -> tuple[list[DueImage], dict[str, int]]:
    """Tasks of these items with ids above `after`, one more than a slice takes; and the items' versions."""
    tasks, versions = database.batch(
        [
            Statement(
                f"""SELECT id, item_id, position, r2_key, coalesce(bytes, 0) AS size, lease_token,
                coalesce(CAST(lease_token IN ({LIVE_TOKENS_NOW}) AS INTEGER), 0) AS is_live FROM image_tasks
                WHERE item_id IN (SELECT value FROM json_each(?)) AND id > ?
                ORDER BY id LIMIT {SLICE_TASKS + 1}""",
                [compact(list(ids)), after],
                name="read tasks of old items",
            ),
            Statement(
                """SELECT item_id, count(*) AS n FROM item_versions
                WHERE item_id IN (SELECT value FROM json_each(?)) GROUP BY item_id""",
                [compact(list(ids))],
                name="count versions of old items",
            ),
        ]
    )
    return list(map(_task, tasks.rows)), {row["item_id"]: int(row["n"]) for row in versions.rows}


def _task(row: Row) -> DueImage:
    return DueImage(
        id=row["id"],
        item_id=row["item_id"],
        position=int(row["position"]),
        r2_key=row["r2_key"],
        size=int(row["size"]),
        lease_token=row["lease_token"],
        is_live=bool(row["is_live"]),
    )


def unrecorded_images(
    database: Database, store: ObjectStore, tasks: Sequence[DueImage]
) -> dict[str, list[StoredImage]]:
    """Images that interrupted downloads stored without recording them, by task id; seldom any."""
    interrupted = [task for task in tasks if task.was_interrupted]
    if not interrupted:
        return {}
    items = {
        row["id"]: row
        for row in database.query(
            "SELECT id, feed_id, guid FROM items WHERE id IN (SELECT value FROM json_each(?))",
            [compact(sorted({task.item_id for task in interrupted}))],
            name="read guids of items",
        ).rows
    }
    places = [
        ImagePlace(
            task_id=task.id,
            feed_id=item["feed_id"],
            guid=item["guid"],
            position=task.position,
            is_private=True,
        )
        for task in interrupted
        if (item := items.get(task.item_id)) is not None
    ]
    return {place.task_id: list(stored_images(store, place)) for place in places}


def retire(
    database: Database, items: Sequence[str], tasks: Sequence[DueImage], *, db_now: datetime | None = None
) -> tuple[str, ...]:
    """Delete these items with their tasks and versions, tombstones in their place; ids of those that went.

    Tombstones have the database's clock, so that what a wrong clock retired is found by the right time;
    `db_now` is for tests. `tasks` are all their tasks as they were read; their objects are deleted already.
    An item stays, with all its tasks, where meanwhile a task was added to it, taken by a run, or got another
    key: an object may be stored under it. One that was starred meanwhile stays without its tasks.
    """
    if not items:
        return ()
    ids = compact(list(items))
    *_, gone = database.batch(
        [
            _delete_tasks(ids, tasks),
            *mark_stale_of(f"SELECT feed_id FROM items WHERE {_BARE}", [ids]),
            Statement(
                f"""INSERT INTO expired_items (feed_id, guid, expired_at, link, title, pub_date)
                SELECT feed_id, guid, {DB_NOW}, link, substr(title, 1, {MAX_TITLE_CHARACTERS}),
                  CASE pub_date_source WHEN 'feed' THEN pub_date END
                FROM items WHERE {_BARE}
                ON CONFLICT (feed_id, guid) DO UPDATE SET {_TOMBSTONE_ANEW}""",
                [None if db_now is None else instant(db_now), ids],
                name="write tombstones",
            ),
            *_delete_items(ids),
        ]
    )
    return tuple(row["id"] for row in gone.rows)


def retire_where_full(
    database: Database,
    items: Sequence[str],
    tasks: Sequence[DueImage],
    *,
    with_tombstones: bool,
    db_now: datetime | None = None,
) -> tuple[str, ...]:
    """The same as `retire`, in a database without room for a row: tombstones are written into the room that
    the items of the same batch leave, or, for items that their feed does not list any more, not at all.

    Raises:
        DatabaseFull: the items left too little room for their tombstones; nothing was deleted.
    """
    if not items:
        return ()
    ids = compact(list(items))
    left = database.query(
        f"""SELECT id, feed_id, guid, link, substr(title, 1, {MAX_TITLE_CHARACTERS}) AS title,
          CASE pub_date_source WHEN 'feed' THEN pub_date END AS pub_date
        FROM items WHERE id IN (SELECT value FROM json_each(?))""",
        [ids],
        name="read what tombstones keep",
    ).rows
    columns = ("id", "feed_id", "guid", "link", "title", "pub_date")
    rows = compact([[row[name] for name in columns] for row in left])
    value = {name: f"json_extract(value, '$[{place}]')" for place, name in enumerate(columns)}
    write = Statement(
        f"""INSERT INTO expired_items (feed_id, guid, expired_at, link, title, pub_date)
        SELECT {value["feed_id"]}, {value["guid"]}, {DB_NOW}, {value["link"]}, {value["title"]},
          {value["pub_date"]}
        FROM json_each(?) WHERE {value["id"]} NOT IN (SELECT items.id FROM items
            WHERE items.id IN (SELECT j.value FROM json_each(?) AS j))
          AND {value["feed_id"]} IN (SELECT feeds.id FROM feeds)
        ON CONFLICT (feed_id, guid) DO UPDATE SET {_TOMBSTONE_ANEW}""",
        [None if db_now is None else instant(db_now), rows, ids],
        name="write tombstones",
    )
    _, _, _, _, gone, *_ = database.batch(
        [_delete_tasks(ids, tasks), *_delete_items(ids), *([write] if with_tombstones else [])]
    )
    # A topic that still shows them for a while is no reason to keep them.
    if marks := mark_stale(compact(sorted({row["feed_id"] for row in left}))):
        with suppress(DatabaseFull):
            database.batch(marks)
    return tuple(row["id"] for row in gone.rows)


def _delete_tasks(ids: str, tasks: Sequence[DueImage]) -> Statement:
    return Statement(
        f"""DELETE FROM image_tasks WHERE item_id IN (SELECT value FROM json_each(?))
        AND item_id NOT IN (SELECT t.item_id FROM image_tasks AS t
          WHERE t.item_id IN (SELECT value FROM json_each(?))
          AND (t.lease_token IN ({LIVE_TOKENS_NOW})
            OR {_AS_KNOWN} NOT IN (SELECT value FROM json_each(?))))""",
        [ids, ids, compact([task.as_known for task in tasks])],
        name="delete tasks of old items",
    )


def _delete_items(ids: str) -> list[Statement]:
    """Statements for the items without tasks; the last result has their ids."""
    return [
        Statement(
            f"DELETE FROM item_versions WHERE item_id IN (SELECT id FROM items WHERE {_BARE})",
            [ids],
            name="delete versions of old items",
        ),
        drop_where(_BARE, [ids]),
        note_change_of_items(),
        Statement(f"DELETE FROM items WHERE {_BARE} RETURNING id", [ids], name="delete old items"),
    ]


_TOMBSTONE_ANEW = """expired_at = excluded.expired_at, unlisted_since = NULL, unlisted_documents = 0,
  link = excluded.link, title = excluded.title, pub_date = excluded.pub_date"""
_BARE = f"""items.id IN (SELECT value FROM json_each(?))
  AND NOT EXISTS (SELECT 1 FROM image_tasks AS t WHERE t.item_id = items.id) AND {_without_star("items")}"""


def drop_tasks(database: Database, tasks: Sequence[DueImage]) -> None:
    """Delete tasks without objects while their items stay. Tasks that changed meanwhile stay too."""
    if not tasks:
        return
    params = [compact([task.id for task in tasks]), compact([task.as_known for task in tasks])]
    gone = f"""t.id IN (SELECT value FROM json_each(?))
      AND (t.lease_token IS NULL OR t.lease_token NOT IN ({LIVE_TOKENS_NOW}))
      AND {_AS_KNOWN} IN (SELECT value FROM json_each(?))"""
    shown = f"""SELECT items.feed_id FROM image_tasks AS t CROSS JOIN items ON items.id = t.item_id
      WHERE t.r2_key IS NOT NULL AND {gone}"""
    database.batch(
        [
            *mark_stale_of(shown, params),
            Statement(
                f"DELETE FROM image_tasks WHERE id IN (SELECT t.id FROM image_tasks AS t WHERE {gone})",
                params,
                name="delete tasks without objects",
            ),
            note_change_of_items(),
        ]
    )


# The extent of cleans: the numbers of items and of those that cleans removed, the days with visits.
# The removals are a row of `installation`, which is copied with the rest: a copy is cleaned like its source.

KEPT = timedelta(days=28)
_FEEDS_LOOKED_AT = 50
"""The oldest ones: a feed that came after a jump of the clock shows no visit before it."""
_NAME = "cleans"


@dataclass(frozen=True, slots=True, kw_only=True)
class Removals:
    """The cleans of the last weeks that removed items."""

    cleans: Sequence[tuple[datetime, int]] = ()
    """The time of each, by the clock of its machine, and the number of items."""
    confirmed: datetime | None = None
    """The last one that a person confirmed; what was removed before it counts no more."""

    def since(self, at: datetime) -> int:
        """The items that were removed since then."""
        return sum(number for when, number in self.cleans if when >= at)

    def and_now(self, removed: int, now: datetime) -> "Removals":
        """These and what was removed now. The times of a clock that was ahead become the present."""
        cleans = [(min(when, now), number) for when, number in self.cleans if when >= now - KEPT]
        return Removals(
            cleans=[*cleans, (now, removed)] if removed else cleans,
            confirmed=None if self.confirmed is None else min(self.confirmed, now),
        )


def read_removals(database: Database) -> Removals:
    """The removals that are written down."""
    rows = database.query(
        "SELECT value FROM installation WHERE name = ?", [_NAME], name="read what cleans removed"
    ).rows
    if not rows:
        return Removals()
    kept = json.loads(rows[0]["value"])
    return Removals(
        cleans=[(datetime.fromisoformat(when), int(number)) for when, number in kept["cleans"]],
        confirmed=from_instant(kept["confirmed"]),
    )


def write_removals(database: Database, removals: Removals) -> None:
    """Write these down in place of what is written."""
    kept = {
        "cleans": [[instant(when), number] for when, number in removals.cleans],
        "confirmed": None if removals.confirmed is None else instant(removals.confirmed),
    }
    database.query(
        """INSERT INTO installation (name, value) VALUES (?, ?)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value""",
        [_NAME, compact(kept)],
        name="write what cleans removed",
    )


def count_items(database: Database, *, most: int, before: datetime | None = None) -> int:
    """The number of items, or of those that were collected before then; at most `most`, for each is a row
    that is read."""
    where, params = ("", []) if before is None else ("WHERE created_at < ?", [instant(before)])
    bound: list[Value] = [*params, most]
    rows = database.query(
        f"SELECT count(*) AS n FROM (SELECT 1 AS one FROM items {where} LIMIT ?) AS counted",
        bound,
        name="count items",
    ).rows
    return int(rows[0]["n"])


def days_visited(database: Database) -> set[date]:
    """Days on which feeds were visited: all of the last 28, and some before them."""
    rows = database.query(
        f"""SELECT visit_days FROM feeds WHERE {POLLED} AND visit_days IS NOT NULL
        ORDER BY created_at LIMIT {_FEEDS_LOOKED_AT}""",
        name="read days with visits",
    ).rows
    return {date.fromisoformat(day) for row in rows for day, *_ in json.loads(row["visit_days"]).values()}
