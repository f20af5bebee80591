"""A schema of a database, for tables that are not ours: Dagster's."""

import psycopg
from psycopg import sql

from rss_pipeline.errors import DatabaseUnavailable


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
