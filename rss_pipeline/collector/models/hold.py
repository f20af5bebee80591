"""Holds: until when a host, or one feed, gets no request because it asked for that."""

from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models.clock import instant


@dataclass(frozen=True, slots=True, kw_only=True)
class HostHold:
    """No request to this host before `until`, a whole second."""

    host: str
    until: datetime
    reason: str
    times: int = 1
    """How often it asked for a pause with no other answer in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedHold:
    """No request for this feed before `until`, a whole second, whatever its host is asked besides."""

    feed_id: str
    host: str
    """The one that said so: a redirect may have led away from the feed's own."""
    until: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OnHold:
    """Not asked, or not to the end: the host whose turn it was has asked for a pause. No failure."""

    hold: HostHold | FeedHold

    def __str__(self) -> str:
        return f"{self.hold.host} asked for a pause until {instant(self.hold.until)} ({self.hold.reason})"
