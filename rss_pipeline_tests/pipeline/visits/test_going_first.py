"""A refresh by hand goes before merely due feeds that a poll has claimed, also at the same host."""

import threading
from collections.abc import Callable

import pytest

from rss_pipeline.collector.fetch import feed_round as feeds
from rss_pipeline.collector.models.outcome import NotBegun
from rss_pipeline.pipeline.visits.visit import Visit
from rss_pipeline.storage.feeds.claimable import Due
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.waiting import PATIENCE

HOST = "127.0.0.2"
FEEDS = 30


@pytest.mark.slow
def test_a_refresh_by_hand_goes_before_the_feeds_a_poll_has_not_begun(
    pipeline: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refresh(id: str) -> None:
        pipeline.refresh(id)

    goes_first(refresh, pipeline, server, monkeypatch)


def goes_first(
    by_hand: Callable[[str], None], pipeline: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The poll would take some seconds for its host; asked for is the feed at the end of its queue."""
    monkeypatch.setattr(feeds, "CHECK_SECONDS", 0.2)
    under_way = threading.Event()

    def first(_request: object) -> Answer:
        under_way.set()
        return Answer(body=rss("first"))

    pipeline.set(host_delay_seconds=0.4)
    pipeline.register(server.route(HOST, "/00", first), "feed-00")
    for n in range(1, FEEDS):
        url = server.route(HOST, f"/{n:02}", Answer(body=rss(f"g{n}")))
        pipeline.register(url, f"feed-{n:02}")
    pipeline.sync()
    visits: list[Visit] = []
    polling = threading.Thread(target=lambda: visits.extend(_poll(pipeline)))
    polling.start()
    assert under_way.wait(PATIENCE)
    last = f"feed-{FEEDS - 1}"
    by_hand(last)
    polling.join()
    assert pipeline.guids(last) == [f"g{FEEDS - 1}"]
    asked = [request.target for request in server.asked(HOST)]
    assert asked[-1] == f"/{FEEDS - 1}", "the poll made way for it"
    assert len(asked) < FEEDS
    assert server.most_open[HOST] == 1
    made_way = [visit for visit in visits if isinstance(visit.outcome, NotBegun)]
    assert {str(visit.outcome) for visit in made_way} == {
        str(NotBegun(reason="a refresh by hand has precedence at its host"))
    }
    assert len(made_way) == FEEDS - len(asked) + 1
    assert pipeline.rows("SELECT token FROM leases WHERE asked = '[]'") == []
    left = pipeline.rows("SELECT id FROM feeds WHERE last_visited_at IS NULL AND unclosed_claims = 0")
    assert len(left) == FEEDS - len(asked), "given back, still due, nobody's fault"


def _poll(pipeline: Pipeline) -> list[Visit]:
    """A run of the daemon's. Not by Dagster, which runs no two jobs in one process at once."""
    return pipeline.run(Due(now=pipeline.clock()))
