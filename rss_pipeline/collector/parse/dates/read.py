"""The reader of a feed's date strings: an instant in UTC, or None.

No guessing: a string that is not completely understood gives None, and the caller decides what to use.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

_EARLIEST = 1970
_LONGEST = 100
_EARLIEST_NUMBER = datetime(1990, 1, 1, tzinfo=UTC)
"""A smaller number of seconds is more likely an id."""
_LATEST_NUMBER = timedelta(days=2 * 365)
"""From now."""

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
    "mez": 1,
    "cest": 2,
    "mest": 2,
    "mesz": 2,
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

_ELSEWHERE: Mapping[str, tuple[float, ...]] = {
    "ast": (3,),
    "bst": (6,),
    "cdt": (-5, -4),
    "cst": (8, -5),
    "edt": (11,),
    "est": (10,),
    "ist": (1, 2),
    "mst": (8,),
    "pst": (8,),
}
"""Hours of other zones with the same name: the offset that the name is beside decides (`+0800 CST`)."""

# Of a weekday only the spelling is checked, for the day of the month decides.
_ARTICLE = r"(?:the|le|am|den|el|il)\s+"
_WEEKDAY = (
    rf"(?:(?:(?!{_ARTICLE})(?P<weekday>[^\W\d_]{{1,14}})(?:[ -]feira)?\.?(?:\s*,\s*|\s+)|[0-7]\s*,\s*))?"
    rf"(?:{_ARTICLE})?"
)
_MONTH = r"(?P<month>[^\W\d_]{3,14})\.?"
_DAY = r"(?P<day>[0-9]{1,2})"
# Between date and time. A dash has spaces around it: `2025-11-05-09:00` is a date with a zone.
_AT = (
    r"(?:\s*,?\s+(?:[-–—|·/]|(?P<at>at|um|om|à|a(?:\s+las?)?|às?|as|alle(?:\s+ore)?|ore|o(?:\s+godz\.?)?|godz\.?"
    r"|в|στις|saat|kl\.?|klo))\s+|\s*@\s*)"
)
# The first letters of America/New_York are no half of a day. Some write a zero too many: `012:31:50`.
_CLOCK = (
    r"(?P<hour>0?[0-9]{1,2})(?:(?P<mark>[:.]|\s?h\s?)(?P<minute>0?[0-9]{1,2})"
    r"(?:(?P=mark)(?P<second>0?[0-9]{1,2})(?:[.,](?P<fraction>[0-9]{1,12}))?)?)?"
    r"(?:\s*(?P<half>[ap](?:m|\.\s?m)\.?)(?![a-z]{0,14}/)"
    r"|\s*(?P<unit>(?:uhr|uur|min|hs?|hrs|hours|horas|heures)(?![^\W\d_])))?"
)
_OFFSET = r"[+-][0-9]{1,2}(?::?[0-9]{2})?"
_REGION = r"[a-z]{2,14}(?:/[a-z0-9_+-]{2,20}){1,2}"
# The second zone says the same as the first: Go, Java and many scripts write both. Go adds its own clock.
_SAME_ZONE = (
    rf"(?:(?:\s+|(?=z\Z))(?P<same>{_OFFSET}|[a-z]{{1,5}}|{_REGION})"
    r"|\s*\[(?P<bracket>[a-z0-9:/_+-]{1,40})\])"
)
_ZONE = (
    rf"(?:\s*(?P<zone>(?:gmt|utc|ut)?\s*{_OFFSET}|{_REGION}|[a-z]{{1,4}})(?:\s*\([^()]*\))?{_SAME_ZONE}?"
    rf"(?:\sm=[+-][0-9.]{{1,30}})?|\s*\[(?P<alone>[a-z0-9:/_+-]{{1,40}})\])?"
)

# RFC 822 and 2822: day, month, year. Dashes as in RFC 850. Also `3. Januar 2025` and `3 de enero de 2025`.
_MAIL = (
    rf"{_WEEKDAY}{_DAY}(?:st|nd|rd|th|er|e|º|°|\.)?(?:\s(?:de|of))?[\s-]+(?:d['’])?{_MONTH},?(?:\s(?:del?|of))?[\s-]+"
    rf"(?P<year>[0-9]{{4}}|[0-9]{{2}})(?:\s?г\.)?(?:(?:\s*,?\s+|\s*,|(?=[0-9]+:[0-9]{{2}})|{_AT}){_CLOCK}{_ZONE})?"
)
# Hungarian (`2026. október 28., szerda`, `2026. október 28-án`) and Lithuanian (`2026 m. spalio 28 d.`).
_YEAR_FIRST = (
    rf"(?P<year>[0-9]{{4}})\.?\s+(?:m\.\s*)?{_MONTH}\s+{_DAY}(?:\.|-[^\W\d_]{{1,3}})?(?:\s?d\.)?"
    rf"(?:,?\s+(?P<weekday>[^\W\d_]{{1,14}})\.?)?(?:(?:\s*,?\s+|{_AT}){_CLOCK}{_ZONE})?"
)
# Dots are written where the day comes first; slashes on both sides of the Atlantic, so they are not read.
_DOTTED = (
    rf"{_WEEKDAY}{_DAY}\.\s?(?P<month>[0-9]{{1,2}})\.\s?(?P<year>[0-9]{{4}})"
    rf"(?:(?:\s*,?\s+|{_AT}){_CLOCK}{_ZONE})?"
)
# American order, and JavaScript's Date.toString().
_AMERICAN = (
    rf"{_WEEKDAY}{_MONTH}\s+{_DAY}(?:st|nd|rd|th)?(?:\s*,\s*|\s+)(?P<year>[0-9]{{4}})"
    rf"(?:(?:\s*,?\s+|{_AT}){_CLOCK}{_ZONE})?"
)
# C's asctime() and date(1).
_ASCTIME = (
    rf"{_WEEKDAY}{_MONTH}\s+{_DAY}\s+{_CLOCK}(?:\s+(?P<zone>[a-z]{{2,4}}|{_OFFSET}){_SAME_ZONE}?)?"
    r"\s+(?P<year>[0-9]{4})"
)
_ISO = (
    rf"{_WEEKDAY}(?P<year>[0-9]{{4}})(?P<dash>[-/.])(?P<month>[0-9]{{1,2}})(?P=dash){_DAY}"
    rf"(?:(?:\s*T\s*|,?\s+|{_AT}){_CLOCK}{_ZONE})?"
)
# W3CDTF's year, and year and month.
_ISO_SHORT = r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{2}))?"
_ISO_BASIC = (
    rf"{_WEEKDAY}(?P<year>[0-9]{{4}})(?P<month>[0-9]{{2}})(?P<day>[0-9]{{2}})(?:[T ]?(?P<hour>[0-9]{{2}})"
    rf":?(?P<minute>[0-9]{{2}})(?::?(?P<second>[0-9]{{2}})(?:[.,](?P<fraction>[0-9]{{1,12}}))?)?{_ZONE})?"
)
_CHINESE = (
    r"(?P<year>[0-9]{4})\s*[年년]\s*(?P<month>[0-9]{1,2})\s*[月월]\s*(?P<day>[0-9]{1,2})\s*[日号號일]"
    r"(?:\s*[(（]?(?:星期|周|週)[一二三四五六日天][)）]?|\s*[(（][月火水木金土日월화수목금토일][)）])?"
    r"(?:\s*(?P<half>上午|下午|午前|午後|오전|오후)?\s*(?P<hour>[0-9]{1,2})\s*[::时時点點시]\s*(?P<minute>[0-9]{1,2})"
    rf"(?:\s*[::分분]\s*(?P<second>[0-9]{{1,2}})\s*[秒초]?|\s*[分분])?{_ZONE})?"
)
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (_MAIL, _ISO, _AMERICAN, _ASCTIME, _DOTTED, _CHINESE, _ISO_BASIC, _ISO_SHORT, _YEAR_FIRST)
)
_ENGLISH = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_USUAL = re.compile(
    rf"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), )?([0-9]{{1,2}}) ({'|'.join(_ENGLISH)}) ([0-9]{{4}})"
    " ([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]) (?:GMT|UTC|Z|([+-])(0[0-9]|1[0-3])([0-5][0-9]))"
)
"""RFC 2822 as it is usually written, which is read in a third of the time."""
_NUMBER = re.compile(r"(?P<seconds>[0-9]{9,10})(?:\.[0-9]{1,9})?|(?P<milliseconds>[0-9]{13})")
_OFFSET_PARTS = re.compile(r"(?:gmt|utc|ut)?\s*([+-])([0-9]{1,2}?):?([0-9]{2})?", re.IGNORECASE)
_FAR_OFFSET = re.compile(
    r":[0-9.]++\s{0,9}(?:gmt|utc?)?\s{0,9}[+-](?:1[4-9]|[2-9][0-9]|[0-9]{1,2}:[6-9]|[0-9]{2}[6-9])",
    re.IGNORECASE,
)
_FURTHEST_EAST = timedelta(hours=14)


def parse_date(raw: str, *, now: datetime) -> datetime | None:
    """The instant of `raw`, aware and in UTC; None if any part of it is not understood.

    RFC 822 and its common variants, with names of months and weekdays in the languages below, ISO 8601 with T
    or space, 2016/6/29, 29.6.2016, 2004年1月1日, each with or without a time; W3CDTF's year and year-month
    mean their first day. Between date and time may be a word (`at`, `um 10 Uhr`, `à 10h30`). No zone means
    UTC, as does an offset that no place on Earth has (`has_impossible_zone`); of two zones, both have to mean
    the same. A number of 9 or 10 digits is seconds since 1970, one of 13 milliseconds, from 1990 to two years
    after `now`. Refused: a date in which day and month could change places (06/05/2016), a day that is not in
    the calendar, a year before 1970 or later than the year after `now`, an unknown zone, a time that a region
    has twice. Fractions of a second are cut.
    """
    text = _spaced(raw)
    if not text or len(text) > _LONGEST:
        return None
    if usual := _USUAL.fullmatch(text):
        moment = _usual_moment(usual)
    elif number := _NUMBER.fullmatch(text):
        return _instant_of_number(number, now)
    else:
        found = next((found for form in _FORMS if (found := form.fullmatch(text))), None)
        moment = None if found is None else _moment(found.groupdict())
    if moment is None or not _EARLIEST <= moment.year <= now.astimezone(UTC).year + 1:
        return None
    return moment


def _spaced(raw: str) -> str:
    text = " ".join(raw.replace("\xa0", " ").replace("：", ":").replace("\u202f", " ").split())
    return text[: _LONGEST + 1]


def has_impossible_zone(raw: str) -> bool:
    """Return True if a date that is read has an offset beyond 14 hours, such as `-4400`: its clock is taken
    for UTC, because the day is right, and without a date an old item would look new."""
    if not _FAR_OFFSET.search(raw, 0, _LONGEST):
        return False
    text = _spaced(raw)
    found = next((found for form in _FORMS if (found := form.fullmatch(text))), None)
    return found is not None and any(map(_is_impossible, _named_zones(found.groupdict())))


def _instant_of_number(number: re.Match[str], now: datetime) -> datetime | None:
    seconds = int(number["seconds"] or number["milliseconds"][:-3])
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment if _EARLIEST_NUMBER <= moment <= now.astimezone(UTC) + _LATEST_NUMBER else None


def _usual_moment(found: re.Match[str]) -> datetime | None:
    day, month, year, hour, minute, second, sign, hours, minutes = found.groups()
    try:
        local = datetime(  # noqa: DTZ001 - the offset is subtracted
            int(year), _ENGLISH.index(month) + 1, int(day), int(hour), int(minute), int(second)
        )
    except ValueError:
        return None
    if sign is None:
        return local.replace(tzinfo=UTC)
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    try:
        return (local + offset if sign == "-" else local - offset).replace(tzinfo=UTC)
    except OverflowError:
        return None


def _moment(part: Mapping[str, str | None]) -> datetime | None:
    month_name, year_digits = part["month"] or "", part["year"] or ""
    weekday = folded(part.get("weekday") or "")
    if month_name.isdigit() or not month_name:
        month: int | None = int(month_name or 1)
    else:
        month = _month(folded(month_name), weekday)
    if weekday and weekday not in WEEKDAYS and weekday not in _WEEKDAYS_CUT:
        return None
    hour, minute, second = (int(part.get(name) or 0) for name in ("hour", "minute", "second"))
    hour_of_day = _hour(hour, part.get("half"))
    if month is None or hour_of_day is None or not _is_clock(part):
        return None
    year = int(year_digits)
    if len(year_digits) == 2:
        # RFC 2822, 4.3: 00 to 49 are in this century.
        year += 2000 if year < 50 else 1900
    is_end_of_day = hour_of_day == 24 and not (minute or second or int(part.get("fraction") or 0))
    try:
        local = datetime(  # noqa: DTZ001 - its zone may depend on it
            year,
            month,
            int(part.get("day") or 1),
            0 if is_end_of_day else hour_of_day,
            minute,
            # A leap second is the last one that datetime can hold.
            59 if second == 60 else second,
        )
        local += timedelta(days=is_end_of_day)
        zone = _zone_of(part, local)
        return None if zone is None else local.replace(tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _is_clock(part: Mapping[str, str | None]) -> bool:
    """Return False for a number that nothing shows to be an hour, or to have minutes behind its dot."""
    if part.get("hour") is None or "mark" not in part:
        return True
    mark = (part["mark"] or "").strip().lower()
    if (part["unit"] or "").lower() == "min":
        return mark == "h"
    if part["unit"] or part["half"]:
        return True
    return mark in (":", "h") or (mark == "." and part.get("at") is not None)


def _hour(hour: int, half: str | None) -> int | None:
    """The hour of the day; None where the half of the day says something else."""
    if half is None:
        return hour
    if half in ("上午", "下午", "午前", "午後", "오전", "오후"):
        return hour + 12 if half in ("下午", "午後", "오후") and hour < 12 else hour
    afternoon = half[0] in "pP"
    if 1 <= hour <= 12:
        return hour % 12 + (12 if afternoon else 0)
    return hour if (12 < hour < 24 if afternoon else hour == 0) else None


def _zone_of(part: Mapping[str, str | None], local: datetime) -> tzinfo | None:
    """The zone of a local time; None for an unknown one, and where two zones do not agree."""
    named = [name for name in _named_zones(part) if not _is_impossible(name)]
    if not named:
        return UTC
    # An offset says what it means; a name may be that of several zones.
    named.sort(key=lambda name: _OFFSET_PARTS.fullmatch(name) is None)
    zone = _zone(named[0])
    if zone is None:
        return None
    offset = local.replace(tzinfo=zone).utcoffset()
    if any(offset not in _offsets(name, local) for name in named[1:]):
        return None
    is_region = len(named) == 1 and "/" in named[0]
    return None if is_region and len(_offsets(named[0], local)) > 1 else zone


def _named_zones(part: Mapping[str, str | None]) -> list[str]:
    return [name for key in ("zone", "same", "bracket", "alone") if (name := part.get(key))]


def _is_impossible(zone: str) -> bool:
    """Return True for an offset beyond 14 hours, or with more than 59 minutes."""
    if not (found := _OFFSET_PARTS.fullmatch(zone)):
        return False
    offset = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
    return offset > _FURTHEST_EAST or int(found[3] or 0) > 59


def _offsets(name: str, local: datetime) -> set[timedelta | None]:
    """All that a zone may mean at a local time: two offsets where its clocks are turned back."""
    further = {timedelta(hours=hours) for hours in _ELSEWHERE.get(name.lower(), ())}
    if (zone := _zone(name)) is None:
        return set(further)
    return {local.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1)} | further


def _zone(name: str) -> tzinfo | None:
    if (place := _ZONES_WITH_SUMMER.get(name.lower())) is not None:
        return ZoneInfo(place)
    if (hours := _ZONES.get(name.lower())) is not None:
        return timezone(timedelta(hours=hours))
    if not (found := _OFFSET_PARTS.fullmatch(name)):
        return _region(name)
    offset = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
    return timezone(-offset if found[1] == "-" else offset)


def _region(name: str) -> tzinfo | None:
    """The zone with this name in the tz database, such as Europe/Berlin."""
    if "/" not in name:
        return None
    try:
        return ZoneInfo(name)
    # A name of no zone: ZoneInfo looks for a file.
    except (KeyError, ValueError, OSError):
        return None


# Names of months and weekdays in the languages of feeds, without accents and in lower case. Servers write
# them by their locale, in full and cut to two, three or four letters, and leave accents out.

_TO_BASE = str.maketrans({"ı": "i", "ł": "l"})
"""Letters that Unicode does not decompose."""


def folded(text: str) -> str:
    """`text` in lower case and without accents: `Févr` and `FEVR` are the same name.

    >>> folded("Şubat"), folded("środa"), folded("Ιανουάριος")
    ('subat', 'sroda', 'ιανουαριοσ')
    """
    decomposed = unicodedata.normalize("NFKD", text.casefold().translate(_TO_BASE))
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


# A line a language: English, German, Dutch, French, Spanish, Portuguese, Italian, Polish, Russian, Greek,
# Hungarian, Turkish; of months also Swedish and Danish, Romanian, Czech, Ukrainian, Arabic, Finnish, Croatian
# (but for October, which is November in Polish), Lithuanian, Latvian, Estonian, Slovak, Bulgarian, Slovenian,
# Serbian, Indonesian, Catalan, Icelandic, Hebrew; then the nominative and the cut forms of some of these,
# Macedonian and Serbian in Cyrillic, Belarusian, Galician, Basque, Albanian, Luxembourgish, Welsh, Irish,
# Maltese. Slavic and Greek ones are in the genitive, too: "3 января".
_MONTHS = """
jan january | feb february | mar march | apr april | may | jun june | jul july | aug august
  | sep sept september | oct october | nov november | dec december
jänner januar | febr februar | mär märz mrz | | mai | juni | juli | | | okt oktober | | dez dezember
januari | februari | mrt maart | | mei | | | augustus | | | |
janv janvier | fév févr février | mars | avr avril | | juin | juil juill juillet | août aoû | septembre
  | octobre | novembre | déc décembre
ene enero | febrero | marzo | abr abril | mayo | junio | julio | ago agosto | set septiembre setiembre
  | octubre | noviembre | dic diciembre
janeiro | fev fevereiro | março | | maio | junho | julho | | setembro | out outubro | novembro | dezembro
gen gennaio | febbraio | | aprile | mag maggio | giu giugno | lug luglio | | sett settembre | ott ottobre | |
  dicembre
sty styczeń stycznia | lut luty lutego | marzec marca | kwi kwiecień kwietnia | maj maja
  | cze czerwiec czerwca | lip lipiec lipca | sie sierpień sierpnia | wrz wrzesień września
  | paź październik października | lis listopad listopada | gru grudzień grudnia
янв январь января | фев февр февраль февраля | мар март марта | апр апрель апреля | май мая | июн июнь июня
  | июл июль июля | авг август августа | сен сент сентябрь сентября | окт октябрь октября
  | ноя нояб ноябрь ноября | дек декабрь декабря
ιαν ιανουάριος ιανουαρίου | φεβ φεβρ φεβρουάριος φεβρουαρίου | μαρ μάρτιος μαρτίου | απρ απρίλιος απριλίου
  | μαι μάιος μαΐου | ιουν ιούνιος ιουνίου | ιουλ ιούλιος ιουλίου | αυγ αύγουστος αυγούστου
  | σεπ σεπτ σεπτέμβριος σεπτεμβρίου | οκτ οκτώβριος οκτωβρίου | νοε νοέμβριος νοεμβρίου
  | δεκ δεκέμβριος δεκεμβρίου
január | február | márc március | ápr április | máj május | jún június | júl július | augusztus
  | szept szeptember | október | | december
oca ocak | şub şubat | mart | nis nisan | mayıs | haz haziran | tem temmuz | ağu ağustos | eyl eylül
  | eki ekim | kas kasım | ara aralık
| | marts | | | | | augusti | | | |
ianuarie | februarie | martie | aprilie | | iunie | iulie | | septembrie | octombrie | noiembrie | decembrie
leden ledna | únor února | březen března | duben dubna | květen května | červen června | červenec července
  | srpen srpna | září | říjen října | | prosinec prosince
січень січня | лютий лютого | березень березня | квітень квітня | травень травня | червень червня
  | липень липня | серпень серпня | вересень вересня | жовтень жовтня | листопад листопада | грудень грудня
يناير جانفي | فبراير فيفري شباط | مارس آذار | أبريل أفريل نيسان | مايو ماي أيار | يونيو جوان حزيران
  | يوليو جويلية تموز | أغسطس أوت | سبتمبر أيلول | أكتوبر | نوفمبر | ديسمبر
tammikuuta | helmikuuta | maaliskuuta | huhtikuuta | toukokuuta | kesäkuuta | heinäkuuta | elokuuta
  | syyskuuta | lokakuuta | marraskuuta | joulukuuta
siječnja | veljače | ožujka | travnja | svibnja | lipnja | srpnja | kolovoza | rujna | | studenoga studenog
  | prosinca
sausio | vasario | kovo | balandžio | gegužės | birželio | liepos | rugpjūčio | rugsėjo | spalio | lapkričio
  | gruodžio
janvāris janvārī | februāris februārī | martā | aprīlis aprīlī | maijs maijā | jūnijs jūnijā | jūlijs jūlijā
  | augusts augustā | septembris septembrī | oktobris oktobrī | novembris novembrī | decembris decembrī
jaanuar | veebruar | märts | aprill | | juuni | juuli | | | oktoober | | detsember
januára | februára | | apríla | mája | júna | júla | augusta | septembra | októbra | novembra listopadu
  | decembra
януари | февруари | | април | | юни | юли | | септември | октомври | ноември | декември
januarja | februarja | | aprila | | junija | julija | avgust avgusta | septembar | oktobar oktobra | novembar
  | decembar
| | maret | | | | | agustus | | | | desember
gener | febrer | | | maig | juny | juliol | agost | setembre | | | desembre
| | | | | | | ágúst | | | |
ינואר בינואר | פברואר בפברואר | מרץ במרץ | אפריל באפריל | מאי במאי | יוני ביוני | יולי ביולי | אוגוסט באוגוסט
  | ספטמבר בספטמבר | אוקטובר באוקטובר | נובמבר בנובמבר | דצמבר בדצמבר
ian | | marec | | | iun junij | iul julij | avg | | | noi | des
| únor | | | | čvn | čvc | srp | | | |
tammikuu | helmikuu | maaliskuu | huhtikuu | toukokuu | kesäkuu | heinäkuu | elokuu | syyskuu | lokakuu
  | marraskuu | joulukuu
tammikuussa | helmikuussa | maaliskuussa | huhtikuussa | toukokuussa | kesäkuussa | heinäkuussa | elokuussa
  | syyskuussa | lokakuussa | marraskuussa | joulukuussa
siječanj | veljača | ožujak | travanj | svibanj | lipanj | srpanj | | rujan | | studeni | prosinac
sausis | vasaris | kovas | balandis | gegužė | birželis | liepa | rugpjūtis | rugsėjis | spalis | lapkritis
  | gruodis
януар януари јануар јануари | фебруар фебруари | | | мај | јун јуни | јул јули | | сеп септембар септември
  | октобар октомври | ное новембар ноември | дец децембар декември
студзень студзеня | люты лютага | сакавік сакавіка | красавік красавіка | травень траўня | чэрвень чэрвеня
  | ліпень ліпеня | жнівень жніўня | верасень верасня | кастрычнік кастрычніка | лістапад лістапада
  | снежань снежня
xan xaneiro | febreiro | | | | xuño | xullo | | | | | decembro
urtarrila urtarrilaren urtarrilak | otsaila otsailaren otsailak | martxoa martxoaren martxoak
  | apirila apirilaren apirilak | maiatza maiatzaren maiatzak | ekaina ekainaren ekainak
  | uztaila uztailaren uztailak | abuztua abuztuaren abuztuak | iraila irailaren irailak
  | urria urriaren urriak | azaroa azaroaren azaroak | abendua abenduaren abenduak
janar | shkurt | | prill | | qershor | korrik | gusht | shtator | tetor | nëntor | dhjetor
| | mäerz | abrëll | mee | | | | | | |
ionawr | chwefror | mawrth | ebrill | | mehefin | gorffennaf | awst | medi | hydref | tachwedd | rhagfyr
eanáir | feabhra | márta | aibreán | bealtaine | meitheamh | iúil | lúnasa | mfómh | dfómh | samhain | nollaig
jannar | frar | marzu | | mejju | ġunju | lulju | awwissu | settembru | ottubru | novembru | diċembru
"""

_WEEKDAYS = """
mon monday tue tues tuesday we wed wes wednesday thu thur thurs thursday fri friday sat saturday sun sunday
mo montag di die dienstag mi mit mittwoch do don donnerstag fr fre freitag sa sam samstag
sonnabend so son sonntag
ma maa maandag din dinsdag wo woe woensdag donderdag vr vri vrijdag za zat zaterdag zo zon zondag
lun lundi mar mardi mer mercredi jeu jeudi ven vendredi samedi dim dimanche
lunes martes mié miércoles jue jueves vie viernes sáb sábado dom domingo
seg segunda ter terça qua quarta qui quinta sex sexta
lunedì martedì mercoledì gio giovedì venerdì sabato domenica
pn pon poniedziałek wt wto wtorek śr śro środa czw czwartek pt pią piątek sob sobota nd nie niedz niedziela
пн пнд понедельник вт втр вторник ср срд среда чт чтв четверг пт птн пятница
сб сбт суб суббота вс вск воскресенье
δευ δευτέρα τρί τρίτη τετ τετάρτη πέμ πέμπτη παρ παρασκευή σάβ σάββατο κυρ κυριακή
h hét hétfő k ked kedd sze szer szerda cs csü csüt csütörtök p pén pént péntek szo szom szombat v vas vasárnap
pts pzt pazartesi sal salı çar çarşamba per perşembe cum cuma cts cmt cumartesi paz pazar
mandag tirsdag onsdag torsdag fredag lørdag søndag måndag tisdag lördag söndag tysdag laurdag
maanantai maanantaina tiistai tiistaina keskiviikko keskiviikkona torstai torstaina perjantai perjantaina
lauantai lauantaina sunnuntai sunnuntaina
mánudagur þriðjudagur miðvikudagur fimmtudagur föstudagur laugardagur sunnudagur
luni marți miercuri joi vineri sâmbătă duminică
pondělí úterý středa čtvrtek pátek neděle pondelok utorok streda štvrtok piatok nedeľa
ponedjeljak utorak srijeda četvrtak petak subota nedjelja ponedeljak sreda nedelja
ponedeljek torek četrtek petek
понеделник вторник сряда четвъртък петък събота неделя понедељак уторак четвртак петак субота недеља
сабота недела петок четврток понеділок вівторок середа четвер пятниця субота неділя
панядзелак аўторак серада чацвер пятніца нядзеля
pirmadienis antradienis trečiadienis ketvirtadienis penktadienis šeštadienis sekmadienis
pirmdiena otrdiena trešdiena ceturtdiena piektdiena sestdiena svētdiena
esmaspäev teisipäev kolmapäev neljapäev reede laupäev pühapäev
dilluns dimarts dimecres dijous divendres dissabte diumenge
luns mércores xoves venres astelehena asteartea asteazkena osteguna ostirala larunbata igandea
hënë martë mërkurë enjte premte shtunë diel
méindeg dënschdeg mëttwoch donneschdeg freideg samschdeg sonndeg
llun mawrth mercher iau gwener sadwrn sul luan máirt céadaoin déardaoin aoine satharn domhnach
tnejn tlieta erbgħa ħamis ġimgħa sibt ħadd
"""


def named_months() -> list[tuple[str, int]]:
    """Each name, and the number of its month."""
    return [
        (folded(name), number)
        for line in _MONTHS.strip().replace("\n  ", " ").split("\n")
        for number, names in enumerate(line.split("|"), start=1)
        for name in names.split()
    ]


MONTHS: Mapping[str, int] = dict(named_months())
"""Numbers of months by name."""

WEEKDAYS: frozenset[str] = frozenset(map(folded, _WEEKDAYS.split()))


def _cut(names: Iterable[tuple[str, int]], *, shortest: int) -> dict[str, int]:
    """The beginnings of names, such as Finnish `lok`; not those with two meanings, such as French `jui`."""
    meanings: dict[str, set[int]] = {}
    for name, number in names:
        for length in range(shortest, len(name)):
            meanings.setdefault(name[:length], set()).add(number)
    return {start: next(iter(numbers)) for start, numbers in meanings.items() if len(numbers) == 1}


_MONTHS_CUT = _cut(named_months(), shortest=3)
_WEEKDAYS_CUT = {
    *_cut(((name, 0) for name in WEEKDAYS), shortest=2),
    *folded("e t n r l dl dt dc dj dv ds dg kt sk št pk нд чц").split(),
}
"""Also those of Estonian, Catalan, Baltic and Slavic languages that are no beginnings. In a page's text these
may be other words."""

# Names that another language has for another month: the weekday beside says which language it is.
_CROATIAN_DAYS = frozenset(
    folded("ponedjeljak utorak uto srijeda sri četvrtak čet petak pet subota sub nedjelja ned").split()
)
_CROATIAN_MONTHS: Mapping[str, int] = {"listopad": 10, "listopada": 10, "lis": 10, "lip": 6, "srp": 7}
_FINNISH_DAYS = frozenset(
    ("ke", "keskiviikko", "maanantai", "tiistai", "torstai", "perjantai", "lauantai", "sunnuntai")
)
_FINNISH_OR_OTHERS = frozenset(("ma", "ti", "to", "pe", "la", "su"))
_FINNISH_NOVEMBER = "mar"


def _month(name: str, weekday: str) -> int | None:
    """The number of a month by its name, beside a weekday; None for a name that may be several."""
    if weekday in _CROATIAN_DAYS and name in _CROATIAN_MONTHS:
        return _CROATIAN_MONTHS[name]
    if name == _FINNISH_NOVEMBER and weekday in _FINNISH_OR_OTHERS:
        return None
    if name == _FINNISH_NOVEMBER and weekday.removesuffix("na") in _FINNISH_DAYS:
        return 11
    return MONTHS.get(name) or _MONTHS_CUT.get(name)
