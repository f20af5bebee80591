"""The keys of the assets, for every module that reports or reads their events."""

import dagster as dg

FEED_ITEMS = dg.AssetKey("feed_items")
ITEM_IMAGES = dg.AssetKey("item_images")
REGISTRY = dg.AssetKey("registry")
POLLS = dg.AssetKey("polls")
STREAM_ITEMS = dg.AssetKey("stream_items")
TOPICS = dg.AssetKey("topics")
