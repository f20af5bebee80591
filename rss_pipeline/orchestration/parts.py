"""The definitions that one feature adds, and the two kinds of sensors, which any of them may build.

A feature's `dagster` returns its `DagsterParts`; build.py puts all of them together.
https://docs.dagster.io/guides/automate/sensors
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.collector.models.plain_text import plain_lines
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.orchestration.looks import Awaits, Looks
from rss_pipeline.orchestration.queueing import DAEMON_TAGS
from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS
from rss_pipeline.orchestration.triggers import Decide, Tick
from rss_pipeline.orchestration.ui_labels import CONCERNS, OWNERS
from rss_pipeline.orchestration.wakes import interval_of
from rss_pipeline.settings import Settings

AFTER_FEED_ITEMS = dg.AssetIn(FEED_ITEMS, partition_mapping=dg.AllPartitionMapping(), dagster_type=dg.Nothing)
"""For the lineage only: feeds.yaml has the feeds of a topic, and Dagster evaluates no mapping of ours."""
PUBLISHED = "published"
"""Metadata of a feature's last op and of its job after a poll: the names of what they published."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DagsterParts:
    """The definitions of a feature: they are added to all others."""

    assets: Sequence[dg.AssetsDefinition] = ()
    asset_checks: Sequence[dg.AssetChecksDefinition] = ()
    jobs: Sequence[Any] = ()
    schedules: Sequence[dg.ScheduleDefinition] = ()
    sensors: Sequence[dg.SensorDefinition] = ()
    resources: Mapping[str, Any] = field(default_factory=dict)
    """By key; no feature has a key of another one's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Building:
    """Everything that definitions are built from."""

    settings: Settings
    clock: Clock
    looks: Looks


Work = Callable[[dg.SensorEvaluationContext, Settings, Clock], str]
"""The work of a sensor that starts no run: its result is a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Starts:
    """A sensor that starts runs of a job."""

    name: str
    job: Any
    decide: Callable[[Settings], Decide]
    awaits: Awaits
    concerns: str
    description: str
    seconds: Callable[[Settings], int] = lambda _: 60
    tags: Mapping[str, str] = field(default_factory=lambda: DAEMON_TAGS)

    def build(self, of: Building) -> dg.SensorDefinition:
        """The sensor; it runs from the start."""
        decide = self.decide(of.settings)

        def evaluate(context: dg.SensorEvaluationContext) -> Tick:
            return of.looks.tick(
                self.name,
                self.job.name,
                decide,
                context.instance,
                awaits=self.awaits,
                now=of.clock(),
                tags=self.tags,
            )

        return dg.sensor(
            name=self.name,
            job=self.job,
            minimum_interval_seconds=interval_of(self.name, self.seconds(of.settings), of.settings),
            default_status=dg.DefaultSensorStatus.RUNNING,
            tags={CONCERNS: self.concerns, **self.tags},
            owners=OWNERS,
            description=self.description,
        )(evaluate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Works:
    """A sensor that works itself."""

    name: str
    work: Callable[[Looks], Work]
    concerns: str
    description: str
    seconds: int = 30

    def build(self, of: Building) -> dg.SensorDefinition:
        """The sensor; it runs from the start."""
        work = self.work(of.looks)

        def evaluate(context: dg.SensorEvaluationContext) -> dg.SkipReason:
            # The result is a skip reason and no log line: a tick that logs costs a file, each half a minute.
            try:
                said, error = work(context, of.settings, of.clock), ""
            except RssPipelineError as failed:
                said = error = str(failed)
            if error != (context.cursor or ""):
                context.update_cursor(error)
                if error:
                    # To the terminal of `up`, once: this logger is none that Dagster captures.
                    _logger.warning("%s: %s", self.name, plain_lines(error))
            return dg.SkipReason(said)

        return dg.sensor(
            name=self.name,
            minimum_interval_seconds=interval_of(self.name, self.seconds, of.settings),
            default_status=dg.DefaultSensorStatus.RUNNING,
            tags={CONCERNS: self.concerns},
            owners=OWNERS,
            description=self.description,
        )(evaluate)
