"""Queries: the statements that read what a person is shown, and its value from their results.

A page shows several things at once. Their queries are put together, so that all are of one moment and of one
request to the database; `Caller.ask` sends them, with the look at the session.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from rss_pipeline.storage.database import Result, Statement

T = TypeVar("T")
U = TypeVar("U")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Query(Generic[T]):
    """Statements that only read, and the value of their results, which come in the same order."""

    statements: tuple[Statement, ...]
    read: Callable[[Sequence[Result]], T]

    @classmethod
    def of(cls, statement: Statement, read: Callable[[Result], T]) -> "Query[T]":
        """A query of one statement."""
        return Query((statement,), lambda results: read(results[0]))

    def then(self, make: Callable[[T], U]) -> "Query[U]":
        """The same query, with what is made of its value."""
        return Query(self.statements, lambda results: make(self.read(results)))


NOTHING: Query[None] = Query((), lambda _: None)
"""A query for no more than the look at the session."""


@overload
def together(a: Query[A], b: Query[B], /) -> Query[tuple[A, B]]: ...
@overload
def together(a: Query[A], b: Query[B], c: Query[C], /) -> Query[tuple[A, B, C]]: ...
@overload
def together(a: Query[A], b: Query[B], c: Query[C], d: Query[D], /) -> Query[tuple[A, B, C, D]]: ...
@overload
def together(
    a: Query[A], b: Query[B], c: Query[C], d: Query[D], e: Query[E], /
) -> Query[tuple[A, B, C, D, E]]: ...
@overload
def together(*queries: Query[T]) -> Query[tuple[T, ...]]: ...
def together(*queries: Query[Any]) -> Query[Any]:
    """The queries as one, with the values of all."""

    def read(results: Sequence[Result]) -> tuple[Any, ...]:
        values, start = list[Any](), 0
        for query in queries:
            end = start + len(query.statements)
            values.append(query.read(results[start:end]))
            start = end
        return tuple(values)

    return Query(tuple(one for query in queries for one in query.statements), read)
