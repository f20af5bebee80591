"""Holds: a host, or one feed, gets no request until an instant, by Retry-After or 429."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import instant

IMAGE_AGAIN_AFTER = timedelta(days=1)
"""The URL of an image is requested at most once in so long, however many items show it; but for the first
retry after a failure (collector/schedule/image_retries.py)."""
IMAGE_RETRY_WRONG_CLOCK = timedelta(hours=49)
"""No retry of an image is further away, so a later attempt was set by a wrong clock and is due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostHold:
    """No request to this host before `until`, a whole second."""

    host: str
    until: datetime
    reason: str
    times: int = 1
    """Holds in a row; 1 as well for one after which the host has answered normally."""

    @property
    def of(self) -> str:
        """The name of what is on hold, for people."""
        return self.host


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedHold:
    """No request for this feed before `until`, a whole second; its host may get others."""

    feed_id: str
    host: str
    """The host that demanded it: a redirect may have led away from the feed's own. Empty: our limit."""
    until: datetime
    reason: str
    url_hash: str | None = None
    """`url_hash` of the address that demanded it: no feed requests that before `until`."""

    @property
    def of(self) -> str:
        """The name of what is on hold, for people."""
        return self.host or "this feed"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostGap:
    """The time to leave between two requests to a host that limits their rate."""

    host: str
    """A host, or a point and a domain with names that share the limit."""
    gap: timedelta
    since: datetime
    """Time of its last change, later by the time in which nothing was requested since."""
    asked_at: datetime
    """Time of the last request."""

    @property
    def is_shared(self) -> bool:
        """True if it is a domain's."""
        return self.host.startswith(".")


def url_hash(url: str) -> str:
    """The form in which an address on hold is kept: it may hold a secret."""
    return hashlib.sha256(url.encode(errors="replace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedTo:
    """A redirect that is to be followed later, by its Retry-After (RFC 9110 10.2.3)."""

    source: str
    """The URL that the visit began with: from another one the redirect leads nowhere."""
    url: str
    is_permanent: bool
    """All redirects of the visit were."""
    at: datetime
    """The instant from which on it may be followed; within a day, or the source is requested again."""
    fresh_until: datetime | None = None
    """The redirect itself is not to be requested again before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnHold:
    """Not requested, or not to the end: the next host, or its address, is on hold. No failure."""

    hold: HostHold | FeedHold
    not_before: datetime | None = None
    """The time until which a redirect of the visit asked to wait."""
    led_to: LedTo | None = None
    """The redirect that wants this wait."""
    by_hand: bool = False
    """No server wants it: a visit by hand was requested right after an answer."""

    def __str__(self) -> str:
        if self.by_hand:
            return f"{self.hold.reason}: {instant(self.hold.until)}"
        return f"{self.hold.of} is on hold until {instant(self.hold.until)} ({self.hold.reason})"
