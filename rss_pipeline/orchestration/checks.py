"""The health of the whole as asset checks, and the job and schedule that evaluate them.

Each is one query and a verdict (storage.health, health.py); it passes, warns, or is an error, with a table of
the feeds concerned and a sentence on what to do. None blocks anything.
https://docs.dagster.io/guides/test/asset-checks
"""

import shutil
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import dagster as dg

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.orchestration.queueing import UPKEEP_TAGS
from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS, ITEM_IMAGES
from rss_pipeline.orchestration.ui_labels import CONCERNS, OWNERS
from rss_pipeline.pipeline.health import verdicts
from rss_pipeline.pipeline.health.findings import check_d1_size, judge_disk
from rss_pipeline.pipeline.health.verdicts import Verdict
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends import probes
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.reports import diagnostics
from rss_pipeline.storage.reports import health as tables

CHECK_HEALTH = "check_health"
BACKUPS_LOOKED_AT = 25
"""Feeds whose newest backup is looked for at each check: a request each."""
_SEVERITIES = {"warning": dg.AssetCheckSeverity.WARN, "error": dg.AssetCheckSeverity.ERROR}

Judge = Callable[[Database, datetime], Verdict]

_ABOUT_FEEDS: dict[str, tuple[str, Judge]] = {
    "no_feed_overdue": (
        "No feed waits for its visit longer than 30 minutes. An error from six hours on.",
        lambda database, now: verdicts.judge_overdue(
            tables.overdue(database, since=now - verdicts.OVERDUE), now=now
        ),
    ),
    "feeds_answer": (
        "No feed has failed ten times in a row. The table tells why, and when it last went well.",
        lambda database, _: verdicts.judge_failing(tables.failing(database)),
    ),
    "feeds_not_gone": (
        "No publisher has said that a feed is gone for good (410).",
        lambda database, _: verdicts.judge_gone(tables.gone(database)),
    ),
    "feeds_not_moved": (
        "Every feed is at the address that feeds.yaml has; permanent redirects lead elsewhere for good.",
        lambda database, _: verdicts.judge_moved(tables.moved(database)),
    ),
    "no_gaps": (
        "Within a week no feed had a document without any item of the one before: items were not missed.",
        lambda database, now: verdicts.judge_gaps(
            tables.with_gaps(database, since=now - verdicts.GAPS_WITHIN)
        ),
    ),
    "guids_stable": (
        "Items keep their guids; where a server puts tokens into them, known items come again as new ones.",
        lambda database, _: verdicts.judge_unstable(tables.unstable(database)),
    ),
    "dates_readable": (
        "Every feed with items dates them; else the fetch time stands in.",
        lambda database, _: verdicts.judge_undated(tables.undated(database)),
    ),
}
_ABOUT_IMAGES: dict[str, tuple[str, Judge]] = {
    "images_had": (
        "No feed lost ten images or more within a week, each after three attempts.",
        lambda database, now: verdicts.judge_given_up(
            tables.given_up_images(
                database, since=now - verdicts.GIVEN_UP_WITHIN, least=verdicts.MANY_GIVEN_UP
            )
        ),
    ),
    "no_image_backlog": (
        "No image waits for its download longer than six hours. An error from two days on.",
        lambda database, now: verdicts.judge_waiting_images(
            tables.waiting_images(database, since=now - verdicts.IMAGES_OVERDUE), now=now
        ),
    ),
}


def build_checks(settings: Settings, *, clock: Clock) -> list[dg.AssetChecksDefinition]:
    """All checks, those of the feeds first."""

    @dg.asset_check(
        asset=FEED_ITEMS,
        name="backups_there",
        description=(
            f"The {BACKUPS_LOOKED_AT} feeds that changed last have their newest backup in the object store:"
            " what a restore would need."
        ),
        compute_kind="file",
    )
    def backups_there(
        database: dg.ResourceParam[Database], objects: dg.ResourceParam[ObjectStore]
    ) -> dg.AssetCheckResult:
        """Ask the object store for the newest backup of each feed that changed last."""
        loss = diagnostics.backup_loss(database, objects, limit=BACKUPS_LOOKED_AT)
        return _result(verdicts.judge_backups(loss))

    @dg.asset_check(
        asset=FEED_ITEMS,
        name="database_has_room",
        description=(
            "The database is below 80 % of D1's limit; where database or objects lie on this machine, their"
            " disk has a gigabyte left, an error from 100 MB on."
        ),
        compute_kind="python",
    )
    def database_has_room() -> dg.AssetCheckResult:
        """Compare the database's size with D1's limit, and see what room the disk has."""
        checks = []
        if settings.d1 is not None:
            size = probes.ask_proxy(settings.d1, ca_file=settings.ca_file).size_bytes
            checks.append(check_d1_size(size))
        else:
            size = settings.database_path.stat().st_size if settings.database_path.exists() else None
        if settings.d1 is None or settings.r2 is None:
            checks.append(judge_disk(settings.home, shutil.disk_usage(settings.home).free))
        return _result(verdicts.judge_room(checks, bytes_=size))

    of_feeds = [_build(FEED_ITEMS, name, *about, clock=clock) for name, about in _ABOUT_FEEDS.items()]
    of_images = [_build(ITEM_IMAGES, name, *about, clock=clock) for name, about in _ABOUT_IMAGES.items()]
    return [*of_feeds, backups_there, database_has_room, *of_images]


def _build(
    asset: dg.AssetKey, name: str, description: str, judge: Judge, *, clock: Clock
) -> dg.AssetChecksDefinition:
    def check(database: dg.ResourceParam[Database]) -> dg.AssetCheckResult:
        return _result(judge(database, clock()))

    # Of the op in the graph of a run, which is made of the function.
    check.__doc__ = description
    return dg.asset_check(asset=asset, name=name, description=description, compute_kind="sql")(check)


def _result(verdict: Verdict) -> dg.AssetCheckResult:
    metadata: dict[str, Any] = dict(verdict.figures)
    if verdict.rows:
        metadata["concerned"] = _table(verdict.rows)
    return dg.AssetCheckResult(
        passed=verdict.severity is None,
        severity=_SEVERITIES.get(verdict.severity or "", dg.AssetCheckSeverity.WARN),
        description=verdict.sentence,
        metadata=metadata,
    )


def _table(rows: Sequence[Row]) -> dg.TableMetadataValue:
    columns = [
        dg.TableColumn(name, type="int" if isinstance(value, int) else "string")
        for name, value in rows[0].items()
    ]
    records = [
        dg.TableRecord({name: "" if value is None else value for name, value in row.items()}) for row in rows
    ]
    return dg.MetadataValue.table(records=records, schema=dg.TableSchema(columns=columns))


check_health = dg.define_asset_job(
    name=CHECK_HEALTH,
    selection=dg.AssetSelection.checks_for_assets(FEED_ITEMS, ITEM_IMAGES),
    tags={**UPKEEP_TAGS, "dagster/max_runtime": "600"},
    owners=OWNERS,
    description=(
        "Evaluates every health check: feeds that are overdue, failing, gone, or unsound, images that cannot"
        " be had, backups, and the database's size. Started hourly by `check_health_hourly`; reads only."
    ),
)


def build_check_schedule() -> dg.ScheduleDefinition:
    """The schedule of `check_health`, on by default."""
    return dg.ScheduleDefinition(
        name="check_health_hourly",
        job=check_health,
        cron_schedule="40 * * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        tags={CONCERNS: "upkeep", **UPKEEP_TAGS},
        owners=OWNERS,
        description="Evaluates the health checks, which stand on the assets' pages, once an hour.",
    )
