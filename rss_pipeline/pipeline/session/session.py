"""The session of one run: opens its parts, and closes them in their order.

The parts are modules of their own; a step takes those it uses (visits.steps hands them out).
"""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from rss_pipeline.collector.fetch.pacing import Pace
from rss_pipeline.collector.http.client import FetchPolicy
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.collector.models.feed import Access
from rss_pipeline.errors import InfrastructureError, disk_full, disk_is_full
from rss_pipeline.held_folders import LEFTOVER_AGE, SOCKETS, socket_root, sweep
from rss_pipeline.pipeline.registry.sync import RegistrySync
from rss_pipeline.pipeline.session.backup_budget import BackupBudget
from rss_pipeline.pipeline.session.fetch_policy import feed_policy, with_contact
from rss_pipeline.pipeline.session.lease_keeper import CUT_OFF_SECONDS, LeaseKeeper
from rss_pipeline.pipeline.session.parser_pool import ParserPool
from rss_pipeline.pipeline.session.politeness import MakeWay, Politeness
from rss_pipeline.pipeline.session.run_context import RunContext, Spool
from rss_pipeline.progress import NoProgress, Progress
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database, open_objects
from rss_pipeline.storage.feeds.leases import RecentHosts
from rss_pipeline.storage.installation import (
    TroubleKind,
    forget_poll_trouble,
    note_poll_trouble,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """The parts that a run takes from the process it is in; what is missing it makes for itself."""

    pace: Pace | None = None
    image_pace: Pace | None = None
    parser_pool: ParserPool | None = None
    synced: RegistrySync | None = None
    """The registry as this process synced it just before the run; None: the run does it."""


class Session:
    """Run context, lease keeper, politeness, spool and parser pool of one run.

    As a context manager: entering it removes what killed processes left; leaving it ends the leases that are
    left and deletes the spool folder. Where the run ended politely, or because a store failed, its leases do
    not count against their feeds; after any other exception in a `step` they do, for one of their documents
    may have caused it.
    """

    def __init__(
        self,
        run: RunContext,
        shared: Shared | None = None,
        *,
        policy: FetchPolicy | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        shared = shared or Shared()
        self.run = replace(run, settings=with_contact(run.settings, run.database))
        self.opened_at = run.clock()
        settings, database, run_id, clock = self.run.settings, run.database, run.run_id, run.clock
        self.leases = LeaseKeeper(
            database,
            run_id=run_id,
            lease_seconds=settings.lease_seconds,
            cut_off_seconds=None if settings.runs_elsewhere is None else CUT_OFF_SECONDS,
            recent_hosts=self._recent_hosts,
        )
        self.politeness = Politeness("hosts", database=database, clock=clock, pace=shared.pace)
        self.image_politeness = Politeness(
            "image_holds", database=database, clock=clock, pace=shared.image_pace
        )
        self.other_runs = MakeWay(
            database, clock=clock, lease_keeper=self.leases, holds=self.politeness.holds
        )
        self.backup_budget = BackupBudget(database, most=settings.most_user_backup_bytes, clock=clock)
        self.spool = Spool(settings.spool_path, run_id=run_id)
        self.parser_pool = shared.parser_pool or ParserPool(
            processes=settings.parse_workers, timeout=settings.parse_timeout_seconds
        )
        self.policy = policy or feed_policy(settings)
        self.synced = shared.synced
        self.accesses: Mapping[str, Access] | None = None
        """The headers and passwords of feeds as the claim of this run read them; None: they are not known."""
        self._monotonic = monotonic
        self._began = monotonic()

    @property
    def seconds(self) -> float:
        """The time that the run has lasted."""
        return self._monotonic() - self._began

    def __enter__(self) -> Self:
        sweep(self.run.settings.spool_path, before=self.run.clock() - LEFTOVER_AGE)
        with suppress(OSError):
            sweep(socket_root(), prefix=SOCKETS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.leases.close()
        finally:
            self.parser_pool.close()
            self.spool.remove()

    def met(self, kind: TroubleKind) -> None:
        """Note for pages what keeps this run from visiting feeds."""
        with suppress(InfrastructureError):
            note_poll_trouble(self.run.database, kind, now=self.run.clock())

    def answered(self) -> None:
        """Note that this run visits feeds: with the end of its leases, nothing keeps it from that."""
        self.leases.at_end = forget_poll_trouble()

    def _recent_hosts(self) -> RecentHosts:
        settings = self.run.settings
        delay, image_delay = self.policy.host_delay, settings.image_host_delay_seconds
        return RecentHosts(
            run_id=self.run.run_id,
            seconds=max(delay, image_delay),
            hosts=self.politeness.pace.recent_hosts(delay),
            image_hosts=self.image_politeness.pace.recent_hosts(image_delay),
        )

    @contextmanager
    def step(self) -> Iterator[None]:
        """Around each op: notes what kind of exception ends the run."""
        try:
            yield
        except InfrastructureError:
            raise
        except Exception as error:
            if disk_is_full(error, at=self.run.settings.home):
                # Also that of Dagster's event log, or of the log of this run.
                raise InfrastructureError(
                    f"{disk_full(self.run.settings.home)}. Cause: {type(error).__name__}: {error}"
                ) from error
            self.leases.do_not_forgive()
            raise


@contextmanager
def session_of_command(
    settings: Settings, command: str, *, progress: Progress | None = None
) -> Iterator[Session]:
    """A session for one call of a command, within its one step; its stores are closed at the end."""
    with (
        open_database(settings) as database,
        Session(
            RunContext(
                settings=settings,
                database=database,
                objects=open_objects(settings),
                run_id=f"{command}-{uuid.uuid4()}",
                clock=utc_now,
                progress=progress or NoProgress(),
            )
        ) as session,
        session.step(),
    ):
        yield session
