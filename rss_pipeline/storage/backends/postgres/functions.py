"""The functions of functions.sql in a database: whether they are there, and making them."""

from functools import cache
from hashlib import sha256
from importlib.resources import files

from rss_pipeline.storage.backends.postgres.dialect import SCHEMA

VERSION_SQL = f"""SELECT obj_description(to_regnamespace('{SCHEMA}'), 'pg_namespace') AS version"""
"""The version of the functions that a database has: NULL without any."""


@cache
def version() -> str:
    """The version of this code's functions: the hash of their file."""
    return sha256(_script().encode()).hexdigest()


def script() -> str:
    """The statements that make the functions, to be run in one transaction."""
    return f"""CREATE SCHEMA IF NOT EXISTS {SCHEMA};
{_script()}
COMMENT ON SCHEMA {SCHEMA} IS '{version()}';"""


@cache
def _script() -> str:
    return files("rss_pipeline.storage.backends.postgres").joinpath("functions.sql").read_text("utf-8")
