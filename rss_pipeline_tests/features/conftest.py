"""The fixtures of the rooms that a feature's tests use: a reader, a command, stores of each kind."""

from rss_pipeline_tests.api.conftest import reader
from rss_pipeline_tests.cli.conftest import collected, collected_in_runs, invoke
from rss_pipeline_tests.storage.conftest import (
    database,
    empty_d1,
    empty_database,
    empty_postgres,
    migrated_d1,
    migrated_schema,
    nobody,
    objects,
    public_folder,
    r2,
    shared_d1,
    shared_empty_postgres,
    shared_r2,
    sqlite,
)

__all__ = [
    "collected",
    "collected_in_runs",
    "database",
    "empty_d1",
    "empty_database",
    "empty_postgres",
    "invoke",
    "migrated_d1",
    "migrated_schema",
    "nobody",
    "objects",
    "public_folder",
    "r2",
    "reader",
    "shared_d1",
    "shared_empty_postgres",
    "shared_r2",
    "sqlite",
]
