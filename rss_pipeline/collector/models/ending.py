"""Ending of a visit: when its feed is visited next and why, where it is requested, what a gap would change.

Values only; collector.schedule.after_visit makes them and storage.feeds.closings writes them.
"""

from dataclasses import dataclass

from rss_pipeline.collector.models.feed import FeedAddress, GapHistory, NextVisit
from rss_pipeline.collector.models.hold import FeedHold


@dataclass(frozen=True, slots=True, kw_only=True)
class IfGap:
    """The ending if all items of the document turn out to be new, so that items were probably missed."""

    next: NextVisit
    gaps: GapHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The next visit of a feed, its address, the other ending that a gap would mean, and a hold."""

    next: NextVisit
    address: FeedAddress
    if_gap: IfGap | None = None
    """None if new items alone would not show a gap."""
    hold: FeedHold | None = None
    """No visit before its end, also none by hand: the feed has written its most backups of a day."""
