"""The scorer itself: a client that behaves has no fault, a rude one a fault of the kind of what it did.

The client is a bare httpx; what it sends and when is written out here.
"""

import re
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, get_args

import httpx
import pytest

from rss_pipeline_tests.politeness.kinds import KINDS
from rss_pipeline_tests.politeness.publishers import PAGES, START, Ask, Kind, both, with_fields
from rss_pipeline_tests.politeness.scoring import FaultKind
from rss_pipeline_tests.politeness.stand import Stand
from rss_pipeline_tests.support.pipeline import Clock
from rss_pipeline_tests.support.server import Answer, FeedServer

POLITE = {"user-agent": "reader/1 (+https://reader.example)", "accept-encoding": "gzip", "accept": "*/*"}
SECOND_CAME = threading.Event()


def _second(ask: Ask) -> Answer:
    SECOND_CAME.set()
    return both(ask)


TWO_AT_ONCE = Kind(
    name="two feeds, the first waits for the second",
    pages={"a/feed": with_fields(both, wait_for=SECOND_CAME), "a/other": _second},
    feeds=("a/feed", "a/other"),
)
BY_NAME = {kind.name: kind for kind in (*KINDS, TWO_AT_ONCE)}


class Client:
    """Requests of one publisher. Hours go by as it says."""

    def __init__(self, server: FeedServer, kind: Kind) -> None:
        self.clock = Clock(START)
        self.stand = Stand(server, [kind], self.clock, hours=4, host_delay=1.0, deadline=2.0)
        self.id, *_ = self.ids = list(self.stand.feeds)
        self.kept: dict[str, str] = {}
        self._kept_from: dict[str, dict[str, str]] = {}
        """By the URL that gave them; `kept` are the last ones."""

    def ask(
        self, path: str = "", *, after: float = 4.0, feed: int = 0, method: str = "GET", **headers: Any
    ) -> httpx.Response:
        """One request, so many hours after the last one. A header of None is left out."""
        self.clock.turn(hours=after)
        url = path if "://" in path else self.stand.url(self.ids[feed]) + path
        given = {**POLITE, **{name.replace("_", "-"): value for name, value in headers.items()}}
        sent = {name.encode(): value.encode("latin-1") for name, value in given.items() if value is not None}
        with httpx.Client(trust_env=False, verify=False) as client:
            client.headers.clear()
            answer = client.request(method, url, headers=sent)
        self.stand.settle()
        return answer

    def ask_politely(self, **when: Any) -> httpx.Response:
        """With the validators of the last document, where it came from; one redirect is followed."""
        url = self.stand.url(self.id)
        validators: dict[str, Any] = self._kept_from.get(url, {})
        answer = self.ask(**when, **validators)
        if answer.has_redirect_location:
            url = answer.headers["location"]
            validators = {**self._kept_from.get(url, {})}
            answer = self.ask(url, after=0.001, **validators)
        if answer.status_code == 200:
            names = {"if_none_match": "etag", "if_modified_since": "last-modified"}
            self.kept = {to: answer.headers[name] for to, name in names.items() if name in answer.headers}
            self._kept_from[url] = self.kept
        return answer


def losing(client: Client) -> None:
    client.ask_politely()
    client.stand.scorer.kept(client.id, None, None)


def unasked(client: Client) -> None:
    client.ask(if_modified_since="Mon, 02 Mar 2026 00:00:00 GMT")


def forgetful(client: Client) -> None:
    client.ask_politely()
    client.ask(if_none_match=client.kept["if_none_match"])


def unquoted(client: Client) -> None:
    client.ask_politely()
    client.kept["if_none_match"] = client.kept["if_none_match"].strip('"')
    client.ask_politely()


def stale(client: Client) -> None:
    """The old ETag beside the new date."""
    client.ask_politely()
    old = client.kept["if_none_match"]
    client.ask_politely(after=48)
    stale: dict[str, Any] = {**client.kept, "if_none_match": old}
    client.ask(**stale)


def to_the_first_hop(client: Client) -> None:
    there = client.ask().headers["location"]
    found = client.ask(there, after=0.001)
    client.ask(if_none_match=found.headers["etag"])


def impatient(client: Client) -> None:
    client.ask_politely()
    client.ask_politely(after=3)


def unconcerned(client: Client) -> None:
    client.ask_politely()
    client.ask_politely(after=11)


def nocturnal(client: Client) -> None:
    client.ask_politely()
    client.ask_politely(after=9.5)


def insistent(client: Client) -> None:
    for _ in range(3):
        client.ask_politely()
    client.ask_politely(after=0.4)


def over_the_redirect(client: Client) -> None:
    """Before its redirect may be requested again."""
    client.ask_politely()
    client.ask_politely(after=7)


def led_there_too(client: Client) -> None:
    """By another feed, while the address is on hold."""
    client.clock.turn(days=2)
    client.stand.scorer.by_hand = frozenset(client.ids)
    there = client.ask(after=0).headers["location"]
    assert client.ask(there, after=0.001).status_code == 429
    client.ask(after=2, feed=1)
    client.ask(there, after=0.001)


def greedy(client: Client) -> None:
    """Two feeds of twenty, every other request in vain."""
    for n in range(100):
        client.ask(after=12 if n % 2 == 0 else 0.005, feed=n % 2)
    client.stand.judge()
    kinds = {"before the interval", "during backoff", "during a hold", "validator dropped"}
    client.stand.scorer.faults[:] = [fault for fault in client.stand.scorer.faults if fault.kind not in kinds]


def by_hand(client: Client) -> None:
    """A person may request it before the time, but not while the server says when to come."""
    client.clock.turn(days=2)
    client.stand.scorer.by_hand = frozenset(client.ids)
    assert client.ask_politely(after=0).status_code == 429
    client.ask_politely(after=0.9)


def to_its_neighbour(client: Client) -> None:
    """The pause is its host's."""
    client.clock.turn(days=2)
    assert client.ask_politely(after=0).status_code == 429
    client.ask(after=0.9, feed=1)


def hurried(client: Client) -> None:
    client.ask(after=0)
    client.ask(after=0.9 / 3600, feed=1)


def twofold(client: Client) -> None:
    """The second while the first one waits for its answer."""
    SECOND_CAME.clear()
    first = threading.Thread(target=client.ask, kwargs={"after": 0})
    first.start()
    while not client.stand.scorer.subscriptions[client.ids[0]].requests:
        time.sleep(0.001)
    client.ask(after=2 / 3600, feed=1)
    first.join()


def decorated(client: Client) -> None:
    client.ask("?utm_source=reader")


def picture(client: Client, **ask: Any) -> str:
    """The address of an image that the feed shows."""
    found = re.search(r'src="([^"]+)"', client.ask(**ask).text)
    assert found is not None
    return found[1]


def collecting(client: Client) -> None:
    """The same image for each item that shows it."""
    url = picture(client)
    for hours in (0.1, 25, 23.9):
        client.ask(url, after=hours)


def untrue(client: Client) -> None:
    """The image's own site, for a page."""
    url = picture(client)
    client.ask(url)
    client.ask(url, after=0.7, referer=url.rpartition("/")[0])


def unlearning(client: Client) -> None:
    url = picture(client)
    client.ask(url)
    client.ask(url, after=0.7, referer=PAGES)
    assert not client.stand.scorer.faults
    client.ask(url, after=25)


def losing_images(client: Client) -> None:
    client.stand.scorer.fault("an image not kept", client.id)


def losing_items(client: Client) -> None:
    client.stand.scorer.fault("an item not kept", client.id)


def believing(client: Client) -> None:
    """Validators under which another document came."""
    client.ask_politely()
    client.ask_politely(after=12)
    client.ask(after=24 * 8)
    assert not client.stand.scorer.faults
    client.ask_politely(after=12)


def over_a_limit_of_images(client: Client) -> None:
    first = picture(client)
    client.clock.turn(days=3)
    for n in range(12):
        client.ask(first.replace("logo", str(n)), after=0.01)
    client.stand.judge()


def remembering(client: Client) -> None:
    """The cookie of one visit at the start of the next."""
    cookie = client.ask().headers["set-cookie"].partition(";")[0]
    found = client.ask(after=0.001, cookie=cookie).headers
    assert not client.stand.scorer.faults
    client.ask(cookie=cookie, if_none_match=found["etag"], if_modified_since=found["last-modified"])


RUDE: dict[str, tuple[str, Callable[[Client], Any], set[FaultKind]]] = {
    "a date of its own": ("both", unasked, {"validator invented"}),
    "only one of both": ("both", forgetful, {"validator dropped"}),
    "without the quotes": ("both", unquoted, {"validator altered"}),
    "one of them not replaced": ("both", stale, {"validator altered"}),
    "a false one": ("one ETag for ever", believing, {"a false validator"}),
    "to another URL than gave it": ("302", to_the_first_hop, {"validator sent elsewhere"}),
    "more often than it says": ("both", impatient, {"before the interval"}),
    "more often than max-age": ("max-age of 12 h", unconcerned, {"before the answer is stale"}),
    "more often than Expires": ("Expires in 12 h", unconcerned, {"before the answer is stale"}),
    "more often than after the 200, a bare 304": (
        "max-age, bare 304",
        lambda client: [client.ask_politely(), client.ask_politely(after=13), client.ask_politely(after=11)],
        {"before the answer is stale"},
    ),
    "in a skipped hour": ("skipHours", nocturnal, {"in a skipped hour"}),
    "soon after an error": ("500 flapping", insistent, {"during backoff"}),
    "soon after a 429, by hand": ("429, seconds", by_hand, {"during a hold"}),
    "soon after a neighbour's 429": ("429, two feeds of a host", to_its_neighbour, {"during a hold"}),
    "before a redirect's Retry-After": (
        "302, Retry-After",
        over_the_redirect,
        {"before the answer is stale"},
    ),
    "to an address on hold": ("429 where two feeds lead", led_there_too, {"during a hold"}),
    "over a limit": (
        "one a minute, 20 feeds",
        greedy,
        {"over the limit", "waits longer than its neighbours"},
    ),
    "an image again": ("images", collecting, {"an image again"}),
    "an image with a Referer of its own": ("images for its pages alone", untrue, {"referer"}),
    "an image without what its host needed": (
        "images for its pages alone",
        unlearning,
        {"a Referer forgotten"},
    ),
    "images over a limit": (
        "images, six in ten minutes",
        over_a_limit_of_images,
        {"over the limit", "during a hold"},
    ),
    "its feed has lost items": ("both", losing_items, {"an item not kept"}),
    "its items have lost their images": ("images", losing_images, {"an image not kept"}),
    "at once": ("five feeds of a host", hurried, {"requests too close"}),
    "a cookie": ("both", lambda client: client.ask(cookie="visitor=1"), {"cookie"}),
    "a cookie of the last visit": ("302 to itself with a cookie", remembering, {"cookie"}),
    "a referer": ("both", lambda client: client.ask(referer="https://reader.example"), {"referer"}),
    "a password": ("both", lambda client: client.ask(authorization="Basic eDp5"), {"authorization"}),
    "no contact": ("both", lambda client: client.ask(user_agent="python-httpx/0.28.1"), {"user agent"}),
    "no gzip": ("both", lambda client: client.ask(accept_encoding=None), {"accept encoding"}),
    "a probe": ("both", lambda client: client.ask(method="HEAD"), {"method"}),
    "more to the address": ("both", decorated, {"address"}),
    "two at once": (TWO_AT_ONCE.name, twofold, {"two connections"}),
    "its store has lost them": (
        "both",
        losing,
        {"validators not kept"},
    ),
}


@pytest.fixture
def server() -> Iterator[FeedServer]:
    with FeedServer() as server:
        yield server


@pytest.mark.parametrize(("kind", "act", "faults"), RUDE.values(), ids=RUDE)
def test_a_rude_client_is_faulted_for_what_it_did_and_for_nothing_else(
    kind: str, act: Callable[[Client], Any], faults: set[FaultKind], server: FeedServer
) -> None:
    client = Client(server, BY_NAME[kind])
    act(client)
    assert set(client.stand.scorer.count()) == faults


def test_every_kind_of_fault_is_among_these() -> None:
    shown = {fault for *_, faults in RUDE.values() for fault in faults}
    assert shown == set(get_args(FaultKind))


@pytest.mark.parametrize(
    "kind",
    ["both", "ETag with odd quotes", "302", "302 now and then", "304 without validators", "no validators"],
)
def test_a_polite_client_has_no_fault(kind: str, server: FeedServer) -> None:
    client = Client(server, BY_NAME[kind])
    for _ in range(20):
        client.ask_politely()
    assert client.stand.scorer.faults == []
    [row] = client.stand.table()
    assert row.bodies + row.not_modified == 20
    assert row.not_modified > 5 or kind == "no validators"


def test_after_30_days_of_304_one_request_without_validators_is_counted_apart(server: FeedServer) -> None:
    client = Client(server, BY_NAME["304 for ever"])
    client.ask_politely()
    client.ask_politely(after=29 * 24)
    client.ask(after=12)
    assert client.stand.scorer.count() == {"validator dropped": 2}
    client = Client(server, BY_NAME["304 for ever"])
    client.ask_politely()
    client.ask_politely(after=12)
    client.ask(after=30 * 24)
    assert client.stand.scorer.faults == []
    [row] = client.stand.table()
    assert (row.apart, row.bodies) == (1, 2)


def test_of_two_feeds_that_were_led_to_an_address_at_once_none_is_blamed_for_the_other(
    server: FeedServer,
) -> None:
    client = Client(server, BY_NAME["429 where two feeds lead"])
    client.clock.turn(days=1)
    for n in range(2):
        # Only one of them goes on, and may be either.
        there = client.ask(feed=n, after=1).headers["location"]
        client.ask(feed=1 - n, after=0.001)
        client.ask(there, after=0.001)
    assert client.stand.scorer.faults == []


def test_the_scorer_says_when_and_what(server: FeedServer) -> None:
    client = Client(server, BY_NAME["both"])
    client.ask(cookie="visitor=1")
    [fault] = client.stand.scorer.faults
    assert (fault.kind, fault.feed, fault.what) == ("cookie", client.id, "visitor=1")
    assert fault.at == START + timedelta(hours=4)
