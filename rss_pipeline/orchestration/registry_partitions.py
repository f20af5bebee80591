"""Partition keys for the registry's feeds, and its changes as events of the asset `registry`.

The rows are written in pipeline/registry/sync.py. The key of a feed that was taken out stays, with its
history, as long as something of the feed is stored. Features have
their own keys.
"""

import dagster as dg

from rss_pipeline.features import FEATURES
from rss_pipeline.orchestration.instance.forget_feed import complete_forgets, is_materializing
from rss_pipeline.orchestration.partitions import FEEDS, add_keys, missing_keys, unwanted_keys
from rss_pipeline.orchestration.reporting.asset_keys import REGISTRY
from rss_pipeline.pipeline.registry.sync import RegistrySync
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import feed_changes


def register(database: Database, instance: dg.DagsterInstance, synced: RegistrySync) -> int:
    """Add the keys that a synced registry needs and record its changes; return the number of feeds added.

    Unlisted feeds of which nothing was collected are removed, and those that a killed `forget` left half-way.
    """
    complete_forgets(database, instance, synced.forgotten)
    added = register_keys(database, instance, synced.scheduled)
    for feature in FEATURES:
        if feature.partition_keys is not None:
            feature.partition_keys.load()(database, instance, synced)
    changes = synced.changes
    if synced.removed or not synced.is_without_changes:
        instance.report_runless_asset_event(
            dg.AssetMaterialization(
                asset_key=REGISTRY,
                metadata={
                    "feeds": len(synced.specs),
                    "added": len(changes.added),
                    "updated": len(changes.updated),
                    "unregistered": len(changes.unregistered) - len(synced.kept),
                    "subscribed": len(synced.subscribed),
                    "removed": len(synced.removed),
                    **{name: len(values) for name, values in synced.of_features.items()},
                },
            )
        )
    return added


def register_keys(database: Database, instance: dg.DagsterInstance, ids: list[str]) -> int:
    """Add the keys of feeds missing from the instance; return their number."""
    missing = missing_keys(instance, FEEDS, ids)
    if missing:
        # A key that is new to this instance has no event in it, whatever was reported before: Dagster's home
        # was lost, or it is that of another machine. First of all, so that a crash leaves the keys missing.
        feed_changes.report_again(database, missing)
        add_keys(instance, FEEDS, missing)
    return len(missing)


def remove_others(instance: dg.DagsterInstance, name: str, keys: list[str]) -> None:
    """Remove the keys that are not among these. A key that is removed under a run fails that run at its end,
    so while there is one, this is left to a later sync."""
    unwanted = unwanted_keys(instance, name, set(keys))
    if unwanted and not is_materializing(instance):
        for key in unwanted:
            instance.delete_dynamic_partition(name, key)
