"""The tags of an event with its data version, for assets that follow all partitions of `feed_items`.

Dagster would mark each of their partitions as "Unsynced" as soon as any feed has an event, and for ever where
a feed has none. What is to be published or judged is in the database; so the tags say that no later event of
`feed_items` matters.
"""

from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import dagster as dg

from rss_pipeline.orchestration.dagster_private import (
    CODE_VERSION_TAG,
    DATA_VERSION_IS_USER_PROVIDED_TAG,
    DATA_VERSION_TAG,
    INPUT_DATA_VERSION_TAG_PREFIX,
    INPUT_EVENT_POINTER_TAG_PREFIX,
)

# The keys of the assets, for every module that reports or reads their events.

FEED_ITEMS = dg.AssetKey("feed_items")
ITEM_IMAGES = dg.AssetKey("item_images")
REGISTRY = dg.AssetKey("registry")
POLLS = dg.AssetKey("polls")
STREAM_ITEMS = dg.AssetKey("stream_items")
TOPICS = dg.AssetKey("topics")
STORIES = dg.AssetKey("stories")


_BEYOND_ALL_EVENTS = 2**62
_INPUT = FEED_ITEMS.to_user_string()


def version_tags(version: str) -> dict[str, str]:
    """The tags of an event with this data version."""
    return {
        DATA_VERSION_TAG: version,
        DATA_VERSION_IS_USER_PROVIDED_TAG: "true",
        CODE_VERSION_TAG: "1",
        f"{INPUT_DATA_VERSION_TAG_PREFIX}/{_INPUT}": "all",
        f"{INPUT_EVENT_POINTER_TAG_PREFIX}/{_INPUT}": str(_BEYOND_ALL_EVENTS),
    }


# The place of an object as metadata that a browser can use.


def place(url: str) -> dg.MetadataValue[Any]:
    """A link, or for a file its path: browsers follow no link from the UI to a file."""
    if url.startswith("file:"):
        return dg.MetadataValue.path(url2pathname(urlsplit(url).path))
    return dg.MetadataValue.url(url)
