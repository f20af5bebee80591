"""The contract of collector.dates: what is wholly understood is an instant in UTC, all else is None."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.parse.dates import parse_date

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

READ = {
    "Thu, 01 Jan 2004 19:48:21 GMT": "2004-01-01T19:48:21",
    "Thu,01 Jan 2004 19:48:21 GMT": "2004-01-01T19:48:21",
    "01 Jan 2004 19:48 +0800": "2004-01-01T11:48:00",
    "1 January 04 19:48:21 EST": "2004-01-02T00:48:21",
    "Thursday, 01 January 2004 19:48:21 -08:00": "2004-01-02T03:48:21",
    "Thu, 01-Jan-04 19:48:21 GMT": "2004-01-01T19:48:21",
    "Sun, 06 Nov 94 08:49:37 GMT": "1994-11-06T08:49:37",
    "Thu Jan  1 19:48:21 2004": "2004-01-01T19:48:21",
    "Thu Jan  1 19:48:21 CET 2004": "2004-01-01T18:48:21",
    "Thu Jan 01 2004 19:48:21 GMT+0800 (CST)": "2004-01-01T11:48:21",
    "Thu, 01 Jan 2004 19:48:21 JST": "2004-01-01T10:48:21",
    "Thu, 01 Jan 2004 19:48:21 KST": "2004-01-01T10:48:21",
    "Thu, 01 Jan 2004 19:48:21 CET": "2004-01-01T18:48:21",
    "Thu, 01 Jan 2004 19:48:21 +8": "2004-01-01T11:48:21",
    "Thu, 01 Jan 2004 19:48:21": "2004-01-01T19:48:21",
    "Wes, 18 Aug 2021 09:17:00 +0800": "2021-08-18T01:17:00",
    "Mon, 30 Jun 1997 23:59:60 GMT": "1997-06-30T23:59:59",
    "January 4, 2004 4:29 PM": "2004-01-04T16:29:00",
    "2016/6/29 15:07": "2016-06-29T15:07:00",
    "2016/6/29": "2016-06-29T00:00:00",
    "2004年1月1日": "2004-01-01T00:00:00",
    "2004年1月1日 10:05:06": "2004-01-01T10:05:06",
    "2004年1月1日 星期四 下午3:05": "2004-01-01T15:05:00",
    "2004-01-01": "2004-01-01T00:00:00",
    "2004-01-01T10:10:10Z": "2004-01-01T10:10:10",
    "2004-01-01 10:10:10.123456 +0800": "2004-01-01T02:10:10",
    "2004-01-01T10:10:10+08": "2004-01-01T02:10:10",
    "2004-01-01T10:10:10-0000": "2004-01-01T10:10:10",
    "20040101T101010Z": "2004-01-01T10:10:10",
    " \n2004-01-01T10:10Z\t": "2004-01-01T10:10:00",
    "Fri, 31 Dec 2027 00:00:00 GMT": "2027-12-31T00:00:00",
}
REFUSED = [
    "",
    "yesterday",
    "Tue, 30 Feb 2010 10:00:00 GMT",
    "2010-02-30",
    "Thu, 01 Jan 2004 25:48:21 GMT",
    "Thu, 01 Jan 2004 19:48:21 XYZ",
    "Thu, 01 Jan 2004 19:48:21 GMT and more",
    "Thu, 01 Jan 2004 19:48:21 +9900",
    "2004",
    "2004-01",
    "29/06/2016",
    "1262304000",
    "0000-00-00 00:00:00",
    "Wed, 31 Dec 1969 23:59:59 GMT",
    "1970-01-01T00:00:00+08:00",
    "Sat, 01 Jan 2028 00:00:00 GMT",
    "9999-12-31T23:59:59-14:00",
    "２００４-01-01",
    "1" * 5000,
]


@pytest.mark.parametrize(("raw", "expected"), READ.items(), ids=READ.keys())
def test_a_date_that_is_understood_is_an_instant_in_utc(raw: str, expected: str) -> None:
    read = parse_date(raw, now=NOW)
    assert read == datetime.fromisoformat(expected).replace(tzinfo=UTC)
    assert read is not None
    assert read.utcoffset() == timedelta(0)


@pytest.mark.parametrize("raw", REFUSED, ids=[raw[:50] or "empty" for raw in REFUSED])
def test_a_date_that_is_not_wholly_understood_is_none(raw: str) -> None:
    assert parse_date(raw, now=NOW) is None


def test_nothing_is_filled_in_from_today() -> None:
    later = NOW + timedelta(days=200)
    assert parse_date("2004年1月1日", now=NOW) == parse_date("2004年1月1日", now=later)


INSTANTS = st.datetimes(min_value=datetime(1970, 1, 3), max_value=datetime(2027, 12, 29)).map(  # noqa: DTZ001
    lambda each: each.replace(microsecond=0)
)
OFFSETS = st.integers(-12 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(INSTANTS, OFFSETS)
def test_what_is_written_in_a_standard_form_is_read_back(naive: datetime, zone: timezone) -> None:
    moment = naive.replace(tzinfo=zone)
    for written in (moment.isoformat(), moment.isoformat(" "), moment.strftime("%a, %d %b %Y %H:%M:%S %z")):
        assert parse_date(written, now=NOW) == moment


@given(st.text(max_size=120))
def test_no_text_makes_it_raise(raw: str) -> None:
    read = parse_date(raw, now=NOW)
    assert read is None or read.tzinfo is UTC
