"""The condition for forgetting a feed: feeds.yaml no longer lists it, no user subscribes to it, and no run
holds it.

The rows go by storage/feeds/forget.py, the partition key by orchestration/instance/forget_feed.py.
"""

from datetime import datetime

from rss_pipeline.errors import ForgetRefused
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import due


def check_forgettable(database: Database, feed_id: str, *, now: datetime) -> None:
    """Do nothing if this feed can be forgotten now.

    Raises:
        ForgetRefused: it is still listed or subscribed to, or a run holds it.
    """
    row = due.availability(database, [feed_id], now=now)[feed_id]
    if row["registered"] and not row["listed"]:
        raise ForgetRefused(
            f"a user of the reader subscribes to {feed_id}: it is removed some days after the last one left"
        )
    if row["registered"]:
        raise ForgetRefused(
            f"{feed_id} is still in feeds.yaml and would come back: remove it there, run"
            " `rss-pipeline poll`, then forget it"
        )
    if row["held_token"] is not None:
        raise ForgetRefused(f"{feed_id} is being visited now: try again in a minute")
