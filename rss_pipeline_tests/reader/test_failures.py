"""The feeds of a user that fail, from the rows of the user's list."""

from datetime import timedelta

import pytest

from rss_pipeline.reader.failures import PRIVATE, failing_feeds
from rss_pipeline.storage.subscriptions import subscriptions
from rss_pipeline.storage.subscriptions.listing import feed_rows, list_feeds
from rss_pipeline.storage.subscriptions.subscriptions import Wanted
from rss_pipeline_tests.reader.accounts.signed_in import add_user
from rss_pipeline_tests.support.pipeline import NOON, Pipeline


@pytest.fixture
def ann(pipeline: Pipeline) -> str:
    for id in ("fine", "slow", "gone", "inside", "unknown", "not-hers"):
        pipeline.register(f"http://{id}.example/feed", id, allow_private=False)
    pipeline.sync()
    user = add_user(pipeline.database, "ann", clock=pipeline.clock)
    wanted = [Wanted(feed_id=id) for id in ("fine", "slow", "gone", "inside", "unknown")]
    pipeline.database.batch(subscriptions.subscribe(user, wanted, at=pipeline.clock()))
    for hours, (id, kind) in enumerate(
        (
            ("slow", "timeout"),
            ("gone", "gone"),
            ("inside", "blocked_address"),
            ("unknown", "dns"),
            ("not-hers", "timeout"),
        )
    ):
        pipeline.database.query(
            """UPDATE feeds SET last_visited_at = '2026-03-02T12:00:00Z', consecutive_failures = 2,
            last_error_kind = ?, last_error = ? || ' at 10.1.2.3.', failing_since = ? WHERE id = ?""",
            [kind, kind, f"2026-03-0{hours + 1}T12:00:00Z", id],
        )
    return user


def test_a_user_sees_which_of_the_feeds_fail_since_when_and_why(pipeline: Pipeline, ann: str) -> None:
    [result] = pipeline.database.batch([list_feeds(ann)])
    found = failing_feeds(feed_rows(result))
    assert [(feed.feed_id, feed.error_kind) for feed in found] == [
        ("unknown", "blocked_address"),
        ("inside", "blocked_address"),
        ("gone", "gone"),
        ("slow", "timeout"),
    ]
    assert found[-1].since == NOON - timedelta(days=1)
    assert found[-1].error == "timeout at 10.1.2.3."
    unknown, inside, *_ = found
    assert (inside.error, inside.full_error) == (PRIVATE, None), "a private address is nobody's to know"
    assert (unknown.error, unknown.full_error, unknown.what_to_do) == (PRIVATE, None, inside.what_to_do)
    assert all(feed.what_to_do and feed.title for feed in found)
