"""Our own network is down during a poll: no feed has failed by it."""

from datetime import timedelta

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.failure import NETWORK_KINDS, Failure
from rss_pipeline.pipeline.visits.visit import Stored
from rss_pipeline_tests.support.pipeline import Pipeline, cut_off, ends, rss
from rss_pipeline_tests.support.server import Answer, FeedServer


def _network(pipeline: Pipeline, hosts: int = 4) -> list[str]:
    """Feeds on hosts of several networks that have answered, and our own network gone since."""
    with FeedServer() as server:
        ids = [
            pipeline.register(server.route(f"127.0.2.{n}", "/feed", Answer(body=rss(f"g{n}"))), f"feed-{n}")
            for n in range(1, hosts + 1)
        ]
        pipeline.poll()
    pipeline.database.query("UPDATE feeds SET network = id")
    cut_off(pipeline, *ids)
    return ids


def test_our_own_network_being_down_fails_the_run_and_no_feed(pipeline: Pipeline) -> None:
    ids = _network(pipeline)
    before = [pipeline.feed(id)["last_fetched_at"] for id in ids]
    (round_,) = pipeline.try_poll(all_feeds=True)
    assert round_.error is not None
    assert "all 4 feeds failed in the network" in round_.error
    assert "due again in 5 minutes" in round_.error
    for id in ids:
        feed = pipeline.feed(id)
        assert (feed["consecutive_failures"], feed["last_error_kind"]) == (0, None)
        assert feed["next_fetch_at"] == instant(pipeline.clock() + timedelta(minutes=5))
        assert feed["schedule_reason"] == "our network was down: 5 min"
        assert (feed["lease_token"], feed["unclosed_claims"], feed["host_answered"]) == (None, 0, 1)
    assert [pipeline.feed(id)["last_fetched_at"] for id in ids] == before


def test_a_name_that_does_not_resolve_is_a_network_failure_too() -> None:
    assert {"timeout", "dns", "connect"} == NETWORK_KINDS


def test_hosts_that_were_dead_before_prove_nothing_of_our_network(pipeline: Pipeline) -> None:
    """Two hosts had answered before, three had not: the failures are the feeds' own."""
    ids = _network(pipeline, hosts=2)
    for n in range(3):
        ids.append(pipeline.register(f"http://127.0.3.{n + 1}:9/feed", f"dead-{n}"))
    rounds = pipeline.poll(all_feeds=True)
    assert ends(rounds, lambda visit: visit.outcome.kind) == ["connect"] * 3 + ["dns"] * 2
    assert {pipeline.feed(id)["consecutive_failures"] for id in ids} == {1}


def test_one_feed_that_answers_shows_that_our_network_works(pipeline: Pipeline, server: FeedServer) -> None:
    ids = _network(pipeline)
    pipeline.register(server.route("127.0.0.9", "/feed", Answer(status=404)), "answers")
    pipeline.poll(all_feeds=True)
    assert {pipeline.feed(id)["consecutive_failures"] for id in ids} == {1}


def test_a_network_that_is_down_after_a_power_cut_counts_against_no_feed_either(pipeline: Pipeline) -> None:
    """Every feed of the run that died is visited alone, where it looks as if its own host were dead."""
    ids = _network(pipeline)
    pipeline.clock.turn(days=1)
    pipeline.hold(*ids)
    pipeline.lapse_leases()
    (round_,) = pipeline.try_poll()
    assert round_.error is not None
    assert "all 4 feeds failed in the network" in round_.error
    for id in ids:
        feed = pipeline.feed(id)
        assert (feed["consecutive_failures"], feed["lease_token"]) == (0, None)
        assert feed["next_fetch_at"] == instant(pipeline.clock() + timedelta(minutes=5))
    assert pipeline.rows("SELECT token FROM leases") == []


def test_a_feed_of_a_dead_run_with_a_dead_host_is_a_failure_of_its_own(
    pipeline: Pipeline, server: FeedServer
) -> None:
    (id,) = _network(pipeline, hosts=1)
    pipeline.register(server.route("127.0.0.9", "/feed", Answer(body=rss("a"))), "fine")
    pipeline.clock.turn(days=1)
    pipeline.sync()
    pipeline.hold(id)
    pipeline.lapse_leases()
    rounds = pipeline.poll()
    assert ends(rounds, lambda visit: type(visit.outcome)) == [Failure, Stored]
    feed = pipeline.feed(id)
    assert (feed["consecutive_failures"], feed["last_error_kind"]) == (1, "dns")
    assert (feed["lease_token"], feed["unclosed_claims"]) == (None, 0)
