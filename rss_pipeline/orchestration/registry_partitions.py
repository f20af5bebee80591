"""Partition keys for the registry's feeds, and its changes as events of the asset `registry`.

The rows are written in pipeline/registry/sync.py. The key of a feed that was taken out stays, with its
history, as long as something of the feed is stored.
"""

import dagster as dg

from rss_pipeline.orchestration.instance.forget_feed import complete_forgets
from rss_pipeline.orchestration.partitions import add_keys, missing_keys
from rss_pipeline.orchestration.reporting.asset_keys import REGISTRY
from rss_pipeline.pipeline.registry.sync import RegistrySync
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import feed_changes


def register(database: Database, instance: dg.DagsterInstance, synced: RegistrySync) -> int:
    """Add the keys that a synced registry needs and record its changes; return the number of keys added.

    Unlisted feeds of which nothing was collected are removed, and those that a killed `forget` left half-way.
    """
    complete_forgets(database, instance, synced.forgotten)
    added = register_keys(database, instance, [spec.id for spec in synced.specs])
    changes = synced.changes
    if synced.removed or not changes.is_empty:
        instance.report_runless_asset_event(
            dg.AssetMaterialization(
                asset_key=REGISTRY,
                metadata={
                    "feeds": len(synced.specs),
                    "added": len(changes.added),
                    "updated": len(changes.updated),
                    "unregistered": len(changes.unregistered),
                    "removed": len(synced.removed),
                },
            )
        )
    return added


def register_keys(database: Database, instance: dg.DagsterInstance, ids: list[str]) -> int:
    """Add the keys missing from the instance; return their number."""
    missing = missing_keys(instance, ids)
    if missing:
        # A key that is new to this instance has no event in it, whatever was reported before: Dagster's home
        # was lost, or it is that of another machine. First of all, so that a crash leaves the keys missing.
        feed_changes.report_again(database, missing)
        add_keys(instance, missing)
    return len(missing)
