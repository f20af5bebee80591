"""The registry into the feeds table and the partition keys.

Reading feeds.yaml is collector.registry's, comparing it storage.feeds'. Keys of feeds that are gone stay, and
so does their history.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import dagster as dg

from rss_pipeline.collector.models import Access, FeedSpec
from rss_pipeline.collector.registry import load_registry
from rss_pipeline.errors import RegistryError
from rss_pipeline.orchestration.lineage import REGISTRY
from rss_pipeline.orchestration.partitions import add_keys, missing_keys
from rss_pipeline.settings import Settings
from rss_pipeline.storage import feeds
from rss_pipeline.storage.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """What a registry held and what it changed."""

    specs: tuple[FeedSpec, ...]
    changes: feeds.RegistryChanges
    keys_added: int
    has_suspects: bool
    """Some feed's last claim never ended in a close."""

    @property
    def accesses(self) -> dict[str, Access]:
        """Feed id to what only the registry knows of it."""
        return {spec.id: spec.access for spec in self.specs if not spec.access.is_open}

    def __str__(self) -> str:
        changes = self.changes
        return (
            f"{len(self.specs)} feeds in the registry: {len(changes.added)} new,"
            f" {len(changes.updated)} changed, {len(changes.unregistered)} no longer scheduled"
        )


def sync_registry(
    database: Database,
    instance: dg.DagsterInstance,
    settings: Settings,
    *,
    now: datetime,
    yes: bool = False,
    environ: Mapping[str, str] | None = None,
) -> Synced:
    """Read the registry and write what it changes: rows first, then partition keys. Idempotent.

    Raises:
        RegistryError: the file cannot be used, or would unschedule more than half of over ten feeds and
            `yes` was not said; nothing was changed.
    """
    path = settings.feeds_file
    specs = load_registry(path, environ=os.environ if environ is None else environ)
    rows = feeds.registry_rows(database)
    changes = feeds.registry_changes(specs, rows, path=str(path))
    if changes.is_suspicious and not yes:
        raise RegistryError(
            str(path),
            [
                f"{len(changes.unregistered)} of {changes.registered_before} feeds would no longer be"
                " scheduled: is this the right file, and the right database? If it is meant, say so with"
                " `rss-pipeline poll --yes`"
            ],
        )
    if not changes.is_empty:
        feeds.apply(database, changes, now=now)
    missing = missing_keys(instance, [spec.id for spec in specs])
    if missing:
        # A key that is new to this instance has no event in it, whatever was reported once: Dagster's home
        # was lost, or this is another machine's. First of all, so that a crash leaves the keys missing.
        feeds.report_again(database, missing)
        add_keys(instance, missing)
    if not changes.is_empty:
        instance.report_runless_asset_event(
            dg.AssetMaterialization(
                asset_key=REGISTRY,
                metadata={
                    "feeds": len(specs),
                    "added": len(changes.added),
                    "updated": len(changes.updated),
                    "unregistered": len(changes.unregistered),
                },
            )
        )
    return Synced(
        specs=tuple(specs),
        changes=changes,
        keys_added=len(missing),
        has_suspects=any(row["suspect"] for row in rows),
    )
