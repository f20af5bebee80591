"""Our own network's outages in runs of Dagster: what came before is reported, the rest says it is us.

What happens to the feeds is in pipeline/visits/faults/test_our_outage.py.
"""

from rss_pipeline.orchestration.reporting.asset_keys import POLLS
from rss_pipeline_tests.pipeline.visits.faults.test_our_outage import (
    blamed,
    feeds_before_the_outage,
    feeds_that_answered,
)
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.server import FeedServer


def test_a_poll_in_the_middle_of_which_the_network_goes_reports_what_came_before(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    feeds_that_answered(pipeline, 1, 2, 3, 4)
    up = feeds_before_the_outage(pipeline, server)
    (round_,) = pipeline.try_poll(all_feeds=True)
    assert round_.error is not None
    assert "4 of 7 feeds failed in the network" in round_.error
    assert "Our own network was down" in round_.error
    assert len(round_.visits) == 7
    assert [pipeline.guids(id) for id in up] == [["u11"], ["u12"], ["u13"]]
    assert [len(pipeline.events(id)) for id in up] == [1, 1, 1]
    poll = pipeline.instance.get_latest_materialization_event(POLLS)
    assert poll is not None
    assert poll.run_id == round_.run_id, "the poll's event is told all the same"


def test_a_backfill_in_which_the_network_goes_says_so_of_each_feed_and_keeps_the_rest(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    gone = feeds_that_answered(pipeline, 1, 2, 3)
    up = feeds_before_the_outage(pipeline, server)
    result = pipeline.materialize(*gone, *up)
    (failure,) = [event for event in result.all_node_events if event.is_step_failure]
    said = str(failure.event_specific_data.error)
    assert "3 of 6 feeds were not collected" in said
    assert "our own network went down; the feed is due again in 5 minutes" in said
    assert [len(pipeline.events(id)) for id in (*up, *gone)] == [1, 1, 1, 1, 1, 1]
    assert blamed(pipeline, *gone) == {0}
