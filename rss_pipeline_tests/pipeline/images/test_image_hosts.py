"""The image hosts of a download: which get a request, what a Referer says to them, and which are on hold."""

from collections.abc import Callable
from datetime import datetime, timedelta
from ipaddress import ip_network

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline_tests.pipeline.images.images_of_feeds import FEED_HOST, collect, document, image_rows
from rss_pipeline_tests.support.pictures import png
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer, Request


def picky(wanted: Callable[[str | None], bool]) -> Callable[[Request], Answer]:
    """A host that gives its images to those that come from the right place."""

    def answer(request: Request) -> Answer:
        return Answer(body=png()) if wanted(request.headers.get("referer")) else Answer(status=403)

    return answer


def test_a_host_that_refuses_hotlinks_gets_the_site_of_the_item_and_nothing_untrue(
    home: Pipeline, server: FeedServer
) -> None:
    own = server.route("127.0.1.1", "/own", picky(lambda referer: "127.0.1.1" in (referer or "")))
    site = f"http://{FEED_HOST}/"
    item = server.route("127.0.1.2", "/item", picky(lambda referer: referer == site))
    never = server.route("127.0.1.3", "/never", picky(lambda _: False))
    server.route(FEED_HOST, "/feed", Answer(body=document(own, item, never)))
    home.register(server.url(FEED_HOST, "/feed"), "feed")
    home.poll()
    home.database.query("UPDATE feeds SET allow_private = 0")
    home.set(allow_networks=(ip_network("127.0.0.0/8"),), allow_ports=frozenset({server.port}))
    for pause in (0, 1, 49):
        home.clock.turn(hours=pause)
        home.download()
    rows = image_rows(home)
    assert [rows[name]["status"] for name in ("own", "item", "never")] == ["failed", "success", "failed"]
    for target, last in {"/own": [None], "/item": [], "/never": [None]}.items():
        asked = [r.headers.get("referer") for r in server.requests if r.target == target]
        assert asked == [None, site, *last], "one request at each attempt"


@pytest.mark.parametrize("address", ["/feed?token=1", "/feed", "moved"])
def test_a_feed_with_an_address_that_may_hold_a_token_sends_no_referer_at_all(
    address: str, home: Pipeline, server: FeedServer
) -> None:
    never = server.route("127.0.1.3", "/never", picky(lambda _: False))
    url = server.route(FEED_HOST, address.replace("moved", "/feed"), Answer(body=document(never)))
    if address == "/feed":
        url = url.replace("//", "//me:secret@")
    home.register(url, "feed", allow_private=False)
    home.set(allow_networks=(ip_network("127.0.0.0/8"),), allow_ports=frozenset({server.port}))
    home.poll()
    if address == "moved":
        home.database.query("UPDATE feeds SET fetch_url = url || '?token=1'")
    home.download()
    assert [r.headers.get("referer") for r in server.requests if r.target == "/never"] == [None]


def test_an_item_reaches_no_server_of_ours_and_no_private_host_that_its_feed_does_not_name(
    home: Pipeline, server: FeedServer
) -> None:
    ui = server.url("127.0.0.1", "/graphql?query=mutation")
    with FeedServer() as at_home:
        own = at_home.route(FEED_HOST, "/own", Answer(body=png()))
        other = at_home.route("127.0.1.1", "/other", Answer(body=png()))
        url = at_home.route(FEED_HOST, "/feed", Answer(body=document(ui, own, other)))
        home.set(port=server.port, allow_networks=(ip_network("127.0.0.1/32"),))
        home.register(url, "feed", allow_private=True)
        home.poll()
        home.download()
        assert (image_rows(home)["own"]["status"], len(at_home.requests)) == ("success", 2)
        assert "`allow_private: [127.0.1.1]`" in image_rows(home)["other"]["last_error"]
        home.feeds[0]["allow_private"] = ["127.0.0.0/8"]
        home.write_registry()
        home.sync()
        home.clock.turn(hours=24)
        home.download()
    rows = image_rows(home)
    assert rows["other"]["status"] == "success"
    refused = [row["last_error"] for row in rows.values() if row["status"] != "success"]
    assert [("the UI of this installation" in each, "never allowed" in each) for each in refused] == [
        (True, True)
    ]
    assert server.most_open == {}
    home.register(server.url("127.0.0.1", "/feed"), "at-the-ui")
    home.poll()
    [found] = home.database.query("SELECT last_error FROM feeds WHERE id = 'at-the-ui'").rows
    assert "never allowed" in found["last_error"]
    assert server.most_open == {}


def test_what_a_feed_of_the_world_names_at_home_is_never_requested(
    home: Pipeline, server: FeedServer
) -> None:
    shown = server.route("127.0.1.1", "/shown", Answer(body=png()))
    home.register(server.route(FEED_HOST, "/feed", Answer(body=document(shown))), "feed")
    home.poll()
    server.forget()
    home.feeds[0]["allow_private"] = False
    home.write_registry()
    home.sync()
    home.download()
    home.clock.turn(hours=24)
    home.poll()
    assert server.most_open == {}
    row = image_rows(home)["shown"]
    assert (row["status"], row["attempts"]) == ("pending", 1)
    assert "127.0.1.1 is this machine itself" in row["last_error"]
    [found] = home.database.query("SELECT last_error_kind, last_error FROM feeds").rows
    assert found["last_error_kind"] == "blocked_address"
    assert "write `allow_private: true` for this feed in feeds.yaml" in found["last_error"]


def test_a_private_feeds_pages_are_named_to_no_one(home: Pipeline, server: FeedServer) -> None:
    collect(home, server, server.route("127.0.1.1", "/never", picky(lambda _: False)))
    home.download()
    asked = [r.headers.get("referer") for r in server.requests if r.target == "/never"]
    assert asked == [None]


def test_a_host_that_says_too_many_gets_its_pause_and_the_others_do_not_wait(
    home: Pipeline, server: FeedServer
) -> None:
    home.set(images_per_host=1)
    busy = [
        server.route(
            "127.0.1.1", f"/{n}", Answer(status=429, headers={"Retry-After": "1800"}), Answer(body=png())
        )
        for n in range(5)
    ]
    other = server.route("127.0.1.2", "/other", Answer(body=png()))
    collect(home, server, *busy, other)
    home.download()
    assert len([r for r in server.requests if r.host == "127.0.1.1"]) == 1
    assert {row["attempts"] for row in image_rows(home).values()} == {0}, "a 429 is no failure of the image"
    assert image_rows(home)["other"]["status"] == "success"
    home.clock.turn(minutes=29)
    home.download()
    assert len([r for r in server.requests if r.host == "127.0.1.1"]) == 1
    home.clock.turn(minutes=2)
    home.download()
    assert len([r for r in server.requests if r.host == "127.0.1.1"]) == 2, "every path says it once"


def test_an_image_of_a_host_that_always_wants_fewer_requests_is_given_up_after_a_month_and_not_before(
    home: Pipeline, server: FeedServer
) -> None:
    collect(home, server, server.route("127.0.1.1", "/never", Answer(status=429)))
    seen = []
    for days in (0, 1, 28, 2, 1, 2, 5):
        home.clock.turn(days=days, minutes=1)
        home.download()
        [row] = image_rows(home).values()
        seen.append((row["status"], row["attempts"]))
    assert seen == [("pending", n) for n in (0, 0, 0, 1, 2)] + [("failed", 3)] * 2
    assert "429" in row["last_error"]
    assert len([r for r in server.requests if r.target == "/never"]) == 6


def test_images_of_a_host_with_a_longer_gap_than_a_round_are_due_one_after_the_other(
    home: Pipeline, server: FeedServer
) -> None:
    collect(home, server, *(server.route("127.0.1.1", f"/{n}", Answer(body=png())) for n in range(3)))
    at = instant(home.clock() + timedelta(seconds=1))
    home.database.query("INSERT INTO host_gaps VALUES ('image_holds', '127.0.1.1', 600, ?, ?)", [at, at])
    for requests in range(4):
        home.download()
        assert len([r for r in server.requests if r.host == "127.0.1.1"]) == requests
        waits = sorted(
            datetime.fromisoformat(row["next_attempt_at"]) - home.clock()
            for row in image_rows(home).values()
            if row["status"] == "pending"
        )
        assert waits == [timedelta(seconds=600 * (n + 1)) for n in range(3 - requests)]
        home.clock.turn(seconds=599)


@pytest.mark.parametrize("retry_after", ["1800", "0"])
def test_a_host_that_is_busy_and_says_until_when_gets_one_request_a_run(
    home: Pipeline, server: FeedServer, retry_after: str
) -> None:
    home.set(images_per_host=1)
    busy = Answer(status=503, headers={"Retry-After": retry_after})
    collect(home, server, *(server.route("127.0.1.1", f"/{n}", busy) for n in range(5)))
    home.download()
    assert len([r for r in server.requests if r.host == "127.0.1.1"]) == 1
    assert [row["attempts"] for row in image_rows(home).values()] == [0] * 5
    home.clock.turn(minutes=10)
    home.download()
    assert len([r for r in server.requests if r.host == "127.0.1.1"]) == 1


def test_a_host_with_images_that_lead_to_one_that_says_too_many_is_left_alone_with_it(
    home: Pipeline, server: FeedServer
) -> None:
    home.set(images_per_host=1)
    there = server.route("127.0.1.2", "/busy", Answer(status=429, headers={"Retry-After": "1800"}))
    led = Answer(status=302, headers={"Location": there})
    collect(home, server, *(server.route("127.0.1.1", f"/{n}", led) for n in range(5)))
    home.download()
    assert len([r for r in server.requests if r.host == "127.0.1.2"]) == 1
    assert len([r for r in server.requests if r.host == "127.0.1.1"]) <= 5, "each at most once"
    home.clock.turn(minutes=29)
    before = len(server.requests)
    home.download()
    assert len(server.requests) == before


def test_of_a_feed_that_opts_out_no_images_are_requested(home: Pipeline, server: FeedServer) -> None:
    collect(home, server, server.route("127.0.1.1", "/1", Answer(body=png())))
    home.feeds[0]["images"] = False
    home.write_registry()
    home.sync()
    assert home.download().archived == 0
    home.feeds[0]["images"] = True
    home.write_registry()
    home.sync()
    assert home.download().archived == 1
