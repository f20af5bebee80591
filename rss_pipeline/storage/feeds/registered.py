"""The feeds table as the registry writes it.

`registry_changes` is a pure decision; only `apply` and `place` write. Feeds by id are in feeds.py, the end of
a feed in forget.py.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.failure import NETWORK_KINDS
from rss_pipeline.collector.models.feed import EXAMPLE_URLS, FeedSpec
from rss_pipeline.collector.models.shard import bucket_of
from rss_pipeline.errors import RegistryError
from rss_pipeline.features import FEED_KEYS
from rss_pipeline.storage.database import Database, Row, Statement
from rss_pipeline.storage.feeds.claimable import SUSPECT, UNLEASED
from rss_pipeline.storage.feeds.feed_row import NUMBER_COLUMNS
from rss_pipeline.storage.feeds.predicates import WITHOUT_DOCUMENT
from rss_pipeline.storage.feeds.stored_holds import leave_address, release_listed
from rss_pipeline.storage.feeds.subscribed import NewFeed, move_subscriptions, take_out
from rss_pipeline.storage.sql import FIELD, NUMBER_FIELD, chunked, compact, number, seconds
from rss_pipeline.storage.stale import mark_stale

_MANY = 3
"""Registries of so many feeds are protected against losing more than half at once."""

_SPECS_BYTES = 600_000
"""Size of the feeds of one batch: its statements have them five times."""

_REGISTRY_COLUMNS = ", ".join(
    (
        "id, url, host, registered, listed, shared, enabled, watched, registered_title, folder, interval",
        "item_key, images, keep_days, max_size, allow_private, private_hosts, needs_access",
        *FEED_KEYS,
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryChanges:
    """The changes that a registry makes to the feeds table; no id is in two of its tuples."""

    added: tuple[FeedSpec, ...] = ()
    updated: tuple[FeedSpec, ...] = ()
    unregistered: tuple[str, ...] = ()
    """No longer listed; those that users subscribe to stay scheduled."""
    registered_before: int = 0
    """Number of feeds that were listed."""
    examples_before: int = 0
    """The number of these that came with the program."""
    examples_unregistered: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.added or self.updated or self.unregistered)

    @property
    def is_suspicious(self) -> bool:
        """More than half of three feeds or more would go: the wrong file, or the wrong database. To replace
        the examples is neither: then more than half of the other feeds have to go, too."""
        gone, own = len(self.unregistered), self.registered_before - self.examples_before
        return (
            self.registered_before >= _MANY
            and 2 * gone > self.registered_before
            and 2 * (gone - self.examples_unregistered) > own
        )


def registry_changes(specs: Sequence[FeedSpec], rows: Iterable[Row], *, path: str) -> RegistryChanges:
    """Compare a registry with the rows of `registry_rows`.

    Raises:
        RegistryError: a URL of the file is already stored under another id, or the id that is made from it is
            that of a feed that has another URL now.
    """
    known = {row["id"]: row for row in rows}
    ids = {spec.id for spec in specs}
    moved = {spec.id for spec in specs if spec.id in known and known[spec.id]["url"] != spec.url}
    by_url = {row["url"]: row for row in known.values()}
    clashes = [
        _clash(spec.url, by_url[spec.url])
        for spec in specs
        if spec.url in by_url
        and by_url[spec.url]["id"] != spec.id
        and not (spec.id not in known and by_url[spec.url]["id"] in moved)
    ]
    clashes += [
        _taken_id(spec, known[spec.id]["url"])
        for spec in specs
        if spec.id in moved and not spec.has_own_id and _is_elsewhere(spec, known[spec.id])
    ]
    if clashes:
        raise RegistryError(path, clashes)
    listed = [row for row in known.values() if row["listed"]]
    examples = {row["id"] for row in listed if row["url"] in EXAMPLE_URLS}
    unregistered = tuple(sorted(row["id"] for row in listed if row["id"] not in ids))
    return RegistryChanges(
        added=tuple(spec for spec in specs if spec.id not in known),
        updated=tuple(
            spec for spec in specs if spec.id in known and _wanted_row(spec) != _stored_row(known[spec.id])
        ),
        unregistered=unregistered,
        registered_before=len(listed),
        examples_before=len(examples),
        examples_unregistered=len(examples.intersection(unregistered)),
    )


def _clash(url: str, row: Row) -> str:
    id = row["id"]
    is_subscribed = row["registered"] and not row["listed"]
    other = (
        "; a user of the reader subscribes to it"
        if is_subscribed
        else f", or `rss-pipeline forget {id}` first"
    )
    return f"{url} is already stored as feed {id}: give it `id: {id}` to go on with its history{other}"


def _is_elsewhere(spec: FeedSpec, row: Row) -> bool:
    """True for a feed of which the address was changed: not one that is forgotten, nor one whose URL another
    feed had when it was restored (storage.backups.restore)."""
    return not row["forgotten"] and row["url"] != f"{spec.url}#{spec.id}"


def _taken_id(spec: FeedSpec, url: str) -> str:
    return (
        f"{spec.url} was the address of feed {spec.id}, which has {url} now: write `id: {spec.id}` to change"
        " the address of that feed back, or another `id` to collect this address as a feed of its own"
    )


REGISTRY_ROWS = Statement(
    f"""SELECT {_REGISTRY_COLUMNS}, forgotten, unused_since IS NOT NULL AS unused,
    {SUSPECT} AND {UNLEASED} AS free_suspect,
    {WITHOUT_DOCUMENT} AS undocumented, bucket IS NULL AS unplaced
    FROM feeds""",
    [None],
    name="read registry",
)
"""Every feed with its entry in the last registry, and the flags free_suspect, undocumented, unplaced,
forgotten and unused.

A feed is a free suspect if its last claim never ended in a close, or its document crashed the parser, and no
run visits it, undocumented if no document of it is known, and unplaced if its host's bucket is
not written yet. They are read here, for a query of their own would be one more request in every poll.
"""


def registry_rows(database: Database) -> list[Row]:
    """The rows of REGISTRY_ROWS."""
    return database.batch([REGISTRY_ROWS])[0].rows


def place(database: Database, rows: Sequence[Row]) -> int:
    """Write the buckets of feeds of `registry_rows` that have none, which are from an older version.

    At most 20,000, the rest at the next sync; return their number.
    """
    unplaced = [row for row in rows if row["unplaced"]][:_PLACED_AT_ONCE]
    given = (compact([row["id"], row["host"], bucket_of(row["host"])]) for row in unplaced)
    for chunk in chunked(given):
        database.query(_PLACE, [chunk], name="place feeds")
    return len(unplaced)


_PLACED_AT_ONCE = 20_000
_PLACE = f"""UPDATE feeds SET bucket = {number("json_extract(v.value, '$[2]')")} FROM json_each(?) AS v
  WHERE feeds.id = json_extract(v.value, '$[0]') AND feeds.host = json_extract(v.value, '$[1]')
    AND bucket IS NULL"""


def apply(
    database: Database,
    changes: RegistryChanges,
    *,
    now: datetime,
    closed: Mapping[str, NewFeed] | None = None,
) -> tuple[str, ...]:
    """Write a registry's changes. New feeds and those that came back are due at `now`; topics that show a
    changed feed are to be published again.

    `closed` has, by id, the public forms of feeds that users may not subscribe to from now on: whoever does,
    goes on with those. Return the ids of feeds that are no longer listed and stay scheduled, because users
    subscribe to them.
    """
    closed = closed or {}
    specs = [
        {
            **_wanted_row(spec),
            "host": spec.host,
            "bucket": bucket_of(spec.host),
            "now": instant(now),
        }
        # An address that a feed of these leaves may be that of a new one.
        for spec in (*changes.updated, *changes.added)
    ]
    changed = {spec.id: spec for spec in (*changes.updated, *changes.added)}
    registering = [
        key.register.load()
        for name, key in FEED_KEYS.items()
        if changes.updated or any(name in spec.feature_keys for spec in changes.added)
    ]
    updated = [compact([spec.id, spec.url]) for spec in changes.updated]
    batches = [leave_address(_MOVED_AWAY, [chunk]) for chunk in chunked(updated)]
    for chunk in chunked(map(compact, specs), most=_SPECS_BYTES):
        ids = [spec["id"] for spec in json.loads(chunk)]
        batches.append(
            [
                *mark_stale(compact(ids)),
                *release_listed(compact(ids), now=now),
                Statement(_UPSERT, [chunk], name="write registry"),
                *(each for of in registering for each in of([changed[id] for id in ids])),
                *_moves(closed, ids, now=now),
            ]
        )
    kept: list[str] = []
    for batch in batches:
        database.batch(batch)
    for chunk in chunked(compact(id) for id in changes.unregistered):
        ids = json.loads(chunk)
        out = [*take_out(chunk, now=now), *_moves(closed, ids, now=now)]
        still = Statement(
            "SELECT id FROM feeds WHERE registered = 1 AND id IN (SELECT value FROM json_each(?))",
            [chunk],
            name="find subscribed feeds",
        )
        kept += (row["id"] for row in database.batch([*out, still])[-1].rows)
    return tuple(sorted(kept))


_MAY_END = {
    "allow_networks": ("blocked_address",),
    "allow_ports": ("blocked_address",),
    "max_feed_mb": ("too_large",),
    "ca_file": ("tls",),
    "proxy": (*NETWORK_KINDS, "tls"),
}
"""Settings, and the kinds of the failures that another value may end."""
_ACCESSES = "accesses"
"""All headers and passwords: other ones may end every failure of the feeds that have some."""

SETTINGS_BEFORE = Statement(
    "SELECT name, value FROM installation WHERE name IN (SELECT value FROM json_each(?))",
    [compact([*_MAY_END, _ACCESSES])],
    name="read settings that end failures",
)
"""Their values at the last sync, for `try_again`."""


def try_again(
    database: Database, before: Sequence[Row], settings: Mapping[str, str], *, now: datetime
) -> None:
    """Let feeds be due that failed before these settings had these values. `before` are the rows of
    SETTINGS_BEFORE; nothing is written where all values are the same."""
    known = {row["name"]: row["value"] for row in before}
    changed = [[name, value] for name, value in settings.items() if known.get(name, "") != value]
    if not changed:
        return
    names = {name for name, _ in changed}
    kinds = sorted({kind for name in names - {_ACCESSES} for kind in _MAY_END[name]})
    database.batch(
        [
            Statement(
                f"""INSERT INTO installation (name, value)
                SELECT {FIELD.format("name")}, {FIELD.format("value")} FROM json_each(?) AS v WHERE true
                ON CONFLICT (name) DO UPDATE SET value = excluded.value""",
                [compact([dict(zip(("name", "value"), each, strict=True)) for each in changed])],
                name="note settings that end failures",
            ),
            Statement(
                """UPDATE feeds SET next_fetch_at = min(next_fetch_at, ?)
                WHERE registered = 1 AND (last_error_kind IN (SELECT value FROM json_each(?))
                  OR (needs_access = ? AND consecutive_failures > 0))""",
                [instant(now), compact(kinds), 1 if _ACCESSES in names else None],
                name="visit feeds again that settings may open",
            ),
        ]
    )


def _moves(closed: Mapping[str, NewFeed], ids: Iterable[str], *, now: datetime) -> list[Statement]:
    """In the batch that closes a feed: no user reads what its headers or its private host give."""
    return move_subscriptions({id: closed[id] for id in ids if id in closed}, now=now)


_MOVED_AWAY = """SELECT feeds.id FROM json_each(?) AS v JOIN feeds ON feeds.id = json_extract(v.value, '$[0]')
  WHERE feeds.url <> json_extract(v.value, '$[1]')"""
_NUMBERS = NUMBER_COLUMNS | {"registered", "listed", "shared", "enabled", "watched"}
_FIELDS = ", ".join(
    (NUMBER_FIELD if name in _NUMBERS else FIELD).format(name)
    for name in (*_REGISTRY_COLUMNS.split(", "), "registered_title", "now", "now")
)
OF_OLD_ADDRESS = {
    "max_age": "NULL",
    "network": "NULL",
    "host_answered": "0",
    "cuts": "0",
    "schedule_kind": "NULL",
    "consecutive_failures": "0",
    "failing_since": "NULL",
    "last_error_kind": "NULL",
    "last_error": "NULL",
    "outage_pauses": "0",
    # What a visit that is under way finds at the old address says nothing of the new one: it is not closed.
    "backup_unsure": "CASE WHEN feeds.lease_token IS NULL THEN feeds.backup_unsure ELSE 1 END",
    "unclosed_claims": "CASE WHEN feeds.lease_token IS NULL THEN feeds.unclosed_claims ELSE 0 END",
    "lease_token": "NULL",
}
"""Columns of a feed that got another address, and their new values: nothing that was learned at the old one
holds for it. Its items and the hash of its last document stay, and its validators, which only go to the URL
that gave them."""

# An adopted address belongs to the old URL, and is requested without headers that the feed has got since.
_KEPT = "(feeds.url = excluded.url AND feeds.needs_access >= excluded.needs_access)"
_IS_DUE_AT_ONCE = """(feeds.registered = 0 OR feeds.enabled < excluded.enabled OR feeds.url <> excluded.url
  OR feeds.needs_access < excluded.needs_access
  OR (feeds.last_error_kind = 'too_large' AND feeds.max_size IS NOT excluded.max_size)
  OR (feeds.last_error_kind = 'blocked_address' AND (feeds.allow_private < excluded.allow_private
    OR feeds.private_hosts IS NOT excluded.private_hosts)))"""
_HAS_OTHER_INTERVAL = """(feeds.interval IS NOT excluded.interval AND excluded.interval IS NOT NULL
  AND feeds.consecutive_failures = 0)"""
_BY_INTERVAL = """max(coalesce(feeds.not_before, ''),
  strftime('%Y-%m-%dT%H:%M:%SZ', excluded.next_fetch_at, '+' || excluded.interval || ' seconds'))"""
_SOONER = "sooner than planned: interval set by the operator"
_UPSERT = f"""INSERT INTO feeds ({_REGISTRY_COLUMNS}, title, next_fetch_at, created_at, bucket, link)
  SELECT {_FIELDS}, {NUMBER_FIELD.format("bucket")},
    CASE WHEN {NUMBER_FIELD.format("watched")} = 0 THEN {
    FIELD.format("url")
} END FROM json_each(?) AS v WHERE true
  ON CONFLICT (id) DO UPDATE SET
    url = excluded.url, registered = 1, listed = 1, shared = excluded.shared, unused_since = NULL,
    host = CASE WHEN {_KEPT} AND feeds.fetch_url IS NOT NULL THEN feeds.host ELSE excluded.host END,
    bucket = CASE WHEN {_KEPT} THEN coalesce(feeds.bucket, excluded.bucket) ELSE excluded.bucket END,
    enabled = excluded.enabled, watched = excluded.watched, link = coalesce(excluded.link, feeds.link),
    registered_title = excluded.registered_title, title = coalesce(excluded.registered_title, feeds.title),
    folder = excluded.folder,
    interval = excluded.interval, item_key = excluded.item_key, images = excluded.images,
    keep_days = excluded.keep_days, keep_unknown = 0, max_size = excluded.max_size,
    allow_private = excluded.allow_private,
    private_hosts = excluded.private_hosts, needs_access = excluded.needs_access,
    {"".join(f"{name} = excluded.{name}," for name in FEED_KEYS)}
    fetch_url = CASE WHEN {_KEPT} THEN feeds.fetch_url END,
    move_url = CASE WHEN {_KEPT} THEN feeds.move_url END,
    move_since = CASE WHEN {_KEPT} THEN feeds.move_since END,
    answered_url = CASE WHEN {_KEPT} THEN feeds.answered_url END,
    items_listed = CASE WHEN feeds.url = excluded.url AND feeds.item_key = excluded.item_key
      THEN feeds.items_listed END,
    images_pending = CASE WHEN feeds.images < excluded.images THEN 1 ELSE feeds.images_pending END,
    next_fetch_at = CASE
      WHEN {_IS_DUE_AT_ONCE} THEN excluded.next_fetch_at
      WHEN {_HAS_OTHER_INTERVAL} THEN min(feeds.next_fetch_at, {_BY_INTERVAL})
      ELSE feeds.next_fetch_at END,
    schedule_reason = CASE
      WHEN NOT {_IS_DUE_AT_ONCE} AND {_HAS_OTHER_INTERVAL} AND {_BY_INTERVAL} < feeds.next_fetch_at
      THEN '{_SOONER}' ELSE feeds.schedule_reason END,
    not_before = CASE WHEN feeds.url = excluded.url THEN feeds.not_before END,
    {
    ", ".join(
        f"{column} = CASE WHEN feeds.url = excluded.url THEN feeds.{column} ELSE {value} END"
        for column, value in OF_OLD_ADDRESS.items()
    )
}"""


def _wanted_row(spec: FeedSpec) -> Row:
    return {
        "id": spec.id,
        "url": spec.url,
        "registered": 1,
        "listed": 1,
        "shared": int(spec.shared),
        "enabled": int(spec.enabled),
        "watched": int(spec.watched),
        "registered_title": spec.title,
        "folder": spec.folder,
        "interval": seconds(spec.interval),
        "item_key": spec.key,
        "images": int(spec.images),
        "keep_days": spec.keep_days,
        "max_size": spec.max_size,
        "allow_private": int(spec.allow_private),
        # NULL for none, as in the rows of older versions: these are not written anew.
        "private_hosts": compact(list(spec.private_hosts)) if spec.private_hosts else None,
        "needs_access": int(not spec.access.is_open),
        **{name: spec.feature_keys.get(name) for name in FEED_KEYS},
    }


def _stored_row(row: Row) -> Row:
    return {
        name: int(value) if isinstance(value, float) else value
        for name, value in row.items()
        if name not in {"free_suspect", "undocumented", "unplaced", "forgotten", "unused", "host"}
    }
