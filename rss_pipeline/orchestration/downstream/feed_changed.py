"""`feed_changed`: the automation condition with which downstream assets follow the feeds.

The events, with a data version that changes with new items only, are in reporting/feeds.py.
https://docs.dagster.io/guides/automate/declarative-automation
"""

import dagster as dg

from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS


def feed_changed() -> dg.AutomationCondition[dg.AssetKey]:
    """True for each partition with new items, until a run for it is requested.

    An asset on `feeds_partitions` gets one run for each such partition; an asset without partitions gets one
    run for all new items. No run is requested for heartbeats, for a feed that answers again after failures,
    for a materialization of `feed_items` by hand without new items, and for items that came before the first
    evaluation: start a backfill once. New items that come during a run of their partition wait for its end
    and then get another run, because it is unknown if that run has read them. A failed run is not repeated
    before the next new items; for that, give the job the tag `dagster/max_retries`.
    """
    changed = dg.AutomationCondition.asset_matches(
        FEED_ITEMS, dg.AutomationCondition.data_version_changed()
    ).with_label("feed_has_news")
    # Not `since_last_handled`: it assumes that a run that ends has seen everything, and if new items and the
    # request before them meet in one tick, the request wins. Both lose new items.
    requested = dg.AutomationCondition.newly_requested() & ~changed
    waiting = changed.since(requested.with_label("requested")).with_label("news_without_request")
    return (waiting & ~dg.AutomationCondition.in_progress()).with_label("feed_changed")
