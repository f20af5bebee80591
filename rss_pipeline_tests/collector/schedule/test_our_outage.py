"""The cause of a round's failures in the network: the feeds, or our own network."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rss_pipeline.collector.models.failure import NETWORK_KINDS, Failure, FailureKind
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.hold import FeedHold, OnHold
from rss_pipeline.collector.models.network import network_of
from rss_pipeline.collector.models.outcome import FetchOutcome, NotBegun, NotModified, Response
from rss_pipeline.collector.schedule.our_outage import MISSPELT_AFTER, never_reached, outage
from rss_pipeline_tests.support.feeds import amend, make_feed

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
Outcomes = list[tuple[Feed, FetchOutcome]]


def failed(
    kind: FailureKind = "connect",
    *,
    at: float = 0,
    ms: int = 10,
    **proofs: Any,
) -> Failure:
    """Ended so many seconds after the round's start, after `ms` of requests."""
    fetched_at = NOW + at * SECOND
    return Failure(kind=kind, message="x", fetched_at=fetched_at, fetch_ms=ms, **proofs)


def on(host: str, *, answered: bool = True, network: str | None = None) -> Feed:
    return make_feed(host, f"http://{host}/", host, host_answered=answered, network=network)


def ok(at: float = 0) -> NotModified:
    response = Response(status=304, requested_url="x", url="x", fetched_at=NOW + at * SECOND, fetch_ms=1)
    return NotModified(response=response)


HELD = OnHold(hold=FeedHold(feed_id="d", host="e", until=NOW, reason="429"))


@pytest.mark.parametrize(
    ("name", "outcomes", "down"),
    [
        ("nothing was asked", [], False),
        ("three hosts", [(on(h), failed()) for h in "abc"], True),
        ("two hosts, three feeds", [(on(h), failed()) for h in "abb"], False),
        ("dead before", [(on(h, answered=False), failed()) for h in "abcd"], False),
        (
            "two alive, many dead",
            [(on(h), failed()) for h in "ab"] + [(on(h, answered=False), failed()) for h in "cdef"],
            False,
        ),
        ("one answered", [*[(on(h), failed()) for h in "abc"], (on("d"), ok())], False),
        ("one answered first", [(on("d"), ok()), *[(on(h), failed(at=60)) for h in "abcefgh"]], False),
        ("one 404", [*[(on(h), failed()) for h in "abc"], (on("d"), failed("http_status"))], False),
        (
            "one began to answer",
            [*[(on(h), failed()) for h in "abc"], (on("d"), failed("timeout", answered=True))],
            False,
        ),
        (
            "a refused address",
            [*[(on(h), failed()) for h in "abc"], (on("d"), failed("blocked_address"))],
            True,
        ),
        ("a URL that is none", [*[(on(h), failed()) for h in "abc"], (on("d"), failed("bad_url"))], True),
        (
            "one leads to a refused address",
            [*[(on(h), failed()) for h in "abc"], (on("d"), failed("blocked_address", answered=True))],
            False,
        ),
        ("only refused addresses", [(on(h), failed("blocked_address")) for h in "abc"], False),
        ("a bad certificate is an answer", [(on(h), failed("tls")) for h in "abc"], False),
        ("given back", [*[(on(h), failed()) for h in "abc"], (on("d"), NotBegun())], True),
        ("on hold", [*[(on(h), failed()) for h in "abc"], (on("d"), HELD)], True),
        ("all given back", [(on(h), NotBegun()) for h in "abc"], False),
        ("one refuses", [*[(on(h), failed()) for h in "abc"], (on("d"), failed(reached=True))], False),
        ("all accept and are silent", [(on(h), failed("timeout", accepted=True)) for h in "abcdefgh"], False),
        ("of one network", [(on(h, network="192.0.2.0/24"), failed("timeout")) for h in "abcdefgh"], False),
        (
            "of two networks and one unknown",
            [
                (on(h, network=n), failed("timeout"))
                for h, n in {"a": "1", "b": "1", "c": "2", "d": None}.items()
            ],
            True,
        ),
        ("addresses of one network", [(on(f"192.0.2.{n}"), failed("timeout")) for n in range(8)], False),
        (
            "addresses of three networks",
            [(on(h), failed("timeout")) for h in ("192.0.2.1", "198.51.100.1", "[2001:db8::1]")],
            True,
        ),
        (
            "networks of IPv4 as a machine with IPv6 alone reaches them (NAT64)",
            [
                (on(h, network=network_of(f"64:ff9b::{h}")), failed("timeout"))
                for h in ("1.0.0.1", "2.0.0.1", "3.0.0.1")
            ],
            True,
        ),
        (
            "one network of IPv4, by IPv4 and within IPv6",
            [(on(f"[::ffff:192.0.2.{n}]"), failed("timeout")) for n in range(4)]
            + [(on(f"192.0.2.{n}"), failed("timeout")) for n in range(4)]
            + [(on(f"[64:ff9b::c000:20{n}]"), failed("timeout")) for n in range(4)],
            False,
        ),
        (
            "names of one domain that do not resolve",
            [(on(f"{h}.example.co.uk", network=h), failed("dns")) for h in "abcdefgh"],
            False,
        ),
        (
            "names of three domains that do not resolve",
            [(on(f"www.{h}.co.uk", network=h), failed("dns")) for h in "abc"],
            True,
        ),
        (
            "names of one network that do not resolve",
            [(on(f"{h}.example", network="192.0.2.0/24"), failed("dns")) for h in "abcdefgh"],
            False,
        ),
        ("mixed network kinds", [(on(k), failed(k)) for k in sorted(NETWORK_KINDS)], True),  # type: ignore[arg-type]
    ],
)
def test_our_network_is_down_when_living_hosts_fail_all_at_once(
    name: str, outcomes: Outcomes, down: bool
) -> None:
    found = outage(outcomes)
    assert (found is not None) is down
    if found is not None:
        assert not found.in_the_middle
        assert found.feed_ids == {
            f.id for f, o in outcomes if isinstance(o, Failure) and o.kind in NETWORK_KINDS
        }


ANSWERED: Outcomes = [(on(h), ok(at)) for h, at in zip("abc", (1, 2, 3), strict=True)]
CUT: Outcomes = [(on(h), failed("timeout", at=14, ms=10_000)) for h in "xyz"]


def test_an_outage_in_the_middle_spares_what_failed_since_and_nothing_else() -> None:
    early = (on("e"), failed(at=2, ms=10))
    under_way = (on("u"), failed("truncated", at=13, ms=11_000, answered=True))
    silent = (on("s"), failed("timeout", at=13, ms=11_000, accepted=True))
    dead = (on("d", answered=False), failed(at=14, ms=10))
    found = outage([*ANSWERED, early, *CUT, under_way, silent, dead])
    assert found is not None
    assert found.in_the_middle
    assert found.feed_ids == {"x", "y", "z", "u", "s", "d"}


def test_an_answer_of_our_own_network_proves_nothing_for_hosts_beyond_it() -> None:
    nas = make_feed("nas", "http://nas/", "nas", allow_private=True)
    found = outage([*CUT, (nas, ok(20))])
    assert found is not None
    assert found.in_the_middle, "its document is kept"
    assert found.feed_ids == {"x", "y", "z"}
    assert outage([*((amend(feed, allow_private=True), cut) for feed, cut in CUT), (nas, ok())]) is None


@pytest.mark.parametrize(
    ("name", "outcomes"),
    [
        ("two hosts answered", [*ANSWERED[:2], *CUT]),
        ("three feeds of one host answered", [*((amend(f, host="a"), o) for f, o in ANSWERED), *CUT]),
        ("one answered late", [*ANSWERED, (on("l"), ok(5)), *CUT]),
        ("one answered last, with an error", [*ANSWERED, *CUT, (on("l"), failed("http_status", at=20))]),
        ("two hosts were cut", [*ANSWERED, *CUT[:2]]),
        ("they were dead before", [*ANSWERED, *((amend(f, host_answered=False), o) for f, o in CUT)]),
        ("asked before the last answer", [*ANSWERED, *((f, failed(at=4, ms=2000)) for f, _ in CUT)]),
        ("by a clock that stands", [(f, ok()) for f, _ in ANSWERED] + [(f, failed()) for f, _ in CUT]),
    ],
)  # fmt: skip
def test_hosts_that_die_while_others_answer_are_dead(name: str, outcomes: Outcomes) -> None:
    assert outage(outcomes) is None


def test_who_failed_through_an_outage_that_was_none_proves_nothing_the_next_time() -> None:
    outcomes: Outcomes = [(on(h), failed()) for h in "abcd"]
    found = outage(outcomes, blamed={"a"})
    assert found is not None
    assert found.feed_ids == {"b", "c", "d"}
    assert outage(outcomes, blamed={"a", "b"}) is None


def new(host: str, **known: Any) -> Feed:
    """A feed registered ten minutes ago, of which nothing has come yet."""
    return make_feed(host, f"http://{host}/", host, **{"created_at": NOW - timedelta(minutes=10), **known})


FIRST: list[tuple[str, Outcomes, set[str]]] = [
    ("nothing was requested", [], set()),
    ("three names do not resolve", [(new(h), failed("dns")) for h in "abc"], set("abc")),
    ("three hosts cannot be reached", [(new(h), failed("connect")) for h in "abc"], set("abc")),
    ("three hosts behind a firewall", [(new(h), failed("timeout")) for h in "abc"], set("abc")),
    ("one name does not resolve", [(new("a"), failed("dns"))], {"a"}),
    ("one host is dead, its name resolves", [(new("a"), failed("connect"))], set()),
    ("two hosts, one name resolves", [(new("a"), failed("dns")), (new("b"), failed("timeout"))], set()),
    ("another host answers", [*((new(h), failed("dns")) for h in "abc"), (new("d"), ok())], set()),
    ("another host refuses", [(new("a"), failed("dns")), (new("b"), failed("http_status"))], set()),
    ("a certificate came", [(new("a"), failed("dns")), (new("b"), failed("tls"))], set()),
    ("a host began to answer", [(new("a"), failed("dns")), (new("b"), failed(answered=True))], set()),
    ("a server on this machine is down", [(new("127.0.0.1", allow_private=True), failed("connect"))], set()),
    ("so is one by its name", [(new("localhost", allow_private=True), failed("connect"))], set()),
    ("a host of our own network is down", [(new("nas", allow_private=True), failed("connect"))], set()),
    ("its name does not resolve", [(new("nas", allow_private=True), failed("dns"))], set()),
    ("an address opened to all feeds", [(new("10.0.0.5"), failed("connect"))], set()),
    (
        "public names, a host of our own network and this machine",
        [
            *((new(h), failed("dns")) for h in "ab"),
            (new("nas", allow_private=True), failed("dns")),
            (new("::1", allow_private=True), failed("connect")),
            (new("refused"), failed("blocked_address")),
        ],
        {"a", "b", "nas"},
    ),
    ("given back", [(new("a"), failed("dns")), (new("b"), NotBegun())], {"a"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "outcomes", "ours"), FIRST, ids=[name for name, *_ in FIRST])
def test_before_any_feed_answered_a_round_in_which_no_public_host_is_reached_blames_none(
    name: str, outcomes: Outcomes, ours: set[str]
) -> None:
    found = never_reached(outcomes, now=NOW)
    assert (set() if found is None else set(found.feed_ids)) == ours
    assert found is None or (found.before_any_answer and not found.in_the_middle)


@pytest.mark.parametrize("age", [MISSPELT_AFTER, -timedelta(minutes=1)])
def test_one_name_that_does_not_resolve_for_an_hour_is_the_feeds_own_failure(age: timedelta) -> None:
    outcomes: Outcomes = [(new(h, created_at=NOW - age), failed("dns")) for h in "ab"]
    assert never_reached(outcomes, now=NOW) is None
    third = (new("c", created_at=NOW - age), failed("dns"))
    assert never_reached([*outcomes, third], now=NOW) is not None, "three names are not all misspelt"
