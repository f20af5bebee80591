"""The sync of the registry: feeds.yaml into the tables of feeds, and of features.

Reading feeds.yaml is collector.registry's, comparing it storage.feeds' and the features'. Partition keys of
the feeds, and the end of a removal, are orchestration.registry_partitions'.
"""

import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from rss_pipeline.collector.models.feed import Access, FeedSpec
from rss_pipeline.collector.registry.feed_url import free_id, literal, other_form, read_url
from rss_pipeline.collector.registry.load import load_registry
from rss_pipeline.errors import ForgetRefused, InfrastructureError, RegistryError
from rss_pipeline.features import FEATURES
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_objects
from rss_pipeline.storage.backups.backups import list_backups
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.feeds import due, forget, registered
from rss_pipeline.storage.feeds.subscribed import NewFeed
from rss_pipeline.storage.images.places import move_private

logger = logging.getLogger(__name__)

_THREADS = 16
_MOST_MOVED = 2_000
"""Images that one sync moves: some seconds."""


class KeyChanges(Protocol):
    """The changes that the values of a feature's key of feeds.yaml make. As text: a part of a sentence, empty
    without any value."""

    @property
    def is_empty(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySync:
    """The content of a registry and the changes that it made."""

    specs: tuple[FeedSpec, ...]
    changes: registered.RegistryChanges
    of_features: Mapping[str, tuple[Any, ...]]
    """By key of feeds.yaml, such as `topics`, the values of features."""
    changes_of_features: tuple[KeyChanges, ...]
    suspects: tuple[str, ...] = ()
    """Feeds that no run visits and of which the last claim never ended in a close, or the last document
    crashed its parser."""
    removed: tuple[str, ...] = ()
    """Unlisted feeds of which nothing was ever collected: only a marked row and a partition key are left."""
    half_forgotten: tuple[str, ...] = ()
    """Feeds that an earlier sync, a clean or a killed `forget` left so."""
    kept: tuple[str, ...] = ()
    """Feeds that are no longer listed and stay scheduled: users subscribe to them."""
    subscribed: tuple[str, ...] = ()
    """Feeds that are scheduled and not listed, as far as they were known before the sync."""

    @property
    def scheduled(self) -> list[str]:
        """Ids of the feeds that need a partition key."""
        return [*(spec.id for spec in self.specs if spec.watched), *self.subscribed]

    @property
    def forgotten(self) -> tuple[str, ...]:
        """Feeds of which partition key and row are to be deleted."""
        return (*self.half_forgotten, *self.removed)

    @property
    def is_without_changes(self) -> bool:
        """True if the database is as it was."""
        return self.changes.is_empty and all(each.is_empty for each in self.changes_of_features)

    @property
    def accesses(self) -> dict[str, Access]:
        """Feed id to its headers and password, which only the registry has."""
        return {spec.id: spec.access for spec in self.specs if not spec.access.is_open}

    def __str__(self) -> str:
        changes = self.changes
        gone = len(changes.unregistered) - len(self.kept)
        return (
            f"{len(self.specs)} feeds in the registry: {len(changes.added)} new,"
            f" {len(changes.updated)} changed, {gone} no longer scheduled"
            + (f", {len(self.kept)} taken out and kept for their subscribers" if self.kept else "")
            + (f", {len(self.removed)} removed (nothing was collected)" if self.removed else "")
            + "".join(f"; {said}" for each in self.changes_of_features if (said := str(each)))
        )


def sync_registry(
    database: Database,
    settings: Settings,
    *,
    now: datetime,
    yes: bool = False,
    environ: Mapping[str, str] | None = None,
) -> RegistrySync:
    """Read the registry, write what it changes, and begin the removal of unlisted feeds without anything
    collected. Idempotent.

    Raises:
        RegistryError: the file cannot be used, or would unschedule more than half of three feeds or more and
            `yes` is not set; nothing was changed.
    """
    path = settings.feeds_file
    registry = load_registry(path, environ=os.environ if environ is None else environ)
    specs = registry.feeds
    # In one request: a sync is part of every poll.
    keys = [feature.registry_key for feature in FEATURES if feature.registry_key is not None]
    found = database.batch(
        [registered.REGISTRY_ROWS, registered.SETTINGS_BEFORE, *(key.stored.load() for key in keys)]
    )
    known, before, *stored = (result.rows for result in found)
    rows = _without_forgotten(database, known, specs)
    forgotten = tuple(row["id"] for row in rows if row["forgotten"])
    changes = registered.registry_changes(specs, rows, path=str(path))
    if changes.is_suspicious and not yes:
        raise RegistryError(str(path), [unconfirmed(changes)])
    kept: tuple[str, ...] = ()
    if not changes.is_empty:
        kept = registered.apply(database, changes, now=now, closed=_public_forms(changes, rows))
        _hide_images(database, settings, changes, rows)
    registered.place(database, rows)
    registered.try_again(database, before, _that_end_failures(settings, specs), now=now)
    changes_of_features = tuple(
        key.write.load()(database, registry.of_features[key.name], rows_of_key)
        for key, rows_of_key in zip(keys, stored, strict=True)
    )
    return RegistrySync(
        specs=specs,
        changes=changes,
        of_features=registry.of_features,
        changes_of_features=changes_of_features,
        suspects=tuple(row["id"] for row in rows if row["free_suspect"]),
        # A file that lists nothing is emptied, or generated by a program that failed: it removes nothing.
        removed=_remove_empty(database, settings) if specs and _may_be_empty(rows, changes) else (),
        half_forgotten=forgotten,
        kept=kept,
        subscribed=_subscribed(rows, specs),
    )


def unconfirmed(changes: registered.RegistryChanges) -> str:
    """The mistake of a file that would take out too many feeds, unless a person confirms it."""
    return (
        f"{len(changes.unregistered)} of {changes.registered_before} feeds would no longer be"
        " scheduled: is this the right file, and the right database? If it is intended,"
        " confirm it with `rss-pipeline poll --yes`"
    )


def _that_end_failures(settings: Settings, specs: Sequence[FeedSpec]) -> dict[str, str]:
    """The values that the words of a failure advise to change; of secrets a mark that differs with them."""
    accesses = [
        [spec.id, dict(spec.access.headers), spec.access.username, spec.access.password]
        for spec in specs
        if not spec.access.is_open
    ]
    return {
        "proxy": _mark(settings.proxy),
        "accesses": _mark(accesses),
        "allow_networks": " ".join(sorted(map(str, settings.allow_networks))),
        "allow_ports": " ".join(map(str, sorted(settings.allow_ports))),
        "max_feed_mb": str(settings.max_feed_mb or ""),
        "ca_file": str(settings.ca_file or ""),
    }


def _mark(secret: object) -> str:
    """Three digits that nearly always tell one secret from the next, and are too few to find it by, also
    from a list of common passwords; nothing for none."""
    if not secret:
        return ""
    text = json.dumps(secret, sort_keys=True)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:3]


def _public_forms(changes: registered.RegistryChanges, rows: Sequence[Row]) -> dict[str, NewFeed]:
    """By id, the public form of each feed that users may not subscribe to after these changes."""
    urls = {
        spec.id: spec.url
        for spec in (*changes.added, *changes.updated)
        if not (spec.is_public or spec.shared)
    }
    taken_out = frozenset(changes.unregistered)
    urls |= {row["id"]: row["url"] for row in rows if row["id"] in taken_out and _is_private(row)}
    known = {row["id"]: row["url"] for row in rows}
    return {id: _new_feed(other_form(url), known) for id, url in urls.items()}


def _new_feed(url: str, known: Mapping[str, str]) -> NewFeed:
    read = read_url(literal(url), {})
    return NewFeed(id=free_id(read.url, read.host, known), url=read.url, host=read.host)


def _hide_images(
    database: Database, settings: Settings, changes: registered.RegistryChanges, rows: Sequence[Row]
) -> None:
    """Move the images of feeds that became private away from where everybody may read them. What is left,
    after a kill or because there are many, is the next clean's."""
    open_before = {row["id"] for row in rows if not _is_private(row)}
    closed = [spec.id for spec in changes.updated if not spec.is_public and spec.id in open_before]
    if not closed:
        return
    try:
        objects = open_objects(settings)
        if move_private(database, objects, feeds=closed, most=_MOST_MOVED) >= _MOST_MOVED:
            logger.warning("Images of feeds that became private are left: run `rss-pipeline move-images`.")
    except InfrastructureError as error:
        logger.warning("Images of feeds that became private are moved by the next clean: %s", error)


def _is_private(row: Row) -> bool:
    return bool(row["needs_access"] or row["allow_private"] or row["private_hosts"])


def _subscribed(rows: Sequence[Row], specs: Sequence[FeedSpec]) -> tuple[str, ...]:
    """Without the ones that are listed now."""
    listed = {spec.id for spec in specs}
    return tuple(
        row["id"]
        for row in rows
        if row["registered"] and row["watched"] and not row["listed"] and row["id"] not in listed
    )


def _may_be_empty(rows: Sequence[Row], changes: registered.RegistryChanges) -> bool:
    """True if the search for empty unlisted feeds is worth its request."""
    taken_out = frozenset(changes.unregistered)
    return any(
        row["undocumented"]
        and not (row["forgotten"] or row["unused"])
        and (not row["registered"] or row["id"] in taken_out)
        for row in rows
    )


def _remove_empty(database: Database, settings: Settings) -> tuple[str, ...]:
    """Begin the removal of every unlisted feed without items and backups; return their ids.

    The database alone does not know all backups: a run may have been killed right after it wrote one, and
    `forget` leaves those of its feed.
    """
    ids = forget.empty(database)
    if not ids:
        return ()
    objects = open_objects(settings)

    def has_backup(id: str) -> bool:
        return next(iter(list_backups(objects, id)), None) is not None

    try:
        with ThreadPoolExecutor(_THREADS) as threads:
            backed_up = list(threads.map(has_backup, ids))
    except InfrastructureError as error:
        logger.warning("Feeds that are no longer in feeds.yaml are removed by a later sync: %s", error)
        return ()
    found = [id for id, has in zip(ids, backed_up, strict=True) if not has]
    return tuple(forget.begin_removal(database, found))


def _without_forgotten(database: Database, rows: list[Row], specs: Sequence[FeedSpec]) -> list[Row]:
    """The rows without those of feeds that were forgotten half-way and are in feeds.yaml again: such a feed
    begins anew, without validators that would hide its items."""
    wanted = {spec.id for spec in specs}
    begun = [row["id"] for row in rows if row["forgotten"] and row["id"] in wanted]
    forget.end_forget(database, *begun)
    return [row for row in rows if row["id"] not in begun]


def registered_accesses(settings: Settings, environ: Mapping[str, str] | None = None) -> Mapping[str, Access]:
    """Feed id to its headers and password, for use without a request; none where feeds.yaml has mistakes."""
    try:
        specs = load_registry(settings.feeds_file, environ=os.environ if environ is None else environ).feeds
    except RegistryError as error:
        logger.warning("%s\nPasswords and headers of feeds are not known.", error)
        return {}
    return {spec.id: spec.access for spec in specs if not spec.access.is_open}


def check_forgettable(database: Database, feed_id: str, *, now: datetime) -> None:
    """Do nothing if this feed can be forgotten now.

    Raises:
        ForgetRefused: it is still listed or subscribed to, or a run holds it.
    """
    row = due.availability(database, [feed_id], now=now)[feed_id]
    if row["registered"] and not row["listed"]:
        raise ForgetRefused(
            f"a user of the reader subscribes to {feed_id}: it is removed some days after the last one left"
        )
    if row["registered"]:
        raise ForgetRefused(
            f"{feed_id} is still in feeds.yaml and would come back: remove it there, run"
            " `rss-pipeline poll`, then forget it"
        )
    if row["held_token"] is not None:
        raise ForgetRefused(f"{feed_id} is being visited now: try again in a minute")
