"""`feed_changed`: the automation condition by which assets of one's own follow the feeds.

What the events say, and that their data version changes with new items only, is reporting.py's.
https://docs.dagster.io/guides/automate/declarative-automation
"""

import dagster as dg

from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS


def feed_changed() -> dg.AutomationCondition[dg.AssetKey]:
    """True for each partition whose feed brought new items, until a run for it was asked for.

    For assets on `feeds_partitions`, a run each; an asset without partitions gets one run for all that is
    new. Heartbeats, a feed that answers again after failures, and materializing `feed_items` by hand without
    news ask for nothing. What came before the first evaluation does not either: backfill once. News that come
    while a run of that partition is under way wait for its end and then get a run of their own, for nobody
    knows whether that run has read them. A run that fails is not repeated before the next news; give the job
    `dagster/max_retries` for that.
    """
    changed = dg.AutomationCondition.asset_matches(
        FEED_ITEMS, dg.AutomationCondition.data_version_changed()
    ).with_label("feed_has_news")
    # Not `since_last_handled`: it takes a run that ends for one that has seen all, and where news and the
    # request before it meet in one tick the request would win. Both would lose the news.
    asked_for = dg.AutomationCondition.newly_requested() & ~changed
    waiting = changed.since(asked_for.with_label("asked_for")).with_label("news_not_asked_for")
    return (waiting & ~dg.AutomationCondition.in_progress()).with_label("feed_changed")
