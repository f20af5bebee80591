"""The leases of one run: claimed, renewed by a thread while the run lasts, ended with it.

The statements are storage.feeds' and storage.images'; which feeds a run claims is claim.py's.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from rss_pipeline.collector.fetch.pacing import HostTaken
from rss_pipeline.errors import InfrastructureError
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.feeds import claims, leases
from rss_pipeline.storage.feeds.claimable import Due, Wanted
from rss_pipeline.storage.feeds.claims import BEGUN_TOGETHER
from rss_pipeline.storage.feeds.leases import LeaseKind, RecentHosts
from rss_pipeline.storage.images.image_claims import ImageClaim, claim_images
from rss_pipeline.storage.refresh.open_requests import OpenRequest, claim_requests
from rss_pipeline.storage.sql import new_token

logger = logging.getLogger(__name__)

CUT_OFF_SECONDS = 60.0
"""Time without a renewal of its leases after which a run of one of several machines makes no more requests:
it may be cut off from the database, and its feeds may be another machine's."""


def _since_boot() -> float:
    """Seconds that go on while the machine sleeps; those of Linux's usual monotonic clock do not."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class LeaseKeeper:
    """Claims for one run and keeps each claim alive until `end` or `close`.

    `close` ends the leases that are left. They do not count against their feeds, for the run ended politely
    or a store failed; after `do_not_forgive` they do.
    """

    def __init__(
        self,
        database: Database,
        *,
        run_id: str,
        lease_seconds: int,
        cut_off_seconds: float | None = None,
        monotonic: Callable[[], float] | None = None,
        recent_hosts: Callable[[], RecentHosts] | None = None,
    ) -> None:
        """With `cut_off_seconds`, leases are renewed more often, and `is_leased` is False after so long
        without."""
        self.recent_hosts = recent_hosts or (lambda: RecentHosts(run_id=run_id, seconds=0))
        """The hosts that this run made requests to until just now."""
        self.at_end: Statement | None = None
        """Run with the end of each lease."""
        self._hosts: dict[LeaseKind, dict[str, set[str]]] = {"feeds": {}, "images": {}}
        """By kind and token, the hosts that each lease holds."""
        self._monotonic = monotonic or _since_boot
        self._database = database
        self._run_id = run_id
        self._lease_seconds = lease_seconds
        self._live_seconds = min(lease_seconds, cut_off_seconds or lease_seconds)
        self._renewal_seconds = min(lease_seconds / 3, self._live_seconds / 4)
        self._tokens: set[str] = set()
        self._renewed: dict[str, float] = {}
        """The time at which each lease was claimed or last renewed: the one before the statement, not
        after it."""
        self._unbegun: dict[str, str] = {}
        """By feed, the lease that has noted it as not begun; in the order of the claims."""
        self._beginning = threading.Lock()
        self._merely_due: set[str] = set()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._renewal: threading.Thread | None = None
        self._forgive = True

    def claim(
        self, wanted: Wanted, *, limit: int, suspects: bool = False, company: int | None = None
    ) -> claims.Claim:
        """Claim feeds."""
        token, began = self._new_token(), self._monotonic()
        if isinstance(wanted, Due):
            self._merely_due.add(token)
        claim = claims.claim(
            self._database,
            wanted,
            run_id=self._run_id,
            lease_seconds=self._lease_seconds,
            limit=limit,
            suspects=suspects,
            company=company,
            token=token,
        )
        with self._lock:
            self._unbegun.update(dict.fromkeys(claim.unbegun, token))
        self._keep_alive(token, found=bool(claim.feeds), began=began)
        self._note_hosts("feeds", token, {feed.address.host for feed in claim.feeds})
        return claim

    def claim_images(self, *, now: datetime, limit: int) -> ImageClaim:
        """Claim image tasks that are due at `now`."""
        token, began = self._new_token(), self._monotonic()
        claim = claim_images(
            self._database,
            now=now,
            run_id=self._run_id,
            lease_seconds=self._lease_seconds,
            limit=limit,
            token=token,
        )
        self._keep_alive(token, found=bool(claim.tasks), began=began)
        self._note_hosts("images", token, {task.host for task in claim.tasks})
        return claim

    def claim_requests(self, *, now: datetime, limit: int) -> tuple[str, list[OpenRequest]]:
        """Claim open requests of users for visits; return the token of their lease, and the requests."""
        token, began = self._new_token(), self._monotonic()
        requests = claim_requests(
            self._database,
            run_id=self._run_id,
            token=token,
            lease_seconds=self._lease_seconds,
            limit=limit,
            now=now,
        )
        self._keep_alive(token, found=bool(requests), began=began)
        return token, requests

    def has_begun(self, feed_id: str) -> bool:
        """True if the feed's lease does not name it as one that was not begun. It needs no database."""
        return feed_id not in self._unbegun

    def begin(self, feed_id: str) -> bool:
        """Note in the feed's lease that it is begun, and those that come next; False where that cannot be.

        A document that kills the process makes its feed a suspect only so.
        """
        with self._beginning:
            token = self._unbegun.get(feed_id)
            if token is None:
                return True
            waiting = [id for id, its in self._unbegun.items() if its == token and id != feed_id]
            # One that is far behind others in a claim of thousands writes no list of thousands for each 25.
            more = max(BEGUN_TOGETHER, len(waiting) // 10) - 1
            try:
                if not leases.begin(self._database, token, waiting[more:]):
                    return False
            except InfrastructureError as error:
                logger.warning("a visit could not be noted as begun: %s", error)
                return False
            with self._lock:
                for id in (feed_id, *waiting[:more]):
                    self._unbegun.pop(id, None)
            return True

    def has_host(self, host: str, kind: LeaseKind = "feeds") -> bool:
        """True if a lease of this run holds the host."""
        with self._lock:
            return any(host in hosts for hosts in self._hosts[kind].values())

    def take_host(self, host: str, kind: LeaseKind = "feeds") -> HostTaken:
        """Let the newest lease hold one more host, unless another run does; it ends with that lease.

        Without a lease nothing is held, and it may be requested from. Where the database cannot be reached,
        it may not: another run may hold it then.
        """
        with self._lock:
            token = next(reversed(self._hosts[kind]), None)
            ours = sorted(self._tokens)
        if token is None:
            return HostTaken(is_ours=True)
        try:
            taken, recent = leases.take_host(
                self._database, token, host, kind=kind, ours=ours, is_due=token in self._merely_due
            )
        except InfrastructureError as error:
            logger.warning("%s could not be leased: %s", host, error)
            return HostTaken(is_ours=False)
        if taken:
            with self._lock:
                self._hosts[kind].setdefault(token, set()).add(host)
        return HostTaken(is_ours=taken, requested_elsewhere=recent)

    def forget_hosts(self, hosts: Collection[str], kind: LeaseKind = "feeds") -> None:
        """Note that these hosts are held no longer."""
        with self._lock:
            for held in self._hosts[kind].values():
                held.difference_update(hosts)

    def forget_hosts_of(self, tokens: Collection[str]) -> None:
        """Note that these leases hold no host any longer."""
        with self._lock:
            for held in self._hosts.values():
                for token in tokens:
                    held.pop(token, None)

    @contextmanager
    def without_feeds(self) -> Iterator[str]:
        """A lease within the block, by which `take_host` holds hosts of addresses that are no feeds yet."""
        token, began = self._new_token(), self._monotonic()
        leases.begin_without_feeds(
            self._database, token, run_id=self._run_id, lease_seconds=self._lease_seconds
        )
        self._keep_alive(token, found=True, began=began)
        self._note_hosts("feeds", token, set())
        try:
            yield token
        finally:
            self.end({token})

    def await_host(self, token: str, host: str) -> None:
        """Wait by this lease for a host that another run holds; this run goes first there."""
        leases.await_host(self._database, token, host)

    def await_hosts(self, ids: Sequence[str]) -> str:
        """Wait for the hosts of these feeds, which other runs hold; this run goes first there.

        Until the run ends, or the lease with the token that this returns.
        """
        token, began = self._new_token(), self._monotonic()
        leases.await_hosts(
            self._database, ids, run_id=self._run_id, lease_seconds=self._lease_seconds, token=token
        )
        self._keep_alive(token, found=True, began=began)
        return token

    @property
    def merely_due(self) -> list[str]:
        """Tokens of the live leases on feeds that were claimed because they were due, not by name."""
        return sorted(self._merely_due & self._tokens)

    def is_leased(self) -> bool:
        """False once a lease of this run has lapsed, or may have been released by another machine: another
        run may have claimed its feeds or images.

        A run that was stopped for longer than its leases (SIGSTOP, a laptop that slept) must make no more
        requests: another run may be visiting the same hosts, and what came would be written by neither.
        """
        with self._lock:
            live_since = self._monotonic() - self._live_seconds
            return all(renewed > live_since for renewed in self._renewed.values())

    def end(self, tokens: set[str]) -> None:
        """End these claims: each of their visits is closed or released."""
        for token in tokens & self._tokens:
            with self._lock:
                self._renewed.pop(token, None)
            leases.end(
                self._database, token, forgive=True, recent_hosts=self.recent_hosts(), beside=self.at_end
            )
            self._forget(token)

    def do_not_forgive(self) -> None:
        """Let the claims that are left count against their feeds: one of their documents may have ended the
        run."""
        self._forgive = False

    def close(self) -> None:
        """Stop the renewal, then end the leases that are left.

        A store's failure is logged, for the lease will lapse.
        """
        self._over.set()
        if self._renewal is not None:
            self._renewal.join()
        for token in list(self._tokens):
            try:
                leases.end(self._database, token, forgive=self._forgive, recent_hosts=self.recent_hosts())
            except InfrastructureError as error:
                logger.warning("a lease could not be ended and will lapse: %s", error)

    def _new_token(self) -> str:
        """Known before the claim is requested: where only its answer is lost, the run's end releases it."""
        token = new_token()
        with self._lock:
            self._tokens.add(token)
        return token

    def _forget(self, token: str) -> None:
        with self._lock:
            self._tokens.discard(token)
            self._renewed.pop(token, None)
            self._unbegun = {id: its for id, its in self._unbegun.items() if its != token}
        self.forget_hosts_of([token])

    def _note_hosts(self, kind: LeaseKind, token: str, hosts: set[str]) -> None:
        if token in self._tokens:
            with self._lock:
                self._hosts[kind][token] = hosts

    def _note(self, tokens: Collection[str], renewed: float, *, lapsed: int) -> None:
        """Note that these leases were renewed, or that so many had lapsed.

        A lease that was ended meanwhile was not renewed either; then nothing is known of the others.
        """
        with self._lock:
            if not lapsed:
                self._renewed.update((token, renewed) for token in tokens if token in self._renewed)
            elif self._renewed.keys() >= set(tokens):
                self._renewed.update(dict.fromkeys(tokens, -math.inf))
                logger.warning("%d leases had lapsed already", lapsed)

    def _keep_alive(self, token: str, *, found: bool, began: float) -> None:
        if not found:
            self._forget(token)
            return
        with self._lock:
            self._renewed[token] = began
        if self._renewal is None:
            self._renewal = threading.Thread(target=self._renew, name="lease renewal", daemon=True)
            self._renewal.start()

    def _renew(self) -> None:
        while not self._over.wait(self._renewal_seconds):
            # Not those of claims that the database has not made yet, nor those that are just ending: it has
            # no such lease, and it would seem to have lapsed.
            with self._lock:
                tokens = list(self._renewed)
            if not tokens:
                continue
            began = self._monotonic()
            try:
                alive = leases.renew(self._database, tokens, lease_seconds=self._lease_seconds)
            except InfrastructureError as error:
                logger.warning("leases could not be renewed: %s", error)
            else:
                self._note(tokens, began, lapsed=len(tokens) - alive)
