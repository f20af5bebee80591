"""The size of all that is stored, for the owner of the installation; and of a feed's backups.

What is counted row by row or listed is left out where rows read or lists are paid for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from rss_pipeline.settings import Settings
from rss_pipeline.storage.backups.backups import list_backups
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectInfo, ObjectStore
from rss_pipeline.storage.reports.metrics import RowFigures, row_figures

MOST_OBJECTS = 20_000
MOST_BACKUPS = 2_000
"""The most of one feed that are counted: two requests to R2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """Objects of one kind."""

    count: int
    bytes: int
    is_all: bool
    """False: there are more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """Everything stored. None is not known."""

    database_bytes: int | None
    rows: RowFigures | None
    backups: Objects | None


def whole(settings: Settings, database: Database, objects: ObjectStore) -> Whole:
    """The sizes of the stores. Raises DatabaseUnavailable, ObjectStoreUnavailable."""
    is_listed = not settings.objects.pays_by_list
    return Whole(
        database_bytes=settings.database.size(),
        rows=None if settings.pays_by_row else row_figures(database),
        backups=_count(objects.list("backups/"), most=MOST_OBJECTS) if is_listed else None,
    )


def backups_of(objects: ObjectStore, feed_id: str) -> Objects:
    """The backups of a feed. Raises ObjectStoreUnavailable."""
    return _count(list_backups(objects, feed_id), most=MOST_BACKUPS)


def _count(found: Iterator[ObjectInfo], *, most: int) -> Objects:
    sizes = [info.size for info in islice(found, most)]
    return Objects(count=len(sizes), bytes=sum(sizes), is_all=next(found, None) is None)
