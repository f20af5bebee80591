"""Hosts on hold, as `poll` and `status` say it."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from rss_pipeline.cli.main import main
from rss_pipeline_tests.pipeline.visits.test_holds import busy, holds, to
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

A, B, C = "127.0.0.2", "127.0.0.3", "127.0.0.4"


@pytest.fixture
def invoke(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(pipeline.settings.home)
    monkeypatch.setenv("RSS_PIPELINE_HOME", str(pipeline.settings.home))
    monkeypatch.setenv("RSS_HOST_DELAY_SECONDS", "0")
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *words: CliRunner().invoke(main, list(words), catch_exceptions=False)


def test_polling_by_hand_says_of_each_feed_on_hold_until_when(
    invoke: Any, pipeline: Pipeline, server: FeedServer
) -> None:
    pipeline.register(server.route(B, "/1", busy(1800)), "first")
    pipeline.register(server.route(A, "/2", to(server.url(B, "/1"))), "led")
    pipeline.register(server.route(C, "/3", Answer(body=rss("a"))), "other")
    told = invoke("poll", "first", "--json")
    assert json.loads(told.stdout)["failures"][0]["kind"] == "rate_limited"
    ((until, _),) = holds(pipeline).values()
    # What was visited within the second in which a poll begins counts as visited by it.
    pipeline.database.query("UPDATE feeds SET last_visited_at = '2026-01-01T00:00:00Z' WHERE id = 'first'")
    all_ = invoke("poll", "--all")
    assert all_.exit_code == 0, "a hold ends by itself"
    assert "1 feeds visited: 1 with a new document" in all_.stdout
    for id in ("first", "led"):
        # The two are printed in the same second or the next.
        assert f"{id} was not visited: {B} is on hold until {until[:14]}" in all_.stderr
    named = invoke("poll", "led", "--json")
    assert named.exit_code == 1
    (left,) = json.loads(named.stdout)["not_visited"]
    assert (left["feed_id"], left["kind"], left["held_until"]) == ("led", "host_on_hold", until)
    due = invoke("poll")
    assert (due.exit_code, due.stdout.strip()) == (0, "Nothing was due.")
    assert (len(server.asked(B)), len(server.asked(A))) == (1, 1)
    pipeline.database.query("UPDATE feeds SET next_fetch_at = '2026-01-01T00:00:00Z' WHERE id = 'first'")
    assert f"next visit at {until}: its host is on hold" in invoke("status", "-v").stdout
