"""A database that counts its statements, or fails when a test wants it, around a real one; costs of a D1."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.storage.backends.d1.backend import D1Backend
from rss_pipeline.storage.backends.d1.database import D1Database
from rss_pipeline.storage.database import Database, Result, Statement, Value
from rss_pipeline_tests.support.reader import Reader


class Counted:
    """Counts requests as D1 has them: one for each call."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.requests = 0

    def query(self, sql: str, params: Sequence[Value] = (), *, name: str = "") -> Result:
        self.requests += 1
        return self._database.query(sql, params, name=name)

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        self.requests += 1
        return self._database.batch(statements)

    def close(self) -> None:
        self._database.close()


class Failing(Counted):
    """Cannot work from the request with this number on, once it is set."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.fails_at: int | None = None

    def query(self, sql: str, params: Sequence[Value] = (), *, name: str = "") -> Result:
        self._look()
        return super().query(sql, params, name=name)

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        self._look()
        return super().batch(statements)

    def _look(self) -> None:
        if self.fails_at is not None and self.requests + 1 >= self.fails_at:
            raise DatabaseUnavailable("database is locked")


def failing(reader: Reader) -> tuple[Reader, Failing]:
    """A reader on the same stores, with a database that can fail."""
    database = Failing(reader.database)
    return Reader(replace(reader.stores, database=database), reader.loop), database


def as_on_d1(reader: Reader) -> tuple[Reader, Counted]:
    """A reader on the same stores that takes them for remote ones, and the count of its requests."""
    database = Counted(reader.database)
    d1 = D1Backend(url="http://127.0.0.1:9", token="x")
    settings = replace(reader.settings, database_server=d1)
    stores = replace(reader.stores, database=database, settings=settings)
    return Reader(stores, reader.loop), database


def counting(counts: Counter[str]) -> Callable[[D1Database, str, bytes], tuple[int, bytes]]:
    """`D1Database._exchange` that adds up what D1 says of its costs."""
    exchange = D1Database._exchange

    def counted(self: D1Database, path: str, body: bytes) -> tuple[int, bytes]:
        status, answer = exchange(self, path, body)
        told = json.loads(answer)
        counts["requests"] += 1
        for each in told if isinstance(told, list) else [told]:
            counts["rows"] += int(each["meta"].get("rows_read") or 0)
        return status, answer

    return counted
