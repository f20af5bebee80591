"""Politeness towards hosts: the pace of requests, the holds that hosts set, and making way for other runs.

The length of a hold and the order of requests are collector.fetch's, the statements storage.feeds'.
"""

import logging
from collections.abc import Collection, Iterable
from datetime import datetime

from rss_pipeline.collector.fetch.holds import Holds
from rss_pipeline.collector.fetch.pacing import HostTaken, Pace
from rss_pipeline.collector.models.clock import Clock, instant
from rss_pipeline.collector.models.hold import FeedHold, HostGap, HostHold
from rss_pipeline.errors import InfrastructureError
from rss_pipeline.pipeline.session.lease_keeper import LeaseKeeper
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import leases
from rss_pipeline.storage.feeds.stored_holds import Kept, KnownHolds, keep_holds, known_holds, known_statement

logger = logging.getLogger(__name__)


class Politeness:
    """Pace and holds of a run's requests, for feeds or for images: a site's images and its feed do not wait
    for each other, and a hold that an image's answer set is for images only."""

    def __init__(self, kept: Kept, *, database: Database, clock: Clock, pace: Pace | None = None) -> None:
        self.pace = pace or Pace()
        self.holds = Holds(clock)
        """The holds of hosts as far as this run knows them."""
        self.ends_at_claim: dict[str, datetime] = {}
        """Ends of the holds that were known when the hosts' feeds were claimed, by host; most are over."""
        self._kept: Kept = kept
        self._database = database
        self._clock = clock

    def load(
        self,
        hosts: Iterable[HostHold],
        feeds: Iterable[FeedHold] = (),
        *,
        foreign: Iterable[HostHold] = (),
        recent_hosts: Iterable[str] = (),
        gaps: Iterable[HostGap] = (),
    ) -> None:
        """Take over the holds that came with a claim; see `Holds.load`.

        `recent_hosts` are those that other runs made requests to until just now: their pace goes on.
        """
        self.pace.requested_elsewhere(recent_hosts)
        hosts = list(hosts)
        self.holds.load(hosts, feeds, foreign=foreign, gaps=gaps)
        self.ends_at_claim = {**{hold.host: hold.until for hold in hosts}, **self.ends_at_claim}

    def load_for_feeds(self, known: KnownHolds) -> None:
        """Take over all that concerns requests for feeds."""
        self.load(known.hosts, known.feeds, recent_hosts=known.recent_hosts, gaps=known.gaps)

    def read(self) -> None:
        """Take over what the database knows, for requests for feeds without a claim."""
        [known] = self._database.batch([known_statement(self._clock())])
        self.load_for_feeds(known_holds(known))

    def keep_holds(self) -> None:
        """Write the holds that are new since the last time, or over; nearly always none.

        At once and not at the visit's close: a run that dies in between would let the next one request again.
        """
        if (news := self.holds.changes()).is_empty:
            return
        keep_holds(
            self._database,
            self._kept,
            hosts=news.hosts,
            feeds=news.feeds,
            recovered=news.recovered,
            gaps=news.gaps,
            now=self._clock(),
        )
        for hold in news.hosts:
            logger.info("no request to %s until %s: %s", hold.host, instant(hold.until), hold.reason)


class ImageHosts:
    """The `HostLeases` of a round of images."""

    def __init__(self, lease_keeper: LeaseKeeper) -> None:
        self._leases = lease_keeper

    def has_host(self, host: str) -> bool:
        """True if a lease of this run holds the host for images."""
        return self._leases.has_host(host, "images")

    def take_host(self, host: str) -> HostTaken:
        """Hold one more host, to which a redirect leads, unless another run does."""
        return self._leases.take_host(host, "images")


class MakeWay:
    """The `OtherRuns` of a round of feeds: frees hosts for which a refresh by hand waits."""

    def __init__(self, database: Database, *, clock: Clock, lease_keeper: LeaseKeeper, holds: Holds) -> None:
        self._database = database
        self._clock = clock
        self._leases = lease_keeper
        self._holds = holds

    def is_leased(self) -> bool:
        """False once a lease of this run has lapsed."""
        return self._leases.is_leased()

    def has_host(self, host: str) -> bool:
        """True if a lease of this run holds the host."""
        return self._leases.has_host(host)

    def take_host(self, host: str) -> HostTaken:
        """Hold one more host, to which a redirect leads, unless another run does."""
        return self._leases.take_host(host)

    def awaited_hosts(self) -> Collection[str]:
        """Hosts that a refresh by hand waits for while this run has them for feeds that are merely due.

        Also brings the holds that other runs' hosts have set in the meantime.
        """
        try:
            known, waiting = self._database.batch(
                [known_statement(self._clock()), leases.awaited_statement(self._leases.merely_due)]
            )
        except InfrastructureError as error:
            logger.warning("the hosts that a refresh by hand waits for are not known: %s", error)
            return ()
        holds = known_holds(known)
        self._holds.load(holds.hosts, holds.feeds, gaps=holds.gaps)
        return [row["host"] for row in waiting.rows]

    def release_hosts(self, hosts: Collection[str], unbegun: Collection[str]) -> None:
        """Free these hosts, to which this run makes no request any more, for the run that waits for them."""
        logger.info("a refresh by hand goes first at %s", ", ".join(sorted(hosts)))
        ours = self._leases.merely_due
        try:
            leases.release(
                self._database,
                [leases.Release(feed_id=id, token=token) for token in ours for id in sorted(unbegun)],
                others=[leases.free_hosts(ours, sorted(hosts)), *self._leases.recent_hosts().statements()],
            )
            self._leases.forget_hosts(hosts)
        except InfrastructureError as error:
            logger.warning("hosts for which a refresh by hand waits could not be freed: %s", error)
