"""The stores as Dagster resources, for our ops and for anybody's downstream assets, and a run's session.

What the stores do is storage's; what a session holds is visiting.py's.
https://docs.dagster.io/guides/build/external-resources
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg

from rss_pipeline.collector.models import Clock, utc_now
from rss_pipeline.collector.pacing import Pace
from rss_pipeline.orchestration.visiting import Progress, Visiting
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.folder import FolderStore
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.schema import migrate
from rss_pipeline.storage.sqlite import SqliteDatabase


class SqliteResource(dg.ConfigurableResource[Database]):
    """The embedded database. Its schema is brought up to date when it is opened."""

    path: str

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator[Database]:
        with self.open() as database:
            yield database

    @contextmanager
    def open(self) -> Iterator[Database]:
        """The database outside of a run: sensors and the command line."""
        database = SqliteDatabase(Path(self.path))
        try:
            migrate(database)
            yield database
        finally:
            database.close()


class FolderResource(dg.ConfigurableResource[ObjectStore]):
    """The embedded object store: backups and images as files."""

    root: str

    def create_resource(self, context: dg.InitResourceContext) -> ObjectStore:
        return self.open()

    def open(self) -> ObjectStore:
        return FolderStore(Path(self.root))


def database_resource(settings: Settings) -> SqliteResource:
    """The database these settings name."""
    return SqliteResource(path=str(settings.database_path))


def object_resource(settings: Settings) -> FolderResource:
    """The object store these settings name."""
    return FolderResource(root=str(settings.objects_path))


def visiting_resource(
    settings: Settings, *, clock: Clock = utc_now, progress: Progress | None = None
) -> dg.ResourceDefinition:
    """A run's `Visiting`, opened with the run and ended with it."""
    pace = Pace()

    def open_visiting(context: dg.InitResourceContext) -> Iterator[Visiting]:
        with Visiting(
            settings=settings,
            database=context.resources.database,
            objects=context.resources.objects,
            run_id="" if context.run is None else context.run.run_id,
            clock=clock,
            progress=progress,
            pace=pace,
        ) as visiting:
            yield visiting

    return dg.ResourceDefinition(
        resource_fn=open_visiting,
        required_resource_keys={"database", "objects"},
        description="What one run needs to visit feeds: stores, worker processes, spool folder, leases.",
    )
