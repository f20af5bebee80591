"""Parts that the tests of fetching share: a clock that stands still, a pace that needs no time, one fetch.

No test is in here.
"""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from rss_pipeline.collector.fetch.feed_round import fetch_feeds
from rss_pipeline.collector.fetch.pacing import Pace
from rss_pipeline.collector.http.client import FetchPolicy
from rss_pipeline.collector.http.private_hosts import PrivateHosts
from rss_pipeline.collector.models.feed import Access, Feed
from rss_pipeline.collector.models.outcome import FetchOutcome
from rss_pipeline_tests.support.feeds import make_feed

NOW = datetime(2026, 2, 18, 8, 30, tzinfo=UTC)
POLICY = FetchPolicy(user_agent="rss_pipeline tests (tests@example.org)", deadline=30, connect_timeout=10)
RSS = b"<rss version='2.0'><channel><title>t</title></channel></rss>"


def now() -> datetime:
    return NOW


class InstantPace(Pace):
    """Time that passes only when it is slept on. Notes every sleep."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.slept: list[float] = []
        super().__init__(monotonic=lambda: self.time, sleep=self._sleep)

    async def _sleep(self, seconds: float) -> None:
        until = self.time + seconds
        self.slept.append(seconds)
        await asyncio.sleep(0)
        self.time = max(self.time, until)


LOOPBACK = PrivateHosts(networks=(ip_network("127.0.0.0/8"),))


def feed(url: str, **fields: Any) -> Feed:
    """A feed that may be redirected over all of loopback, unless the fields say otherwise."""
    known = {"id": "feed-0123456789", "host": url.partition("//")[2].partition("/")[0].partition(":")[0]}
    return make_feed(url=url, **{"allow_private": True, "private_hosts": ("127.0.0.0/8",), **known, **fields})


def fetch(
    feed: Feed,
    spool: Path,
    *,
    access: Access | None = None,
    pace: Pace | None = None,
    clock_at: datetime = NOW,
    **policy: Any,
) -> FetchOutcome:
    """One feed's outcome."""
    [outcome] = fetch_feeds(
        [(feed, access or Access())],
        policy=replace(POLICY, **policy),
        spool=spool,
        clock=lambda: clock_at,
        pace=pace or InstantPace(),
    )
    return outcome
