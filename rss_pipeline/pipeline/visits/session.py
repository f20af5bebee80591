"""What a run needs to visit feeds, and its leases: opened at the run's start, ended with it.

The steps themselves are in steps.py and claiming.py.
"""

import logging
import shutil
import tempfile
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from rss_pipeline.collector.fetch.holds import Holds
from rss_pipeline.collector.fetch.pacing import Pace
from rss_pipeline.collector.http.client import FetchPolicy
from rss_pipeline.collector.models.clock import Clock, instant
from rss_pipeline.errors import InfrastructureError
from rss_pipeline.pipeline.registry.sync import RegistrySync
from rss_pipeline.pipeline.visits.parser_pool import ParserPool
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import claims, leases
from rss_pipeline.storage.feeds.claimable import Due, Wanted
from rss_pipeline.storage.feeds.holds import Kept, keep_holds, known_holds, known_statement
from rss_pipeline.storage.images.claims import ImageClaim, claim_images
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.sql import new_token

logger = logging.getLogger("rss_pipeline")


class Progress(Protocol):
    """Hears how far a run is. Called from the run's own thread, in the order of the ops."""

    def begin(self, step: str, total: int) -> None:
        """A step starts with so many feeds before it."""
        ...

    def advance(self, step: str) -> None:
        """One of them is done with the step."""
        ...


class NoProgress:
    """A Progress that ignores every call."""

    def begin(self, step: str, total: int) -> None: ...

    def advance(self, step: str) -> None: ...


class Session:
    """The stores, the policy, the workers, the spool folder and the leases of one run.

    As a context manager: leaving it ends what leases are left and deletes the spool folder. A lease whose
    run ended politely, or because a store failed, does not count against its feeds; after any other
    exception it does, for one of their documents may have caused it.
    """

    def __init__(
        self,
        *,
        settings: Settings,
        database: Database,
        objects: ObjectStore,
        run_id: str,
        clock: Clock,
        progress: Progress | None = None,
        pace: Pace | None = None,
        image_pace: Pace | None = None,
        synced: RegistrySync | None = None,
    ) -> None:
        self.settings = settings
        self.database = database
        self.objects = objects
        self.run_id = run_id
        self.clock = clock
        self.opened_at = clock()
        self.progress = progress or NoProgress()
        self.pace = pace or Pace()
        self.image_pace = image_pace or Pace()
        """Of its own: a site's images and its feed do not wait for each other."""
        self.holds, self.image_holds = Holds(clock), Holds(clock)
        """The pauses that hosts asked for, as far as this run knows; an image's answer holds images only."""
        self.pauses: dict[str, datetime] = {}
        """Ends of the pauses that were known when the hosts' feeds were claimed, by host; most are over."""
        self.synced = synced
        """The registry as this process synced it just before the run; None: the run does it."""
        self.workers = ParserPool(processes=settings.parse_workers, timeout=settings.parse_timeout_seconds)
        self.policy = FetchPolicy(
            user_agent=settings.user_agent,
            concurrency=settings.fetch_concurrency,
            host_delay=settings.host_delay_seconds,
            proxy=settings.proxy,
            ca_file=settings.ca_file,
            allow_networks=settings.allow_networks,
            allow_ports=settings.allow_ports,
        )
        self._spool: Path | None = None
        self._tokens: set[str] = set()
        self._merely_due: set[str] = set()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._renewal: threading.Thread | None = None
        self._forgive = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._renewal is not None:
            self._renewal.join()
        try:
            for token in list(self._tokens):
                try:
                    leases.end(self.database, token, forgive=self._forgive)
                except InfrastructureError as trouble:
                    logger.warning("a lease could not be given back and will lapse: %s", trouble)
        finally:
            self.workers.close()
            if self._spool is not None:
                shutil.rmtree(self._spool, ignore_errors=True)

    @property
    def spool(self) -> Path:
        """The run's own folder for bodies and parsed rows."""
        if self._spool is None:
            self.settings.spool_path.mkdir(parents=True, exist_ok=True)
            self._spool = Path(tempfile.mkdtemp(prefix=f"{self.run_id[:8]}-", dir=self.settings.spool_path))
        return self._spool

    @contextmanager
    def step(self) -> Iterator[None]:
        """Around each op: notes what kind of exception ends the run."""
        try:
            yield
        except InfrastructureError:
            raise
        except Exception:
            self._forgive = False
            raise

    def claim(self, wanted: Wanted, *, limit: int, suspects: bool = False) -> claims.Claim:
        """Claim feeds and keep the claim alive until `end_lease` or the end of the run."""
        token = self._new_token()
        if isinstance(wanted, Due):
            self._merely_due.add(token)
        claim = claims.claim(
            self.database,
            wanted,
            run_id=self.run_id,
            lease_seconds=self.settings.lease_seconds,
            limit=limit,
            suspects=suspects,
            token=token,
        )
        self.holds.load(claim.holds.hosts, claim.holds.feeds)
        self.pauses = {**{hold.host: hold.until for hold in claim.holds.hosts}, **self.pauses}
        self._keep_alive(token, found=bool(claim.feeds))
        return claim

    def await_hosts(self, ids: Sequence[str]) -> str:
        """Wait for the hosts of these feeds, which other runs have, and go first there, until this run or the
        lease whose token this gives ends."""
        token = self._new_token()
        leases.await_hosts(
            self.database,
            ids,
            run_id=self.run_id,
            lease_seconds=self.settings.lease_seconds,
            token=token,
        )
        self._keep_alive(token, found=True)
        return token

    def awaited_hosts(self) -> Collection[str]:
        """Hosts that a refresh by hand waits for while this run has them for what is merely due.

        Also brings what other runs' hosts were told in the meantime.
        """
        ours = sorted(self._merely_due & self._tokens)
        try:
            known, waiting = self.database.batch(
                [known_statement(self.clock()), leases.awaited_statement(ours)]
            )
        except InfrastructureError as trouble:
            logger.warning("whether somebody waits for a host is not known: %s", trouble)
            return ()
        holds = known_holds(known)
        self.holds.load(holds.hosts, holds.feeds)
        return [row["host"] for row in waiting.rows]

    def release_hosts(self, hosts: Collection[str], given_back: Collection[str]) -> None:
        """Leave these hosts, where nobody of this run is any more, to whoever waits for them."""
        logger.info("a refresh by hand goes first at %s", ", ".join(sorted(hosts)))
        ours = sorted(self._merely_due & self._tokens)
        try:
            leases.release(
                self.database,
                [leases.Release(feed_id=id, token=token) for token in ours for id in sorted(given_back)],
                others=[leases.free_hosts(ours, sorted(hosts))],
            )
        except InfrastructureError as trouble:
            logger.warning("hosts that somebody waits for could not be let go: %s", trouble)

    def claim_images(self, *, limit: int) -> ImageClaim:
        """Claim image tasks that are due, likewise."""
        token = self._new_token()
        claim = claim_images(
            self.database,
            now=self.clock(),
            run_id=self.run_id,
            lease_seconds=self.settings.lease_seconds,
            limit=limit,
            token=token,
        )
        self.image_holds.load(claim.holds.images, foreign=claim.holds.hosts)
        self._keep_alive(token, found=bool(claim.tasks))
        return claim

    def keep_holds(self) -> None:
        """Write what hosts asked for since the last time, or no longer ask for; nearly always nothing.

        At once and not at the visit's close: a run that dies in between would let the next one ask again.
        """
        kept: tuple[tuple[Kept, Holds], ...] = (("hosts", self.holds), ("image_holds", self.image_holds))
        for table, holds in kept:
            if not (news := holds.changes()).is_empty:
                keep_holds(
                    self.database,
                    table,
                    hosts=news.hosts,
                    feeds=news.feeds,
                    recovered=news.recovered,
                    now=self.clock(),
                )
                for hold in news.hosts:
                    logger.info("%s is left alone until %s: %s", hold.host, instant(hold.until), hold.reason)

    def _new_token(self) -> str:
        """Known before it is asked for: where only the answer is lost, the run's end gives the claim back."""
        token = new_token()
        with self._lock:
            self._tokens.add(token)
        return token

    def _keep_alive(self, token: str, *, found: bool) -> None:
        if not found:
            with self._lock:
                self._tokens.discard(token)
        elif self._renewal is None:
            self._renewal = threading.Thread(target=self._renew, name="lease renewal", daemon=True)
            self._renewal.start()

    def end_leases(self, tokens: set[str]) -> None:
        """Every visit of these claims is closed or given back."""
        for token in tokens & self._tokens:
            leases.end(self.database, token, forgive=True)
            with self._lock:
                self._tokens.discard(token)

    def _renew(self) -> None:
        while not self._over.wait(self.settings.lease_seconds / 3):
            with self._lock:
                tokens = list(self._tokens)
            if not tokens:
                continue
            try:
                alive = leases.renew(self.database, tokens, lease_seconds=self.settings.lease_seconds)
            except InfrastructureError as trouble:
                logger.warning("leases could not be renewed: %s", trouble)
            else:
                if alive < len(tokens):
                    logger.warning("%d leases had lapsed already", len(tokens) - alive)
