"""The op `claim`: which feeds a poll visits, by its configuration or its partitions.

The claim itself is in pipeline/visits/claim.py.
"""

from datetime import UTC, datetime
from typing import Any

import dagster as dg
from pydantic import Field

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.shard import Shard
from rss_pipeline.errors import RegistryError
from rss_pipeline.orchestration.cause_first import run_step
from rss_pipeline.orchestration.ops.visits import SessionResource, Visits, visits_out
from rss_pipeline.orchestration.registry_partitions import register
from rss_pipeline.orchestration.reporting import feeds as reporting
from rss_pipeline.orchestration.run_config import plain
from rss_pipeline.orchestration.ui_labels import kind
from rss_pipeline.pipeline.registry.sync import RegistrySync, registered_accesses, sync_registry
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.pipeline.triggers.poll import ALL_SINCE_TAG
from rss_pipeline.pipeline.triggers.shards import SHARD_TAG
from rss_pipeline.pipeline.visits import poll
from rss_pipeline.pipeline.visits.claim import Accesses
from rss_pipeline.storage.feeds.claimable import Due, Named, NotVisitedSince, Wanted


class ClaimConfig(dg.Config):
    """The feeds that a poll claims. With no field set: those that are due."""

    feeds: list[str] = Field(
        default=[],
        description=(
            "Feed ids to visit, due or not. Empty: all feeds that are due. A run of partitions visits its"
            " partitions and ignores this field."
        ),
    )
    all: bool = Field(
        default=False,
        description=(
            "Visit every registered feed now, due or not, also feeds in back-off. One run visits at most"
            " RSS_BATCH_SIZE feeds and starts requests for two minutes; the sensor `poll_feeds_when_due`"
            " starts the next run within a minute, until all were visited. Requests stay conditional and"
            " paced; a host on hold is left alone until its hold ends."
        ),
    )
    not_visited_since: str | None = Field(
        default=None, description="An instant (UTC, ISO 8601). Visit every feed without a visit since then."
    )
    shard: int | None = Field(
        default=None,
        description=(
            "Visit feeds of this shard only, 1 to `shards`; the sensor sets both where RSS_SHARDS is more"
            " than 1. Not set: feeds of all shards. Feeds that are named are visited whatever their shard."
        ),
    )
    shards: int | None = Field(default=None, description="The number of shards, if `shard` is set.")


@dg.op(
    ins={"registry": dg.In(dg.Nothing, description="Sets the order only; the op reads feeds.yaml itself.")},
    out=visits_out,
    config_schema=plain(ClaimConfig),
    tags=kind("sql"),
)
def claim(context: dg.OpExecutionContext, session: SessionResource) -> Visits:
    """Sync the registry, check that both stores work, and claim the feeds that this run visits."""
    config = ClaimConfig(**context.op_config)
    with run_step(context, session):
        synced = synced_registry(context, session)
        accesses = session.accesses = accesses_of(session, synced)
        suspects = None if synced is None else synced.suspects
        reporting.mark_recorded(session.run, context.instance)
        wanted = wanted_feeds(context, config, session.run.clock())
        _tag_shard(context, wanted)
        visits = poll.claim_visits(session, wanted, accesses, suspects=suspects)
        if isinstance(wanted, Named):
            return visits
        context.log.info(f"{len(visits)} feeds claimed")
        if config.all and not config.feeds and visits and isinstance(wanted, NotVisitedSince):
            context.instance.add_run_tags(context.run_id, {ALL_SINCE_TAG: instant(wanted.since)})
        return visits


def synced_registry(context: dg.OpExecutionContext, session: Session) -> RegistrySync | None:
    """The registry, synced; None, with an error in the run's log, if feeds.yaml has mistakes.

    None where other machines execute runs, too: they may have another feeds.yaml, or none. The sensor of the
    main machine syncs.
    """
    if session.synced is not None or session.run.settings.runs_elsewhere is not None:
        return session.synced
    try:
        synced = sync_registry(session.run.database, session.run.settings, now=session.run.clock())
        register(session.run.database, context.instance, synced)
    except RegistryError as error:
        context.log.error(f"{error}\nThe poll continues with the feeds as they were.")
        return None
    if not synced.changes.is_empty:
        context.log.info(str(synced))
    return synced


def accesses_of(session: Session, synced: RegistrySync | None) -> Accesses:
    """The headers and passwords of feeds, by their ids; None where they are not known. A worker reads them in
    the feeds.yaml of its own machine."""
    settings = session.run.settings
    if synced is not None:
        return synced.accesses
    if settings.runs_elsewhere is not None and settings.feeds_file.exists():
        return registered_accesses(settings)
    return None


def wanted_feeds(context: dg.OpExecutionContext, config: ClaimConfig, now: datetime) -> Wanted:
    """The feeds that a run's partitions, or else its configuration, name."""
    if context.has_partitions:
        return Named(ids=list(context.partition_keys), now=now)
    shard = None if config.feeds else shard_of(config)
    if config.not_visited_since is not None or config.all:
        since = now if config.not_visited_since is None else _instant(config.not_visited_since)
        ids = config.feeds or None
        return NotVisitedSince(since=since, now=now, ids=ids, shard=shard, rested=ids is not None)
    if config.feeds:
        return Named(ids=list(dict.fromkeys(config.feeds)), now=now)
    return Due(now=now, shard=shard)


def claim_config(context: dg.OpExecutionContext) -> ClaimConfig:
    """The configuration of `claim`, for an op after it of the same run."""
    config: Any = context.run_config
    return ClaimConfig(**config.get("ops", {}).get("claim", {}).get("config", {}))


def shard_of(config: ClaimConfig) -> Shard | None:
    """The shard that a poll is limited to; None for all feeds."""
    if config.shard is None and config.shards is None:
        return None
    try:
        found = Shard(number=config.shard or 0, of=config.shards or 0)
    except ValueError as error:
        raise dg.Failure(
            description=f"{error}; set both `shard` and `shards`, or none for all feeds", allow_retries=False
        ) from None
    return found if found.of > 1 else None


def _tag_shard(context: dg.OpExecutionContext, wanted: Wanted) -> None:
    """Also for a run that a person started: the sensor starts no second one of its shard."""
    if not isinstance(wanted, Named) and wanted.shard is not None and SHARD_TAG not in context.run_tags:
        context.instance.add_run_tags(context.run_id, {SHARD_TAG: str(wanted.shard)})


def _instant(text: str) -> datetime:
    try:
        since = datetime.fromisoformat(text)
    except ValueError:
        raise dg.Failure(
            description=f"not_visited_since: {text!r} is not an instant; write it like 2026-02-18T08:30:00Z",
            allow_retries=False,
        ) from None
    return since if since.tzinfo is not None else since.replace(tzinfo=UTC)
