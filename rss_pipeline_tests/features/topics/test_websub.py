"""Notices to WebSub hubs: after a document changed, best effort, and only to public hosts unless allowed."""

import logging
from ipaddress import ip_network

import pytest

from rss_pipeline_tests.features.topics.stored import set_topics, topic
from rss_pipeline_tests.features.topics.test_publish import Served, day, published, stored
from rss_pipeline_tests.storage.raw import RawServer, answer
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.stored import add_items, item

FORM = (
    b"hub.mode=publish&hub.url=https%3A%2F%2Ftopics.example%2Ftopics%2Ft.json"
    b"&hub.url=https%3A%2F%2Ftopics.example%2Ftopics%2Ft.atom"
)


def allow_loopback(pipeline: Pipeline, *hubs: RawServer) -> None:
    pipeline.set(
        allow_networks=(ip_network("127.0.0.0/8"),),
        allow_ports=frozenset(int(hub.url.rpartition(":")[2].strip("/")) for hub in hubs),
    )


def test_a_hub_is_notified_when_bytes_changed_and_only_then(pipeline: Pipeline) -> None:
    served = Served(pipeline.settings.objects_path)
    with RawServer(answer(204, b"")) as hub:
        allow_loopback(pipeline, hub)
        stored(pipeline)
        set_topics(pipeline.database, topic("t", "a", hub=(f"{hub.url}/hub",)), topic("u", "b"))
        published(pipeline, served=served)
        [notice] = hub.requests
        assert (notice.line, notice.body) == ("POST /hub HTTP/1.1", FORM)
        assert notice.headers["content-type"] == "application/x-www-form-urlencoded"
        assert notice.headers["user-agent"] == "rss_pipeline/test"
        published(pipeline, "t", served=served)
        assert len(hub.requests) == 1
        add_items(pipeline.database, [item("a", "2", day(3))])
        published(pipeline, "t", served=served)
        assert len(hub.requests) == 2
        add_items(pipeline.database, [item("a", "3", day(4))])
        published(pipeline, "t")
        assert len(hub.requests) == 2, "without a public address there is nothing to fetch"


def test_a_hub_that_fails_is_a_warning_and_its_neighbours_are_notified(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    with RawServer(answer(500, b"no")) as failing, RawServer(answer(202, b"")) as hub:
        allow_loopback(pipeline, failing, hub)
        stored(pipeline)
        hubs = (f"{failing.url}/token", "http://127.0.0.1:9/", f"{hub.url}/")
        set_topics(pipeline.database, topic("t", "a", hub=hubs), topic("u", "b", hub=hubs))
        with caplog.at_level(logging.WARNING):
            done = published(pipeline, served=Served(pipeline.settings.objects_path))
        assert [each.error for each in done.values()] == [None, None]
        assert (len(failing.requests), len(hub.requests)) == (1, 2), "one that failed gets no more"
    refused, closed = sorted(caplog.messages, reverse=True)
    assert refused == (
        "The hub 127.0.0.1 was not notified of changed topics (t, u): it answered with status 500"
    )
    assert "9 of 127.0.0.1 is blocked" in closed or "Port 9" in closed


@pytest.mark.parametrize("setting", ["blocked", "redirected"])
def test_a_hub_at_a_private_address_is_not_requested(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture, setting: str
) -> None:
    with RawServer(answer(204, b"")) as hub:
        moved = answer(307, b"", Location=hub.url)
        with RawServer(moved) as redirecting:
            target = hub.url
            if setting == "redirected":
                allow_loopback(pipeline, redirecting)
                target = redirecting.url
            stored(pipeline)
            set_topics(pipeline.database, topic("t", "a", hub=(target,)))
            with caplog.at_level(logging.WARNING):
                assert published(pipeline, served=Served(pipeline.settings.objects_path))["t"].error is None
        assert hub.requests == []
    [sentence] = caplog.messages
    assert ("status 307" if setting == "redirected" else "is this machine itself") in sentence
