"""The reader of a feed's date strings: an instant in UTC, or None.

No guessing: a string that is not completely understood gives None, and the caller decides what to use.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from rss_pipeline.collector.parse.dates.names import MONTHS, WEEKDAYS, folded

_EARLIEST = 1970
_LONGEST = 100

_ZONES: Mapping[str, float] = {
    "z": 0,
    "ut": 0,
    "utc": 0,
    "gmt": 0,
    "wet": 0,
    "west": 1,
    "bst": 1,
    "cet": 1,
    "met": 1,
    "cest": 2,
    "mest": 2,
    "eet": 2,
    "sast": 2,
    "eest": 3,
    "msk": 3,
    "trt": 3,
    "ist": 5.5,
    "wib": 7,
    "ict": 7,
    "hkt": 8,
    "sgt": 8,
    "pht": 8,
    "awst": 8,
    "jst": 9,
    "kst": 9,
    "acst": 9.5,
    "acdt": 10.5,
    "aest": 10,
    "aedt": 11,
    "nzst": 12,
    "nzdt": 13,
    "art": -3,
    "brt": -3,
    "ndt": -2.5,
    "nst": -3.5,
    "adt": -3,
    "ast": -4,
    "edt": -4,
    "est": -5,
    "cdt": -5,
    "cst": -6,
    "mdt": -6,
    "mst": -7,
    "pdt": -7,
    "pst": -8,
    "akdt": -8,
    "akst": -9,
    "hst": -10,
}
"""Hours east of UTC. CST is the American one, as RFC 822 has it."""
_ZONES_WITH_SUMMER: Mapping[str, str] = {
    "et": "America/New_York",
    "ct": "America/Chicago",
    "mt": "America/Denver",
    "pt": "America/Los_Angeles",
}
"""Names that leave open whether it is summer time: the date says so."""

# Of a weekday only the spelling is checked, for the day of the month decides.
_WEEKDAY = r"(?:(?P<weekday>[^\W\d_]{1,14})(?:[ -]feira)?\.?(?:\s*,\s*|\s+))?"
_MONTH = r"(?P<month>[^\W\d_]{3,14})\.?"
_DAY = r"(?P<day>[0-9]{1,2})"
_CLOCK = (
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{1,2})(?:[.,][0-9]{1,12})?)?"
    r"(?:\s*(?P<half>[ap]m))?"
)
_OFFSET = r"[+-][0-9]{1,2}(?::?[0-9]{2})?"
_ZONE = rf"(?:\s*(?P<zone>(?:gmt|utc|ut)?\s*{_OFFSET}|[a-z]{{1,4}})(?:\s*\([^()]*\))?)?"

# RFC 822 and 2822: day, month, year. Dashes as in RFC 850. Also `3. Januar 2025` and `3 de enero de 2025`.
_MAIL = (
    rf"{_WEEKDAY}{_DAY}(?:st|nd|rd|th|er|\.)?(?:\sde)?[\s-]+{_MONTH},?(?:\sde)?[\s-]+"
    rf"(?P<year>[0-9]{{4}}|[0-9]{{2}})(?:\s*,?\s*{_CLOCK}{_ZONE})?"
)
# Dots are written where the day comes first; slashes on both sides of the Atlantic, so they are not read.
_DOTTED = (
    rf"{_WEEKDAY}{_DAY}\.\s?(?P<month>[0-9]{{1,2}})\.\s?(?P<year>[0-9]{{4}})(?:\s*,?\s+{_CLOCK}{_ZONE})?"
)
# American order, and JavaScript's Date.toString().
_AMERICAN = (
    rf"{_WEEKDAY}{_MONTH}\s+{_DAY}(?:st|nd|rd|th)?(?:\s*,\s*|\s+)(?P<year>[0-9]{{4}})"
    rf"(?:\s*,?\s+{_CLOCK}{_ZONE})?"
)
# C's asctime() and date(1).
_ASCTIME = (
    rf"{_WEEKDAY}{_MONTH}\s+{_DAY}\s+{_CLOCK}(?:\s+(?P<zone>[a-z]{{2,4}}|{_OFFSET}))?\s+(?P<year>[0-9]{{4}})"
)
_ISO = (
    rf"(?P<year>[0-9]{{4}})(?P<dash>[-/.])(?P<month>[0-9]{{1,2}})(?P=dash){_DAY}"
    rf"(?:(?:\s*T\s*|\s+){_CLOCK}{_ZONE})?"
)
# W3CDTF's year, and year and month.
_ISO_SHORT = r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{2}))?"
_ISO_BASIC = (
    r"(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})"
    rf"(?:T(?P<hour>[0-9]{{2}}):?(?P<minute>[0-9]{{2}})(?::?(?P<second>[0-9]{{2}})(?:[.,][0-9]{{1,12}})?)?{_ZONE})?"
)
_CHINESE = (
    r"(?P<year>[0-9]{4})\s*[年년]\s*(?P<month>[0-9]{1,2})\s*[月월]\s*(?P<day>[0-9]{1,2})\s*[日号號일]"
    r"(?:\s*[(（]?(?:星期|周|週)[一二三四五六日天][)）]?)?"
    r"(?:\s*(?P<half>上午|下午)?\s*(?P<hour>[0-9]{1,2})\s*[::时時点點]\s*(?P<minute>[0-9]{1,2})"
    rf"(?:\s*[::分]\s*(?P<second>[0-9]{{1,2}})\s*秒?|\s*分)?{_ZONE})?"
)
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (_MAIL, _ISO, _AMERICAN, _ASCTIME, _DOTTED, _CHINESE, _ISO_BASIC, _ISO_SHORT)
)
_OFFSET_PARTS = re.compile(r"(?:gmt|utc|ut)?\s*([+-])([0-9]{1,2}?):?([0-9]{2})?", re.IGNORECASE)
_FURTHEST_EAST = timedelta(hours=14)


def parse_date(raw: str, *, now: datetime) -> datetime | None:
    """The instant of `raw`, aware and in UTC; None if any part of it is not understood.

    RFC 822 and its common variants, with names of months and weekdays in twelve languages, ISO 8601 with T or
    space, 2016/6/29, 29.6.2016, 2004年1月1日, each with or without a time; W3CDTF's year and year-month mean
    their first day. No zone means UTC. Refused: a date in which day and month could change places
    (06/05/2016), a day that is not in the calendar, a year before 1970 or later than the year after `now`, an
    unknown zone. Fractions of a second are cut.
    """
    text = " ".join(raw.replace("\xa0", " ").replace("：", ":").replace("\u202f", " ").split())
    if not text or len(text) > _LONGEST:
        return None
    for form in _FORMS:
        if found := form.fullmatch(text):
            moment = _moment(found.groupdict())
            break
    else:
        return None
    if moment is None or not _EARLIEST <= moment.year <= now.astimezone(UTC).year + 1:
        return None
    return moment


def _moment(part: Mapping[str, str | None]) -> datetime | None:
    month_name, year_digits = part["month"] or "", part["year"] or ""
    month = int(month_name or 1) if month_name.isdigit() or not month_name else MONTHS.get(folded(month_name))
    if part.get("weekday") and folded(part["weekday"] or "") not in WEEKDAYS:
        return None
    zone = _zone(part.get("zone"))
    hour = _hour(int(part.get("hour") or 0), part.get("half"))
    if month is None or zone is None or hour is None:
        return None
    year = int(year_digits)
    if len(year_digits) == 2:
        # RFC 2822, 4.3: 00 to 49 are in this century.
        year += 2000 if year < 50 else 1900
    second = int(part.get("second") or 0)
    try:
        local = datetime(
            year,
            month,
            int(part.get("day") or 1),
            hour,
            int(part.get("minute") or 0),
            # A leap second is the last one that datetime can hold.
            59 if second == 60 else second,
            tzinfo=zone,
        )
        return local.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _hour(hour: int, half: str | None) -> int | None:
    if half is None:
        return hour
    afternoon = half.lower() in ("pm", "下午")
    if half in ("上午", "下午"):
        return hour + 12 if afternoon and hour < 12 else hour
    return hour % 12 + (12 if afternoon else 0) if 1 <= hour <= 12 else None


def _zone(zone: str | None) -> tzinfo | None:
    if zone is None:
        return UTC
    if (place := _ZONES_WITH_SUMMER.get(zone.lower())) is not None:
        return ZoneInfo(place)
    if (hours := _ZONES.get(zone.lower())) is not None:
        return timezone(timedelta(hours=hours))
    if not (found := _OFFSET_PARTS.fullmatch(zone)):
        return None
    sign, hour_digits, minute_digits = found.groups()
    offset = timedelta(hours=int(hour_digits), minutes=int(minute_digits or 0))
    if offset > _FURTHEST_EAST or int(minute_digits or 0) > 59:
        return None
    return timezone(-offset if sign == "-" else offset)
