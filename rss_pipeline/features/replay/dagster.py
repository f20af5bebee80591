"""The jobs `replay_backups` and `replay_all` with their ops, and what they report.

The value between two ops is the list of backups.
https://docs.dagster.io/guides/build/ops
"""

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
from pydantic import Field

from rss_pipeline.batched import batched
from rss_pipeline.collector.models.feed_names import short_title
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.features import FEATURES
from rss_pipeline.features.replay import service as replay
from rss_pipeline.features.replay import steps
from rss_pipeline.features.replay.model import FINDINGS_KEPT, BackupVisits
from rss_pipeline.features.replay.service import FeedReplay, ReplayPart, ReplayProblem
from rss_pipeline.orchestration.cause_first import run_step
from rss_pipeline.orchestration.dagster_private import (
    BulkActionsFilter,
    BulkActionStatus,
    InstigatorState,
    InstigatorType,
    PartitionBackfill,
    RemotePartitionSetOrigin,
    RemoteRepositoryOrigin,
    SensorInstigatorData,
    make_new_backfill_id,
    partition_set_snap_name_for_job_name,
)
from rss_pipeline.orchestration.instance.record_events import record_events
from rss_pipeline.orchestration.partitions import feeds_partitions
from rss_pipeline.orchestration.parts import Building, DagsterParts
from rss_pipeline.orchestration.poll_ops import SessionResource, visits_in, visits_out
from rss_pipeline.orchestration.queueing import REPLAY_TAG
from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS
from rss_pipeline.orchestration.run_config import QUIET, plain
from rss_pipeline.orchestration.ui_labels import OWNERS, kind
from rss_pipeline.pipeline.registry.sync import registered_accesses
from rss_pipeline.storage.database import Database

REPLAY_BACKUPS = "replay_backups"
REPLAY_ALL = "replay_all"
REPLAY_TAGS = {"dagster/priority": "-2", REPLAY_TAG: "1"}
"""After polls, which have -1."""

_FEEDS_AT_ONCE = 100
"""Their events are one transaction."""


class ReplayConfig(dg.Config):
    """The options of a replay. With no field set, it stores the items that are missing."""

    dry_run: bool = Field(
        default=False,
        description=(
            "Write nothing; list the items that would be new and the items that the parser now reads"
            " differently."
        ),
    )
    repair: bool = Field(
        default=False,
        description=(
            "Also rewrite items that the parser now reads differently in the backup they came from. Their old"
            " versions are kept in the table item_versions; with dry_run they are only listed."
        ),
    )


@dg.op(config_schema=plain(ReplayConfig), out=visits_out, tags=kind("file"))
def open_backups(context: dg.OpExecutionContext, session: SessionResource) -> BackupVisits:
    """List the backups of the feed, oldest first; no request is made to its publisher."""
    config = ReplayConfig(**context.op_config)
    with run_step(context, session):
        run = session.run
        feed = replay.one_feed(run.database, context.partition_key)
        visits = replay.backup_visits(
            feed,
            run.objects,
            access=registered_accesses(run.settings).get(feed.id),
            dry_run=config.dry_run,
            repair=config.repair,
        )
        context.log.info(f"{len(visits)} backups of {feed.url}")
        return visits


@dg.op(ins=visits_in, out=visits_out, tags=kind("python"))
def parse_backups(
    context: dg.OpExecutionContext, session: SessionResource, visits: BackupVisits
) -> BackupVisits:
    """Decode, repair and parse each backup in worker processes with a time limit."""
    with run_step(context, session):
        return steps.parse(visits, run=session.run, pool=session.parser_pool, spool=session.spool)


@dg.op(ins=visits_in, out=visits_out, tags=kind("sql"))
def store_backups(
    context: dg.OpExecutionContext, session: SessionResource, visits: BackupVisits
) -> BackupVisits:
    """Insert the items that are missing, or, in a dry run, find them."""
    with run_step(context, session):
        return steps.store(visits, run=session.run)


@dg.op(ins=visits_in, out=visits_out, tags=kind("sql"))
def extract_backup_images(
    context: dg.OpExecutionContext, session: SessionResource, visits: BackupVisits
) -> BackupVisits:
    """Store a download task for each image of the items that were inserted or rewritten."""
    with run_step(context, session):
        return steps.extract_images(visits, run=session.run, pool=session.parser_pool)


@dg.op(ins=visits_in, out=dg.Out(dg.Nothing, is_required=False), tags=kind("python"))
def report_replay(
    context: dg.OpExecutionContext, session: SessionResource, visits: BackupVisits
) -> Iterator[Any]:
    """Report the new or differing items, and the backups that could not be read."""
    with run_step(context, session):
        database = session.run.database
        feed = visits[0].feed if visits else replay.one_feed(database, context.partition_key)
        done = replay.FeedReplay(feed=feed, features=visits[0].features if visits else ())
        for visit in visits:
            done.add(visit)
        if visits and not visits[0].dry_run:
            done.end(database)
        metadata = metadata_of(done)
        context.log.info(", ".join(f"{name} {count}" for name, count in done.counts.items()))
        yield dg.AssetObservation(asset_key=FEED_ITEMS, partition=done.feed.id, metadata=done.counts)
        _record_features(context, database, [done.feed.id])
        if done.unread:
            raise dg.Failure(
                description=f"{done.unread[0].message} {len(done.unread)} of {done.backups} backups could not"
                " be read; all others were.",
                metadata=metadata,
                allow_retries=False,
            )
        yield dg.Output(None, metadata=metadata)


def _record_features(context: dg.OpExecutionContext, database: Database, feed_ids: Collection[str]) -> None:
    for feature in FEATURES:
        if feature.replaying is not None and feature.replaying.events is not None:
            for events in feature.replaying.events.load()(database, context.instance, feed_ids):
                record_events(context, events)


@dg.op(config_schema=plain(ReplayConfig), out=dg.Out(dg.Nothing, is_required=False), tags=kind("file"))
def replay_part(context: dg.OpExecutionContext, session: SessionResource) -> Iterator[Any]:
    """Replay all feeds of this part, and report those whose items differ; no request is made."""
    config = ReplayConfig(**context.op_config)
    with run_step(context, session):
        run = session.run
        part = replay.ReplayPart.read(context.partition_key)
        ids = replay.feeds_of(run.database, part)
        context.log.info(f"{len(ids)} feeds in part {part}")
        done = PartReplay()
        replayed_ids: set[str] = set()
        replayed = replay.replay_feeds(
            ids,
            run=run,
            pool=session.parser_pool,
            spool=session.spool,
            dry_run=config.dry_run,
            repair=config.repair,
        )
        for some in batched(replayed, _FEEDS_AT_ONCE):
            record_events(context, [event for each in some if (event := done.add(each)) is not None])
            replayed_ids.update(each.feed.id for each in some)
        _record_features(context, run.database, replayed_ids)
        metadata = done.metadata()
        if ids:
            context.log.info(", ".join(f"{name} {count}" for name, count in done.counts.items()))
        if unread := done.counts.get("backups_unread"):
            raise dg.Failure(
                description=f"{done.problems[0].message} {unread} of {done.counts['backups']} backups could"
                " not be read; all others were.",
                metadata=metadata,
                allow_retries=False,
            )
        yield dg.Output(None, metadata=metadata)


@dg.job(
    name=REPLAY_BACKUPS,
    partitions_def=feeds_partitions,
    tags=REPLAY_TAGS,
    owners=OWNERS,
    description=(
        "Reads all backups of a feed again, oldest first, and stores the items that are missing, with the"
        " ids and dates that they would have had. No request is made to the publisher; validators, counts and"
        " schedule stay as they are. With `dry_run` it writes nothing and lists the items that would be new"
        " and the items that the parser now reads differently; with `repair` it rewrites those. One run for"
        " each feed; start a backfill for several feeds, and `replay_all` for all. A run fails only if a"
        " backup could not be read or a store fails."
    ),
)
def replay_backups() -> None:
    visits = parse_backups.alias("parse")(open_backups())
    visits = store_backups.alias("store")(visits)
    visits = extract_backup_images.alias("extract_images")(visits)
    report_replay(visits)


def build_replay_all(shards: int) -> dg.JobDefinition:
    """The job `replay_all`, with 16 partitions for each of RSS_SHARDS."""

    @dg.job(
        name=REPLAY_ALL,
        partitions_def=dg.StaticPartitionsDefinition([str(part) for part in replay.parts(shards)]),
        tags=REPLAY_TAGS,
        owners=OWNERS,
        description=(
            "Reads all backups of all feeds again, as `replay_backups` does for one feed. Each partition is a"
            " part of the feeds, by their ids, and its runs read each backup of these feeds once: start a"
            " backfill of all partitions. Several of its runs work at once, on all workers of a fleet, after"
            " polls. A run that was ended may be started again, with the partitions that are missing or"
            " failed. `rss-pipeline replay --all --queue` starts the same, with `dry_run` or `repair` for all"
            " runs. A run fails only if a backup could not be read, after all others were, or a store fails."
        ),
    )
    def replay_all() -> None:
        replay_part()

    return replay_all


def dagster_parts(of: Building) -> DagsterParts:
    """Both jobs."""
    return DagsterParts(jobs=[replay_backups, build_replay_all(of.settings.shards)])


# The result of a replay as Dagster metadata: counts and tables.


def findings_table(replay: FeedReplay) -> dg.TableMetadataValue:
    """A table of the new and differing items."""
    names = ("item", "title", "what", "fields")
    return dg.MetadataValue.table(
        records=[
            dg.TableRecord(
                {
                    "item": each.item_id,
                    "title": (each.title or "")[:100],
                    "what": each.what,
                    "fields": ", ".join(each.fields),
                }
            )
            for each in replay.findings
        ],
        schema=dg.TableSchema(columns=[dg.TableColumn(name) for name in names]),
    )


def problems_table(problems: Sequence[ReplayProblem]) -> dg.TableMetadataValue:
    """A table of the backups without items."""
    names = ("backup", "kind", "message")
    return dg.MetadataValue.table(
        records=[
            dg.TableRecord({"backup": each.backup_key, "kind": each.kind, "message": each.message[:500]})
            for each in problems[:FINDINGS_KEPT]
        ],
        schema=dg.TableSchema(columns=[dg.TableColumn(name) for name in names]),
    )


def metadata_of(replay: FeedReplay) -> dict[str, Any]:
    """The metadata of a feed's replay: counts, and the tables that have rows."""
    found: dict[str, Any] = dict(replay.counts)
    if replay.findings:
        found["items"] = findings_table(replay)
        found["items_listed"] = f"{len(replay.findings)} of {replay.findings_in_all}"
    if replay.problems:
        found["backups_without_items"] = problems_table(replay.problems)
    return found


@dataclass(slots=True, kw_only=True)
class PartReplay:
    """The result of a replay of many feeds; of most feeds it keeps their counts alone."""

    feeds: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    changed: list[tuple[str, str, int, int, int]] = field(default_factory=list)
    """The first feeds with other items than are stored: id, title and counts."""
    problems: list[ReplayProblem] = field(default_factory=list)
    """The first of them, those to fix only."""

    def add(self, replay: FeedReplay) -> dg.AssetObservation | None:
        """Take in the next feed; return its event, which most feeds need not have."""
        self.feeds += 1
        for name, count in replay.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count
        self.problems += replay.unread[: FINDINGS_KEPT - len(self.problems)]
        if not (replay.findings_in_all or replay.unread):
            return None
        if len(self.changed) < FINDINGS_KEPT:
            found = (replay.items_new, replay.items_differ, replay.items_gone)
            self.changed.append((replay.feed.id, short_title(replay.feed.title), *found))
        return dg.AssetObservation(asset_key=FEED_ITEMS, partition=replay.feed.id, metadata=replay.counts)

    def metadata(self) -> dict[str, Any]:
        """Counts, and the tables that have rows."""
        found: dict[str, Any] = {"feeds": self.feeds, **self.counts}
        if self.changed:
            names = ("items_new", "items_differ", "items_gone")
            columns = [dg.TableColumn(name) for name in ("feed", "title")]
            columns += [dg.TableColumn(name, type="int") for name in names]
            records = [
                dg.TableRecord(dict(zip(("feed", "title", *names), row, strict=True))) for row in self.changed
            ]
            schema = dg.TableSchema(columns=columns)
            found["changed_feeds"] = dg.MetadataValue.table(records=records, schema=schema)
        if self.problems:
            found["backups_without_items"] = problems_table(self.problems)
        return found


# A backfill of the job `replay_all`, as the UI's button starts it, but with a config for its runs.
#
# Dagster's daemon makes the runs, and continues where it was interrupted. What a run does is dagster.py's.
# https://docs.dagster.io/guides/build/partitions-and-backfills/backfilling-data

_SENSOR = "poll_feeds_when_due"
_UNENDED = [BulkActionStatus.REQUESTED, BulkActionStatus.CANCELING, BulkActionStatus.FAILING]


def start_replay_of_all(
    instance: dg.DagsterInstance, parts: list[ReplayPart], *, dry_run: bool, repair: bool
) -> str:
    """Request the backfill, and return its id. Its runs begin when `rss-pipeline up` is running.

    Raises:
        RssPipelineError: another one has not ended, or `rss-pipeline up` never ran with this instance.
    """
    name = partition_set_snap_name_for_job_name(REPLAY_ALL)
    for found in instance.get_backfills(BulkActionsFilter(statuses=_UNENDED)):
        if found.partition_set_name == name:
            raise RssPipelineError(f"a replay of all feeds has not ended: backfill {found.backfill_id}")
    backfill = PartitionBackfill(
        backfill_id=make_new_backfill_id(),
        status=BulkActionStatus.REQUESTED,
        from_failure=False,
        tags={},
        backfill_timestamp=time.time(),
        run_config={**QUIET, "ops": {"replay_part": {"config": {"dry_run": dry_run, "repair": repair}}}},
        partition_set_origin=RemotePartitionSetOrigin(
            repository_origin=_repository(instance), partition_set_name=name
        ),
        partition_names=[str(part) for part in parts],
    )
    instance.add_backfill(backfill)
    return backfill.backfill_id


def _repository(instance: dg.DagsterInstance) -> RemoteRepositoryOrigin:
    """Our definitions as the daemon has them: a project on top of this one names them as it likes."""
    states = [
        state
        for state in instance.all_instigator_state(instigator_type=InstigatorType.SENSOR)
        if state.name == _SENSOR and isinstance(state.instigator_data, SensorInstigatorData)
    ]
    if not states:
        raise RssPipelineError("start `rss-pipeline up` first: its daemon makes the runs")
    return max(states, key=_last_tick).origin.repository_origin


def _last_tick(state: InstigatorState) -> float:
    assert isinstance(state.instigator_data, SensorInstigatorData)
    return state.instigator_data.last_tick_timestamp or 0.0
