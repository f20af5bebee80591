"""A connection to Postgres as our statements need it: settings of the session, and types as SQLite has
them."""

import time
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.adapt import AdaptersMap, Buffer, Loader
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumper, TextLoader

from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.storage.backends.postgres.server_errors import not_connected

_T = TypeVar("_T")

OLDEST = 140_000
"""PostgreSQL 14, as libpq counts."""
CONNECT_SECONDS = 5
PREPARED_AFTER = 1
"""Executions after which a statement is prepared: some of ours take longer to plan than to run."""

# A worker that is cut off must not keep others from writing until TCP gives up, which takes hours. JIT takes
# longer than any statement of ours.
_SETTINGS = {
    "idle_in_transaction_session_timeout": "60s",
    "lock_timeout": "60s",
    "TimeZone": "UTC",
    "jit": "off",
    "client_min_messages": "warning",
}
_KEEPALIVES = {"tcp_keepalives_idle": "10", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "4"}
_SESSION = "; ".join(f"SET {name} = '{value}'" for name, value in {**_SETTINGS, **_KEEPALIVES}.items())
SET_LOCALLY = "SELECT " + ", ".join(
    f"set_config('{name}', '{value}', true)" for name, value in _SETTINGS.items()
)
"""The settings of the session for one transaction, where a pooler gives the next one to another session."""

SILENT_SECONDS = 600.0
"""Time after which a server that answers nothing is given up. Longer than any statement of ours takes."""


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that ends when the server is silent for too long.

    The system notices a network that is cut, but not a server, or a proxy before it, that receives all and
    says nothing: a run would wait for ever.
    """

    silent_seconds = SILENT_SECONDS
    is_pooled = False
    """A pooler is before the server. It may give each transaction to another session, so that nothing that
    outlives one is there for the next: no prepared statements, no settings of the session."""

    def wait(self, gen: PQGen[_T], interval: float = 0.1, timeout: float | None = None) -> _T:
        options = {} if timeout is None else {"timeout": timeout}  # psycopg 3.2 has none.
        return super().wait(self._patiently(gen), interval, **options)

    def _patiently(self, gen: PQGen[_T]) -> PQGen[_T]:
        """The same, but for an end in time. Between two signs of the server it is polled every `interval`."""
        heard = time.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    heard = time.monotonic()
                elif time.monotonic() - heard > self.silent_seconds:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"no answer for {self.silent_seconds:g} s")
                wanted = gen.send(ready)
        except StopIteration as end:
            result: _T = end.value
            return result


class _TruthLoader(Loader):
    """SQLite has no truth values: 1 and 0."""

    def load(self, data: Buffer) -> int:
        return int(bytes(data) == b"t")


class _NumericLoader(Loader):
    """The sum of whole numbers is one, an average is none."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data).decode()
        return int(text) if text.lstrip("-").isdigit() else float(text)


def _adapters() -> AdaptersMap:
    adapters = AdaptersMap(psycopg.adapters)
    # By the value's type alone, whatever its size: else each size would be planned apart.
    adapters.register_dumper(int, Int8Dumper)
    adapters.register_dumper(str, StrDumper)
    adapters.register_loader("bool", _TruthLoader)
    adapters.register_loader("numeric", _NumericLoader)
    for name in ("json", "jsonb", "name", "regtype"):
        adapters.register_loader(name, TextLoader)
    return adapters


_ADAPTERS = _adapters()


def connected(url: str, where: str, *, silent_seconds: float = SILENT_SECONDS) -> Connection:
    """A new connection. `where` names the database in errors, without a password.

    Raises DatabaseUnavailable: it cannot be made, or the server is not one that we can use.
    """
    try:
        connection = Connection.connect(
            url,
            autocommit=True,
            context=_ADAPTERS,
            cursor_factory=psycopg.RawCursor,
            prepare_threshold=PREPARED_AFTER,
            connect_timeout=CONNECT_SECONDS,
            application_name="rss_pipeline",
            client_encoding="utf8",
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=4,
            tcp_user_timeout=30_000,
        )
    except psycopg.Error as error:
        raise not_connected(error, where, url) from error
    try:
        connection.silent_seconds = silent_seconds
        _check_server(connection, where)
        connection.is_pooled = _is_pooled(connection)
        if connection.is_pooled:
            connection.prepare_threshold = None
        else:
            connection.execute(_SESSION, prepare=False)
    except psycopg.Error as error:
        connection.close()
        raise not_connected(error, where, url) from error
    except DatabaseUnavailable:
        connection.close()
        raise
    return connection


def _is_pooled(connection: Connection) -> bool:
    """True where the session is another one than that which was announced: a pooler announces its own."""
    found = connection.execute("SELECT pg_backend_pid()", prepare=False).fetchone()
    return found is None or found[0] != connection.info.backend_pid


def _check_server(connection: Connection, where: str) -> None:
    version = connection.info.server_version
    if version < OLDEST:
        raise DatabaseUnavailable(f"{where}: PostgreSQL {version // 10_000}; 14 or newer is needed")
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise DatabaseUnavailable(
            f"{where}: the database's encoding is {encoding}; make one by"
            " `createdb --encoding UTF8 --template template0 NAME`"
        )
