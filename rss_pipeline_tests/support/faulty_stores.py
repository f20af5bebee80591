"""Stores with faults made on purpose: a call that fails, before it is applied or after, and keys that are
never deleted.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rss_pipeline.storage.database import Result, Statement, Value


class Faulty:
    """A store with faults, made on purpose: at its so-manieth call, before it is applied or after."""

    def __init__(self, real: Any, calls: "Calls", error: type[Exception]) -> None:
        self._real = real
        self._calls = calls
        self._error = error

    def _do(self, call: Callable[[], Any]) -> Any:
        self._calls.made += 1
        fails = self._calls.made == self._calls.failing
        if fails and not self._calls.applied:
            raise self._error("down")
        result = call()
        if fails:
            raise self._error("the answer got lost")
        return result


class Calls:
    def __init__(self, failing: int, *, applied: bool) -> None:
        self.made, self.failing, self.applied = 0, failing, applied


class FaultyDatabase(Faulty):
    def query(self, sql: str, params: Sequence[Value] = (), *, name: str = "") -> Result:
        result: Result = self._do(lambda: self._real.query(sql, params, name=name))
        return result

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        results: list[Result] = self._do(lambda: self._real.batch(statements))
        return results


class FaultyObjects(Faulty):
    def list(self, prefix: str, *, after: str = "") -> Any:
        return iter(self._do(lambda: tuple(self._real.list(prefix, after=after))))

    def head(self, key: str) -> Any:
        return self._do(lambda: self._real.head(key))

    def copy(self, source: str, target: str) -> None:
        self._do(lambda: self._real.copy(source, target))

    def delete_many(self, keys: Iterable[str]) -> Any:
        return self._do(lambda: self._real.delete_many(keys))

    def url(self, key: str) -> str | None:
        url: str | None = self._real.url(key)
        return url


class Refusing:
    """An object store that will not delete some keys."""

    def __init__(self, real: Any, refused: Callable[[str], bool]) -> None:
        self._real = real
        self._refused = refused

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def delete_many(self, keys: Iterable[str]) -> dict[str, str]:
        keys = list(keys)
        refused = {key: "AccessDenied: no" for key in keys if self._refused(key)}
        return refused | self._real.delete_many([key for key in keys if key not in refused])
