"""The ops that one document passes through, from `claim` to `report`: shared by the asset and the jobs.

Each body calls a room: claiming.py, steps.py, reporting.py; for a replay, which begins with `open_backups`
and ends with `report_replay`, replaying.py. The value between two ops is the list of visits.
https://docs.dagster.io/guides/build/ops
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg
from pydantic import Field

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.errors import RegistryError
from rss_pipeline.orchestration.registry_partitions import register
from rss_pipeline.orchestration.reporting import feeds as reporting
from rss_pipeline.orchestration.reporting import replays
from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS
from rss_pipeline.orchestration.reporting.failure_table import failure_table
from rss_pipeline.orchestration.reporting.polls import poll_event
from rss_pipeline.orchestration.ui_labels import kind
from rss_pipeline.pipeline.registry.sync import RegistrySync, sync_registry
from rss_pipeline.pipeline.replay import replay as replaying
from rss_pipeline.pipeline.triggers.poll import ALL_SINCE_TAG
from rss_pipeline.pipeline.visits import backup as backup_step
from rss_pipeline.pipeline.visits import claim as claiming
from rss_pipeline.pipeline.visits import extract_images as extract_images_step
from rss_pipeline.pipeline.visits import fetch as fetch_step
from rss_pipeline.pipeline.visits import our_outage, poll
from rss_pipeline.pipeline.visits import parse as parse_step
from rss_pipeline.pipeline.visits import store as store_step
from rss_pipeline.pipeline.visits.session import Session
from rss_pipeline.pipeline.visits.visit import Refused, Visit
from rss_pipeline.storage.feeds.claimable import Due, Named, NotVisitedSince, Wanted

VISITS_IO_MANAGER = "visits_io_manager"
"""A key of our own: bound as `io_manager`, memory would capture everybody's assets."""

Visits = list[Visit]
SessionResource = dg.ResourceParam[Session]
_visits_out = dg.Out(io_manager_key=VISITS_IO_MANAGER, description="The run's visits and how far each came.")


class ClaimConfig(dg.Config):
    """Which feeds a poll claims. With no field set: those that are due."""

    feeds: list[str] = Field(
        default=[],
        description=(
            "Feed ids to visit, due or not. Empty: all that are due. A run of partitions visits those,"
            " whatever stands here."
        ),
    )
    all: bool = Field(
        default=False,
        description=(
            "Visit every registered feed now, due or not, also those that back off. Where one run cannot"
            " (RSS_BATCH_SIZE feeds, two minutes), `poll_feeds_when_due` starts the next within a minute,"
            " until all were. Requests stay conditional and keep to the pauses; what a host asked to wait for"
            " is waited for."
        ),
    )
    not_visited_since: str | None = Field(
        default=None, description="An instant (UTC, ISO 8601): claim every feed without a visit since then."
    )


@dg.op(
    ins={"registry": dg.In(dg.Nothing, description="Only an order: the op reads feeds.yaml itself.")},
    out=_visits_out,
    tags=kind("sql"),
)
def claim(context: dg.OpExecutionContext, config: ClaimConfig, session: SessionResource) -> Visits:
    """Sync the registry, probe both stores, and claim the feeds this run visits."""
    with session.step():
        synced = _synced(context, session)
        accesses = None if synced is None else synced.accesses
        suspects = synced is None or synced.has_suspects
        reporting.settle(session, context.instance)
        if context.has_partitions:
            wanted: Wanted = Named(ids=list(context.partition_keys), now=session.clock())
        else:
            wanted = _wanted(config, session.clock())
        visits = poll.claim_visits(session, wanted, accesses, suspects=suspects)
        if isinstance(wanted, Named):
            return visits
        context.log.info(f"{len(visits)} feeds claimed")
        if config.all and not config.feeds and visits and isinstance(wanted, NotVisitedSince):
            context.instance.add_run_tags(context.run_id, {ALL_SINCE_TAG: instant(wanted.since)})
        return visits


def _synced(context: dg.OpExecutionContext, session: Session) -> RegistrySync | None:
    """The registry, synced; None, and said so, where it cannot be used."""
    if session.synced is not None:
        return session.synced
    try:
        synced = sync_registry(session.database, session.settings, now=session.clock())
        register(session.database, context.instance, synced)
    except RegistryError as error:
        context.log.error(f"{error}\nThe poll goes on with the feeds as they were.")
        return None
    if not synced.changes.is_empty:
        context.log.info(str(synced))
    return synced


def _wanted(config: ClaimConfig, now: datetime) -> Wanted:
    if config.not_visited_since is not None:
        since = _instant(config.not_visited_since)
        return NotVisitedSince(since=since, now=now, ids=config.feeds or None)
    if config.all:
        return NotVisitedSince(since=now, now=now, ids=config.feeds or None)
    if config.feeds:
        return Named(ids=list(dict.fromkeys(config.feeds)), now=now)
    return Due(now=now)


def _instant(text: str) -> datetime:
    try:
        since = datetime.fromisoformat(text)
    except ValueError:
        raise dg.Failure(
            description=f"not_visited_since: {text!r} is no instant; write it like 2026-02-18T08:30:00Z",
            allow_retries=False,
        ) from None
    return since if since.tzinfo is not None else since.replace(tzinfo=UTC)


@dg.op(out=_visits_out, tags=kind("http"))
def fetch(context: dg.OpExecutionContext, session: SessionResource, visits: Visits) -> Visits:
    """Ask each feed with the validators of its last stored document; close what is unchanged or failed."""
    with session.step():
        return fetch_step.fetch(
            session, visits, round_seconds=None if context.has_partitions else poll.ROUND_SECONDS
        )


@dg.op(out=_visits_out, tags=kind("file"))
def backup(session: SessionResource, visits: Visits) -> Visits:
    """Put each new document into the object store as served, before anything reads it."""
    with session.step():
        return backup_step.backup(session, visits)


@dg.op(out=_visits_out, tags=kind("python"))
def parse(session: SessionResource, visits: Visits) -> Visits:
    """Decode, repair and parse each document in worker processes under a time limit."""
    with session.step():
        return parse_step.parse(session, visits)


@dg.op(out=_visits_out, tags=kind("sql"))
def store(session: SessionResource, visits: Visits) -> Visits:
    """Insert new items, then close each visit: validators, schedule, release of the claim."""
    with session.step():
        return store_step.store(session, visits)


@dg.op(out=_visits_out, tags=kind("sql"))
def extract_images(session: SessionResource, visits: Visits) -> Visits:
    """Write a task for each image of the new items, and of items an earlier run left."""
    with session.step():
        visits = extract_images_step.extract_images(session, visits)
        session.end_leases({visit.token for visit in visits})
        return visits


# No kind: that of the op an asset comes out of would stand on its page in place of the asset's own kinds.
@dg.op(out=dg.Out(dg.Nothing, is_required=False))
def report(context: dg.OpExecutionContext, session: SessionResource, visits: Visits) -> Iterator[Any]:
    """Tell Dagster of every feed that changed; in a backfill, of every feed asked for, and what failed."""
    with session.step():
        session.progress.begin("report", 0)
        rest, held = poll.apart(visits)
        if context.has_partitions:
            _log_summary(context, visits)
            failed = yield from reporting.report_named(session, rest)
            waited = claiming.wait_for(session, held)
            failed += yield from reporting.report_named(session, waited)
            reporting.raise_for(failed, visits=len(visits))
        else:
            visits = [*rest, *claiming.wait_for(session, held)]
            counts = _log_summary(context, visits)
            yield from reporting.report_changes(session, context.instance, visits)
            if claimed := [visit for visit in visits if visit.token]:
                yield poll_event(
                    claimed, started_at=session.opened_at, now=session.clock(), pauses=session.pauses
                )
            our_outage.raise_for_our_outage(visits)
            failed = reporting.failures(visits)
            if any(isinstance(visit.outcome, Refused) for visit in visits):
                # Who named it has a mistake to mend, and would not look into a green run.
                reporting.raise_for(failed, visits=len(visits))
            # First: a long message is cut from below in the run's log.
            table = {"failed_feeds": failure_table(failed)} if failed else {}
            yield dg.Output(None, metadata={**table, **counts})


def _log_summary(context: dg.OpExecutionContext, visits: Visits) -> dict[str, Any]:
    counts = reporting.summary(visits)
    context.log.info(", ".join(f"{name} {count}" for name, count in counts.items()))
    return counts


class ReplayConfig(dg.Config):
    """What a replay does beside bringing in items that are missing."""

    dry_run: bool = Field(
        default=False,
        description="Write nothing at all; tell in a table what would be new, and what reads otherwise now.",
    )
    repair: bool = Field(
        default=False,
        description=(
            "Also rewrite items that read otherwise now in the backup they were stored of. Their old versions"
            " go into the table item_versions; with dry_run they are only told."
        ),
    )


@dg.op(out=_visits_out, tags=kind("file"))
def open_backups(context: dg.OpExecutionContext, config: ReplayConfig, session: SessionResource) -> Visits:
    """A visit of each backup of the feed, oldest first, in place of asking its publisher."""
    with session.step():
        feed = replaying.one_feed(session, context.partition_key)
        visits = replaying.replay_visits(session, feed, dry_run=config.dry_run, repair=config.repair)
        context.log.info(f"{len(visits)} backups of {feed.url}")
        return visits


@dg.op(out=dg.Out(dg.Nothing, is_required=False), tags=kind("python"))
def report_replay(context: dg.OpExecutionContext, session: SessionResource, visits: Visits) -> Iterator[Any]:
    """Tell what the backups brought, what they would bring, and which of them could not be read."""
    with session.step():
        replay = replaying.FeedReplay(feed=replaying.one_feed(session, context.partition_key))
        for visit in visits:
            replay.add(visit)
        told = replays.metadata(replay)
        context.log.info(", ".join(f"{name} {count}" for name, count in replay.counts.items()))
        yield dg.AssetObservation(asset_key=FEED_ITEMS, partition=replay.feed.id, metadata=replay.counts)
        if replay.unread:
            raise dg.Failure(
                description=f"{len(replay.unread)} of {replay.backups} backups could not be read; all others"
                f" were. {replay.unread[0].message}",
                metadata=told,
                allow_retries=False,
            )
        yield dg.Output(None, metadata=told)
