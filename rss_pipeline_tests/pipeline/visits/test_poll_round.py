"""A poll round without Dagster: the same visits, rows and leases as a run of the job."""

from collections.abc import Iterator

import pytest

from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.outcome import NotModified
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.pipeline.visits.poll import poll_round
from rss_pipeline.pipeline.visits.visit import Refused, Stored, Visit
from rss_pipeline.storage.feeds.claimable import Due, Named, NotVisitedSince
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer


@pytest.fixture
def session(pipeline: Pipeline, server: FeedServer) -> Iterator[Session]:
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a", "b"), etag='"1"')), "good")
    pipeline.register(server.route("127.0.0.3", "/feed", Answer(status=404)), "bad")
    pipeline.sync()
    with Session(
        settings=pipeline.settings,
        database=pipeline.database,
        objects=pipeline.objects,
        run_id="round",
        clock=pipeline.clock,
    ) as session:
        yield session


def _by_feed(visits: list[Visit]) -> dict[str, object]:
    return {visit.feed.id: visit.outcome for visit in visits}


def test_a_round_visits_what_is_due_and_ends_its_leases(pipeline: Pipeline, session: Session) -> None:
    ends = _by_feed(poll_round(session, Due(now=pipeline.clock()), {}))
    assert isinstance(ends["good"], Stored)
    assert isinstance(ends["bad"], Failure)
    assert pipeline.guids("good") == ["a", "b"]
    assert pipeline.rows("SELECT token FROM leases") == []
    assert poll_round(session, Due(now=pipeline.clock()), {}) == [], "nothing is due now"


def test_a_round_of_all_feeds_and_one_of_named_feeds_ask_whether_due_or_not(
    pipeline: Pipeline, session: Session
) -> None:
    poll_round(session, Due(now=pipeline.clock()), {})
    pipeline.clock.turn(seconds=1)
    now = pipeline.clock()
    everything = _by_feed(poll_round(session, NotVisitedSince(since=now, now=now), {}))
    assert isinstance(everything["good"], NotModified)
    assert isinstance(everything["bad"], Failure)
    named = Named(ids=["good", "no-such-feed"], now=pipeline.clock())
    ends = _by_feed(poll_round(session, named, {}, round_seconds=None))
    assert isinstance(ends["good"], NotModified)
    assert isinstance(ends["no-such-feed"], Refused)
