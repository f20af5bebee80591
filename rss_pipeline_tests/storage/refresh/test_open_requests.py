"""No request of a user stays open for ever, whatever becomes of the runs, the visits and the feeds."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import Wishes
from rss_pipeline.storage.database import Database, Row, Statement
from rss_pipeline.storage.feeds import leases
from rss_pipeline.storage.refresh import open_requests
from rss_pipeline.storage.refresh.open_requests import RequestResult
from rss_pipeline.storage.refresh.refresh_requests import (
    RefreshRequest,
    SearchRequest,
    request_statements,
    search_request_statements,
)
from rss_pipeline_tests.support.examples import examples

NOW = datetime(2026, 3, 2, 12, 0, 0, tzinfo=UTC)
FEEDS, USERS = ("a", "b", "c"), ("ann", "ben")
LEASE = 60


class Installation:
    """Users, feeds and requests, and a clock that also goes back."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.now = NOW
        self.tokens = ["none"]
        self._count = 0
        database.batch(
            [
                *(
                    Statement(f"DELETE FROM {table}")
                    for table in ("refresh_requests", "leases", "users", "feeds")
                ),
                *(
                    Statement(
                        "INSERT INTO users (id, name, password_hash, created_at) VALUES (?, ?, '', ?)",
                        [name, name, instant(NOW)],
                    )
                    for name in USERS
                ),
                *(statement for id in FEEDS for statement in self._feed(id)),
            ]
        )

    def ask(self, user: str, feed: str) -> None:
        self.database.batch(
            request_statements(RefreshRequest(id=self._new(), user_id=user, feed_id=feed, now=self.now))
        )

    def search(self, user: str) -> None:
        ask = SearchRequest(id=self._new(), user_id=user, address="x.example", now=self.now, wishes=Wishes())
        self.database.batch(search_request_statements(ask))

    def claim(self, limit: int) -> None:
        self.tokens.append(self._new())
        open_requests.claim_requests(
            self.database,
            run_id="run",
            token=self.tokens[-1],
            lease_seconds=LEASE,
            limit=limit,
            now=self.now,
            lease_now=self.now,
        )

    def answer(self, token: int, feed: str) -> None:
        rows = self.database.query("SELECT id FROM refresh_requests WHERE feed_id = ?", [feed]).rows
        answers = [RequestResult(id=row["id"], result={"outcome": "unchanged"}) for row in rows]
        open_requests.answer_requests(self.database, self._token(token), answers, now=self.now)

    def put_back(self, token: int) -> None:
        open_requests.release_requests(self.database, self._token(token))

    def end(self, token: int) -> None:
        leases.end(self.database, self._token(token), forgive=True)

    def visit(self, feed: str, failures: int) -> None:
        """By any run, also within the second of the one before."""
        self.database.query(
            "UPDATE feeds SET last_visited_at = ?, consecutive_failures = ? WHERE id = ?",
            [instant(self.now), failures, feed],
        )

    def hold(self, feed: str) -> None:
        """Another run has the feed, and dies with it."""
        token = self._new()
        self.database.query("UPDATE feeds SET lease_token = ? WHERE id = ?", [token, feed])
        self.database.query(
            """INSERT INTO leases (token, run_id, expires_at, seconds, feeds, hosts)
            VALUES (?, 'poll', ?, ?, '[]', '[]')""",
            [token, instant(self.now + timedelta(seconds=LEASE)), LEASE],
        )

    def switch_off(self, feed: str) -> None:
        self.database.query("UPDATE feeds SET enabled = 0, registered = 0 WHERE id = ?", [feed])

    def forget(self, feed: str) -> None:
        self.database.batch(
            [
                Statement("DELETE FROM subscriptions WHERE feed_id = ?", [feed]),
                Statement("DELETE FROM feeds WHERE id = ?", [feed]),
            ]
        )

    def pass_(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    def holding(self) -> list[open_requests.HoldingLease]:
        return open_requests.holding_leases(self.database, lease_now=self.now)

    def waiting(self) -> open_requests.Waiting:
        return open_requests.waiting(self.database, now=self.now, lease_now=self.now)

    def open_requests(self) -> list[Row]:
        return self.database.query("SELECT * FROM refresh_requests WHERE state <> 'done'").rows

    def _feed(self, id: str) -> list[Statement]:
        return [
            Statement(
                """INSERT INTO feeds (id, url, host, created_at, next_fetch_at, registered, enabled)
                VALUES (?, ?, ?, ?, '2026-03-03T00:00:00Z', 1, 1)""",
                [id, f"https://{id}.example/feed", f"{id}.example", instant(NOW)],
            ),
            *(
                Statement(
                    "INSERT INTO subscriptions (user_id, feed_id, read_up_to, added_at) VALUES (?, ?, 0, ?)",
                    [user, id, instant(NOW)],
                )
                for user in USERS
            ),
        ]

    def _token(self, number: int) -> str:
        return self.tokens[-1 - number % len(self.tokens)]

    def _new(self) -> str:
        self._count += 1
        return f"{self._count:04}"


FEED = st.sampled_from(FEEDS)
USER = st.sampled_from(USERS)
TOKEN = st.integers(0, 2)
STEPS: list[st.SearchStrategy[tuple[Any, ...]]] = [
    st.tuples(st.just(Installation.ask), USER, FEED),
    st.tuples(st.just(Installation.ask), USER, FEED),
    st.tuples(st.just(Installation.search), USER),
    st.tuples(st.just(Installation.claim), st.integers(1, 3)),
    st.tuples(st.just(Installation.answer), TOKEN, FEED),
    st.tuples(st.just(Installation.put_back), TOKEN),
    st.tuples(st.just(Installation.end), TOKEN),
    st.tuples(st.just(Installation.visit), FEED, st.integers(0, 1)),
    st.tuples(st.just(Installation.hold), FEED),
    st.tuples(st.just(Installation.switch_off), FEED),
    st.tuples(st.just(Installation.forget), FEED),
    st.tuples(st.just(Installation.pass_), st.sampled_from((0, 1, LEASE, -1, -2 * LEASE))),
]


@pytest.mark.slow
@settings(
    max_examples=examples(150),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(st.one_of(STEPS), max_size=25))
def test_whatever_happened_a_request_is_taken_by_a_run_once_no_lease_holds_it(
    sqlite: Database, steps: list[tuple[Any, ...]]
) -> None:
    installation = Installation(sqlite)
    for work, *values in steps:
        work(installation, *values)
        # Each open request is free for a run, or a lease that ends holds it or its feed.
        found = installation.waiting()
        assert found.count == len(installation.open_requests())
        assert found.can_begin == found.count or installation.holding()
    # The longest that any of the leases can last, also with the clock put back meanwhile.
    installation.pass_(LEASE + len(steps) * 3 * LEASE)
    found = installation.waiting()
    assert found.can_begin == found.count
    installation.claim(limit=100)
    taken = [row["lease_token"] for row in installation.open_requests()]
    assert taken == [installation.tokens[-1]] * found.count
