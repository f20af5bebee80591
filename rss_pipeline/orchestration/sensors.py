"""The sensors: they start polls, refreshes and downloads of images, sync the registry, and end runs that were
killed.

No decision and no long work in here: the decisions are in pipeline/triggers, the sync is in
pipeline/registry/sync.py, the search for killed runs in instance/dead_runs.py.
https://docs.dagster.io/guides/automate/sensors
"""

import os
from datetime import datetime, timedelta
from functools import partial

import dagster as dg

from rss_pipeline.collector.models.clock import Clock, utc_now
from rss_pipeline.collector.models.feed import Registry
from rss_pipeline.collector.models.shard import Shard
from rss_pipeline.collector.registry.load import load_registry
from rss_pipeline.errors import StorageRejected
from rss_pipeline.features import FEATURES
from rss_pipeline.orchestration import looks as awaiting
from rss_pipeline.orchestration.instance.dead_runs import end_dead_runs
from rss_pipeline.orchestration.jobs import (
    DOWNLOAD_IMAGES,
    POLL_FEEDS,
    REFRESH_FEEDS,
    download_images,
    poll_feeds,
    refresh_feeds,
)
from rss_pipeline.orchestration.looks import Looks
from rss_pipeline.orchestration.parts import Building, Starts, Works
from rss_pipeline.orchestration.queueing import REFRESH_TAGS
from rss_pipeline.orchestration.recent_runs import recent_runs, recent_runs_of_shards
from rss_pipeline.orchestration.registry_partitions import register
from rss_pipeline.orchestration.triggers import Decision
from rss_pipeline.orchestration.wakes import END_DEAD_RUNS, SYNC_REGISTRY
from rss_pipeline.pipeline.registry.sync import sync_registry
from rss_pipeline.pipeline.triggers.daily import Allowance
from rss_pipeline.pipeline.triggers.runs import Start, Wait
from rss_pipeline.pipeline.triggers.starts import (
    decide,
    decide_by_shard,
    decide_fresh,
    decide_refresh,
    look_seconds,
    most_at_once,
    poll_the_rest,
    polling_all_since,
    polls_of_all,
    work_waits,
)
from rss_pipeline.reader.user_backups import back_up_users
from rss_pipeline.settings import Settings
from rss_pipeline.storage.accounts import user_rows as users
from rss_pipeline.storage.backends.connect import open_database, open_objects
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import due, leases
from rss_pipeline.storage.feeds.claimable import NotVisitedSince
from rss_pipeline.storage.images.image_claims import images_due
from rss_pipeline.storage.refresh import open_requests

SYNCED_FOR = timedelta(hours=1)
BACK_UP_SECONDS = 20.0
"""A tick that takes longer than a minute fails."""


def build_sensors(of: Building) -> list[dg.SensorDefinition]:
    """All sensors but those of features; they run from the start."""
    return [sensor.build(of) for sensor in (*_STARTING, *_WORKING)]


def decide_poll(
    database: Database, instance: dg.DagsterInstance, now: datetime, *, shards: int = 1
) -> Decision:
    """Start a poll, or one of each shard, or wait, by the feeds that are due and the newest poll runs."""
    if shards > 1:
        return _decide_polls(database, instance, now, count=shards)
    runs = recent_runs(instance, POLL_FEEDS)
    since = polling_all_since(runs)
    if since is not None:
        rest = NotVisitedSince(since=since, now=now)
        if due.is_claimable(database, rest, to_begin=True):
            return poll_the_rest(since)
    summary = due.due_summary(database, now)
    return decide(summary, runs, now=now, has_work=summary.due == 0 and work_waits(database))


def _decide_polls(
    database: Database, instance: dg.DagsterInstance, now: datetime, *, count: int
) -> list[Start] | Wait:
    runs = recent_runs_of_shards(instance, POLL_FEEDS, shards=count)
    due_now = due.due_by_shard(database, now, count=count)
    left: dict[Shard, datetime] = {}
    of_all = polls_of_all(list(due_now), runs)
    for since in set(of_all.values()):
        found = due.claimable_shards(database, NotVisitedSince(since=since, now=now), count=count)
        left |= {shard: at for shard, at in of_all.items() if at == since and shard in found}
    return decide_by_shard(due_now, runs, left=left, now=now)


def decide_refreshes(database: Database, instance: dg.DagsterInstance, now: datetime) -> Start | Wait:
    """Start a run for requests of users or wait, by those that are open and the newest runs for them."""
    waiting = open_requests.waiting(database, now=now)
    if waiting.can_begin == 0:
        return decide_refresh(waiting, (), (), now=now)
    return decide_refresh(
        waiting, recent_runs(instance, REFRESH_FEEDS), leases.live_run_ids(database), now=now
    )


def decide_download(
    database: Database, instance: dg.DagsterInstance, now: datetime, *, at_once: int = 1
) -> Start | Wait:
    """Start a download or wait, by the new images and the newest download runs."""
    waiting = images_due(database, now)
    return decide_fresh(waiting, recent_runs(instance, DOWNLOAD_IMAGES), now=now, at_once=at_once)


class _Sync:
    """The sync of the registry as often as its file changes, and now and then without that: a feed that a
    user brought has its partition key from the poll that visits it, and half a removal can wait."""

    def __init__(self, looks: Looks) -> None:
        self._looks = looks
        self._last: tuple[datetime, Registry] | None = None

    def __call__(self, context: dg.SensorEvaluationContext, settings: Settings, clock: Clock) -> str:
        now, last = clock(), self._last
        registry = load_registry(settings.feeds_file, environ=os.environ)
        if last is not None and registry == last[1] and last[0] <= now < last[0] + SYNCED_FOR:
            return f"{settings.feeds_file.name} has not changed."
        self._last = None
        with self._looks.open() as database:
            synced = sync_registry(database, settings, now=now)
            register(database, context.instance, synced)
        if not synced.changes.is_empty:
            self._looks.forget()
        self._last = now, registry
        return f"{synced}."


def _end_dead_runs(context: dg.SensorEvaluationContext, settings: Settings, clock: Clock) -> str:
    def live_runs() -> frozenset[str]:
        with open_database(settings) as database:
            return leases.live_run_ids(database)

    # As long as a run without any sign of life keeps its feeds.
    silence = timedelta(seconds=settings.lease_seconds)
    # Not `clock`: the events of a run carry the time of this machine.
    ended = end_dead_runs(context.instance, now=utc_now(), silence=silence, live_runs=live_runs)
    if settings.runs_elsewhere is not None:
        for part in (part for feature in FEATURES for part in feature.end_lost_runs):
            ended += part.load()(context.instance, settings)
    for run_id in ended:
        context.log.warning(f"Run {run_id} was ended: its process no longer exists.")
    return f"{len(ended)} runs were ended: their processes no longer exist." if ended else "No run is dead."


def _back_up_users(context: dg.SensorEvaluationContext, settings: Settings, clock: Clock) -> str:
    allowance = Allowance(BACK_UP_SECONDS)
    with open_database(settings) as database:
        changed = users.to_back_up(database)
        if not changed:
            return "No user has changes."
        done = back_up_users(
            database, open_objects(settings), changed, now=clock(), is_over=allowance.is_spent
        )
    if done.refused:
        raise StorageRejected("; ".join(f"{key}: {reason}" for key, reason in done.refused.items()))
    return f"{done.written} users backed up, {done.left} left for the next time."


_STARTING = (
    Starts(
        name="poll_feeds_when_due",
        job=poll_feeds,
        decide=lambda settings: partial(decide_poll, shards=settings.shards),
        awaits=awaiting.feeds,
        concerns="feeds",
        seconds=lambda settings: look_seconds(settings.shards, is_paid=settings.pays_by_row),
        description="Starts a poll when a feed is new, when a feed has been due for 4 minutes, or when 100"
        " feeds are due. After a poll of all feeds that left some, it starts the next one. With RSS_SHARDS"
        " it does so for each shard.",
    ),
    Starts(
        name="refresh_feeds_when_requested",
        job=refresh_feeds,
        decide=lambda _: decide_refreshes,
        awaits=awaiting.requests,
        concerns="feeds",
        seconds=lambda _: 30,
        tags=REFRESH_TAGS,
        description="Starts visits that users of the reader requested and that `rss-pipeline up` did not"
        " start at once: the reader is on another machine, or a run was killed.",
    ),
    Starts(
        name="download_images_when_waiting",
        job=download_images,
        decide=lambda settings: partial(decide_download, at_once=most_at_once(settings.shards)),
        awaits=awaiting.images,
        concerns="images",
        description="Starts a download when images of new items have waited for 2 minutes, or when 100 images"
        " wait; with RSS_SHARDS several at once, one for each four shards.",
    ),
)
_WORKING = (
    Works(
        name=SYNC_REGISTRY,
        work=_Sync,
        concerns="feeds",
        description="Applies changes of feeds.yaml: new feeds, changed feeds, and feeds that were removed or"
        " came back.",
    ),
    Works(
        name=END_DEAD_RUNS,
        work=lambda _: _end_dead_runs,
        concerns="upkeep",
        description="Ends runs without a living process, so that they take no place in the queue.",
    ),
    Works(
        name="back_up_users",
        work=lambda _: _back_up_users,
        concerns="upkeep",
        seconds=600,
        description="Writes subscriptions, read states and stars that have changed into the object store,"
        " from where `rss-pipeline restore` brings them back.",
    ),
)
