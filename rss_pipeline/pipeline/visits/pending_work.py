"""The question whether a poll of due feeds has any work, for the command `poll`.

The daemon's decision, which also waits for more feeds to be due, is triggers/poll.py's.
"""

from datetime import datetime

from rss_pipeline.features import FEATURES
from rss_pipeline.pipeline.registry.sync import RegistrySync
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.claimable import Due
from rss_pipeline.storage.feeds.due import is_claimable
from rss_pipeline.storage.feeds.feed_changes import has_unreported


def has_registry_news(synced: RegistrySync) -> bool:
    """Return True if Dagster does not know yet what this sync of the registry changed."""
    return bool(synced.forgotten) or not synced.is_without_changes


def has_pending_work(database: Database, synced: RegistrySync, *, now: datetime) -> bool:
    """Return True if a poll would change something: partition keys, a visit, an event, or the last step of a
    feature.

    Small queries only, so that a poll by cron with nothing due costs neither Dagster's import nor a run.
    """
    return (
        has_registry_news(synced)
        or is_claimable(database, Due(now=now))
        or has_unreported(database)
        or any(
            feature.after_poll is not None and feature.after_poll.is_due.load()(database, now)
            for feature in FEATURES
        )
    )
