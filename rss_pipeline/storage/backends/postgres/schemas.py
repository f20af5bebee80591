"""A schema of a database, for tables that are not ours: Dagster's; what its connections need."""

import psycopg
from psycopg import sql

from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.storage.backends.postgres.backend import PostgresBackend
from rss_pipeline.storage.backends.postgres.connection import CONNECT_SECONDS
from rss_pipeline.storage.backends.postgres.server_errors import not_connected


def make_schema(url: str, name: str, *, where: str) -> None:
    """Make the schema if it is not there. The right to make one is not needed where it is.

    Raises:
        DatabaseUnavailable: the server does not answer, or does not let us; `where` names it.
    """
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            there = connection.execute("SELECT to_regnamespace(%s)::text", [name]).fetchone()
            if there is None or there[0] is None:
                connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(name)))
    except psycopg.Error as error:
        raise DatabaseUnavailable(f"The schema {name} of {where} could not be made: {error}") from error


def check_options(url: str, *, schema: str | None) -> None:
    """Check that a connection by this URL has its options: the time zone UTC, and the schema, if any.

    Raises:
        DatabaseUnavailable: the server does not answer, or a pooler before it refuses or ignores them.
            Dagster would read times as UTC that are not, or make its tables among ours.
    """
    where = PostgresBackend(url=url).place
    try:
        with psycopg.connect(url, connect_timeout=CONNECT_SECONDS) as connection:
            found = connection.execute(
                "SELECT current_setting('TimeZone'), current_setting('search_path')"
            ).fetchone()
    except psycopg.Error as error:
        if "startup parameter" not in str(error):
            raise not_connected(error, where, url) from error
        found = None
    if found is None or found[0] != "UTC" or (schema is not None and found[1] != schema):
        more = "" if schema is None else f", with ?options=-csearch_path%3D{schema} at its end"
        raise DatabaseUnavailable(
            "Dagster's connections set their time zone and schema, and the pooler in front of the server does"
            f" not allow that: name the server itself in DAGSTER_DATABASE_URL{more}. {where}"
        )
