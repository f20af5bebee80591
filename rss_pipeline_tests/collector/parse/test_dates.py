"""The contract of collector.parse.dates: what is wholly understood is an instant in UTC, all else is None."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.parse.dates.names import MONTHS, named_months
from rss_pipeline.collector.parse.dates.read import parse_date

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
    "Thu, 01 Jan 2004 19:48:5 GMT": "2004-01-01T19:48:05",
    "2004": "2004-01-01T00:00:00",
    "2004-05": "2004-05-01T00:00:00",
    # Names in other languages, with and without accents, with the words that go between.
    "Sex, 03 Jan 2025 23:47:02 -0300": "2025-01-04T02:47:02",
    "mer, 16 nov 2022": "2022-11-16T00:00:00",
    "segunda-feira, 3 de fevereiro de 2025 10:00": "2025-02-03T10:00:00",
    "SAB, 30 AGO 2025 08:00:00 GMT": "2025-08-30T08:00:00",
    "miércoles, 1 de enero de 2025": "2025-01-01T00:00:00",
    "jeu., 06 févr. 2025 08:00:00 +0100": "2025-02-06T07:00:00",
    "jeu, 06 fevr 2025 08:00:00 +0100": "2025-02-06T07:00:00",
    "lun 1er août 2022": "2022-08-01T00:00:00",
    "gio, 02 gen 2025 08:00:00 +0100": "2025-01-02T07:00:00",
    "Mi, 05 Mär 2025 08:00:00 +0100": "2025-03-05T07:00:00",
    "Donnerstag, 2. Januar 2025, 08:00": "2025-01-02T08:00:00",
    "za, 01 mrt 2025 08:00:00 CET": "2025-03-01T07:00:00",
    "śr, 01 paź 2025 08:00:00 +0200": "2025-10-01T06:00:00",
    "1 października 2025": "2025-10-01T00:00:00",
    "Пт, 03 янв 2025 08:00:00 +0300": "2025-01-03T05:00:00",
    "3 мая 2025": "2025-05-03T00:00:00",
    "Παρ, 03 Ιαν 2025 08:00:00 +0200": "2025-01-03T06:00:00",
    "3 Μαΐου 2025": "2025-05-03T00:00:00",
    "szo, 01 márc 2025 08:00:00 +0100": "2025-03-01T07:00:00",
    "Çar, 01 Oca 2025 08:00:00 +0300": "2025-01-01T05:00:00",
    "1 AĞUSTOS 2025": "2025-08-01T00:00:00",
    # Dots: the day comes first.
    "03.01.2025": "2025-01-03T00:00:00",
    "3.1.2025 8:05": "2025-01-03T08:05:00",
    "Fr, 31.12.2021 23:59:59 +0100": "2021-12-31T22:59:59",
    # Names of zones that leave the season open.
    "Wed, 15 Jan 2025 12:00:00 ET": "2025-01-15T17:00:00",
    "Tue, 15 Jul 2025 12:00:00 ET": "2025-07-15T16:00:00",
    "Tue, 15 Jul 2025 12:00:00 PT": "2025-07-15T19:00:00",
    "Tue, 15 Jul 2025 12:00 CT": "2025-07-15T17:00:00",
    "Tue, 15 Jul 2025 12:00 MT": "2025-07-15T18:00:00",
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
    "2004-13",
    "2029",
    "29/06/2016",
    "06/05/2016",
    "06-05-2016",
    "Xyz, 01 Jan 2004 19:48:21 GMT",
    "Thu, 01 Foo 2004 19:48:21 GMT",
    "31.02.2025",
    "12.31.2025",
    "01.02.03",
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


def test_no_name_stands_for_two_months() -> None:
    assert len(set(named_months())) == len(MONTHS)


@given(st.text(max_size=120))
def test_no_text_makes_it_raise(raw: str) -> None:
    read = parse_date(raw, now=NOW)
    assert read is None or read.tzinfo is UTC
