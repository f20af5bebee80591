"""The sync of the registry: feeds.yaml into the feeds table.

Reading feeds.yaml is collector.registry's, comparing it storage.feeds'. Partition keys of the feeds are
orchestration.registry_partitions'.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models.feed import Access, FeedSpec
from rss_pipeline.collector.registry.load import load_registry
from rss_pipeline.errors import RegistryError
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.feeds import feeds

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySync:
    """The feeds of a registry and the changes that it made."""

    specs: tuple[FeedSpec, ...]
    changes: feeds.RegistryChanges
    has_suspects: bool
    """Some feed's last claim never ended in a close."""
    forgotten: tuple[str, ...] = ()
    """Feeds that a killed `forget` left with a row and a partition key."""

    @property
    def accesses(self) -> dict[str, Access]:
        """Feed id to its headers and password, which only the registry has."""
        return {spec.id: spec.access for spec in self.specs if not spec.access.is_open}

    def __str__(self) -> str:
        changes = self.changes
        return (
            f"{len(self.specs)} feeds in the registry: {len(changes.added)} new,"
            f" {len(changes.updated)} changed, {len(changes.unregistered)} no longer scheduled"
        )


def sync_registry(
    database: Database,
    settings: Settings,
    *,
    now: datetime,
    yes: bool = False,
    environ: Mapping[str, str] | None = None,
) -> RegistrySync:
    """Read the registry and write what it changes. Idempotent.

    Raises:
        RegistryError: the file cannot be used, or would unschedule more than half of over ten feeds and
            `yes` is not set; nothing was changed.
    """
    path = settings.feeds_file
    specs = load_registry(path, environ=os.environ if environ is None else environ)
    rows = _without_forgotten(database, feeds.registry_rows(database), specs)
    forgotten = tuple(row["id"] for row in rows if row["forgotten"])
    changes = feeds.registry_changes(specs, rows, path=str(path))
    if changes.is_suspicious and not yes:
        raise RegistryError(
            str(path),
            [
                f"{len(changes.unregistered)} of {changes.registered_before} feeds would no longer be"
                " scheduled: is this the right file, and the right database? If it is intended,"
                " confirm it with `rss-pipeline poll --yes`"
            ],
        )
    if not changes.is_empty:
        feeds.apply(database, changes, now=now)
    return RegistrySync(
        specs=tuple(specs),
        changes=changes,
        has_suspects=any(row["suspect"] for row in rows),
        forgotten=forgotten,
    )


def _without_forgotten(database: Database, rows: list[Row], specs: Sequence[FeedSpec]) -> list[Row]:
    """The rows without those of feeds that were forgotten half-way and are in feeds.yaml again: such a feed
    begins anew, without validators that would hide its items."""
    wanted = {spec.id for spec in specs}
    begun = [row["id"] for row in rows if row["forgotten"] and row["id"] in wanted]
    for id in begun:
        feeds.forget(database, id)
    return [row for row in rows if row["id"] not in begun]


def registered_accesses(settings: Settings, environ: Mapping[str, str] | None = None) -> Mapping[str, Access]:
    """Feed id to its headers and password, for use without a request; none where feeds.yaml has mistakes."""
    try:
        specs = load_registry(settings.feeds_file, environ=os.environ if environ is None else environ)
    except RegistryError as error:
        logger.warning("%s\nPasswords and headers of feeds are not known.", error)
        return {}
    return {spec.id: spec.access for spec in specs if not spec.access.is_open}
