"""The ops of replays: from `open_backups` to `report_replay` for the job `replay_backups`; `replay_part` for
the job `replay_all`.

Each body calls pipeline/replay. The value between two ops is the list of backups.
https://docs.dagster.io/guides/build/ops
"""

from collections.abc import Iterator
from typing import Any

import dagster as dg
from pydantic import Field

from rss_pipeline.batched import batched
from rss_pipeline.features.replay import parts, replay, steps
from rss_pipeline.features.replay import report as replays
from rss_pipeline.features.replay.backup_visit import BackupVisits
from rss_pipeline.features.streams.model import streams_of
from rss_pipeline.features.streams.report import report_judged
from rss_pipeline.orchestration.cause_first import run_step
from rss_pipeline.orchestration.instance.record_events import record_events
from rss_pipeline.orchestration.ops.visits import SessionResource, visits_in, visits_out
from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS
from rss_pipeline.orchestration.run_config import plain
from rss_pipeline.orchestration.ui_labels import kind
from rss_pipeline.pipeline.registry.sync import registered_accesses

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
        done = replay.FeedReplay(feed=feed)
        for visit in visits:
            done.add(visit)
        if visits and not visits[0].dry_run:
            replay.end_judgement_of(database, done)
        metadata = replays.metadata(done)
        context.log.info(", ".join(f"{name} {count}" for name, count in done.counts.items()))
        yield dg.AssetObservation(asset_key=FEED_ITEMS, partition=done.feed.id, metadata=done.counts)
        streams = [f"{done.feed.id}/{stream.name}" for stream in streams_of(done.feed)]
        for events in report_judged(database, context.instance, streams):
            record_events(context, events)
        if done.unread:
            raise dg.Failure(
                description=f"{done.unread[0].message} {len(done.unread)} of {done.backups} backups could not"
                " be read; all others were.",
                metadata=metadata,
                allow_retries=False,
            )
        yield dg.Output(None, metadata=metadata)


@dg.op(config_schema=plain(ReplayConfig), out=dg.Out(dg.Nothing, is_required=False), tags=kind("file"))
def replay_part(context: dg.OpExecutionContext, session: SessionResource) -> Iterator[Any]:
    """Replay all feeds of this part, and report those whose items differ; no request is made."""
    config = ReplayConfig(**context.op_config)
    with run_step(context, session):
        run = session.run
        part = parts.Part.read(context.partition_key)
        ids = parts.feeds_of(run.database, part)
        context.log.info(f"{len(ids)} feeds in part {part}")
        done = replays.PartReplay()
        streams: set[str] = set()
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
            streams.update(
                f"{each.feed.id}/{stream.name}" for each in some for stream in streams_of(each.feed)
            )
        for events in report_judged(run.database, context.instance, streams):
            record_events(context, events)
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
