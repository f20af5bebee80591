"""Crash safety: a process killed at any place loses nothing and doubles nothing.

Each case kills a real poll in a process of its own by SIGKILL, lets its leases lapse, polls once more, and
compares with a poll that no one disturbed.
"""

import os
import signal
from datetime import timedelta
from pathlib import Path

import pytest

from rss_pipeline.collector.models.hold import HostGap
from rss_pipeline.pipeline.visits.summary import summary
from rss_pipeline.storage.feeds.claimable import Due, NotVisitedSince
from rss_pipeline.storage.feeds.claims import company_of_suspects
from rss_pipeline.storage.feeds.stored_holds import keep_holds
from rss_pipeline_tests.support.kept_parsers import KeptParsers
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.prepared import Prepared
from rss_pipeline_tests.support.server import Answer, FeedServer

FEEDS = {
    "one": rss("a1", "a2", "a3", image="http://images.example/one"),
    "two": rss("b1", "b2", image="http://images.example/two"),
    "big": rss(*(f"{n:04}-{'x' * 900}" for n in range(500)), image="http://images.example/big"),
}
"""The last one's items take several batches of a megabyte."""

PLACES = [
    ("fetch",),
    ("fetch", "2"),
    ("backup",),
    ("backup", "1"),
    ("backup", "3"),
    ("parse",),
    ("parse", "2"),
    ("store",),
    ("store", "1"),
    ("store", "2"),
    ("extract_images",),
    ("extract_images", "2"),
]


POLL = "rss_pipeline_tests.pipeline.visits.faults.dying_poll"


def serve(server: FeedServer, pipeline: Pipeline) -> None:
    for number, (id, body) in enumerate(FEEDS.items(), start=2):
        url = server.route(f"127.0.0.{number}", "/feed", Answer(body=body, etag=f'"{id}"'))
        pipeline.register(url, id)


def _state(pipeline: Pipeline) -> dict[str, object]:
    return {
        id: (
            [(row["id"], row["guid"], row["content_html"]) for row in pipeline.items(id)],
            len(pipeline.backups(id)),
            [(report["items_new"], report["items_seen"]) for report in pipeline.reports(id)],
        )
        for id in FEEDS
    } | {"images": pipeline.tasks()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, kept_parsers: KeptParsers) -> dict[str, object]:
    """The state after a poll that no one disturbed."""
    pipeline = Pipeline(tmp_path_factory.mktemp("undisturbed"), parser_pool=kept_parsers)
    with FeedServer() as server:
        serve(server, pipeline)
        pipeline.poll(all_feeds=True)
    state = _state(pipeline)
    pipeline.close()
    return state


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES, ids=" ".join)
def test_a_poll_killed_anywhere_is_completed_by_the_next_one(
    place: tuple[str, ...],
    tmp_path: Path,
    pipeline: Pipeline,
    server: FeedServer,
    prepared: Prepared,
    undisturbed: dict[str, object],
) -> None:
    serve(server, pipeline)
    assert prepared.start(POLL, str(tmp_path), *place).wait() == -signal.SIGKILL
    _assert_completed(pipeline, undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("place", [("parse",), ("store", "1")], ids=" ".join)
def test_a_poll_on_postgres_killed_after_its_backups_or_amid_its_rows_is_completed_by_the_next_one(
    place: tuple[str, ...],
    on_postgres: Pipeline,
    postgres_url: str,
    server: FeedServer,
    prepared: Prepared,
    undisturbed: dict[str, object],
) -> None:
    serve(server, on_postgres)
    environment = os.environ | {"DATABASE_URL": postgres_url}
    killed = prepared.start(POLL, str(on_postgres.settings.home), *place, environment=environment)
    assert killed.wait() == -signal.SIGKILL
    _assert_completed(on_postgres, undisturbed)


def _assert_completed(pipeline: Pipeline, undisturbed: dict[str, object]) -> None:
    for id in FEEDS:
        feed = next(iter(pipeline.rows("SELECT * FROM feeds WHERE id = ?", id)), None)
        if feed is not None and feed["last_etag"] is not None:
            assert len(pipeline.items(id)) == FEEDS[id].count(b"<item>"), "validators are ahead of the items"

    pipeline.lapse_leases()
    pipeline.clock.turn(minutes=10)
    pipeline.poll(all_feeds=True)

    assert _state(pipeline) == undisturbed
    assert pipeline.rows("SELECT id FROM items WHERE images_extracted_at IS NULL") == []
    assert pipeline.rows("SELECT token FROM leases WHERE expires_at > '2001'") == []


@pytest.mark.slow
def test_two_polls_started_at_once_visit_no_feed_twice_and_no_host_at_once(
    tmp_path: Path, pipeline: Pipeline, server: FeedServer, prepared: Prepared
) -> None:
    for number in range(40):
        host = f"127.0.1.{number // 4 + 1}"
        answer = Answer(body=rss(f"g{number}"), etag=f'"{number}"', delay=0.02)
        pipeline.register(server.route(host, f"/feed{number}", answer), f"feed-{number}")
    polls = [prepared.start(POLL, str(tmp_path), "never") for _ in range(2)]
    assert [poll.wait() for poll in polls] == [0, 0]
    pipeline.poll()
    assert sorted(request.target for request in server.requests) == sorted(f"/feed{n}" for n in range(40))
    assert max(most for host, most in server.most_open.items() if host) == 1
    assert len(pipeline.rows("SELECT id FROM items")) == 40


@pytest.mark.slow
def test_a_document_that_kills_the_process_is_alone_the_second_time_and_a_failure_the_third(
    tmp_path: Path, pipeline: Pipeline, server: FeedServer, prepared: Prepared
) -> None:
    def polled() -> int:
        return prepared.start(POLL, str(tmp_path), "deadly document").wait()

    for number in range(5):
        body = rss("DEADLY") if number == 2 else rss(f"g{number}")
        url = server.route(f"127.0.0.{number + 2}", "/feed", Answer(body=body, etag='"1"'))
        pipeline.register(url, f"feed-{number}")

    assert polled() == -signal.SIGKILL
    assert pipeline.rows("SELECT id FROM items") == []
    pipeline.lapse_leases()

    assert polled() == -signal.SIGKILL, "alone, it kills only its own visit"
    pipeline.lapse_leases()

    assert polled() == 0
    for number in (0, 1, 3, 4):
        assert pipeline.guids(f"feed-{number}") == [f"g{number}"]
        assert len(pipeline.backups(f"feed-{number}")) == 1
    hostile = pipeline.feed("feed-2")
    assert (hostile["last_error_kind"], hostile["consecutive_failures"]) == ("crashed", 1)
    assert "2 runs died" in hostile["last_error"]
    asked = [request.host for request in server.requests]
    assert asked.count("127.0.0.4") == 2

    server.route("127.0.0.4", "/feed", Answer(body=rss("mended"), etag='"2"'))
    pipeline.clock.turn(hours=2)
    pipeline.poll(all_feeds=True)
    assert pipeline.guids("feed-2") == ["mended"]


@pytest.mark.slow
def test_what_a_killed_run_had_not_begun_is_visited_as_usual_and_the_rest_in_groups_that_find_the_deadly_one(
    tmp_path: Path, pipeline: Pipeline, server: FeedServer, prepared: Prepared
) -> None:
    feeds = [f"feed-{number:02}" for number in range(64)]
    deadly = feeds[5]
    for number, id in enumerate(feeds):
        body = rss("DEADLY") if id == deadly else rss(id)
        url = server.route(f"127.0.1.{number + 1}", "/feed", Answer(body=body, etag='"1"', delay=0.05))
        pipeline.register(url, id)

    assert prepared.start(POLL, str(tmp_path), "fetch", "1").wait() == -signal.SIGKILL
    requested = {request.host for request in server.requests}
    pipeline.lapse_leases()
    pipeline.clock.turn(minutes=1)
    assert company_of_suspects(pipeline.database, Due(now=pipeline.clock())) == 64
    suspects = {row["id"] for row in pipeline.rows("SELECT id FROM feeds WHERE unclosed_claims > 0")}
    begun = {id for number, id in enumerate(feeds) if f"127.0.1.{number + 1}" in requested}
    assert begun <= suspects < set(feeds)

    deaths = 0
    while prepared.start(POLL, str(tmp_path), "deadly document").wait() == -signal.SIGKILL:
        pipeline.lapse_leases()
        deaths += 1
    assert deaths == 3, "in a group of 16, in one of 4, and alone"
    assert server.most_open[""] > 4, "a group is requested at once"
    for id in feeds:
        assert pipeline.guids(id) == ([] if id == deadly else [id])
    hostile = pipeline.feed(deadly)
    assert (hostile["last_error_kind"], hostile["consecutive_failures"]) == ("crashed", 1)
    assert "4 runs died" in hostile["last_error"]
    assert pipeline.rows("SELECT id FROM feeds WHERE unclosed_claims > 0") == []


def test_feeds_of_a_killed_run_at_a_host_that_limits_the_rate_do_not_hold_up_the_others(
    pipeline: Pipeline, server: FeedServer
) -> None:
    limited, other = "127.0.0.2", "127.0.0.3"
    ids = [
        pipeline.register(server.route(host, f"/{n}", Answer(body=rss(f"{n}"))), f"{host[-1]}-{n}")
        for host in (limited, other)
        for n in range(2)
    ]
    pipeline.sync()
    now = pipeline.clock()
    gap = HostGap(host=limited, gap=timedelta(minutes=10), since=now, asked_at=now)
    keep_holds(pipeline.database, "hosts", gaps=[gap], now=now)
    pipeline.hold(*ids)
    pipeline.lapse_leases()
    for asked in (0, 1, 2):
        pipeline.poll()
        assert (len(server.asked(limited)), len(server.asked(other))) == (asked, 2)
        pipeline.clock.turn(minutes=11)
    assert [len(pipeline.items(id)) for id in ids] == [1] * 4


def test_a_poll_of_all_visits_what_killed_runs_left_once_and_counts_its_items(
    pipeline: Pipeline, server: FeedServer
) -> None:
    def answer(id: str) -> Answer:
        pipeline.clock.turn(seconds=1)
        return Answer(body=rss(id))

    hosts = {"deadly": "127.0.0.2", "a": "127.0.0.3", "b": "127.0.0.4", "other": "127.0.0.5"}
    for id, host in hosts.items():
        pipeline.register(server.route(host, "/feed", lambda _, id=id: answer(id)), id)
    pipeline.sync()
    for held in (["deadly"], ["a", "b"]):
        pipeline.hold(*held)
        pipeline.lapse_leases()
    pipeline.database.query("UPDATE feeds SET unclosed_claims = 2 WHERE id = 'deadly'")
    pipeline.clock.turn(seconds=1)
    visits = pipeline.run(NotVisitedSince(since=pipeline.clock(), now=pipeline.clock()))
    assert [len(server.asked(host)) for host in hosts.values()] == [0, 1, 1, 1]
    assert sorted(visit.feed.id for visit in visits) == sorted(hosts)
    assert summary(visits)["items_new"] == 3
