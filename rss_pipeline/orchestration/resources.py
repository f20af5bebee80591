"""The stores as Dagster resources, for our ops, and the session of a run. No run configures any of them.

What the stores do is storage's; what a session holds is pipeline.session.session's; how a resource is closed
to run config is in run_config.py.
https://docs.dagster.io/guides/build/external-resources
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import dagster as dg
from pydantic import Field

from rss_pipeline.collector.fetch.pacing import Pace
from rss_pipeline.collector.models.clock import Clock, utc_now
from rss_pipeline.orchestration.cause_first import resource_cause_first
from rss_pipeline.orchestration.instance.open_history import history_held_open
from rss_pipeline.orchestration.jobs import REFRESH_FEEDS
from rss_pipeline.orchestration.run_config import NOTHING, closed
from rss_pipeline.pipeline.reading.refresh_run import LEASE_SECONDS
from rss_pipeline.pipeline.registry.sync import RegistrySync
from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.pipeline.session.session import Session, Shared
from rss_pipeline.progress import NoProgress, Progress
from rss_pipeline.server_settings import PostgresSettings
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import check_schema, connect_postgres
from rss_pipeline.storage.backends.d1 import D1Database
from rss_pipeline.storage.backends.folder import FolderStore
from rss_pipeline.storage.backends.sqlite import SqliteDatabase
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.schema import migrate


class SqliteResource(dg.ConfigurableResource[Database]):
    """The embedded database. Opening it brings its schema up to date."""

    path: str = Field(description="The SQLite file.")

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator[Database]:
        with resource_cause_first(context):
            database = SqliteDatabase(Path(self.path))
            try:
                migrate(database)
                yield database
            finally:
                database.close()


class D1Resource(dg.ConfigurableResource[Database]):
    """Cloudflare D1 through the proxy Worker. `rss-pipeline migrate` brings its schema up to date."""

    url: str = Field(description="The proxy Worker's URL.")
    token: str = Field(description="The Worker's bearer token.")
    ca_file: str | None = Field(
        default=None, description="Certificate authorities to trust besides the usual ones; a PEM file."
    )

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator[Database]:
        ca_file = None if self.ca_file is None else Path(self.ca_file)
        with resource_cause_first(context):
            database = D1Database(self.url, self.token, ca_file=ca_file)
            try:
                check_schema(database)
                yield database
            finally:
                database.close()


class PostgresResource(dg.ConfigurableResource[Database]):
    """A database of a Postgres server. `rss-pipeline migrate` brings its schema up to date."""

    url: str = Field(description="postgresql://user:password@host:port/database")

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator[Database]:
        with resource_cause_first(context):
            database = connect_postgres(PostgresSettings(url=self.url))
            try:
                check_schema(database)
                yield database
            finally:
                database.close()


class FolderResource(dg.ConfigurableResource[ObjectStore]):
    """The embedded object store: backups and images as files."""

    root: str = Field(description="The folder.")
    public_url: str | None = Field(default=None, description="The URL under which browsers find its files.")

    def create_resource(self, context: dg.InitResourceContext) -> ObjectStore:
        with resource_cause_first(context):
            return FolderStore(Path(self.root), public_url=self.public_url)


class S3Resource(dg.ConfigurableResource[ObjectStore]):
    """A bucket, by its S3 API: Cloudflare's R2, or any other."""

    endpoint_url: str = Field(description="For R2 https://ACCOUNT.r2.cloudflarestorage.com")
    bucket: str = Field(description="The bucket's name; it holds `backups/` and `images/`.")
    access_key_id: str = Field(description="The key id of a token that may read and write the bucket.")
    secret_access_key: str = Field(description="That token's secret.")
    prefix: str = Field(default="R2", description="Of the variables that name the bucket: R2 or S3.")
    region: str = Field(default="auto", description="For R2 `auto`.")
    path_style: bool = Field(default=True, description="The bucket's name is in the path, not in the host.")
    public_url: str | None = Field(default=None, description="The URL under which browsers find the objects.")
    public_bucket: str | None = Field(default=None, description="The bucket of what everybody may read.")

    def create_resource(self, context: dg.InitResourceContext) -> ObjectStore:
        # boto3 takes a third of a second and 25 MB; an installation with a folder does not need it.
        from rss_pipeline.storage.backends.s3 import S3Store

        with resource_cause_first(context):
            return S3Store(
                endpoint_url=self.endpoint_url,
                bucket=self.bucket,
                access_key_id=self.access_key_id,
                secret_access_key=self.secret_access_key,
                public_url=self.public_url,
                public_bucket=self.public_bucket,
                prefix=self.prefix,
                region=self.region,
                path_style=self.path_style,
            )


def database_resource(settings: Settings) -> dg.ResourceDefinition:
    """The database that these settings name. Its token comes from the environment: the UI never shows it."""
    if settings.d1 is not None:
        return closed(
            D1Resource(
                url=settings.d1.url,
                token=dg.EnvVar("D1_PROXY_TOKEN"),
                ca_file=None if settings.ca_file is None else str(settings.ca_file),
            )
        )
    if settings.postgres is not None:
        return closed(PostgresResource(url=dg.EnvVar("DATABASE_URL")))
    return closed(SqliteResource(path=str(settings.database_path)))


def object_resource(settings: Settings) -> dg.ResourceDefinition:
    """The object store that these settings name; its keys are read from the environment, too."""
    if (s3 := settings.s3) is not None:
        return closed(
            S3Resource(
                endpoint_url=s3.endpoint_url,
                bucket=s3.bucket,
                access_key_id=dg.EnvVar(f"{s3.prefix}_ACCESS_KEY_ID"),
                secret_access_key=dg.EnvVar(f"{s3.prefix}_SECRET_ACCESS_KEY"),
                public_url=s3.public_url,
                public_bucket=s3.public_bucket,
                prefix=s3.prefix,
                region=s3.region,
                path_style=s3.path_style,
            )
        )
    return closed(FolderResource(root=str(settings.objects_path), public_url=settings.objects_public_url))


def session_resource(
    settings: Settings,
    *,
    clock: Clock = utc_now,
    progress: Progress | None = None,
    synced: RegistrySync | None = None,
) -> dg.ResourceDefinition:
    """The `Session` of a run, opened when the run starts and closed at its end."""
    pace, image_pace = Pace(), Pace()

    def open_session(context: dg.InitResourceContext) -> Iterator[Session]:
        run_id = "" if context.run is None else context.run.run_id
        lease_seconds = settings.lease_seconds
        if context.run is not None and context.run.job_name == REFRESH_FEEDS:
            lease_seconds = min(lease_seconds, LEASE_SECONDS)
        with (
            resource_cause_first(context),
            history_held_open(context.instance, run_id),
            Session(
                RunContext(
                    settings=replace(settings, lease_seconds=lease_seconds),
                    database=context.resources.database,
                    objects=context.resources.objects,
                    run_id=run_id,
                    clock=clock,
                    progress=progress or NoProgress(),
                ),
                Shared(
                    pace=pace,
                    image_pace=image_pace,
                    synced=synced,
                ),
            ) as session,
        ):
            yield session

    return dg.ResourceDefinition(
        resource_fn=open_session,
        config_schema=NOTHING,
        required_resource_keys={"database", "objects"},
        description="Everything a run needs to visit feeds: stores, worker processes, spool folder, leases.",
    )
