"""`status`, `doctor` and metrics on streams and topics: what they show, and what is a warning."""

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rss_pipeline.collector.models.clock import instant, utc_now
from rss_pipeline.features.topics.publish import PublicationStores, publish
from rss_pipeline_tests.features.streams.test_cli import AUTHORS, document, invoke, with_streams
from rss_pipeline_tests.support.checked import checked
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer

if TYPE_CHECKING:
    from rss_pipeline.features.health.model import Finding

__all__ = ["invoke"]


@pytest.fixture
def home(pipeline: Pipeline, server: FeedServer) -> Pipeline:
    """A feed with a stream that matches and one that does not, after three documents, and two topics.

    Of the six items of its first document, a topic shows five.
    """
    documents = [Answer(body=document(*AUTHORS * length)) for length in (2, 3, 4)]
    pipeline.register(server.route("127.0.0.2", "/idol", *documents), "idol")
    pipeline.topics = {
        "waiting": {"of": ["idol/staff"], "title": "Staff", "public": True},
        "done": {"of": ["idol"], "public": True},
    }
    with_streams(pipeline, staff={"author": "Staff Team"}, typo={"author": "高橋 みなmi"})
    for _ in documents:
        pipeline.poll(all_feeds=True)
    publish(
        PublicationStores.of(pipeline.settings, pipeline.database, pipeline.objects),
        clock=pipeline.clock,
        only=["done"],
    )
    at = instant(utc_now() - timedelta(hours=7))
    pipeline.database.query("UPDATE topics SET stale_at = ? WHERE id = 'waiting'", [at])
    return pipeline


def test_status_shows_the_topics_and_the_streams_with_a_warning(invoke: Any, home: Pipeline) -> None:
    lines = invoke("status").stdout.splitlines()
    typo = next(line for line in lines if line.startswith("idol/typo: "))
    assert typo.startswith("idol/typo: matched nothing in the last 3 documents that had items; author was: ")
    assert "小嶋 陽菜" in "".join(lines)
    assert not any(line.startswith("idol/staff") for line in lines)
    rows = [line.split("│") for line in lines if line.startswith(("waiting ", "done "))]
    assert [[cell.strip() for cell in row][:2] for row in rows] == [["waiting", "-"], ["done", "11"]]
    assert "waiting: a change has waited for 7 hours to be published" in "\n".join(lines)


def test_status_of_a_feed_shows_its_streams(invoke: Any, home: Pipeline) -> None:
    shown = invoke("status", "idol").stdout
    assert "streams               staff: 4 items, newest " in shown
    assert "(author: Staff Team)" in shown
    assert "streams               typo: no items (author: 高橋 みなmi)" in shown
    assert "streams               typo: matched nothing in the last 3 documents" in shown
    found = json.loads(invoke("status", "idol", "--json").stdout)
    assert [(each["name"], each["items"]) for each in found["streams"]] == [("staff", 4), ("typo", 0)]


def test_status_as_json_has_all_streams_and_topics(invoke: Any, home: Pipeline) -> None:
    found = json.loads(invoke("status", "--json").stdout)
    assert [(each["name"], bool(each["warning"])) for each in found["streams"]] == [
        ("staff", False),
        ("typo", True),
    ]
    assert set(AUTHORS) >= {"小嶋 陽菜"} & set(found["streams"][1]["values_seen"]) != set()
    done, waiting = found["topics"]
    assert (done["id"], done["entries"], done["stale_at"], done["warning"]) == ("done", 11, None, None)
    assert (waiting["title"], waiting["of"], waiting["published_at"]) == ("Staff", ["idol/staff"], None)
    assert "7 hours" in waiting["warning"]


def of_members(pipeline: Pipeline) -> "list[Finding]":
    return checked({"streams_match", "topics_published"}, pipeline.database, now=utc_now())


def test_a_home_without_streams_and_topics_says_nothing_of_them(invoke: Any, pipeline: Pipeline) -> None:
    pipeline.register("http://127.0.0.3/feed", "a")
    pipeline.sync()
    assert "topic" not in invoke("status").stdout
    assert of_members(pipeline) == []


def test_doctor_names_them(home: Pipeline) -> None:
    streams, topics = of_members(home)
    assert (streams.state, topics.state) == ("warning", "warning")
    assert streams.found == ("1 stream is without a match for a while, or cannot be evaluated (idol/typo)")
    assert topics.found == "1 topic has changes that are not published (Staff [waiting])"
    home.database.query("UPDATE streams SET unmatched_documents = 0")
    home.database.query("UPDATE topics SET stale = 0")
    assert [found.state for found in of_members(home)] == ["ok", "ok"]


def test_metrics_have_them(home: Pipeline) -> None:
    pytest.importorskip("rss_pipeline.features.health")
    from rss_pipeline.features.health.metrics import Metrics
    from rss_pipeline_tests.features.health.test_metrics import samples

    def figures() -> dict[str, float]:
        collector = Metrics(home.database, None, home.settings, clock=utc_now, jobs=dict)
        return samples(collector.text())

    found = figures()
    assert {state: found[f"rss_topics{{{state}}}"] for state in ("current", "waiting", "failing")} == {
        "current": 1,
        "waiting": 1,
        "failing": 0,
    }
    assert found["rss_topic_lag_seconds"] == pytest.approx(7 * 3_600, abs=60)
    assert found["rss_last_publication_timestamp_seconds"] == home.clock().timestamp()
    home.database.query("UPDATE topics SET error = 'x'")
    assert figures()["rss_topics{failing}"] == 1


def test_the_whole_of_doctor_has_the_checks(invoke: Any, home: Pipeline, tmp_path: Path) -> None:
    pytest.importorskip("rss_pipeline.features.health")
    shown = invoke("doctor").stdout
    assert "idol/typo" in shown
    assert "1 topic has changes that are not published (Staff [waiting])" in shown
