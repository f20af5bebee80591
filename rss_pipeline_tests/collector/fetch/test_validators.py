"""Which validators are sent back, when a request goes without them, and what proves that they are false."""

from datetime import datetime, timedelta

import pytest

from rss_pipeline.collector.fetch.validators import may_be_true, sent_validators, unchecked_for
from rss_pipeline.collector.http.headers import Head, fresh_seconds
from rss_pipeline_tests.collector.fetch.rounds import NOW

CHANGED = "Tue, 17 Feb 2026 10:00:00 GMT"


@pytest.mark.parametrize(
    ("last_modified", "is_sent"),
    {
        CHANGED: True,
        "Mon, 01 Jan 1990 00:00:00 GMT": True,
        "Sun, 31 Dec 1989 23:59:59 GMT": False,
        "Thu, 01 Jan 1970 00:00:00 GMT": False,
        "Thursday, 01-Jan-70 00:00:00 GMT": False,
        "Thu Jan  1 00:00:00 1970": False,
        "Tue, 01 Jan 1980 00:00:01 GMT": False,
        "Mon, 01 Jan 0001 00:00:00 GMT": False,
        "Mon Jan  1 00:00:00 0001": False,
        "Wed, 30 Nov -0001 00:00:00 GMT": False,
        "Sat, 00 Jan 0000 00:00:00 GMT": False,
        "Thu, 19 Feb 2026 08:30:00 GMT": True,
        "Thu, 19 Feb 2026 08:30:01 GMT": False,
        "Sat, 16 Nov 2041 19:11:00 GMT": False,
        "Fri, 31 Dec 9999 23:59:59 -0800": False,
        "Fri, 31 Dec 12026 23:59:59 GMT": False,
        "edition 5": True,
        "0": True,
    }.items(),
)
def test_a_date_that_cannot_be_true_is_not_sent_and_what_is_no_date_is(
    last_modified: str, is_sent: bool
) -> None:
    assert may_be_true(last_modified, dated=NOW) is is_sent
    sent = sent_validators('"1"', last_modified, dated=NOW)
    assert [name for name, _ in sent] == [b"If-None-Match", *[b"If-Modified-Since"] * is_sent]


@pytest.mark.parametrize("etag", ["", '""', 'W/""', None])
def test_an_etag_without_a_character_is_not_sent_and_the_date_beside_it_is(etag: str | None) -> None:
    assert sent_validators(etag, CHANGED, dated=NOW) == [(b"If-Modified-Since", CHANGED.encode())]


def test_the_first_year_of_an_expiry_is_past() -> None:
    head = Head([(b"Expires", b"Mon, 01 Jan 0001 00:00:00 GMT")])
    assert fresh_seconds(head, now=NOW) == 0


def times(*days: float) -> list[datetime]:
    return [NOW - timedelta(days=each) for each in days]


@pytest.mark.parametrize(
    ("updates", "days"),
    [
        (times(), 30),
        (times(1), 30),
        (times(1, 1), 30),
        (times(0, 0.1, 0.2, 9), 7),
        (times(0, 3, 6, 8, 30), 12),
        (times(0, 20), 30),
    ],
)
def test_validators_are_checked_after_four_usual_gaps_between_a_week_and_a_month(
    updates: list[datetime], days: int
) -> None:
    assert unchecked_for(updates) == timedelta(days=days)
