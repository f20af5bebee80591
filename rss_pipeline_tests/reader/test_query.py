"""Queries of what people are shown: many in one batch, each with its own value."""

import pytest

from rss_pipeline.errors import NoSession
from rss_pipeline.reader.accounts.login import log_out
from rss_pipeline.reader.query import NOTHING, Query, together
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline_tests.reader.accounts.signed_in import signed_in
from rss_pipeline_tests.support.pipeline import Clock


def number(n: int) -> Query[int]:
    return Query.of(Statement(f"SELECT {n} AS n"), lambda found: int(found.values[0][0]))


def total(*numbers: int) -> Query[int]:
    statements = tuple(Statement(f"SELECT {n} AS n") for n in numbers)
    return Query(statements, lambda found: sum(each.values[0][0] for each in found))


def test_queries_put_together_are_one_batch_and_each_reads_its_own_results(
    database: Database, clock: Clock
) -> None:
    caller = signed_in(database, "ada", clock=clock)
    query = together(number(1), total(2, 3), together(NOTHING, total(), number(4)))
    assert len(query.statements) == 4
    assert caller.ask(query) == (1, 5, (None, 0, 4))
    assert caller.ask(query.then(lambda values: values[1] * 2)) == 10


def test_no_query_is_answered_without_a_session_not_even_nothing(database: Database, clock: Clock) -> None:
    caller = signed_in(database, "ada", clock=clock)
    assert caller.ask(NOTHING) is None
    log_out(database, caller.key.session_id)
    for query in (NOTHING, number(1)):
        with pytest.raises(NoSession):
            caller.ask(query)
