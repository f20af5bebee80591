"""Feeds that lead to one URL: it is requested once in a round, and what is one feed's own is no other's."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.collector.fetch.feed_round import fetch_feeds
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Access, Feed
from rss_pipeline.collector.models.outcome import Document, FetchOutcome, NotModified
from rss_pipeline_tests.collector.fetch.rounds import POLICY, RSS, InstantPace, feed, now
from rss_pipeline_tests.support.server import Answer, FeedServer, Request

HERE, THERE = "127.0.0.2", "127.0.0.3"
HASH = hashlib.sha256(RSS + b"\0").hexdigest()
ETAG: dict[str, Any] = {"etag": '"1"', "content_hash": HASH}


@pytest.fixture
def server() -> Iterator[FeedServer]:
    with FeedServer() as server:
        yield server


class Led:
    """A feed at its address, and others that redirects lead there."""

    def __init__(self, server: FeedServer, spool: Path, answer: Answer) -> None:
        self.url = server.route(HERE, "/feed", answer)
        self._server, self._spool = server, spool

    def from_(self, host: str, path: str, *, status: int = 302, cookie: str = "") -> str:
        headers = {"Set-Cookie": cookie} if cookie else {}
        answer = Answer(status=status, headers={"Location": self.url, **headers})
        return self._server.route(host, path, answer)

    def visit(self, *jobs: tuple[Feed, Access]) -> list[FetchOutcome]:
        return fetch_feeds(jobs, policy=POLICY, spool=self._spool, clock=now, pace=InstantPace())

    @property
    def requests(self) -> list[Request]:
        return [each for each in self._server.requests if (each.host, each.target) == (HERE, "/feed")]


def job(url: str, id: str, access: Access | None = None, **fields: Any) -> tuple[Feed, Access]:
    return feed(url, id=id, needs_access=access is not None, **fields), access or Access()


def at_its_address(led: Led) -> str:
    return led.url


def by_a_redirect(led: Led) -> str:
    return led.from_(THERE, "/a")


def by_a_permanent_redirect(led: Led) -> str:
    return led.from_(THERE, "/a", status=301)


def on_its_host(led: Led) -> str:
    return led.from_(HERE, "/a", status=308)


def by_two_redirects(led: Led) -> str:
    onward = led.from_(THERE, "/b")
    return led._server.route("127.0.0.4", "/a", Answer(status=307, headers={"Location": onward}))


def test_a_url_in_another_spelling_is_the_same_request(server: FeedServer, tmp_path: Path) -> None:
    led = Led(server, tmp_path, Answer(body=RSS, etag='"1"'))
    other = led.url.replace(f"http://{HERE}", "HTTP://127.2")
    both: tuple[dict[str, Any], ...] = ({}, {"validators_url": other, **ETAG})
    for fields in both:
        server.forget()
        outcomes = led.visit(job(led.url, "one", **ETAG), job(other, "two", **fields))
        assert len(led.requests) == 1 + (not fields), "without validators it has a request of its own"
        for outcome, url in zip(outcomes, (led.url, other), strict=True):
            assert isinstance(outcome, Document | NotModified)
            assert (outcome.response.url, outcome.response.etag) == (url, '"1"'), "they are its own next time"


ROADS = [at_its_address, by_a_redirect, by_a_permanent_redirect, on_its_host, by_two_redirects]


@pytest.mark.parametrize("road", ROADS)
def test_a_url_to_which_feeds_lead_is_requested_once(
    road: Callable[[Led], str], server: FeedServer, tmp_path: Path
) -> None:
    led = Led(server, tmp_path, Answer(body=RSS, etag='"1"'))
    other = road(led)
    outcomes = led.visit(job(led.url, "one"), job(other, "two"), job(led.from_(THERE, "/c"), "three"))
    assert len(led.requests) == 1
    for outcome, id in zip(outcomes, ("one", "two", "three"), strict=True):
        assert isinstance(outcome, Document)
        assert (outcome.path, outcome.path.read_bytes()) == (tmp_path / id, RSS)
        assert (outcome.response.url, outcome.response.etag) == (led.url, '"1"')
    assert isinstance(outcomes[1], Document)
    permanent = road in (by_a_permanent_redirect, on_its_host)
    assert outcomes[1].response.moved_to == (led.url if permanent else None)

    # And so is a 304, to those that sent the same; one with another document makes its own request, once.
    validators: dict[str, Any] = {**ETAG, "validators_url": led.url}
    jobs = [job(led.url, "one", **validators), job(other, "two", **validators), job(led.url, "three")]
    *same, new = led.visit(*jobs)
    # The second may come after the third, and share what that one got.
    assert all(isinstance(outcome, NotModified) and not outcome.came_in_vain for outcome in same)
    assert isinstance(new, Document)
    assert len(led.requests) == 3
    # The bytes are compared with each feed's own.
    server.route(HERE, "/feed", Answer(body=RSS))
    again, fresh = led.visit(job(led.url, "one"), job(other, "two", content_hash=HASH))[::-1]
    assert isinstance(again, NotModified)
    assert isinstance(fresh, Document)
    assert len(led.requests) == 4

    # A feed with an ETag that is still right got no bytes in vain: the other one sent an older ETag.
    server.route(HERE, "/feed", Answer(body=RSS, etag='"1"'))
    older = job(led.url, "one", etag='"0"', validators_url=led.url)
    fresh, spared = led.visit(older, job(by_a_redirect(led), "two", **validators))
    assert isinstance(fresh, Document)
    assert isinstance(spared, NotModified)
    assert not spared.came_in_vain
    assert len(led.requests) == 5


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer(status=404), "http_status"),
        (Answer(status=410), "gone"),
        (Answer(status=500), "http_status"),
        (Answer(body=RSS, cut_after=9), "truncated"),
        (Answer(body=RSS, cut_after=9, chunked=True), "truncated"),
        (Answer(), "empty_body"),
    ],
)
def test_an_error_there_is_an_error_of_each_and_one_request(
    answer: Answer, kind: str, server: FeedServer, tmp_path: Path
) -> None:
    led = Led(server, tmp_path, answer)
    outcomes = led.visit(job(led.url, "one"), job(by_a_redirect(led), "two"), job(led.url, "three"))
    assert [outcome.kind for outcome in outcomes if isinstance(outcome, Failure)] == [kind] * 3
    assert all(isinstance(each, Failure) and each.host == HERE and each.answered for each in outcomes)
    assert len(led.requests) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("status", "wait"), [(429, {}), (429, {"Retry-After": "600"}), (503, {"Retry-After": "600"})]
)
def test_an_answer_that_begins_a_hold_is_a_failure_of_one_feed_only(
    status: int, wait: dict[str, str], server: FeedServer, tmp_path: Path
) -> None:
    led = Led(server, tmp_path, Answer(status=status, headers=wait))
    outcomes = led.visit(job(led.url, "one"), job(by_a_redirect(led), "two"), job(led.url, "three"))
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Failure", "OnHold", "OnHold"]
    assert len(led.requests) == 1


SECRET = Access(username="ann", password="correct horse")


@pytest.mark.parametrize("first", [0, 1], ids=["private first", "public first"])
@pytest.mark.parametrize(
    "access", [SECRET, Access(headers={"X-Key": "correct horse"}), Access(headers={"Cookie": "k=correct"})]
)
def test_no_answer_goes_to_another_who_has_other_secrets(
    access: Access, first: int, server: FeedServer, tmp_path: Path
) -> None:
    led = Led(server, tmp_path, Answer(status=404))

    def by_secret(request: Request) -> Answer:
        known = [request.headers.get(name) for name in ("authorization", "x-key", "cookie")]
        return Answer(body=RSS + repr(known).encode())

    server.route(HERE, "/feed", by_secret)
    other = Access(username="bob", password="battery staple")
    jobs = [job(led.url, "one", access), job(led.url, "two"), job(led.url, "three", other)]
    jobs.append(job(led.from_(THERE, "/a"), "four", access))
    outcomes = led.visit(*(jobs[first:] + jobs[:first]))
    bodies = [each.path.read_bytes() for each in outcomes if isinstance(each, Document)]
    assert len(led.requests) == 4
    # No secret goes along with a redirect to another origin.
    assert len(set(bodies)) == 3


def test_a_cookie_of_one_visit_shares_nothing(server: FeedServer, tmp_path: Path) -> None:
    led = Led(server, tmp_path, Answer(body=RSS))
    with_cookie = led.from_(HERE, "/a", cookie="visit=1")
    led.visit(job(with_cookie, "one"), job(with_cookie, "two"), job(led.url, "three"))
    assert [each.headers.get("cookie") for each in led.requests].count("visit=1") == 2
    assert len(led.requests) == 3


def test_a_feed_that_may_not_reach_a_private_host_gets_no_answer_of_it(
    server: FeedServer, tmp_path: Path
) -> None:
    led = Led(server, tmp_path, Answer(body=RSS))
    own, led_there = led.visit(
        job(led.url, "one", private_hosts=()), job(by_a_redirect(led), "two", private_hosts=())
    )
    assert isinstance(own, Document)
    assert isinstance(led_there, Failure)
    assert led_there.kind == "blocked_address"


def test_a_feed_that_may_be_larger_gets_its_own_answer(server: FeedServer, tmp_path: Path) -> None:
    led = Led(server, tmp_path, Answer(body=RSS * 10))
    small, large = led.visit(job(led.url, "one", max_size=99), job(led.url, "two"))
    assert isinstance(small, Failure)
    assert small.kind == "too_large"
    assert isinstance(large, Document)
