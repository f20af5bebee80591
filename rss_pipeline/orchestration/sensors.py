"""The sensors: they start polls, refreshes, publications and downloads of images, sync the registry, and end
runs that were killed.

No decision and no long work in here: the decisions are in pipeline/triggers, the sync is in
pipeline/registry/sync.py, the search for killed runs in instance/dead_runs.py. Alerts are in alerts.py.
https://docs.dagster.io/guides/automate/sensors
"""

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import dagster as dg

from rss_pipeline.collector.models.clock import Clock, utc_now
from rss_pipeline.collector.models.plain_text import plain_lines
from rss_pipeline.collector.models.registry import Registry
from rss_pipeline.collector.models.shard import Shard
from rss_pipeline.collector.registry.load import load_registry
from rss_pipeline.errors import RssPipelineError, StorageRejected
from rss_pipeline.features import FEATURES
from rss_pipeline.features.retention.result import Allowance
from rss_pipeline.features.retention.user_backups import back_up_users
from rss_pipeline.features.topics import publications
from rss_pipeline.features.topics.trigger import decide_publication
from rss_pipeline.orchestration import looks as awaiting
from rss_pipeline.orchestration.instance.dead_runs import end_dead_runs
from rss_pipeline.orchestration.jobs import (
    DOWNLOAD_IMAGES,
    POLL_FEEDS,
    PUBLISH_TOPICS,
    REFRESH_FEEDS,
    download_images,
    poll_feeds,
    publish_topics,
    refresh_feeds,
)
from rss_pipeline.orchestration.looks import Awaits, Looks
from rss_pipeline.orchestration.queueing import DAEMON_TAGS, REFRESH_TAGS
from rss_pipeline.orchestration.recent_runs import recent_runs, recent_runs_of_shards
from rss_pipeline.orchestration.registry_partitions import register
from rss_pipeline.orchestration.triggers import Decide, Decision, Tick
from rss_pipeline.orchestration.ui_labels import CONCERNS, OWNERS
from rss_pipeline.pipeline.registry.sync import sync_registry
from rss_pipeline.pipeline.triggers.images import decide_fresh, most_at_once
from rss_pipeline.pipeline.triggers.poll import decide, poll_the_rest, polling_all_since
from rss_pipeline.pipeline.triggers.refresh import decide_refresh
from rss_pipeline.pipeline.triggers.runs import Start, Wait
from rss_pipeline.pipeline.triggers.shards import decide_by_shard, look_seconds, polls_of_all
from rss_pipeline.settings import Settings
from rss_pipeline.storage.accounts import users
from rss_pipeline.storage.backends.connect import open_database, open_objects
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import due, leases
from rss_pipeline.storage.feeds.claimable import NotVisitedSince
from rss_pipeline.storage.images.claims import images_due
from rss_pipeline.storage.refresh import open_requests

SYNCED_FOR = timedelta(hours=1)
BACK_UP_SECONDS = 20.0
"""A tick that takes longer than a minute fails."""

_logger = logging.getLogger(__name__)


Work = Callable[[dg.SensorEvaluationContext, Settings, Clock], str]
"""The work of a sensor that starts no run: its result is a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Starts:
    """A sensor that starts runs of a job."""

    name: str
    job: Any
    decide: Callable[[Settings], Decide]
    awaits: Awaits
    concerns: str
    description: str
    seconds: Callable[[Settings], int] = lambda _: 60
    tags: Mapping[str, str] = field(default_factory=lambda: DAEMON_TAGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Works:
    """A sensor that works itself."""

    name: str
    work: Callable[[Looks], Work]
    concerns: str
    description: str
    seconds: int = 30


def build_sensors(settings: Settings, *, clock: Clock, looks: Looks) -> list[dg.SensorDefinition]:
    """All sensors but the alerts; they run from the start."""
    return [
        *(_starting(each, settings, clock, looks) for each in _STARTING),
        *(_working(each, settings, clock, looks) for each in _WORKING),
    ]


def _starting(sensor: _Starts, settings: Settings, clock: Clock, looks: Looks) -> dg.SensorDefinition:
    decide = sensor.decide(settings)

    def evaluate(context: dg.SensorEvaluationContext) -> Tick:
        return looks.tick(
            sensor.name,
            sensor.job.name,
            decide,
            context.instance,
            awaits=sensor.awaits,
            now=clock(),
            tags=sensor.tags,
        )

    return dg.sensor(
        name=sensor.name,
        job=sensor.job,
        minimum_interval_seconds=sensor.seconds(settings),
        default_status=dg.DefaultSensorStatus.RUNNING,
        tags={CONCERNS: sensor.concerns, **sensor.tags},
        owners=OWNERS,
        description=sensor.description,
    )(evaluate)


def _working(sensor: _Works, settings: Settings, clock: Clock, looks: Looks) -> dg.SensorDefinition:
    work = sensor.work(looks)

    def evaluate(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        # The result is a skip reason and no log line: a tick that logs costs a file, each half a minute.
        try:
            said, error = work(context, settings, clock), ""
        except RssPipelineError as failed:
            said = error = str(failed)
        if error != (context.cursor or ""):
            context.update_cursor(error)
            if error:
                # To the terminal of `up`, once: this logger is none that Dagster captures.
                _logger.warning("%s: %s", sensor.name, plain_lines(error))
        return dg.SkipReason(said)

    return dg.sensor(
        name=sensor.name,
        minimum_interval_seconds=sensor.seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        tags={CONCERNS: sensor.concerns},
        owners=OWNERS,
        description=sensor.description,
    )(evaluate)


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
    return decide(due.due_summary(database, now), runs, now=now)


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


def decide_publish(database: Database, instance: dg.DagsterInstance, now: datetime) -> Start | Wait:
    """Start a publication or wait, by the topics that are due and the newest publications and polls."""
    # The list of topics alone is left to the next poll.
    found = [id for id in publications.due(database, now=now) if id != publications.INDEX]
    if not found:
        return decide_publication((), (), (), (), now=now)
    return decide_publication(
        found,
        recent_runs(instance, PUBLISH_TOPICS),
        recent_runs(instance, POLL_FEEDS),
        leases.live_run_ids(database),
        now=now,
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
    _Starts(
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
    _Starts(
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
    _Starts(
        name="publish_when_changed",
        job=publish_topics,
        decide=lambda _: decide_publish,
        awaits=awaiting.topics,
        concerns="topics",
        description="Starts a publication when topics changed that no poll publishes: by a replay, a"
        " repair, a clean, images archived later, a change of `topics:`, or what another machine collected.",
    ),
    _Starts(
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
    _Works(
        name="sync_registry",
        work=_Sync,
        concerns="feeds",
        description="Applies changes of feeds.yaml: new feeds, changed feeds, and feeds that were removed or"
        " came back.",
    ),
    _Works(
        name="end_dead_runs",
        work=lambda _: _end_dead_runs,
        concerns="upkeep",
        description="Ends runs without a living process, so that they take no place in the queue.",
    ),
    _Works(
        name="back_up_users",
        work=lambda _: _back_up_users,
        concerns="upkeep",
        seconds=600,
        description="Writes subscriptions, read states and stars that have changed into the object store,"
        " from where `rss-pipeline restore` brings them back.",
    ),
)
