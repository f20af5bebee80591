"""The dates that a page shows beside its entries, each with its place in the page's text.

A date is what a reader of the page would be sure of: without a year it needs one above it or in the address;
of 01/02/2026 the page's other dates decide the order, or it is none. Relative dates are none.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from rss_pipeline.collector.parse.dates.read import MONTHS, WEEKDAYS, folded
from rss_pipeline.features.pages.page import BLOCK, Page

_MONTH = r"[^\W\d_]{3,12}"
_ORDINAL = r"(?:st|nd|rd|th|er|º|\.)?"
_YEAR = r"(?:19|20)\d\d"
_GAP = r"(?:[\s,]{1,4}|-|\.\s?)"
_FORMS = re.compile(
    rf"(?<![\d/.-])(?P<y1>{_YEAR})(?P<cut1>\s?[-/.]\s?)(?P<m1>\d{{1,2}})(?P=cut1)(?P<d1>\d{{1,2}})(?![\d-])"
    rf"|(?P<y2>{_YEAR})\s?[年년]\s?(?P<m2>\d{{1,2}})\s?[月월]\s?(?P<d2>\d{{1,2}})\s?[日号號일]?"
    rf"|(?<!\w)(?P<y3>{_YEAR})(?:(?:\sm)?\.)?(?:[^\S{BLOCK}]|[,-]){{1,3}}(?P<n3>{_MONTH})\.?[\s-]{{1,2}}(?P<d3>\d{{1,2}})(?!\d)"
    rf"|(?<![\w./-])(?P<d4>\d{{1,2}})(?:{_ORDINAL}|\s)[\s-]?(?:de\s|of\s|d')?(?P<n4>{_MONTH})\.?{_GAP}(?:del?\s)?(?P<y4>{_YEAR})(?!\d)"
    rf"|(?<![\w./-])(?P<d5>\d{{1,2}})\.\s?(?P<m5>\d{{1,2}})\.\s?(?P<y5>{_YEAR})(?!\d)"
    r"|(?<![\w./-])(?P<a6>\d{1,2})(?P<cut6>[/-])(?P<b6>\d{1,2})(?P=cut6)(?P<y6>(?:19|20)\d\d|\d\d)(?![\d/-])"
    rf"|(?<!\d)(?P<d7>\d{{1,2}})\stháng\s(?P<m7>\d{{1,2}})(?:,|\snăm)?\s(?:năm\s)?(?P<y7>{_YEAR})"
    rf"|(?<!\d)(?P<d8>\d{{1,2}})\s(?P<m8>\d{{1,2}})[月월]\s(?P<y8>{_YEAR})"
    rf"|(?<!\d)(?P<m9>\d{{1,2}})[月월]\s?(?P<d9>\d{{1,2}})[日일]?,?\s(?P<y9>{_YEAR})"
    rf"|(?<![\w./-])(?P<d10>\d{{1,2}})(?:{_ORDINAL}|\s)\s?(?:de\s|of\s)?(?P<n10>{_MONTH})(?!\w)"
    r"|(?<![\w./-])(?P<m11>\d{1,2})[月월]\s?(?P<d11>\d{1,2})[日일]"
    r"|(?<![\w./-])(?P<m12>\d{2})[-/.](?P<d12>\d{2})(?![\w./-])"
)
"""Each begins with a digit; a date without a year is read last."""
_AFTER_NAME = re.compile(rf"(?P<d>\d{{1,2}})(?!\d){_ORDINAL}(?:(?:{_GAP}|\s)(?P<y>{_YEAR})(?!\d))?(?![\w:])")
_NAME_BEFORE = re.compile(rf"(?<![^\W\d_])({_MONTH})\.?[\s-]{{0,2}}\Z")
_NAME_CHARACTERS = 17
_ERAS = {"令和": 2018, "平成": 1988, "民國": 1911, "民国": 1911}
"""The years before the first of eras in Japan and Taiwan."""
_OF_ERA = re.compile(r"(\d{1,3})\s?年\s?(\d{1,2})\s?月\s?(\d{1,2})\s?日?")
_OTHER_DIGIT = re.compile("[٠-٩۰-۹０-９]")
_ASCII_DIGITS = str.maketrans("٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹０１２３４５６７８９", "0123456789" * 3)
_WORDS = re.compile(r"\w+")
_DIGITS = re.compile(r"\d+")
_ADDRESS_DATE = re.compile(r"/(?P<y>(?:19|20)\d\d)[/-](?P<m>[01]?\d)[/-](?P<d>[0-3]?\d)(?:[/-]|\Z)")
_ADDRESS_YEAR = re.compile(r"/((?:19|20)\d\d)(?:/|-)")
_ATTRIBUTE_DATE = re.compile(rf"\A\s{{0,9}}({_YEAR})-(\d\d)-(\d\d)")
_LONE_YEAR = re.compile(rf"\A\D{{0,15}}({_YEAR})\D{{0,15}}\Z")
_LONE_YEAR_CHARACTERS = 32
_EARLIEST = 1990


@dataclass(frozen=True, slots=True)
class DateFound:
    """A date on a page."""

    begin: int
    """Its place in the page's text; that of its element if `in_attribute`."""
    stop: int
    year: int | None
    month: int
    day: int
    in_attribute: bool = False

    def of_year(self, year: int | None) -> date | None:
        """The date; None without a year, or if it is not in the calendar."""
        try:
            return date(self.year or year or 0, self.month, self.day)
        except ValueError:
            return None


class PageDates:
    """All dates of a page, by their places."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._text = _with_ascii_digits(page.text)
        self.found = sorted([*_in_text(self._text), *_in_attributes(page)], key=lambda each: each.begin)
        self._begins = [each.begin for each in self.found]
        self._years: list[tuple[int, int]] | None = None

    def between(self, begin: int, stop: int) -> Sequence[DateFound]:
        """The dates that begin from `begin` up to `stop`."""
        low, high = bisect_left(self._begins, begin), bisect_left(self._begins, stop)
        return self.found[low:high]

    def resolved(self, found: DateFound, url: str) -> date | None:
        """The date of an entry with this link; its year is that of the address or of a heading above."""
        if found.year is not None:
            return found.of_year(None)
        if year := _ADDRESS_YEAR.search(url):
            return found.of_year(int(year[1]))
        return found.of_year(self._year_above(found.begin))

    def _year_above(self, at: int) -> int | None:
        if self._years is None:
            self._years = list(_lone_years(self._page, self._text))
        index = bisect_left(self._years, (at, 0)) - 1
        return self._years[index][1] if index >= 0 else None


def address_date(url: str) -> date | None:
    """The day in an address such as /2024/05/17/title."""
    if not (found := _ADDRESS_DATE.search(url)):
        return None
    return _day(int(found["y"]), int(found["m"]), int(found["d"]))


def date_in(text: str) -> date | None:
    """The first date in a text that has a year."""
    if found := _ATTRIBUTE_DATE.match(text):
        return _day(*map(int, found.groups()))
    dates = _in_text(_with_ascii_digits(text))
    return next((day for each in dates if each.year and (day := each.of_year(None))), None)


def beside_day(text: str) -> str | None:
    """The words of a text besides its date or day of the week; None if it has none.

    >>> beside_day("Friday, 17 May 2024: no events"), beside_day("no events")
    ('no events', None)
    """
    plain = _with_ascii_digits(text)
    rest, at = "", 0
    for found in _in_text(plain):
        rest += plain[at : found.begin] + " "
        at = found.stop
    words = _WORDS.findall(rest + plain[at:])
    kept = [word for word in words if folded(word) not in WEEKDAYS]
    return " ".join(kept) if at or len(kept) < len(words) else None


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day) if year >= _EARLIEST else None
    except ValueError:
        return None


def _with_ascii_digits(text: str) -> str:
    """A text with Arabic, Persian and wide digits as ASCII, of the same length."""
    return text if text.isascii() or not _OTHER_DIGIT.search(text) else text.translate(_ASCII_DIGITS)


def _in_text(text: str) -> Iterable[DateFound]:
    undecided: list[tuple[int, int, int, int, int]] = []
    day_first = month_first = 0
    stop = 0
    for run in _DIGITS.finditer(text):
        at = run.start()
        if at < stop:
            continue
        if (first := _ERAS.get(text[max(0, at - 2) : at])) and (match := _OF_ERA.match(text, at)):
            year, month, day = map(int, match.groups())
            stop = match.end()
            if _day(first + year, month, day):
                yield DateFound(at - 2, stop, first + year, month, day)
            continue
        if run.end() - at not in (1, 2, 4):
            continue
        if run.end() - at < 4 and (found := _named_before(text, at)):
            stop = found.stop
            yield found
            continue
        match = _FORMS.match(text, at)
        if match is None:
            continue
        # The number of the form.
        number = (match.lastgroup or "").lstrip("abcdefghijklmnopqrstuvwxyz")
        part = match.groupdict()
        digits = part.get("y" + number)
        if number == "6":
            first, second, year = int(match["a6"]), int(match["b6"]), int(match["y6"])
            year += 0 if year > 99 else 2000 if year < 70 else 1900
            day_first += first > 12
            month_first += second > 12
            undecided.append((match.start(), match.end(), first, second, year))
            stop = match.end()
            continue
        name = part.get("n" + number)
        month = MONTHS.get(folded(name), 0) if name is not None else int(part["m" + number] or 0)
        day = int(part["d" + number] or 0)
        if 1 <= month <= 12 and 1 <= day <= 31:
            stop = match.end()
            yield DateFound(at, stop, int(digits) if digits else None, month, day)
    if bool(day_first) != bool(month_first):
        for begin, end, first, second, year in undecided:
            day, month = (first, second) if day_first else (second, first)
            if _day(year, month, day):
                yield DateFound(begin, end, year, month, day)


def _named_before(text: str, at: int) -> DateFound | None:
    """The date of which the day is at this place, behind the name of a month."""
    before = text[max(0, at - _NAME_CHARACTERS) : at]
    if not (name := _NAME_BEFORE.search(before)) or not (month := MONTHS.get(folded(name[1]))):
        return None
    found = _AFTER_NAME.match(text, at)
    if found is None or not 1 <= int(found["d"]) <= 31:
        return None
    year = int(found["y"]) if found["y"] else None
    return DateFound(at - len(before) + name.start(), found.end(), year, month, int(found["d"]))


def _in_attributes(page: Page) -> Iterable[DateFound]:
    for node, element in enumerate(page.elements):
        tag = page.tags[node]
        if tag == "time":
            value = element.get("datetime") or element.get("title") or ""
        elif tag in ("meta", "span", "abbr", "div", "p", "relative-time"):
            value = element.get("content") or element.get("datetime") or ""
            if not value and (title := element.get("title")) and title[:2] in ("19", "20"):
                value = title
        else:
            continue
        if value and (found := _ATTRIBUTE_DATE.match(value)):
            year, month, day = map(int, found.groups())
            if _day(year, month, day):
                begin = page.begins[node]
                yield DateFound(begin, page.stops[node], year, month, day, in_attribute=True)


def _lone_years(page: Page, text: str) -> Iterable[tuple[int, int]]:
    """Places and years of short elements that show a year and no day."""
    for node, begin in enumerate(page.begins):
        if (
            3 < page.stops[node] - begin <= _LONE_YEAR_CHARACTERS
            and not page.is_aside[node]
            and (found := _LONE_YEAR.match(text[begin : page.stops[node]].strip()))
        ):
            yield begin, int(found[1])
