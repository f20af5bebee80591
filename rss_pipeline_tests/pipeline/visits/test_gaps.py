"""Documents that had no item in common with the one before: items were probably missed between two visits."""

from datetime import timedelta
from typing import Any

import pytest

from rss_pipeline.pipeline.read.feed_notes import feed_notes
from rss_pipeline.storage.feeds.feed_row import feeds_by_id
from rss_pipeline.storage.reports.overview import feed_health
from rss_pipeline_tests.support.pipeline import Pipeline, ends, rss
from rss_pipeline_tests.support.server import Answer, FeedServer


def undated(*guids: str) -> Answer:
    return Answer(body=rss(*guids).replace(b"pubDate", b"x"))


BROKEN = Answer(status=404)
DOCUMENTS: dict[str, list[Answer]] = {
    "fast": [undated("a", "b", "c"), undated("b", "c", "d"), undated("e", "f", "g"), undated("g", "h", "i")],
    "unstable": [
        Answer(body=rss(*"abcdef").replace(b"</guid>", f"?{poll}</guid>".encode())) for poll in range(4)
    ],
    "latest": [undated("a"), undated("b"), undated("c"), undated("d")],
    "emptied": [undated("a", "b"), undated(), undated("c", "d"), undated("d", "e")],
    "failed": [undated("a", "b"), BROKEN, undated("c", "d"), undated("d", "e")],
}


def test_a_feed_faster_than_its_visits_is_visited_sooner_and_that_is_said(
    pipeline: Pipeline, server: FeedServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Beside it feeds in which all is new for other reasons, and one that was left alone for a week."""
    for number, (id, answers) in enumerate(DOCUMENTS.items()):
        pipeline.register(server.route(f"127.0.1.{number + 1}", "/feed", *answers), id)

    def visit(hours: float) -> dict[str, Any]:
        pipeline.clock.turn(hours=hours)
        return dict(ends(pipeline.poll(all_feeds=True), lambda visit: (visit.feed.id, visit.outcome)))

    def wait() -> timedelta | None:
        feed = feeds_by_id(pipeline.database, ["fast"])["fast"]
        assert feed.schedule.next_fetch_at is not None
        assert feed.schedule.last_visited_at is not None
        return feed.schedule.next_fetch_at - feed.schedule.last_visited_at

    usual = [(visit(1), wait())[1] for _ in range(2)][-1]
    outcomes = visit(1)

    assert {id: outcome.is_gap for id, outcome in outcomes.items()} == {id: id == "fast" for id in DOCUMENTS}
    assert outcomes["unstable"].items_new == 0
    assert "unstable guids" in pipeline.feed("unstable")["warning"]
    assert usual is not None
    assert wait() == pytest.approx(usual / 2, abs=timedelta(seconds=1))
    reason = pipeline.feed("fast")["schedule_reason"]
    assert reason.startswith("every 30 min: ")
    assert reason.endswith("; halved once, because items were probably missed")
    assert pipeline.reports("fast")[0]["gap"].startswith("no item in common with the document before")
    assert caplog.text.count("no item in common with the document before") == 1
    [row] = [row for row in feed_health(pipeline.database) if row["id"] == "fast"]
    [note] = feed_notes(row, now=pipeline.clock())
    assert note.startswith("items were probably missed once, the last time before 2026-03-02T15:00:03Z")

    server.route("127.0.1.3", "/feed", undated("x", "y", "z"))
    assert not any(outcome.is_gap for outcome in visit(24 * 7).values())
    assert wait() == usual, "after a week without one"
    assert {row["id"]: row["gaps"] for row in feed_health(pipeline.database)} == {
        id: int(id == "fast") for id in DOCUMENTS
    }
