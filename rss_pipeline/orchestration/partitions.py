"""The one partitions definition: a feed is a partition, its key the feed's id.

Which feeds there are is the registry's business (syncing.py). Items are never partitions.
https://docs.dagster.io/guides/build/partitions-and-backfills
"""

import dagster as dg

feeds_partitions = dg.DynamicPartitionsDefinition(name="feeds")

KEYS_AT_ONCE = 500
"""SQLite instance storage binds a variable a key."""


def add_keys(instance: dg.DagsterInstance, ids: list[str]) -> list[str]:
    """Add the keys that are not there yet, in order; those added. Keys are never taken away here."""
    existing = set(instance.get_dynamic_partitions("feeds"))
    missing = [id for id in ids if id not in existing]
    for start in range(0, len(missing), KEYS_AT_ONCE):
        instance.add_dynamic_partitions("feeds", missing[start : start + KEYS_AT_ONCE])
    return missing
