"""The contract of collector.parse.dates: what is wholly understood is an instant in UTC, all else is None."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.parse.dates.read import MONTHS, has_impossible_zone, named_months, parse_date

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
    # Cut names, also where two languages have one name for two months: the weekday says which it is.
    "Ke, 28 Lok 2026 11:34:37 +0000": "2026-10-28T11:34:37",
    "Ke, 4 Mar 2026 11:34:37 +0200": "2026-11-04T09:34:37",
    "keskiviikkona 28. lokakuuta 2026 klo 11.34": "2026-10-28T11:34:00",
    "uto, 27 lis 2026 11:34": "2026-10-27T11:34:00",
    "wt, 24 lis 2026 11:34": "2026-11-24T11:34:00",
    "po, 3 srp 2026 08:00:00 +0200": "2026-08-03T06:00:00",
    "Sze, 28 Szep 2025 11:34:37 +0200": "2025-09-28T09:34:37",
    "2026. október 28., szerda 11:34": "2026-10-28T11:34:00",
    "2026. márc. 5.": "2026-03-05T00:00:00",
    "2026. október 28-án": "2026-10-28T00:00:00",
    "2026 m. spalio 28 d. 11:34": "2026-10-28T11:34:00",
    "tors, 29 okt 2026 11:34": "2026-10-29T11:34:00",
    "joi, 29 iun 2026 11:34": "2026-06-29T11:34:00",
    "Чет, 29 Окт 2026 11:34:00 +0100": "2026-10-29T10:34:00",
    "dimecres, 1 d'abril de 2026": "2026-04-01T00:00:00",
    "N, 29 veebr 2024": "2024-02-29T00:00:00",
    # A zero too many.
    "Mon, 02 Nov 2026 012:31:50 +0100": "2026-11-02T11:31:50",
    "2026-11-02T12:031:050Z": "2026-11-02T12:31:50",
    # An offset that no place has: the clock is right by half a day, and no date would be wrong by years.
    "Thu, 01 Jan 2004 19:48:21 -4400": "2004-01-01T19:48:21",
    "Thu, 01 Jan 2004 19:48:21 GMT+99": "2004-01-01T19:48:21",
    "2004-01-01T19:48:21+15:00": "2004-01-01T19:48:21",
    "2004-01-01T19:48:21+00:60": "2004-01-01T19:48:21",
    # Names of zones that leave the season open.
    "Wed, 15 Jan 2025 12:00:00 ET": "2025-01-15T17:00:00",
    "Tue, 15 Jul 2025 12:00:00 ET": "2025-07-15T16:00:00",
    "Tue, 15 Jul 2025 12:00:00 PT": "2025-07-15T19:00:00",
    "Tue, 15 Jul 2025 12:00 CT": "2025-07-15T17:00:00",
    "Tue, 15 Jul 2025 12:00 MT": "2025-07-15T18:00:00",
    # Signs and words between date and time.
    "5 November 2025 - 09:01": "2025-11-05T09:01:00",
    "Wed, 5 Nov 2025 – 09:01 +0100": "2025-11-05T08:01:00",
    "5.11.2025 — 9:01": "2025-11-05T09:01:00",
    "2025-11-05 - 09:01:30Z": "2025-11-05T09:01:30",
    "November 5, 2025 | 9:01 PM": "2025-11-05T21:01:00",
    "November 5, 2025 at 9:01 PM EST": "2025-11-06T02:01:00",
    "5 November 2025 at 09:01": "2025-11-05T09:01:00",
    "5 November 2025, at 9am": "2025-11-05T09:00:00",
    "2025-11-05 at 09:01": "2025-11-05T09:01:00",
    "Nov 5, 2025 @ 9:01 am": "2025-11-05T09:01:00",
    "2025-11-05 @ 09:01": "2025-11-05T09:01:00",
    "5.11.2025@09:01": "2025-11-05T09:01:00",
    "2025-11-05, 09:01": "2025-11-05T09:01:00",
    "5. November 2025 um 9:01 Uhr": "2025-11-05T09:01:00",
    "Mittwoch, den 5. November 2025, um 09.01 Uhr": "2025-11-05T09:01:00",
    "Mi, 05.11.2025 um 9 Uhr": "2025-11-05T09:00:00",
    "5. November 2025, 09:01:30 Uhr MEZ": "2025-11-05T08:01:30",
    "5 novembre 2025 à 09:01": "2025-11-05T09:01:00",
    "mercredi 5 novembre 2025 à 9h01": "2025-11-05T09:01:00",
    "le 5 novembre 2025 à 9 h 01 min": "2025-11-05T09:01:00",
    "5 novembre 2025 à 9h": "2025-11-05T09:00:00",
    "miércoles, 5 de noviembre de 2025 a las 9:01 p. m.": "2025-11-05T21:01:00",
    "5 de noviembre del 2025 a las 9:01 h": "2025-11-05T09:01:00",
    "5 de novembro de 2025 às 9h01": "2025-11-05T09:01:00",
    "1º de novembro de 2025 às 09:01": "2025-11-01T09:01:00",
    "5 novembre 2025 alle ore 9.01": "2025-11-05T09:01:00",
    "5 novembre 2025 ore 9:01": "2025-11-05T09:01:00",
    "woensdag 5 november 2025 om 9:01 uur": "2025-11-05T09:01:00",
    "5 listopada 2025 o godz. 9:01": "2025-11-05T09:01:00",
    "5 ноября 2025 в 9:01": "2025-11-05T09:01:00",
    "5 Νοεμβρίου 2025 στις 9:01": "2025-11-05T09:01:00",
    "5 Kasım 2025 saat 9:01": "2025-11-05T09:01:00",
    "05.11.2025 kl. 09.01": "2025-11-05T09:01:00",
    # Two zones that mean the same.
    "2017-08-01 13:55:44.364419679 +0200 CEST": "2017-08-01T11:55:44",
    "2017-08-01 13:55:44.364 +0000 UTC m=+0.012345": "2017-08-01T13:55:44",
    "Wed, 05 Nov 2025 09:01:00 +0100 CET": "2025-11-05T08:01:00",
    "Wed, 05 Nov 2025 09:01:00 CET +0100": "2025-11-05T08:01:00",
    "Wed, 05 Nov 2025 09:01:00 +0800 CST": "2025-11-05T01:01:00",
    "Wed, 05 Nov 2025 09:01:00 -0600 CST": "2025-11-05T15:01:00",
    "Wed, 05 Nov 2025 09:01:00 -0500 ET": "2025-11-05T14:01:00",
    "2025-11-05 09:01:00 +0300 +03": "2025-11-05T06:01:00",
    "Wed Nov  5 09:01:00 +0100 CET 2025": "2025-11-05T08:01:00",
    "2025-11-05T09:01:00+01:00[Europe/Berlin]": "2025-11-05T08:01:00",
    "2025-07-05T09:01:00.5+02:00[Europe/Berlin]": "2025-07-05T07:01:00",
    "2025-11-05T09:01:00+00:00Z": "2025-11-05T09:01:00",
    "5 ноября 2025 г., 09:01": "2025-11-05T09:01:00",
    "5 ноября 2025 г. в 09:01": "2025-11-05T09:01:00",
    "2025-11-05T09:01:00Z[UTC]": "2025-11-05T09:01:00",
    "2025-11-05T09:01:00+01:00[GMT+01:00]": "2025-11-05T08:01:00",
    "2025-11-05 09:01 Europe/Berlin": "2025-11-05T08:01:00",
    "Wed, 05 Nov 2025 09:01:00 America/New_York": "2025-11-05T14:01:00",
    "2025-11-05 9:01 PM America/Argentina/Buenos_Aires": "2025-11-06T00:01:00",
    "2025-11-05 09:01 [America/Argentina/Buenos_Aires]": "2025-11-05T12:01:00",
    "2025-10-26 02:30:00+02:00[Europe/Berlin]": "2025-10-26T00:30:00",
    "2025-10-26 02:30:00+01:00[Europe/Berlin]": "2025-10-26T01:30:00",
    # Numbers of one digit.
    "Thu, 02 Sep 2021 20:0:0 Z": "2021-09-02T20:00:00",
    "2 Sep 2021 8:5": "2021-09-02T08:05:00",
    "2021-9-2T8:5:3Z": "2021-09-02T08:05:03",
    "2.9.2021 8:5:3 +0200": "2021-09-02T06:05:03",
    # The end of a day.
    "Wed, 31 Dec 2025 24:00:00 GMT": "2026-01-01T00:00:00",
    "2025-11-05T24:00:00.000+01:00": "2025-11-05T23:00:00",
    "2025-11-05 24:00": "2025-11-06T00:00:00",
    "20251105T240000Z": "2025-11-06T00:00:00",
    "2025年11月5日 24:00": "2025-11-06T00:00:00",
    # Halves of a day.
    "Sun, 15 Dec 2024 12:15 PM": "2024-12-15T12:15:00",
    "Sun, 15 Dec 2024 12:05 AM": "2024-12-15T00:05:00",
    "Sun, 15 Dec 2024 3:15 p.m.": "2024-12-15T15:15:00",
    "Dec 15, 2024 3:15:30 P.M. EST": "2024-12-15T20:15:30",
    "15.12.2024 3:15 p. m.": "2024-12-15T15:15:00",
    "2024-12-15 12:05 a.m.": "2024-12-15T00:05:00",
    "Fri, Jun 26 2026 10:04:03 AM": "2026-06-26T10:04:03",
    "Sun, 15 Dec 2024 15:15 PM": "2024-12-15T15:15:00",
    "Sun, 15 Dec 2024 00:15 AM": "2024-12-15T00:15:00",
    "2024年12月15日(日) 午後3:05": "2024-12-15T15:05:00",
    "2024년 12월 15일 (일) 오후 3시 5분": "2024-12-15T15:05:00",
    # Words around the day.
    "5th of November 2025": "2025-11-05T00:00:00",
    "Wednesday, the 5th of November, 2025 at 9:01": "2025-11-05T09:01:00",
    "1st of Nov 2025 09:01:00 GMT": "2025-11-01T09:01:00",
    # A weekday before numbers, or a number in its place.
    "Wed, 2025-11-05 09:01": "2025-11-05T09:01:00",
    "Mittwoch 2025-11-05": "2025-11-05T00:00:00",
    "mer. 2025/11/05 09:01": "2025-11-05T09:01:00",
    "Wed, 20251105T090100Z": "2025-11-05T09:01:00",
    "3, 05 Nov 2025 09:01:00 GMT": "2025-11-05T09:01:00",
    "0, 2025-11-02 09:01": "2025-11-02T09:01:00",
    "7, 2.11.2025": "2025-11-02T00:00:00",
    # A wrong weekday says nothing: the day of the month decides.
    "Sat, 12 Jan 2025 10:00:00 +0100": "2025-01-12T09:00:00",
    # Seconds and milliseconds since 1970.
    "1262304000": "2010-01-01T00:00:00",
    "1262304000.75": "2010-01-01T00:00:00",
    "1262304000123": "2010-01-01T00:00:00",
    "631152000": "1990-01-01T00:00:00",
    "1858000000": "2028-11-16T15:06:40",
    "20251105090130": "2025-11-05T09:01:30",
}
REFUSED = [
    "",
    "yesterday",
    "Tue, 30 Feb 2010 10:00:00 GMT",
    "2010-02-30",
    "Thu, 01 Jan 2004 25:48:21 GMT",
    "Thu, 01 Jan 2004 19:48:21 XYZ",
    "Thu, 01 Jan 2004 19:48:21 GMT and more",
    "Ma, 2 Mar 2026 11:34",
    "jeu, 4 jui 2026",
    "Thu, 01 Jan 2004 112:31:50 GMT",
    "Thu, 01 Jan 2004 19:48:21 -44000",
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
    "03/04/2025",
    "03/04/2025 at 09:01",
    "Mon, 03-04-2025 - 09:01",
    "631151999",
    "1890000000",
    "12623040000",
    "126230400012",
    "1890000000000",
    "-1262304000",
    "5 November 2025 at",
    "5 November 2025 - 9",
    "5 November 2025 at 9",
    "5 November 2025 9.01",
    "2025-11-05-09:00",
    "2025-11-05 -09:00",
    "5 November 2025 um 9:01 min",
    "5 November 2025 15:15 AM",
    "5 November 2025 0:15 PM",
    "5 November 2025 24:00 PM",
    "2025-11-05 24:01",
    "2025-11-05T24:00:00.001Z",
    "2025-11-05 9:60",
    "8, 05 Nov 2025 09:01:00 GMT",
    "Nov, 2025-11-05",
    "Wed, 05 Nov 2025 09:01:00 +0200 CET",
    "Wed, 05 Nov 2025 09:01:00 +0100 CEST",
    "Wed, 05 Nov 2025 09:01:00 +0100 XYZ",
    "2025-11-05T09:01:00+01:00Z",
    "Wed, 05 Nov 2025 09:01:00 CET EST",
    "2025-07-05T09:01:00+01:00[Europe/Berlin]",
    "2025-11-05T09:01:00Z[Europe/Berlin]",
    "2025-11-05T09:01:00Z[Europe/Atlantis]",
    "2025-11-05T09:01:00Z[../../etc/passwd]",
    "2025-10-26 02:30:00 Europe/Berlin",
    "2025-03-30 02:30:00 Europe/Berlin",
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


def test_an_offset_beyond_fourteen_hours_is_recognized() -> None:
    found = {raw for raw in READ if has_impossible_zone(raw)}
    assert found == {raw for raw in READ if raw.endswith(("-4400", "+99", "+15:00", "+00:60"))}
    assert not has_impossible_zone("Thu, 01 Jan 2004 19:48:21 +1400")


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


def test_no_name_means_two_months() -> None:
    assert len(set(named_months())) == len(MONTHS)


@given(st.text(max_size=120))
def test_no_text_makes_it_raise(raw: str) -> None:
    read = parse_date(raw, now=NOW)
    assert read is None or read.tzinfo is UTC
