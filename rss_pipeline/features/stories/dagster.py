"""The asset `stories`, with one partition for each day: polls decide new items, with events for changed days.

A day has the stories in which an item came in on it (UTC).
https://docs.dagster.io/guides/build/assets
"""

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import dagster as dg

from rss_pipeline.errors import RssPipelineError
from rss_pipeline.features.stories import sql
from rss_pipeline.orchestration.cause_first import run_step
from rss_pipeline.orchestration.instance.record_events import record_events
from rss_pipeline.orchestration.partitions import (
    PARTITIONS_A_RUN,
    STORIES,
    add_keys,
    missing_keys,
    stories_partitions,
)
from rss_pipeline.orchestration.parts import AFTER_FEED_ITEMS, Building, DagsterParts
from rss_pipeline.orchestration.poll_ops import SessionResource
from rss_pipeline.orchestration.registry_partitions import remove_others
from rss_pipeline.orchestration.reporting.asset_keys import STORIES as STORIES_KEY
from rss_pipeline.orchestration.reporting.asset_keys import version_tags
from rss_pipeline.orchestration.ui_labels import GROUP
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.storage.database import Database

MOST_DAYS = 60
"""Partitions: each costs the purge of the history an event a month."""
SECONDS_IN_A_POLL = 20.0
"""Time for which a poll decides, where many items wait: in an installation that is new to stories."""


def poll_events(
    context: dg.OpExecutionContext, session: Session, _: Collection[str]
) -> Iterator[list[dg.AssetMaterialization]]:
    """Decide what came in, if a user reads stories, and yield an event for each day with new members. An
    error there is a warning: the next run tries again."""
    try:
        days = _decided(context, session, by_hand=False)
        if days:
            _register(context.instance, [*map(str, days)])
            yield [_event(session.run.database, day) for day in days]
    except Exception as error:  # noqa: BLE001 - whatever it is, the feeds were collected, so the poll is green
        cause = str(error) if isinstance(error, RssPipelineError) else f"{type(error).__name__}: {error}"
        context.log.warning(f"Stories were not brought up to date; the next run tries again. {cause}")


def _register(instance: dg.DagsterInstance, days: Sequence[str]) -> None:
    if missing := missing_keys(instance, STORIES, days):
        add_keys(instance, STORIES, missing)
        known = sorted(instance.get_dynamic_partitions(STORIES))
        remove_others(instance, STORIES, known[-MOST_DAYS:])


def _decided(context: dg.OpExecutionContext, session: Session, *, by_hand: bool) -> list[date]:
    ends = sql.ends(session.run.database)
    is_ephemeral = context.instance.is_ephemeral
    if not (by_hand or ends.is_wanted or is_ephemeral):
        return []
    # The first poll of `up` loads them for all runs, also for those after a user begins to read stories.
    from rss_pipeline.features.stories.lease import StoriesBusy
    from rss_pipeline.features.stories.service import catch_up
    from rss_pipeline.features.stories.window_file import window_path

    # Of a day that is decided in an ephemeral instance, no other would have an event.
    if not ends.is_behind or (is_ephemeral and not by_hand):
        return []
    end = time.monotonic() + SECONDS_IN_A_POLL
    run = session.run
    path = window_path(run.settings)
    try:
        done = catch_up(run.database, run.objects, path, is_over=lambda: time.monotonic() > end, ends=ends)
    except StoriesBusy:
        return []
    if done.not_written is not None:
        context.log.warning(
            "Stories are up to date, but their window could not be kept, and the next run takes longer:"
            f" {done.not_written}"
        )
    # What came back from backups may be of any time.
    return sorted(done.days)[-MOST_DAYS:]


def _event(database: Database, day: date) -> dg.AssetMaterialization:
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    counted = sql.count(database, since=start, until=start + timedelta(days=1))
    return dg.AssetMaterialization(
        asset_key=STORIES_KEY,
        partition=str(day),
        metadata={"stories": counted.stories, "items": counted.items},
        tags=version_tags(f"{counted.stories}-{counted.items}-{counted.newest}"),
    )


# No kind: the asset's page would show it in place of the asset's own kinds.
@dg.op(
    ins={"feed_items": dg.In(dg.Nothing, description="Sets the order only; the op reads the database.")},
    out=dg.Out(dg.Nothing, is_required=False),
)
def record_days(context: dg.OpExecutionContext, session: SessionResource) -> Iterator[Any]:
    """Decide what waits, and record these days as they are."""
    with run_step(context, session):
        _decided(context, session, by_hand=True)
        record_events(context, _events(session.run.database, context.partition_keys))
    yield from ()


def _events(database: Database, keys: Iterable[str]) -> list[dg.AssetMaterialization]:
    return [_event(database, date.fromisoformat(key)) for key in keys]


@dg.graph_asset(
    name="stories",
    group_name=GROUP,
    partitions_def=stories_partitions,
    backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=PARTITIONS_A_RUN),
    kinds={"rss"},
    ins={"feed_items": AFTER_FEED_ITEMS},
    description=(
        "Items of several feeds on one event are one story, found without a model and without a request. Each"
        " poll updates this asset where a user of the reader has stories on. Each partition is a day (UTC),"
        " with the stories in which an item came in on it; an event means that one did. Materialize a day to"
        " decide what waits, and to record it."
    ),
)
def stories(feed_items: Any) -> Any:
    return record_days(feed_items)


def parts(_: Building) -> DagsterParts:
    """The definitions of stories."""
    return DagsterParts(assets=[stories])
