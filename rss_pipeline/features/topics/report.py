"""Dagster events for topics with changed documents."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from rss_pipeline.features.topics.publications import keys
from rss_pipeline.features.topics.publish import Publication, Stores
from rss_pipeline.orchestration.reporting.asset_keys import TOPICS, place, version_tags


def topic_events(
    stores: Stores, instance: dg.DagsterInstance, done: Sequence[Publication], *, named: bool
) -> list[dg.AssetMaterialization]:
    """An event for each topic with changed bytes, and for one without any event here; if a person `named`
    them, for all that did not fail."""
    wanted = [each for each in done if each.error is None]
    if any(not each.changed for each in wanted) and not named:
        recorded = instance.get_materialized_partitions(TOPICS)
        wanted = [each for each in wanted if each.changed or each.topic_id not in recorded]
    return [_event(stores, each) for each in wanted]


def _event(stores: Stores, publication: Publication) -> dg.AssetMaterialization:
    store = stores.target.store
    places = {key.rpartition(".")[2]: store.url(key) for key in keys(publication.topic_id)}
    metadata: dict[str, Any] = {
        "entries": publication.entries,
        "feeds": publication.feeds,
        "bytes": publication.bytes,
        **{name: place(url) for name, url in places.items() if url},
        "changed": ", ".join(publication.changed) or "nothing",
    }
    return dg.AssetMaterialization(
        asset_key=TOPICS,
        partition=publication.topic_id,
        metadata=metadata,
        tags=version_tags(publication.hash),
    )
