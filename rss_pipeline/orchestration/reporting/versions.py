"""The tags of an event with its data version, for assets that follow all partitions of `feed_items`.

Dagster would mark each of their partitions as "Unsynced" as soon as any feed has an event, and for ever where
a feed has none. What is to be published or judged is in the database; so the tags say that no later event of
`feed_items` matters.
"""

from dagster._core.definitions.data_version import (
    CODE_VERSION_TAG,
    DATA_VERSION_IS_USER_PROVIDED_TAG,
    DATA_VERSION_TAG,
    INPUT_DATA_VERSION_TAG_PREFIX,
    INPUT_EVENT_POINTER_TAG_PREFIX,
)

from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS

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
