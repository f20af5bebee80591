"""Selectors that change, by field and by XPath, and one that is hostile: what their topics show."""

import json

import pytest

from rss_pipeline.features.streams.states import StreamState, stream_states
from rss_pipeline.features.topics.publish import PublicationStores, publish
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

SLOW = "//*[count(//*[count(//*)>1])>1]"


def titles(pipeline: Pipeline, topic: str) -> list[str]:
    """The titles that a topic shows after the publication of all that is due."""
    pipeline.clock.turn(minutes=20)
    publish(
        PublicationStores.of(pipeline.settings, pipeline.database, pipeline.objects), clock=pipeline.clock
    )
    found = pipeline.objects.get(f"topics/{topic}.json")
    assert found is not None
    return sorted(item["title"] for item in json.loads(found[0])["items"])


def states(pipeline: Pipeline) -> dict[str, StreamState]:
    return {each.name: each for each in stream_states(pipeline.database)}


def test_a_changed_selector_by_field_shows_at_the_next_publication(
    pipeline: Pipeline, server: FeedServer
) -> None:
    pipeline.register(
        server.route("127.0.0.2", "/a", Answer(body=rss("1", "2", "3"))),
        "a",
        streams={"some": {"title": "*1"}},
    )
    pipeline.topics = {"t": {"of": ["a/some"], "public": True}}
    pipeline.write_registry()
    pipeline.poll()
    assert titles(pipeline, "t") == ["Title of 1"]
    pipeline.feeds[0]["streams"] = {"some": {"title": ["*1", "*3"]}}
    pipeline.write_registry()
    pipeline.sync()
    assert titles(pipeline, "t") == ["Title of 1", "Title of 3"]
    assert states(pipeline)["some"].note is None


@pytest.mark.slow
def test_a_hostile_xpath_costs_its_stream_and_no_item(pipeline: Pipeline, server: FeedServer) -> None:
    """5,000 items: the expression would take hours. The streams before it and those by field are sound."""
    pipeline.register(
        server.route("127.0.0.2", "/a", Answer(body=rss(*map(str, range(5_000))))),
        "a",
        streams={
            # The file's order is by name.
            "a-field": {"title": "Title of 7"},
            "b-before": {"xpath": "//item[guid=8]"},
            "c-hostile": {"xpath": SLOW},
            "d-behind": {"xpath": "//item[guid=9]"},
        },
    )
    pipeline.topics = {"t": {"of": ["a/a-field", "a/b-before", "a/c-hostile"], "public": True, "each": 1}}
    pipeline.write_registry()
    pipeline.poll()
    assert pipeline.feed("a")["last_error"] is None
    assert len(pipeline.items("a")) == 5_000
    found = states(pipeline)
    assert {name: state.members for name, state in found.items()} == {
        "a-field": 1,
        "b-before": 1,
        "c-hostile": 0,
        "d-behind": 0,
    }
    assert found["a-field"].warning is found["b-before"].warning is None
    assert found["c-hostile"].warning == "The XPath of a/c-hostile took longer than 2 s."
    assert "not evaluated" in str(found["d-behind"].warning)
    assert titles(pipeline, "t") == ["Title of 7", "Title of 8"]
