"""The job `purge_history`: it removes old run history, and reports what it removed.

schedules.py starts it.
https://docs.dagster.io/guides/build/jobs/op-jobs
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import dagster as dg
from pydantic import Field

from rss_pipeline.orchestration.cause_first import run_step
from rss_pipeline.orchestration.instance.dead_runs import run_tags
from rss_pipeline.orchestration.instance.purged import Freed, Purged
from rss_pipeline.orchestration.instance.record_events import record_events
from rss_pipeline.orchestration.instance.run_history import History, Newest, size_of
from rss_pipeline.orchestration.instance.tick_history import TickHistory
from rss_pipeline.orchestration.partitions import STORIES as STORIES_KEYS
from rss_pipeline.orchestration.partitions import STREAMS
from rss_pipeline.orchestration.partitions import TOPICS as TOPICS_KEYS
from rss_pipeline.orchestration.poll_ops import SessionResource
from rss_pipeline.orchestration.reporting.asset_keys import (
    FEED_ITEMS,
    ITEM_IMAGES,
    POLLS,
    STORIES,
    STREAM_ITEMS,
    TOPICS,
)
from rss_pipeline.orchestration.reporting.feeds import Events, heartbeats, image_metadata
from rss_pipeline.orchestration.run_config import QUIET, plain
from rss_pipeline.orchestration.ui_labels import OWNERS, kind
from rss_pipeline.pipeline.images.round import Downloads
from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.pipeline.triggers.daily import UNFINISHED_TAG, Allowance
from rss_pipeline.storage.feeds import feed_changes
from rss_pipeline.storage.images.image_closings import image_totals

PURGE_HISTORY = "purge_history"
PURGE_SECONDS = 600.0
"""A purge stops after this time; the next one, within the hour, continues."""


class PurgeConfig(dg.Config):
    """The options of a purge."""

    days: float | None = Field(
        default=None,
        description="Remove runs that ended more days ago than this. Default: RSS_HISTORY_DAYS (30).",
        gt=0,
    )
    dry_run: bool = Field(default=False, description="Only report what would be removed; nothing is written.")


@dg.op(name="purge", config_schema=plain(PurgeConfig), out=dg.Out(dg.Nothing), tags=kind("sql"))
def purge_(context: dg.OpExecutionContext, session: SessionResource) -> Iterator[Any]:
    """Remove old runs with their files; record again each feed with its only event in one of them."""
    # Imported in its own runs only: what it needs of Dagster takes every other process a quarter of a second.
    from rss_pipeline.orchestration.upkeep.purge_job import purge

    config = PurgeConfig(**context.op_config)
    with run_step(context, session):
        days = session.run.settings.history_days if config.days is None else config.days
        for each in purge(
            session.run,
            context.instance,
            keep=timedelta(days=days),
            now=session.run.clock(),
            dry_run=config.dry_run,
            allowance=Allowance(PURGE_SECONDS),
        ):
            if isinstance(each, Purged):
                if each.is_unfinished and not config.dry_run:
                    context.instance.add_run_tags(context.run_id, {UNFINISHED_TAG: "true"})
                yield dg.Output(None, metadata=each.figures())
            else:
                record_events(context, each)


@dg.job(
    name=PURGE_HISTORY,
    description=(
        "Removes runs that ended more than RSS_HISTORY_DAYS (30) ago with their events, files, compute logs"
        " and tags, ended backfills, and old ticks of sensors and schedules with their logs. Collected items"
        " stay. A feed's newest materialization is recorded again, so that its partition keeps its"
        " status; a run with the newest materialization of a downstream asset is kept. The"
        " schedule `purge_daily` starts it each day, and again within the hour if it did not finish."
    ),
    tags={"dagster/max_runtime": "1800"},
    owners=OWNERS,
)
def purge_history() -> None:
    purge_()


# The purge of old run history: which runs are removed, and which events are recorded again before that.
#
# The rule: a partition keeps its status. So before the run with a feed's newest
# materialization is removed, the feed is materialized once more, as a heartbeat in the purge's own run; where
# that is impossible (a downstream asset; a partition that is red) the run is kept.

RUNS_AT_ONCE = 100
"""So many hold the write lock of the event log for some tenths of a second."""
REPORTED_AT_ONCE = 100
_KEYS = {STREAM_ITEMS: STREAMS, TOPICS: TOPICS_KEYS, STORIES: STORIES_KEYS}


def purge(
    run: RunContext,
    instance: dg.DagsterInstance,
    *,
    keep: timedelta,
    now: datetime,
    dry_run: bool = False,
    allowance: Allowance | None = None,
) -> Iterator[list[dg.AssetMaterialization] | Purged]:
    """Remove runs that ended more than `keep` before `now`; yield batches of events, and the result at last.

    Each batch must be recorded before the next one is requested, because the runs that it replaces are
    removed then. Two purges at once do no harm; a purge that was ended at any point is completed by the next
    one.

    Raises:
        InfrastructureError: the database cannot work now.
    """
    purging = _Purging(
        run=run,
        instance=instance,
        history=History(instance),
        known=feed_changes.ever_changed(run.database),
        before=now - keep,
        allowance=allowance or Allowance(),
        purged=Purged(dry_run=dry_run),
    )
    yield from purging.missing()
    yield from purging.runs()
    purging.backfills()
    purging.ticks()
    purging.orphans()
    yield purging.purged


@dataclass(frozen=True, slots=True, kw_only=True)
class _Purging:
    run: RunContext
    instance: dg.DagsterInstance
    history: History
    known: Sequence[str]
    """Feeds that have a materialization, or had one."""
    before: datetime
    allowance: Allowance
    purged: Purged

    def missing(self) -> Events:
        """Record again what this instance has lost: its home folder was lost or emptied."""
        there = self.instance.event_log_storage.get_materialized_partitions(FEED_ITEMS)
        lost = [id for id in self.known if id not in there]
        yield from self._record_again(lost)
        if self.instance.get_latest_materialization_event(ITEM_IMAGES) is None:
            totals = image_totals(self.run.database)
            if totals.success or totals.failed:
                yield from self._record_images_again()

    def runs(self) -> Events:
        due = self.history.ended_before(self.before)
        for start in range(0, len(due), RUNS_AT_ONCE):
            if self.allowance.is_spent():
                self.purged.runs_left = len(due) - start
                return
            some = due[start : start + RUNS_AT_ONCE]
            held = yield from self._free(self.history.newest_in(some))
            free = [id for id in some if id not in held]
            self.purged.runs_kept += len(held)
            self.purged.runs += len(free)
            self._remove(free)

    def _free(self, newest: Sequence[Newest]) -> Any:
        """Record the newest materializations of these runs again; return the ids of runs to keep."""
        known = set(self.known)
        held: set[str] = set()
        again: list[str] = []
        copied: list[Newest] = []
        for each in newest:
            if each.is_challenged:
                held.add(each.run_id)
            elif each.asset_key == FEED_ITEMS and each.partition is not None:
                # A feed that was forgotten has no partition any more, and needs no event.
                again += [each.partition] if each.partition in known else []
            elif each.asset_key == ITEM_IMAGES:
                yield from self._record_images_again()
            elif each.asset_key == POLLS:
                yield from self._record_poll_again()
            elif each.asset_key in _KEYS and each.partition is not None:
                copied.append(each)
            else:
                held.add(each.run_id)
        yield from self._record_again(again)
        yield from self._record_copies(copied)
        return held

    def _record_again(self, ids: Sequence[str]) -> Events:
        self.purged.heartbeats += len(ids)
        if not self.purged.dry_run:
            for start in range(0, len(ids), REPORTED_AT_ONCE):
                yield from heartbeats(self.run, ids[start : start + REPORTED_AT_ONCE])

    def _record_images_again(self) -> Events:
        if not self.purged.dry_run:
            nothing = image_metadata(self.run, self.instance, Downloads())
            yield [dg.AssetMaterialization(asset_key=ITEM_IMAGES, metadata=nothing)]

    def _record_poll_again(self) -> Events:
        event = self.instance.get_latest_materialization_event(POLLS)
        last = None if event is None else event.asset_materialization
        if last is not None and not self.purged.dry_run:
            yield [dg.AssetMaterialization(asset_key=POLLS, metadata=last.metadata)]

    def _record_copies(self, newest: Sequence[Newest]) -> Events:
        """Record the newest events of these streams, topics and days of stories as they are; those that left
        feeds.yaml, and old days, have no partition any more, and need none."""
        keys = {key: set(self.instance.get_dynamic_partitions(name)) for key, name in _KEYS.items()}
        wanted = [each for each in newest if each.partition in keys[each.asset_key]]
        self.purged.heartbeats += len(wanted)
        for start in range(0, 0 if self.purged.dry_run else len(wanted), REPORTED_AT_ONCE):
            yield [self._copy(each) for each in wanted[start : start + REPORTED_AT_ONCE]]

    def _copy(self, newest: Newest) -> dg.AssetMaterialization:
        assert newest.partition is not None
        of_key = dg.AssetRecordsFilter(asset_key=newest.asset_key, asset_partitions=[newest.partition])
        [record] = self.instance.fetch_materializations(of_key, limit=1).records
        last = record.asset_materialization
        assert last is not None
        return dg.AssetMaterialization(
            asset_key=newest.asset_key, partition=newest.partition, metadata=last.metadata, tags=last.tags
        )

    def backfills(self) -> None:
        ids = self.history.backfills_before(self.before)
        self.purged.backfills = len(ids)
        if not self.purged.dry_run:
            self.history.remove_backfills(ids)

    def ticks(self) -> None:
        history = TickHistory(self.instance)
        dry = self.purged.dry_run
        self.purged.ticks = history.count(self.before) if dry else history.remove(self.before)
        logs = history.logs(self.before)
        self.purged.add(Freed(files=len(logs), bytes=sum(map(size_of, logs))))
        if not dry:
            for path in logs:
                path.unlink(missing_ok=True)

    def orphans(self) -> None:
        ids = self.history.orphans(self.before)
        for start in range(0, len(ids), RUNS_AT_ONCE):
            if self.allowance.is_spent():
                return
            some = ids[start : start + RUNS_AT_ONCE]
            self.purged.orphans += len(some)
            self._remove(some)

    def _remove(self, ids: Sequence[str]) -> None:
        if ids:
            self.purged.add(self.history.sizes(ids) if self.purged.dry_run else self.history.remove(ids))


# A purge in this process: the daemon's job, recorded in the same instance.
#
# The job is in purge_job.py, the printed output in cli/output/.


def purge_in_process(
    definitions: dg.Definitions, instance: dg.DagsterInstance, *, days: float | None, dry_run: bool
) -> dict[str, int | bool]:
    """Run the purge; return its numbers by name.

    Raises:
        InfrastructureError: the database cannot work now.
    """
    config = {"dry_run": dry_run, **({} if days is None else {"days": days})}
    job = definitions.resolve_job_def(PURGE_HISTORY)
    try:
        result = job.execute_in_process(
            run_config={
                "ops": {"purge": {"config": config}},
                **QUIET,
            },
            instance=instance,
            tags=run_tags(),
        )
    except (dg.Failure, dg.DagsterResourceFunctionError) as error:
        # Ours is the cause of Dagster's: cause_first.py.
        raise (error.__cause__ or error) from None
    [output] = [each for each in result.all_node_events if each.is_successful_output]
    found = output.step_output_data.metadata
    return {name: value.value for name, value in found.items()}  # type: ignore[misc]
