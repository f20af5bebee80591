"""The one partitions definition: a feed is a partition, its key the feed's id.

Which feeds there are is the registry's business (syncing.py). Items are never partitions.
https://docs.dagster.io/guides/build/partitions-and-backfills
"""

import dagster as dg

feeds_partitions = dg.DynamicPartitionsDefinition(name="feeds")

KEYS_AT_ONCE = 500
"""SQLite instance storage binds a variable a key."""


def missing_keys(instance: dg.DagsterInstance, ids: list[str]) -> list[str]:
    """Those of these keys that the instance does not have."""
    existing = set(instance.get_dynamic_partitions("feeds"))
    return [id for id in ids if id not in existing]


def add_keys(instance: dg.DagsterInstance, missing: list[str]) -> None:
    """Add these keys, in order. Keys are never taken away here."""
    for start in range(0, len(missing), KEYS_AT_ONCE):
        instance.add_dynamic_partitions("feeds", missing[start : start + KEYS_AT_ONCE])
