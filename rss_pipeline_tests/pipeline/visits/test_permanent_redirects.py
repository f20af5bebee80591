"""Feeds that move, end or were missed, visited by the poll job over days of a turned clock."""

import logging
import ssl
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.pipeline.read.feed_notes import feed_notes
from rss_pipeline.storage.reports.overview import feed_health, overview
from rss_pipeline_tests.support.checked import checked
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

TLS = Path(__file__).parents[2] / "support" / "tls"
OLD, NEW, THIRD = "127.0.0.2", "127.0.0.3", "127.0.0.4"


def notes(pipeline: Pipeline) -> Mapping[str, list[str]]:
    return {row["id"]: feed_notes(row, now=pipeline.clock()) for row in feed_health(pipeline.database)}


Asked = tuple[str, str, str | None]


def poll(pipeline: Pipeline, server: FeedServer, *, days: float) -> list[Asked]:
    """A poll so many days later: host, path and If-None-Match of each of its requests."""
    server.forget()
    pipeline.clock.turn(days=days)
    pipeline.poll()
    return sorted((r.host, r.target, r.headers.get("if-none-match")) for r in server.requests)


def test_a_fortnight_of_moves_and_ends(
    pipeline: Pipeline, server: FeedServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A permanent redirect, a temporary one, one of a feed with a password, a 410 and a challenge."""
    caplog.set_level(logging.INFO)
    new = server.route(NEW, "/rss", Answer(body=rss("a"), etag='"new"'))
    old = server.route(OLD, "/feed", Answer(status=301, headers={"Location": new}))
    pipeline.register(old, "moved")
    pipeline.register(server.route(OLD, "/away", Answer(status=302, headers={"Location": new})), "away")
    theirs = server.route(NEW, "/theirs?key=theirs", Answer(body=rss("a"), etag='"theirs"'))
    password = {"Authorization": "Bearer hunter2"}
    private = server.route(OLD, "/private", Answer(status=308, headers={"Location": theirs}))
    pipeline.register(private, "private", headers=password)
    pipeline.register(server.route(THIRD, "/gone", Answer(status=410)), "gone")
    challenge = Answer(status=403, headers={"cf-mitigated": "challenge"})
    pipeline.register(server.route(THIRD, "/challenge", challenge), "challenge")
    pipeline.poll()

    # At each visit, and with the validators of the URL that gave them; nothing else is requested. Two feeds
    # lead to /rss, which is requested once.
    always: list[Asked] = [
        (OLD, "/away", None),
        (NEW, "/rss", '"new"'),
        (OLD, "/private", None),
        (NEW, "/theirs?key=theirs", '"theirs"'),
        (THIRD, "/gone", None),
        (THIRD, "/challenge", None),
    ]
    around: list[Asked] = [(OLD, "/feed", None)]
    assert poll(pipeline, server, days=6.9) == sorted(always + around)
    assert poll(pipeline, server, days=1) == sorted(always + around), "the visit that shows the week is full"
    assert poll(pipeline, server, days=1) == sorted(always)

    row = pipeline.feed("moved")
    assert (row["url"], row["host"], row["fetch_url"], row["validators_url"]) == (old, NEW, new, new)
    assert (
        f"{old} redirects permanently to {new}: requested there directly after 7 days of that." in caplog.text
    )
    assert caplog.text.count(f"{old} has moved permanently and is requested at {new} from now on") == 1

    assert pipeline.feed("away")["fetch_url"] is None
    assert pipeline.feed("private")["fetch_url"] is None
    assert "for its headers or password go to the server of the registered URL only." in caplog.text
    sent = {(r.host, r.target) for r in server.requests if "authorization" in r.headers}
    assert sent == {(OLD, "/private")}

    [moved, twin], [kept] = notes(pipeline)["moved"], notes(pipeline)["private"]
    assert moved == f"moved for good, requested at {new}: write that into feeds.yaml with `id: moved`"
    shown = theirs.partition("?")[0]
    assert kept.startswith(f"redirects for good to {shown}, since 2026-03-02T12:00:01Z; not requested there")
    assert kept.endswith("of the registered URL only: if it is right, write it into feeds.yaml")
    assert twin == "the same feed as away: both lead to one address"
    assert notes(pipeline)["away"] == ["the same feed as moved: both lead to one address"]
    [same] = checked({"no_shared_urls"}, pipeline.database, now=pipeline.clock())
    assert (same.state, "(A feed [away] and A feed [moved])" in same.found) == ("warning", True)

    whole = overview(pipeline.database, now=pipeline.clock())
    assert (whole.gone, whole.moved, whole.failing) == (1, 1, 1), (
        "a feed that is gone is not counted as failing"
    )
    rows = {row["id"]: row for row in feed_health(pipeline.database)}
    assert (rows["gone"]["last_error_kind"], rows["challenge"]["last_error_kind"]) == ("gone", "challenge")
    assert "410 Gone waits 24 h" in rows["gone"]["schedule_reason"]
    assert rows["gone"]["next_fetch_at"] == instant(pipeline.clock() + timedelta(days=1))
    assert caplog.text.count("removed this feed for good; remove it. It is requested once a day.") == 1

    pipeline.feeds[0]["url"] = new
    pipeline.write_registry()
    assert poll(pipeline, server, days=0) == [(NEW, "/rss", '"new"')], "at once, with what is known"
    created = row["created_at"]
    row = pipeline.feed("moved")
    assert (row["url"], row["fetch_url"], row["created_at"]) == (new, None, created)
    assert pipeline.guids("moved") == ["a"]


def test_an_adopted_address_at_which_the_feed_is_no_more_is_given_up_for_the_registered_one(
    pipeline: Pipeline, server: FeedServer, caplog: pytest.LogCaptureFixture
) -> None:
    new = server.route(NEW, "/rss", Answer(body=rss("a"), etag='"new"'))
    old = server.route(OLD, "/feed", Answer(status=301, headers={"Location": new}))
    pipeline.register(old, "moved")
    pipeline.poll()
    adopted = "UPDATE feeds SET fetch_url = ?, host = ?, consecutive_failures = 1"
    pipeline.database.query(adopted, [new, NEW])
    server.route(NEW, "/rss", Answer(status=404))
    third = server.route(THIRD, "/b", Answer(body=rss("a", "b"), etag='"3"'))
    server.route(OLD, "/feed", Answer(status=301, headers={"Location": third}))

    assert poll(pipeline, server, days=1.5) == [(NEW, "/rss", '"new"')]
    assert poll(pipeline, server, days=1.5) == [(NEW, "/rss", '"new"')]
    assert f"{old} is requested at that address again, and no longer at {new}." in caplog.text
    assert poll(pipeline, server, days=1) == [(OLD, "/feed", None), (THIRD, "/b", None)]

    row = pipeline.feed("moved")
    assert (row["fetch_url"], row["host"], row["consecutive_failures"]) == (None, OLD, 0)
    assert (row["move_url"], row["validators_url"]) == (third, third)
    assert pipeline.guids("moved") == ["a", "b"]


def test_the_same_host_s_https_is_requested_from_the_next_visit_on(
    pipeline: Pipeline, server: FeedServer
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "good.pem")
    pipeline.set(ca_file=TLS / "authority.pem")
    with FeedServer(tls=context) as secure:
        target = secure.route(OLD, "/feed", Answer(body=rss("a"), etag='"s"'))
        redirect = Answer(status=301, headers={"Location": target})
        pipeline.register(server.route(OLD, "/feed", redirect), "upgraded")
        pipeline.poll()
        assert poll(pipeline, server, days=1) == []
        assert [r.headers.get("if-none-match") for r in secure.requests] == [None, '"s"']
    assert pipeline.feed("upgraded")["fetch_url"] == target


def test_feeds_that_lead_to_one_url_stay_in_one_poll(pipeline: Pipeline, server: FeedServer) -> None:
    """Each feed is visited some per cent sooner or later than its interval: these by the same."""
    target = server.route(NEW, "/feed", Answer(body=rss("a"), etag='"1"'))
    ids = [
        pipeline.register(
            server.route(OLD, f"/{n}", Answer(status=status, headers={"Location": target})),
            f"leads-{n}",
            interval="2h",
        )
        for n, status in enumerate((301, 302, 307))
    ]
    ids.append(pipeline.register(target, "there", interval="2h"))
    for _ in ("a document", "a 304"):
        pipeline.poll()
        assert len({pipeline.feed(id)["next_fetch_at"] for id in ids}) == 1
        pipeline.clock.turn(hours=3)


def test_the_address_guard_holds_for_an_adopted_address(pipeline: Pipeline, server: FeedServer) -> None:
    server.listen(NEW)
    pipeline.register("http://feeds.example/feed", "moved", allow_private=False)
    pipeline.sync()
    pipeline.database.query("UPDATE feeds SET fetch_url = ?, host = ?", [server.url(NEW, "/rss"), NEW])
    pipeline.poll()
    assert server.most_open == {}
    assert pipeline.feed("moved")["last_error_kind"] == "blocked_address"
