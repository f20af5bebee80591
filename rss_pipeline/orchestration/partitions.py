"""The partitions `feeds`: one partition for each feed, its key is the feed's id. Items are never partitions.

The keys come from the registry (registry_partitions.py).
https://docs.dagster.io/guides/build/partitions-and-backfills
"""

import dagster as dg

feeds_partitions = dg.DynamicPartitionsDefinition(name="feeds")

KEYS_AT_ONCE = 500
"""SQLite instance storage binds one variable for each key."""


def missing_keys(instance: dg.DagsterInstance, ids: list[str]) -> list[str]:
    """The keys missing from the instance."""
    existing = set(instance.get_dynamic_partitions("feeds"))
    return [id for id in ids if id not in existing]


def add_keys(instance: dg.DagsterInstance, missing: list[str]) -> None:
    """Add these keys, in order. Keys are never removed here."""
    for start in range(0, len(missing), KEYS_AT_ONCE):
        instance.add_dynamic_partitions("feeds", missing[start : start + KEYS_AT_ONCE])
