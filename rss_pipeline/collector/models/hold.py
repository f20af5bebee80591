"""Holds: a host, or one feed, gets no request until an instant, by Retry-After or 429."""

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
    """Holds in a row, without another answer in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedHold:
    """No request for this feed before `until`, a whole second; its host may get others."""

    feed_id: str
    host: str
    """The host that demanded it: a redirect may have led away from the feed's own."""
    until: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OnHold:
    """Not requested, or not to the end: the next host is on hold. No failure."""

    hold: HostHold | FeedHold

    def __str__(self) -> str:
        return f"{self.hold.host} is on hold until {instant(self.hold.until)} ({self.hold.reason})"
