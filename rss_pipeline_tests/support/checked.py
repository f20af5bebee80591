"""Checks of the table by their names, without all of `doctor` around them."""

from collections.abc import Collection
from datetime import datetime
from typing import cast

from rss_pipeline.features.health.checks import all_checks
from rss_pipeline.features.health.model import Finding, Look
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore


def checked(
    names: Collection[str],
    database: Database,
    *,
    now: datetime,
    settings: Settings | None = None,
    objects: ObjectStore | None = None,
) -> list[Finding]:
    """The findings of these checks, each as `doctor` says it; without those that have nothing to say."""
    look = Look(
        database=database,
        objects=lambda: cast("ObjectStore", objects),
        settings=cast("Settings", settings),
        now=now,
        at_once=True,
    )
    found = [check.find(look) for check in all_checks() if check.name in names]
    return [each.naming() for each in found if each is not None]
