"""The stores that settings name: embedded, Cloudflare or Postgres, each of the two on its own.

Outside of runs too: sensors and the command line open them here. Dagster's resources are in
orchestration/resources.py.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rss_pipeline.errors import DatabaseFull, DatabaseUnavailable
from rss_pipeline.server_settings import PostgresSettings, S3Settings
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.schema import (
    check_not_ahead,
    check_not_behind,
    check_prepared,
    migrate,
    migrations,
    recorded_version,
    schema_version,
)

if TYPE_CHECKING:
    from rss_pipeline.storage.backends.s3 import S3Store

REQUEST_SECONDS = 10.0
"""The longest wait of a request of the reader that writes. One that only reads waits for no writer."""


@contextmanager
def open_database(
    settings: Settings, *, for_requests: bool = False, alone_where_full: bool = False
) -> Iterator[Database]:
    """The database, its schema checked: the embedded one is brought up to date, a server's must be.

    `for_requests`: for many people at once, none of whom waits for long. `alone_where_full`: for a command
    that reads or makes room, also on a disk without any; others wait for its end then.

    Raises:
        DatabaseUnavailable: it cannot be reached, or its schema is not this code's.
    """
    database = connect(settings, for_requests=for_requests, alone_where_full=alone_where_full)
    try:
        if settings.has_embedded_database:
            try:
                migrate(database)
            except DatabaseFull:
                # What is left of it is for later, if the tables are there.
                if not alone_where_full:
                    raise
                check_schema(database)
        else:
            check_schema(database)
        yield database
    finally:
        database.close()


@contextmanager
def open_database_to_read(settings: Settings) -> Iterator[Database]:
    """The database for a command that only reads: as `open_database`, but neither the right to write nor
    room on the disk is needed.

    An embedded one that this user may not write, or on a file system that is mounted read-only, is opened as
    it is; its schema must be this code's.
    """
    path = settings.database_path
    if (
        not settings.has_embedded_database
        or not path.is_file()
        or (_may_write(path) and _may_write(path.parent))
    ):
        with open_database(settings, alone_where_full=True) as database:
            yield database
        return
    from rss_pipeline.storage.backends.sqlite import SqliteDatabase

    reader = SqliteDatabase.to_read(path, is_beside_writable=_may_write(path.parent))
    try:
        check_schema(reader)
        yield reader
    finally:
        reader.close()


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def connect(settings: Settings, *, for_requests: bool = False, alone_where_full: bool = False) -> Database:
    """The database as it is, whatever its schema; the options as of `open_database`."""
    if settings.d1 is not None:
        from rss_pipeline.storage.backends.d1 import D1Database

        return D1Database(settings.d1.url, settings.d1.token, ca_file=settings.ca_file)
    if settings.postgres is not None:
        return connect_postgres(settings.postgres)
    from rss_pipeline.storage.backends.sqlite import SqliteDatabase

    if for_requests:
        return SqliteDatabase(settings.database_path, busy_timeout=REQUEST_SECONDS, for_requests=True)
    return SqliteDatabase(settings.database_path, alone_where_full=alone_where_full)


def connect_postgres(postgres: PostgresSettings) -> Database:
    """The database of a Postgres server, whatever its schema. Only those who have one need its driver."""
    try:
        from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
    except ImportError as error:
        raise DatabaseUnavailable(
            f"DATABASE_URL needs the driver of Postgres: run `pip install 'rss_pipeline[postgres]'` ({error})"
        ) from error
    return PostgresDatabase(postgres.url, where=postgres.where)


def check_schema(database: Database) -> None:
    """Raise DatabaseUnavailable unless the database has exactly this code's schema."""
    known = migrations()
    current = recorded_version(database)
    if current is None:
        current = schema_version(database)
    check_not_ahead(current, known)
    check_not_behind(current, known)
    check_prepared(database)


def open_objects(settings: Settings) -> ObjectStore:
    """The object store."""
    if settings.s3 is not None:
        s3 = settings.s3
        return bucket_store(s3, s3.bucket, s3.public_url, public_bucket=s3.public_bucket)
    from rss_pipeline.storage.backends.folder import FolderStore

    return FolderStore(settings.objects_path, public_url=settings.objects_public_url)


def open_topics(settings: Settings) -> ObjectStore | None:
    """The store of topics, where it is not `open_objects(settings)`: it has another bucket or another address
    for everybody."""
    s3 = settings.s3
    if s3 is None or (s3.topics_bucket is None and s3.topics_public_url is None):
        return None
    return bucket_store(s3, s3.topics_bucket or s3.public_bucket or s3.bucket, s3.topics_public_url)


def bucket_store(
    s3: S3Settings, bucket: str, public_url: str | None, *, public_bucket: str | None = None
) -> "S3Store":
    """A bucket, by the key and the endpoint of these settings."""
    from rss_pipeline.storage.backends.s3 import S3Store

    return S3Store(
        endpoint_url=s3.endpoint_url,
        bucket=bucket,
        access_key_id=s3.access_key_id,
        secret_access_key=s3.secret_access_key,
        public_url=public_url,
        public_bucket=public_bucket,
        prefix=s3.prefix,
        region=s3.region,
        path_style=s3.path_style,
    )
