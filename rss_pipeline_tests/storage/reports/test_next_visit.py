"""One next visit, whoever shows it: `status`, the reader, metrics and the check for overdue feeds."""

from datetime import timedelta

import pytest

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.collector.models.hold import FeedHold, HostHold
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.stored_holds import ON_HOLD, keep_holds
from rss_pipeline.storage.reports.figures import feed_figures
from rss_pipeline.storage.reports.overview import feed_health, overview
from rss_pipeline.storage.subscriptions.listing import feed_rows, list_feeds
from rss_pipeline_tests.storage.subscriptions.readers import add_user, subscribe
from rss_pipeline_tests.storage.values import HOUR, NOW, register, spec

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize("held", ["host", "feed", None])
def test_every_report_has_the_same_next_visit(database: Database, held: str | None) -> None:
    register(database, spec("a"))
    add_user(database, "ann")
    subscribe(database, "ann", "a")
    database.query("UPDATE feeds SET next_fetch_at = ?", [instant(NOW - 20 * HOUR)])
    [row] = database.query("SELECT host FROM feeds").rows
    end = NOW + 10 * HOUR
    if held == "host":
        hold = HostHold(host=row["host"], until=end, reason="429", times=1)
        keep_holds(database, "hosts", hosts=[hold], now=NOW)
    elif held == "feed":
        keep_holds(
            database,
            "hosts",
            feeds=[FeedHold(feed_id="a", host=row["host"], until=end, reason="503")],
            now=NOW,
        )
    next_visit = NOW - 20 * HOUR if held is None else end

    [stored] = feed_health(database)
    assert stored["held_until"] == (None if held is None else instant(end))
    assert overview(database, now=NOW).next_fetch_at == instant(next_visit)
    [shown] = feed_rows(database.batch([list_feeds("ann")])[0])
    assert shown.next_visit == next_visit
    assert shown.visit_reason == (
        stored["schedule_reason"] if held is None else {"host": ON_HOLD, "feed": "503"}[held]
    )
    assert stored["hold_reason"] == ("503" if held == "feed" else None)

    before = feed_figures(database, now=NOW)
    assert (before.due, before.oldest_due_at) == ((1, next_visit) if held is None else (0, None))
    after = feed_figures(database, now=end + MINUTE)
    assert (after.due, after.oldest_due_at) == (1, next_visit)
    health = pytest.importorskip("rss_pipeline.features.health.sql")
    [late] = health.overdue(database, since=end + MINUTE).rows
    assert from_instant(late["due_since"]) == next_visit
