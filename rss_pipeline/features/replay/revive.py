"""Retired items brought back from the backups: what a clean removed under a wrong clock or setting.

It may be ended at any moment and started again: a tombstone goes in the batch that brings its item back.
Backups are read by replay.py, the statements are storage.items.tombstones'.
"""

from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from rss_pipeline.features.replay.replay import ReplayProblem, replay_feeds
from rss_pipeline.pipeline.session.parser_pool import ParserPool
from rss_pipeline.pipeline.session.run_context import RunContext, Spool
from rss_pipeline.storage.feeds.feeds import feed_ids
from rss_pipeline.storage.items import tombstones


@dataclass(slots=True, kw_only=True)
class Revived:
    """The result; grows while the feeds are read."""

    feeds: int = 0
    items_retired: int = 0
    """Since the instant."""
    items_revived: int = 0
    items_lost: int = 0
    """In no backup any more. Those that their feed still lists come back with its next document."""
    problems: list[ReplayProblem] = field(default_factory=list)
    """Backups that could not be read."""

    def as_json(self) -> dict[str, Any]:
        """The result for programs."""
        return asdict(self)


def revive(run: RunContext, *, pool: ParserPool, spool: Spool, since: datetime) -> Revived:
    """Store the items again that were retired since then, by the database's clock, and drop their tombstones.

    They are as new as their arrival, so that the next clean does not retire them again.
    """
    known = set(feed_ids(run.database))
    retired = {
        each.feed_id: each.items
        for each in tombstones.retired_since(run.database, since)
        if each.feed_id in known
    }
    revived = Revived(feeds=len(retired), items_retired=sum(retired.values()))
    for replay in replay_feeds(list(retired), run=run, pool=pool, spool=spool, retired_since=since):
        lost = tombstones.drop_since(run.database, replay.feed.id, since=since)
        revived.items_lost += lost
        revived.items_revived += retired[replay.feed.id] - lost
        revived.problems += replay.unread
    return revived
