"""The ending of a visit by the kind of its outcome: when the feed is next and why, where, and after a gap."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Feed, FeedAddress, GapHistory
from rss_pipeline.collector.models.hold import FeedHold, HostHold, OnHold
from rss_pipeline.collector.models.item import FeedHeader, PublisherHints
from rss_pipeline.collector.models.outcome import CutOff, Document, NotModified, Parsed, Response
from rss_pipeline.collector.schedule.after_visit import Outcome, after_visit
from rss_pipeline_tests.support.feeds import make_feed

NOW = datetime(2026, 2, 18, 8, 30, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
URL, SECURE = "http://a.example/feed", "https://a.example/feed"
HERE = FeedAddress(host="a.example")


def feed(**fields: Any) -> Feed:
    return make_feed(
        "f", URL, "a.example", **{"interval": HOUR, "hints": PublisherHints(ttl=3 * HOUR), **fields}
    )


def response(**fields: Any) -> Response:
    known = {"status": 200, "requested_url": URL, "url": URL, "fetched_at": NOW, "fetch_ms": 9}
    return Response(**{**known, **fields})


def parsed(hints: PublisherHints | None = None, *, items: int = 10, **answer: Any) -> Parsed:
    return Parsed(
        document=Document(response=response(**answer), path=Path("body"), body_bytes=9, content_hash="new"),
        path=Path("rows"),
        header=FeedHeader(
            format="rss20",
            title=None,
            link=None,
            charset="utf-8",
            charset_rule="utf-8",
            hints=hints or PublisherHints(),
        ),
        items_seen=items,
        duplicate_guids=0,
        dropped_items=0,
        bad_dates=(),
    )


def failure(**fields: Any) -> Failure:
    return Failure(**{"kind": "http_status", "message": "503", "status": 503, **fields})


KINDS = {
    Parsed: "interval",
    NotModified: "interval",
    Failure: "failure",
    OnHold: "hold",
    CutOff: "our_outage",
}
HOST_HOLD = HostHold(host="a.example", until=NOW + 5 * HOUR, reason="429")


@pytest.mark.parametrize(
    ("outcome", "delay", "reason"),
    [
        # A document: its own hints, and no longer those of the one before.
        (parsed(), HOUR, "every hour: set by the operator"),
        (parsed(PublisherHints(ttl=2 * HOUR)), 2 * HOUR, "ttl 2 h"),
        (parsed(PublisherHints(max_age=7200)), 2 * HOUR, "max-age 2 h"),
        (parsed(retry_after=7200), 2 * HOUR, "Retry-After 2 h"),
        # A 304: the hints of the stored document, and what the answer's head says.
        (NotModified(response=response(status=304)), 3 * HOUR, "ttl 3 h"),
        (NotModified(response=response(status=304, max_age=18_000)), 5 * HOUR, "max-age 5 h"),
        (NotModified(response=response(status=304, retry_after=18_000)), 5 * HOUR, "Retry-After 5 h"),
        (failure(), HOUR / 2, "failure 1 in a row: 30 min"),
        (failure(kind="gone", status=410), DAY, "410 Gone waits 24 h"),
        (failure(kind="rate_limited", retry_after=7200), 2 * HOUR, "a wait of 2 h"),
        (OnHold(hold=HOST_HOLD), 5 * HOUR, "2026-02-18T13:30:00Z: 429"),
        (
            OnHold(hold=FeedHold(feed_id="f", host="b.example", until=NOW + 5 * HOUR, reason="503")),
            5 * HOUR,
            "b.example",
        ),
        (CutOff(message="no route to host"), 5 * MINUTE, "our network was down"),
    ],
    ids=[
        "a document",
        "a document that asks for a slower pace",
        "a document that stays fresh",
        "a document with Retry-After",
        "not modified",
        "not modified and fresh for longer",
        "not modified with Retry-After",
        "a failure",
        "gone",
        "rate limited",
        "on hold by its host",
        "on hold by another host",
        "our own outage",
    ],
)
def test_when_and_why_by_outcome(outcome: Outcome, delay: timedelta, reason: str) -> None:
    ending = after_visit(feed(), outcome, now=NOW)
    # Spread by a few per cent of the feed's own.
    assert abs(ending.next.at - NOW - delay) <= 0.035 * delay
    assert reason in ending.next.reason
    assert ending.next.kind == KINDS[type(outcome)]


NO_VALIDATORS: dict[str, Any] = {"etag": None, "last_modified": None}


@pytest.mark.parametrize(
    ("answer", "fields", "least"),
    [
        (NO_VALIDATORS, {}, HOUR),
        ({"etag": '"1"', "conditional": True}, {}, HOUR),
        # They will be sent next time.
        ({"etag": '"1"'}, {}, HOUR / 4),
        ({"last_modified": "Mon, 02 Mar 2026 10:00:00 GMT"}, {}, HOUR / 4),
        # The interval is not `auto`'s.
        (NO_VALIDATORS, {"interval": HOUR / 2}, HOUR / 2),
        (NO_VALIDATORS, {"wished_interval": HOUR / 3, "auto_is_wished": True}, HOUR / 3),
        # Items were missed.
        (NO_VALIDATORS, {"gaps": GapHistory(count=1, last_at=NOW, halvings=1, halved_at=NOW)}, HOUR / 2),
    ],
)
def test_auto_visits_hourly_at_most_where_the_same_bytes_come_whole_again(
    answer: dict[str, Any], fields: dict[str, Any], least: timedelta
) -> None:
    busy = PublisherHints(updates=tuple(NOW - number * MINUTE for number in range(1, 200)))
    for id in "abcdefgh":
        visited = make_feed(id, URL, "a.example", hints=busy, **{"interval": None, **fields})
        again = NotModified(response=response(**answer), body_bytes=900)
        delay = after_visit(visited, again, now=NOW).next.at - NOW
        assert abs(delay - least) <= 0.031 * least
        assert delay >= least or "wished_interval" in fields or "interval" in fields
        fresh = after_visit(visited, NotModified(response=response(status=304)), now=NOW).next
        assert least < HOUR or fresh.at - NOW < HOUR, "a 304 costs next to nothing"


def test_a_failure_waits_for_the_hold_of_its_host() -> None:
    ending = after_visit(feed(), failure(kind="rate_limited"), now=NOW, hold=HOST_HOLD)
    assert ending.next.at == HOST_HOLD.until


@pytest.mark.parametrize(
    ("outcome", "address"),
    [
        (parsed(), HERE),
        (parsed(moved_to=SECURE), FeedAddress(host="a.example", fetch_url=SECURE)),
        (NotModified(response=response(moved_to=SECURE)), FeedAddress(host="a.example", fetch_url=SECURE)),
        (
            parsed(moved_to="http://b.example/"),
            FeedAddress(host="a.example", move_url="http://b.example/", move_since=NOW),
        ),
        (failure(), HERE),
        (OnHold(hold=HOST_HOLD), HERE),
        (CutOff(), HERE),
    ],
    ids=[
        "a document",
        "upgraded",
        "upgraded by a 304",
        "moved for the first time",
        "a failure",
        "on hold",
        "outage",
    ],
)
def test_where_by_outcome(outcome: Outcome, address: FeedAddress) -> None:
    assert after_visit(feed(), outcome, now=NOW).address == address


def test_an_adopted_address_without_a_feed_is_given_up_after_three_failures_and_three_days() -> None:
    adopted = {"fetch_url": "http://b.example/", "last_success_at": NOW - 4 * DAY}
    gone = failure(kind="gone", status=410)
    for in_a_row, address in ((1, "http://b.example/"), (2, None)):
        known = feed(in_a_row=in_a_row, **adopted)
        assert after_visit(known, gone, now=NOW).address.fetch_url == address
        assert after_visit(known, CutOff(), now=NOW).address == known.address


REGULAR = {"interval": None, "items_listed": 10, "last_success_at": NOW - HOUR, "planned_at": NOW}


def test_a_document_that_may_show_a_gap_has_a_second_ending_with_half_the_interval() -> None:
    ending = after_visit(feed(**REGULAR), parsed(), now=NOW)
    assert ending.if_gap is not None
    assert ending.if_gap.gaps == GapHistory(count=1, last_at=NOW, halvings=1, halved_at=NOW)
    assert ending.if_gap.next.at - NOW < 0.6 * (ending.next.at - NOW)
    assert "halved once" in ending.if_gap.next.reason
    assert "halved" not in ending.next.reason


@pytest.mark.parametrize(
    ("known", "outcome"),
    [
        ({"items_listed": None}, parsed()),
        ({"in_a_row": 1}, parsed()),
        ({}, parsed(items=1)),
        ({}, NotModified(response=response())),
        ({}, failure()),
        ({}, OnHold(hold=HOST_HOLD)),
        ({}, CutOff()),
    ],
    ids=[
        "first document",
        "after a failure",
        "a single item",
        "not modified",
        "failure",
        "on hold",
        "outage",
    ],
)
def test_no_other_ending_has_a_gap(known: dict[str, Any], outcome: Outcome) -> None:
    assert after_visit(feed(**{**REGULAR, **known}), outcome, now=NOW).if_gap is None
