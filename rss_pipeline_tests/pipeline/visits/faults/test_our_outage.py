"""Our own network's outages in whole runs: no feed is blamed, all come back in five minutes, the run says it.

How an outage is recognized is in collector/schedule/test_our_outage.py, that of images in
pipeline/images/test_download.py, a poll in which no host answers in test_network_faults.py.
"""

from datetime import datetime, timedelta

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.errors import NetworkUnavailable
from rss_pipeline_tests.support.pipeline import Clock, Pipeline, cut_off, rss
from rss_pipeline_tests.support.server import Answer, FeedServer


class Running(Clock):
    """A clock that goes on by ten seconds each time it is read.

    The order of answers and failures is read from it and from the real time that a request took: that must be
    the smaller one, on a busy machine too.
    """

    def __call__(self) -> datetime:
        self.turn(seconds=10)
        return self.now


def feeds_that_answered(pipeline: Pipeline, *numbers: int) -> list[str]:
    """Feeds, each on a host of its own that answered a first poll and is out of reach since."""
    with FeedServer() as gone:
        ids = [
            pipeline.register(gone.route(f"127.0.2.{n}", "/feed", Answer(body=rss(f"g{n}"))), f"gone-{n}")
            for n in numbers
        ]
        pipeline.poll()
    pipeline.database.query("UPDATE feeds SET network = id")
    cut_off(pipeline, *ids)
    return ids


def blamed(pipeline: Pipeline, *ids: str) -> set[int]:
    return {int(pipeline.feed(id)["consecutive_failures"]) for id in ids}


def asked_first(pipeline: Pipeline, *ids: str) -> None:
    for n, id in enumerate(ids):
        at = f"2026-01-01T00:00:{n:02}Z"
        pipeline.database.query("UPDATE feeds SET next_fetch_at = ? WHERE id = ?", [at, id])


def feeds_before_the_outage(pipeline: Pipeline, server: FeedServer) -> list[str]:
    """Three feeds that answer, requested before those that are gone; each reading of the clock is later."""
    ids = [
        pipeline.register(server.route(f"127.0.0.{n}", "/feed", Answer(body=rss(f"u{n}"))), f"up-{n}")
        for n in (11, 12, 13)
    ]
    pipeline.sync()
    asked_first(pipeline, *ids)
    pipeline.clock = Running(pipeline.clock.now)
    pipeline.set(fetch_concurrency=1)
    return ids


def test_an_outage_during_a_refresh_by_hand_blames_no_feed_and_the_run_says_it_is_us(
    pipeline: Pipeline,
) -> None:
    ids = feeds_that_answered(pipeline, 1, 2, 3, 4)
    with pytest.raises(NetworkUnavailable, match="all 4 feeds failed in the network"):
        pipeline.refresh(*ids)
    assert blamed(pipeline, *ids) == {0}
    later = instant(pipeline.clock() + timedelta(minutes=5))
    assert {pipeline.feed(id)["next_fetch_at"] for id in ids} == {later}
    assert pipeline.rows("SELECT token FROM leases") == []


def test_a_refresh_by_hand_with_one_host_up_blames_the_others(pipeline: Pipeline, server: FeedServer) -> None:
    ids = feeds_that_answered(pipeline, 1, 2, 3, 4)
    up = pipeline.register(server.route("127.0.0.9", "/feed", Answer(status=500)), "here")
    pipeline.sync()
    pipeline.refresh(*ids, up)
    assert blamed(pipeline, *ids) == {1}


def test_one_host_that_is_up_and_answers_first_shows_that_it_is_them(
    pipeline: Pipeline, server: FeedServer
) -> None:
    ids = feeds_that_answered(pipeline, 1, 2, 3, 4)
    up = pipeline.register(server.route("127.0.0.9", "/feed", Answer(body=rss("a"))), "up")
    pipeline.sync()
    asked_first(pipeline, up)
    pipeline.clock = Running(pipeline.clock.now)
    pipeline.set(fetch_concurrency=1)
    pipeline.poll(all_feeds=True)
    assert blamed(pipeline, *ids) == {1}


def test_a_network_that_goes_in_the_middle_of_a_round_costs_no_feed_and_loses_no_document(
    pipeline: Pipeline, server: FeedServer
) -> None:
    gone = feeds_that_answered(pipeline, 1, 2, 3, 4)
    up = feeds_before_the_outage(pipeline, server)
    (round_,) = pipeline.try_poll(all_feeds=True)
    assert round_.error is not None
    assert "4 of 7 feeds failed in the network" in round_.error
    assert "Our own network was down" in round_.error
    assert len(round_.visits) == 7
    assert [pipeline.guids(id) for id in up] == [["u11"], ["u12"], ["u13"]]
    for id in gone:
        feed = pipeline.feed(id)
        assert (feed["consecutive_failures"], feed["last_error_kind"], feed["lease_token"]) == (0, None, None)
        assert feed["schedule_reason"] == "our network was down: 5 min"
    assert pipeline.rows("SELECT token FROM leases") == []


def test_hosts_that_stay_dead_while_others_answer_are_spared_once(
    pipeline: Pipeline, server: FeedServer
) -> None:
    """Three sites that look like an outage of ours, until somebody else answers."""
    ids = feeds_that_answered(pipeline, 1, 2, 3)
    up = pipeline.register(server.route("127.0.0.9", "/feed", Answer(body=rss("a"))), "up")
    pipeline.clock.turn(hours=30)
    pipeline.poll(up)
    for minutes in (5, 10, 20):
        (round_,) = pipeline.try_poll(*ids)
        assert round_.error is not None
        assert blamed(pipeline, *ids) == {0}
        assert pipeline.feed(ids[0])["next_fetch_at"] == instant(
            pipeline.clock() + timedelta(minutes=minutes)
        )
        pipeline.clock.turn(minutes=minutes)
    pipeline.clock.turn(minutes=-14)
    pipeline.poll(up)
    pipeline.clock.turn(minutes=14)
    pipeline.poll(*ids)
    assert blamed(pipeline, *ids) == {1}


def test_an_outage_of_one_provider_is_no_outage_of_ours(pipeline: Pipeline, server: FeedServer) -> None:
    """Eight sites of it reset each connection, later they are out of reach: they are failing feeds."""
    urls = [
        server.route(f"127.0.2.{n}", "/feed", Answer(body=rss("a")), Answer(raw=b"")) for n in range(1, 9)
    ]
    ids = [pipeline.register(url, f"site-{n}", interval="1h") for n, url in enumerate(urls)]
    pipeline.poll()
    assert {pipeline.feed(id)["network"] for id in ids} == {"127.0.2.0/24"}
    for failures in (1, 2):
        pipeline.clock.turn(hours=2)
        pipeline.poll()
        assert blamed(pipeline, *ids) == {failures}
    with FeedServer() as gone:
        refused = gone.port
    for n, id in enumerate(ids):
        address = f"http://127.0.2.{n + 1}:{refused}/feed"
        pipeline.database.query(
            "UPDATE feeds SET fetch_url = ?, host_answered = 1 WHERE id = ?", [address, id]
        )
    pipeline.clock.turn(hours=3)
    pipeline.poll()
    assert blamed(pipeline, *ids) == {3}
    cut_off(pipeline, *ids)
    pipeline.database.query("UPDATE feeds SET host_answered = 1")
    pipeline.clock.turn(hours=5)
    pipeline.poll()
    assert blamed(pipeline, *ids) == {4}, "names of eight domains, but all of one network"


def test_a_host_of_our_own_network_that_answers_does_not_show_that_others_can_be_reached(
    pipeline: Pipeline, server: FeedServer
) -> None:
    """A bridge at home answers all through an outage of the line: it goes on for hours, and blames none."""
    ids = feeds_that_answered(pipeline, 1, 2, 3, 4)
    bridge = server.route("127.0.0.9", "/feed", Answer(body=rss("a")))
    at_home = pipeline.register(bridge, "home", allow_private=True, interval="15m")
    for feed in pipeline.feeds[:-1]:
        del feed["allow_private"]
    pipeline.write_registry()
    for minutes in (5, 10, 20):
        (round_,) = pipeline.try_poll(*ids, at_home)
        assert round_.error is not None
        assert (blamed(pipeline, *ids), pipeline.guids(at_home)) == ({0}, ["a"])
        pipeline.clock.turn(minutes=minutes)
    # Where all are at home, it does.
    for feed in pipeline.feeds:
        feed["allow_private"] = True
    pipeline.write_registry()
    pipeline.poll(*ids, at_home)
    assert blamed(pipeline, *ids) == {1}
