"""Where things come from and lie, as the asset graph tells it: registry -> feed_items -> item_images.

The assets that are computed are assets.py's; here stand those that are only told of, and what depends on the
settings: which database and which object store.
https://docs.dagster.io/guides/build/assets/external-assets
"""

from collections.abc import Sequence

import dagster as dg

from rss_pipeline.orchestration.labels import GROUP, OWNERS
from rss_pipeline.settings import Settings

REGISTRY = dg.AssetKey("registry")
POLLS = dg.AssetKey("polls")

_TABLES = {"feed_items": "feeds, items", "item_images": "image_tasks", "registry": "feeds", "polls": "leases"}
_OBJECTS = {
    "feed_items": "backups/{feed_id}/{time}.xml",
    "item_images": "images/{feed_id}/{item_guid_hash}/{index}.{ext}",
}


def told_assets(settings: Settings) -> list[dg.AssetSpec]:
    """The assets no run computes: the registry, and the daemon's polls."""
    registry = dg.AssetSpec(
        REGISTRY,
        group_name=GROUP,
        kinds={"yaml"},
        description=(
            "Which feeds are collected, and how: feeds.yaml. The sensor `sync_registry` and each poll take"
            " its changes over; each change is told here, with how many feeds there are then."
        ),
    )
    polls = dg.AssetSpec(
        POLLS,
        deps=[REGISTRY],
        group_name=GROUP,
        kinds={"rss"},
        description=(
            "The polls of the job `poll_feeds`, one event each: how many feeds were due, how they ended, how"
            " long the longest due had waited and how long the poll took. Its plots show whether polling"
            " keeps up."
        ),
    )
    return [_placed(spec, settings) for spec in (registry, polls)]


def placed(
    assets: Sequence[dg.AssetsDefinition], settings: Settings
) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """The assets with their owners, and where these settings keep what they collect."""
    return list(dg.map_asset_specs(lambda spec: _placed(spec, settings), assets))


def _placed(spec: dg.AssetSpec, settings: Settings) -> dg.AssetSpec:
    name = spec.key.to_user_string()
    database, where = ("sqlite", str(settings.database_path))
    if settings.d1 is not None:
        database, where = "cloudflare", f"Cloudflare D1, behind {settings.d1.url}"
    metadata = {"tables": _TABLES[name], "database": where}
    kinds = {*spec.kinds, database}
    if name in _OBJECTS:
        metadata["objects"] = _OBJECTS[name]
        metadata["object_store"] = str(settings.objects_path)
        if settings.r2 is not None:
            metadata["object_store"] = f"Cloudflare R2, bucket {settings.r2.bucket}"
            kinds.add("r2")
    if name == "registry":
        metadata["file"] = str(settings.feeds_file)
    return spec.replace_attributes(owners=OWNERS, kinds=kinds, metadata={**spec.metadata, **metadata})
