"""The sensor that evaluates the check `workers_alive` on the main machine, as soon as its result changes.

The job of the other checks is executed by a worker: it could never say that there is none. What the check
means is features/fleet/checks.py's.
"""

import dagster as dg

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.features.fleet.checks import check_machines
from rss_pipeline.features.fleet.machines import Fleet
from rss_pipeline.features.fleet.workers import fleet
from rss_pipeline.features.health.asset_checks import check_result
from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS
from rss_pipeline.orchestration.ui_labels import CONCERNS, OWNERS
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database


def build_watch(settings: Settings, *, clock: Clock) -> dg.SensorDefinition:
    """The sensor, on by default."""

    def watch(context: dg.SensorEvaluationContext) -> dg.SkipReason | dg.SensorResult:
        try:
            with open_database(settings) as database:
                found = fleet(database)
                check = check_machines(database, found, settings, now=clock())
        except RssPipelineError as error:
            return dg.SkipReason(f"The database cannot be read: {error}")
        state = signature(found)
        if state == context.cursor:
            return dg.SkipReason(f"{check.found}.")
        result = check_result(check)
        evaluation = dg.AssetCheckEvaluation(
            asset_key=FEED_ITEMS,
            check_name=check.name,
            passed=result.passed,
            severity=result.severity,
            description=result.description,
            metadata=result.metadata,
        )
        return dg.SensorResult(asset_events=[evaluation], skip_reason=f"{check.found}.", cursor=state)

    return dg.sensor(
        name="watch_workers",
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        tags={CONCERNS: "upkeep"},
        owners=OWNERS,
        description="Evaluates the check `workers_alive` when a worker has joined, left or died.",
    )(watch)


def signature(found: Fleet) -> str:
    """A text that changes when a machine comes or goes, or is alive or dead, and not with the time."""
    return " ".join(
        f"{seen.member.role}:{seen.member.incarnation}:{'alive' if seen.is_alive(found.now) else 'dead'}"
        for seen in found.machines
    )
