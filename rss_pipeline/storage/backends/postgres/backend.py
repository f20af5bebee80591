"""A database of a Postgres server as a backend: its settings and probe, what a fleet needs of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import parse_qs, urlsplit

from rss_pipeline.environment import EnvironmentReader
from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.extras import POSTGRES
from rss_pipeline.storage.backends.backend import DatabaseBackend, Server, ServerAnswer, shown
from rss_pipeline.storage.database import Database

if TYPE_CHECKING:
    from rss_pipeline.storage.backends.postgres.database import PostgresDatabase

PORT = 5432


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresBackend(DatabaseBackend):
    """A database of a Postgres server. `rss-pipeline migrate` brings its schema up to date."""

    name = "postgres"
    title = "Postgres"
    variables = ("DATABASE_URL",)
    secrets = (("url", "DATABASE_URL"),)
    side = ("postgres", "folder")
    fix = "Correct DATABASE_URL, or start the server."

    url: str = shown("postgresql://user:password@host:port/database", repr=False)
    """May hold a password."""

    @classmethod
    def read(cls, reader: EnvironmentReader, *, ca_file: Path | None) -> Self | None:
        url = reader.postgres("DATABASE_URL")
        return None if url is None else cls(url=url)

    @property
    def place(self) -> str:
        """Server and database, without a password."""
        parts = urlsplit(self.url)
        host = parts.hostname or "".join(parse_qs(parts.query).get("host", ["localhost"]))
        port = "" if parts.port is None else f":{parts.port}"
        return f"postgresql://{host}{port}{parts.path}"

    def servers(self) -> Iterable[Server]:
        what = "the database of this installation (DATABASE_URL)"
        yield Server(what=what, url=self.url, default_port=PORT)

    def connect(self, *, for_requests: bool = False, alone_where_full: bool = False) -> "PostgresDatabase":
        """The open database. Only an installation with a server needs its driver."""
        try:
            from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
        except ImportError as error:
            raise DatabaseUnavailable(f"DATABASE_URL is set. {POSTGRES.not_imported(error)}") from error
        return PostgresDatabase(self.url, where=self.place)

    def probe(self) -> ServerAnswer:
        database = self.connect()
        try:
            [row] = database.query(
                # Without our functions: a database that was not migrated answers, too.
                "SELECT pg_database_size(current_database()) AS bytes,"
                " to_char(statement_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS+00') AS now,"
                " current_setting('server_version') AS version",
                name="probe",
            ).rows
        finally:
            database.close()
        return ServerAnswer(
            said=f"{self.place}: PostgreSQL {row['version'].split()[0]} answers",
            clock=datetime.fromisoformat(row["now"]),
            size_bytes=row["bytes"],
        )

    def most_connections(self, database: Database) -> int:
        """The connections that the server gives to ordinary users."""
        [row] = database.query(
            "SELECT CAST(current_setting('max_connections') AS INTEGER)"
            " - CAST(current_setting('superuser_reserved_connections') AS INTEGER) AS connections",
            name="read the most connections",
        ).rows
        return int(row["connections"])

    def make_schema(self, name: str) -> None:
        from rss_pipeline.storage.backends.postgres.connection import make_schema

        make_schema(self.url, name, where=self.place)
