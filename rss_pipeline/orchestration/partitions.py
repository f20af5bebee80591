"""The partitions `feeds`, `streams` and `topics`, one for each of them; `stories`, one for each day. Items
are never partitions.

The keys come from the registry (registry_partitions.py): a feed's id, `feed/stream`, a topic's id; days from
polls.
https://docs.dagster.io/guides/build/partitions-and-backfills
"""

from collections.abc import Collection, Sequence

import dagster as dg

FEEDS, STREAMS, TOPICS, STORIES = "feeds", "streams", "topics", "stories"

feeds_partitions = dg.DynamicPartitionsDefinition(name=FEEDS)
streams_partitions = dg.DynamicPartitionsDefinition(name=STREAMS)
topics_partitions = dg.DynamicPartitionsDefinition(name=TOPICS)
stories_partitions = dg.DynamicPartitionsDefinition(name=STORIES)

PARTITIONS_A_RUN = 100
KEYS_AT_ONCE = 500
"""SQLite instance storage binds one variable for each key."""


def missing_keys(instance: dg.DagsterInstance, name: str, keys: Sequence[str]) -> list[str]:
    """The keys missing from the instance, of the partitions with this name."""
    existing = set(instance.get_dynamic_partitions(name))
    return [key for key in keys if key not in existing]


def add_keys(instance: dg.DagsterInstance, name: str, missing: Sequence[str]) -> None:
    """Add these keys, in order. Keys are never removed here."""
    for start in range(0, len(missing), KEYS_AT_ONCE):
        instance.add_dynamic_partitions(name, missing[start : start + KEYS_AT_ONCE])


def unwanted_keys(instance: dg.DagsterInstance, name: str, keys: Collection[str]) -> list[str]:
    """The keys of the instance that are not among these."""
    return [key for key in instance.get_dynamic_partitions(name) if key not in keys]
