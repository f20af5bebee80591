"""Hosts that request a hold, in whole polls: obeyed on each hop, after a restart, by each machine, by hand.

How long holds are is in collector/fetch/test_holds.py; the images' own in
pipeline/images/test_image_hosts.py.
"""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.hold import HostGap, OnHold
from rss_pipeline.pipeline.visits.poll import poll_round
from rss_pipeline.pipeline.visits.rounds import not_begun
from rss_pipeline.storage.feeds.claimable import NotVisitedSince
from rss_pipeline.storage.feeds.stored_holds import keep_holds
from rss_pipeline_tests.pipeline.visits.test_cloudflare import machine
from rss_pipeline_tests.support.pipeline import Pipeline, ends, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

A, B, C = "127.0.0.2", "127.0.0.3", "127.0.0.4"


def busy(seconds: int | None = 600, status: int = 429) -> Answer:
    return Answer(status=status, headers={} if seconds is None else {"Retry-After": str(seconds)})


def to(url: str) -> Answer:
    return Answer(status=302, headers={"Location": url})


def kinds(rounds: Any) -> list[type]:
    return ends(rounds, lambda visit: type(visit.outcome))


def holds(pipeline: Pipeline) -> dict[str, tuple[str, int]]:
    return {
        row["host"]: (row["hold_until"], int(row["times"])) for row in pipeline.rows("SELECT * FROM hosts")
    }


def test_feeds_that_lead_to_a_host_on_hold_cost_it_no_request_and_are_no_failures(
    pipeline: Pipeline, server: FeedServer
) -> None:
    """Until its pause is over, whoever comes and however often."""
    there = server.route(B, "/there", Answer(body=rss("a")))
    pipeline.register(server.route(B, "/busy", busy(), Answer(body=rss("b"))), "busy")
    led = [pipeline.register(server.route(A, f"/{n}", to(there)), f"led-{n}") for n in range(3)]
    pipeline.poll("busy")
    until = pipeline.clock() + timedelta(minutes=10)
    assert holds(pipeline) == {B: (instant(until), 1)}
    rounds = pipeline.poll()
    assert kinds(rounds) == [OnHold] * 3
    assert (len(server.asked(B)), len(server.asked(A))) == (1, 3)
    for id in led:
        feed = pipeline.feed(id)
        assert (feed["consecutive_failures"], feed["lease_token"], feed["unclosed_claims"]) == (0, None, 0)
        assert instant(until) <= feed["next_fetch_at"] <= instant(until + timedelta(minutes=1))
        assert feed["schedule_reason"].startswith(f"{B} is on hold until {instant(until)}: 429")
    for minutes in (1, 4, 4):
        pipeline.clock.turn(minutes=minutes)
        assert kinds(pipeline.poll(all_feeds=True)) == [], "nor is their own host asked in vain"
    assert (len(server.asked(B)), len(server.asked(A))) == (1, 3)
    pipeline.clock.turn(minutes=2)
    pipeline.poll()
    assert [pipeline.guids(id) for id in led] == [["a"]] * 3
    assert holds(pipeline) == {B: (instant(until), 1)}, "it has recovered, which is not forgotten at once"


def test_a_rate_limit_that_ends_later_than_the_backoff_is_waited_for(
    pipeline: Pipeline, server: FeedServer
) -> None:
    limits = {"X-RateLimit-Remaining": "0.0", "X-RateLimit-Reset": "5400", "Retry-After": "0"}
    id = pipeline.register(server.route(B, "/1", Answer(status=429, headers=limits)), "one")
    pipeline.poll()
    feed, now = pipeline.feed(id), pipeline.clock()
    assert feed["last_error_kind"] == "rate_limited"
    assert "it wants no request for 5,400 s" in feed["last_error"]
    assert feed["schedule_reason"].endswith("the server requests a wait of 1 h 30 min")
    assert feed["next_fetch_at"] >= instant(now + timedelta(minutes=90))
    pipeline.clock.turn(minutes=89)
    pipeline.poll(all_feeds=True)
    assert len(server.asked(B)) == 1
    pipeline.clock.turn(minutes=2)
    pipeline.poll()
    assert len(server.asked(B)) == 2


def test_two_feeds_with_a_503_hold_their_host_in_one_round_or_in_two(
    pipeline: Pipeline, server: FeedServer
) -> None:
    for n in range(4):
        fine = Answer(body=rss(f"g{n}"))
        pipeline.register(server.route(B, f"/{n}", busy(1200, 503) if n < 2 else fine), f"feed-{n}")
    pipeline.set(fetch_concurrency=1)
    pipeline.poll("feed-0")
    pipeline.clock.turn(minutes=10)
    assert kinds(pipeline.poll("feed-0")) == [], "the feed that was told is left alone"
    assert holds(pipeline) == {}
    pipeline.poll("feed-1")
    pipeline.poll()
    assert len(server.asked(B)) == 2
    until = pipeline.clock() + timedelta(minutes=20) - timedelta(seconds=1)
    assert holds(pipeline) == {B: (instant(until), 1)}
    pipeline.clock.turn(minutes=15)
    assert kinds(pipeline.poll(all_feeds=True)) == []
    pipeline.clock.turn(minutes=6)
    pipeline.poll()
    assert [pipeline.guids(f"feed-{n}") for n in (2, 3)] == [["g2"], ["g3"]]


def test_a_second_machine_and_a_run_after_a_crash_keep_to_the_pause(
    pipeline: Pipeline, server: FeedServer, tmp_path: Path
) -> None:
    """It is written when it is requested: this run dies before it closes anything."""
    id = pipeline.register(server.route(B, "/1", busy()), "one")
    pipeline.register(server.route(A, "/2", Answer(body=rss("a"))), "two")

    class Dies:
        def begin(self, step: str, total: int) -> None: ...

        def advance(self, step: str, by: int = 1) -> None:
            if holds(pipeline):
                raise RuntimeError("power cut")

    (round_,) = pipeline.try_poll(progress=Dies())
    assert round_.error is not None
    assert pipeline.feed(id)["last_visited_at"] is None
    pipeline.lapse_leases()
    second = Pipeline(tmp_path)
    second.feeds, second.clock.now = pipeline.feeds, pipeline.clock.now
    for each in (pipeline, second):
        each.poll(all_feeds=True)
        each.clock.turn(minutes=8)
        each.poll(id)
    assert len(server.asked(B)) == 1
    second.clock.turn(minutes=2)
    second.poll(id)
    assert len(server.asked(B)) == 2
    second.close()


def test_of_two_runs_at_once_the_later_one_keeps_to_the_hold_of_the_first(
    pipeline: Pipeline, server: FeedServer, tmp_path: Path
) -> None:
    """The second run begins and ends while the first one is at its round."""
    pipeline.register(server.route(B, "/busy", busy()), "busy")
    pipeline.register(server.route(A, "/led", to(server.route(B, "/there", Answer(body=rss("a"))))), "led")
    pipeline.sync()
    second = Pipeline(tmp_path)
    second.feeds, second.clock = pipeline.feeds, pipeline.clock
    told: list[type] = []

    class Meanwhile:
        def begin(self, step: str, total: int) -> None: ...

        def advance(self, step: str, by: int = 1) -> None:
            if step == "fetch":
                told.extend(kinds(second.poll("led")))

    pipeline.poll("busy", progress=Meanwhile())
    assert told == [OnHold]
    assert server.asked(B, "/there") == []
    second.close()


def test_an_address_that_answers_429_is_requested_for_no_feed_that_leads_there_until_it_says(
    pipeline: Pipeline, server: FeedServer
) -> None:
    """For five hours; the other feeds of its host are left alone for one."""
    there = server.route(C, "/there", busy(18_000), Answer(body=rss("a")))
    pipeline.register(server.route(A, "/1", to(there)), "first")
    pipeline.register(server.route(B, "/2", to(there)), "second")
    pipeline.register(server.route(C, "/3", to(there)), "third")
    pipeline.register(server.route(C, "/other", Answer(body=rss("b"))), "other")
    pipeline.poll("first")
    pipeline.clock.turn(minutes=90)
    for _ in range(3):
        pipeline.poll(all_feeds=True)
        pipeline.clock.turn(minutes=30)
    assert pipeline.guids("other") == ["b"]
    assert [len(server.asked(*place)) for place in ((C, "/there"), (B, "/2"), (C, "/3"))] == [1, 1, 1]
    pipeline.clock.turn(hours=3)
    pipeline.poll()
    assert [pipeline.guids(id) for id in ("first", "second", "third")] == [["a"]] * 3


def test_the_hold_of_a_redirect_or_an_error_is_waited_for_wherever_it_led(
    pipeline: Pipeline, server: FeedServer
) -> None:
    def leading(path: str, **headers: str) -> Answer:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return Answer(status=302, headers={"Location": server.url(B, path), **given})

    server.route(B, "/fine", Answer(body=rss("a")))
    server.route(B, "/broken", Answer(status=500))
    for id, answer in {
        "wait": leading("/fine", Retry_After="28800"),
        "fresh": leading("/fine", Cache_Control="max-age=999999999"),
        "in-vain": leading("/broken", Retry_After="28800"),
        "error": Answer(status=404, headers={"Cache-Control": "max-age=28800"}),
    }.items():
        pipeline.register(server.route(A, f"/{id}", answer), id, interval="1h")
    pipeline.register(server.route(C, "/busy", busy()), "busy")
    led = Answer(status=302, headers={"Location": server.url(C, "/x"), "Retry-After": "28800"})
    pipeline.poll()
    pipeline.register(server.route(A, "/held", led), "held", interval="1h")
    now = pipeline.clock()
    pipeline.poll()
    hours = {"wait": 8, "fresh": 24, "in-vain": 8, "error": 8, "held": 8}
    for id, least in hours.items():
        assert pipeline.feed(id)["next_fetch_at"] >= instant(now + timedelta(hours=least)), id
    assert server.asked(C, "/x") == []


@pytest.mark.parametrize(("wait", "status"), [(28_800, 302), (28_800, 301), (5, 307)])
def test_a_redirect_with_a_wait_is_followed_once_that_has_passed(
    wait: int, status: int, pipeline: Pipeline, server: FeedServer
) -> None:
    headers = {"Location": server.url(B, "/feed"), "Retry-After": str(wait)}
    server.route(B, "/feed", Answer(body=rss("a"), etag='"1"'))
    url = server.route(A, "/feed", Answer(status=status, headers=headers))
    pipeline.register(url, "led", interval="1h")
    pipeline.poll()
    if wait > 10:
        assert server.asked(B) == []
        assert pipeline.feed("led")["consecutive_failures"] == 0
        pipeline.clock.turn(seconds=wait - 120)
        assert isinstance(pipeline.refresh("led")["led"].outcome, OnHold), "also by hand"
        assert server.asked(B) == []
        pipeline.clock.turn(seconds=1_000)
        pipeline.poll()
    assert (len(server.asked(A)), len(server.asked(B))) == (1, 1)
    feed = pipeline.feed("led")
    assert pipeline.guids("led") == ["a"]
    assert (feed["led_to"], feed["move_url"]) == (None, server.url(B, "/feed") if status == 301 else None)
    # The next visit begins with the redirect again, and what it leads to gets its ETag back.
    pipeline.clock.turn(hours=9)
    pipeline.poll()
    pipeline.clock.turn(hours=9)
    pipeline.poll()
    assert len(server.asked(A)) > 1
    assert server.asked(B)[-1].headers["if-none-match"] == '"1"'


def test_a_host_that_refuses_for_another_feeds_sake_is_requested_in_its_pace_and_that_feed_comes_first(
    pipeline: Pipeline, server: FeedServer
) -> None:
    answers = [Answer(body=rss("a")), busy(None), busy(None)]
    pipeline.set(fetch_concurrency=1)
    for n, answer in enumerate(answers):
        url = server.route(B, f"/{n}", answer, Answer(body=rss(f"{n}")))
        pipeline.register(url, f"feed-{n}", interval="1h")
    pipeline.poll()
    assert [request.target for request in server.asked(B)] == ["/0", "/1"]
    [gap] = pipeline.rows("SELECT kept, host, seconds FROM host_gaps")
    assert gap == {"kept": "hosts", "host": B, "seconds": 20}
    pipeline.clock.turn(hours=2)
    server.forget()
    asked = NotVisitedSince(since=pipeline.clock(), now=pipeline.clock())
    with pipeline.session() as session:
        poll_round(session, asked, {}, round_seconds=10.0)
    assert [request.target for request in server.requests] == ["/1"], "the next one would be 20 s later"
    assert pipeline.rows("SELECT asked_at FROM host_gaps") == [{"asked_at": instant(pipeline.clock())}]


def test_a_host_that_is_requested_once_an_hour_keeps_no_poll_going_nor_whoever_leads_there(
    pipeline: Pipeline, server: FeedServer
) -> None:
    there = server.route(B, "/there", Answer(body=rss("a")))
    pipeline.register(server.route(A, "/led", to(there)), "led", interval="1h")
    pipeline.register(server.route(B, "/own", Answer(body=rss("b"))), "own", interval="1h")
    now = pipeline.clock()
    gap = HostGap(host=B, gap=timedelta(hours=1), since=now, asked_at=now)
    keep_holds(pipeline.database, "hosts", gaps=[gap], now=now)
    for _ in range(3):
        rounds = pipeline.poll()
        assert len(rounds) <= 3
        assert [(each.feed_id, each.kind) for each in not_begun(rounds)] == [("own", "not_begun")]
        pipeline.clock.turn(minutes=1)
    assert [len(server.asked(host)) for host in (A, B)] == [1, 0]
    led = pipeline.feed("led")
    hour, later = (instant(now + timedelta(minutes=minutes)) for minutes in (60, 63))
    assert hour <= led["next_fetch_at"] <= later
    assert led["consecutive_failures"] == 0
    assert "its requests are 1 h apart" in led["schedule_reason"]
    pipeline.clock.turn(hours=1)
    pipeline.poll()
    assert len(server.asked(B)) == 1


def test_a_new_url_is_requested_although_the_old_one_was_to_be_left_alone(
    pipeline: Pipeline, server: FeedServer
) -> None:
    pipeline.register(server.route(B, "/old", busy(7200, 503)), "one")
    pipeline.poll()
    pipeline.feeds[0]["url"] = server.route(B, "/new", Answer(body=rss("a")))
    pipeline.write_registry()
    pipeline.poll()
    assert pipeline.guids("one") == ["a"]


def test_an_ordinary_poll_writes_no_row_for_holds(pipeline: Pipeline, server: FeedServer) -> None:
    pipeline.register(server.route(A, "/1", to(server.route(B, "/2", Answer(body=rss("a"))))), "led")
    pipeline.register(server.route(C, "/3", Answer(status=503)), "failing")
    pipeline.poll()
    for table in ("hosts", "feed_holds", "image_holds"):
        assert pipeline.rows(f"SELECT * FROM {table}") == []


def test_on_d1_a_pause_is_kept_and_obeyed_alike(tmp_path: Path, away: Pipeline, server: FeedServer) -> None:
    with machine(tmp_path / "home") as home:
        for pipeline in (home, away):
            server.route(B, "/1", busy(), Answer(body=rss("a")))
            server.route(B, "/3", busy(7200, 503), Answer(body=rss("c")))
            pipeline.register(server.url(B, "/1"), "direct")
            pipeline.register(server.route(A, "/2", to(server.url(B, "/1"))), "led")
            pipeline.register(server.url(B, "/3"), "told")
            server.forget()
            pipeline.poll("told")
            pipeline.poll("direct")
            assert kinds(pipeline.poll("led")) == [OnHold]
            assert [len(pipeline.rows(f"SELECT * FROM {table}")) for table in ("hosts", "feed_holds")] == [
                1,
                3,
            ]
            pipeline.clock.turn(minutes=12)
            pipeline.poll()
            assert [pipeline.guids(id) for id in ("direct", "led", "told")] == [[], ["a"], []]
            assert [row["times"] for row in pipeline.rows("SELECT * FROM hosts")] == [1]
        tables = ("feed_holds", "hosts")
        assert [home.rows(f"SELECT * FROM {table}") for table in tables] == [
            away.rows(f"SELECT * FROM {table}") for table in tables
        ]
