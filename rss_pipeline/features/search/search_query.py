"""A user's text in the search box as a `SearchQuery`: it never fails, and says what it left out.

Words, all of which an item has; "phrases"; -without; author:, feed:, after:, before:. Anything else is read
as words.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from rss_pipeline.features.search.words import normal, phrase

MOST_CHARACTERS = 2_000
"""The longest query; the rest is left out."""
MOST_TERMS = 16
MOST_SINGLES = 2
"""Words of one character of a script without spaces: each costs as much as fifty others."""
MOST_WORDS = 12
"""The longest phrase."""
_SHOWN = 40

_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»「」『』〝〞＂", '"'))
_TERM = re.compile(
    r"""(?P<minus>[-\u2212]?)
    (?:(?P<field>author|feed|after|before):)?
    (?:"(?P<quoted>[^"]*)"|(?P<word>[^\s"]+))""",
    re.VERBOSE | re.IGNORECASE,
)
_DAY = re.compile(r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?")
_AGO = re.compile(r"(\d{1,4})([dwmy])", re.IGNORECASE)
_DAYS = {"d": 1, "w": 7, "m": 30, "y": 365}


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A word or a phrase."""

    text: str
    is_author: bool = False

    @property
    def expression(self) -> str:
        """The expression for FTS5."""
        found = phrase(self.text) or '""'
        return f"author : {found}" if self.is_author else found


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """A search: words, phrases, fields and dates."""

    terms: tuple[Term, ...] = ()
    """An item has all of them."""
    without: tuple[Term, ...] = ()
    """An item has none of them."""
    feeds: tuple[str, ...] = ()
    """Titles or ids; the item's feed is one of them."""
    without_feeds: tuple[str, ...] = ()
    after: date | None = None
    """Published on this day (UTC) or later."""
    before: date | None = None
    """Published before this day."""
    left_out: tuple[str, ...] = ()
    """A sentence for each part of the query that was not used."""

    @property
    def is_empty(self) -> bool:
        """True if nothing is searched for."""
        return not (
            self.terms or self.without or self.feeds or self.without_feeds or self.after or self.before
        )


def parse(text: str, *, today: date | None = None) -> SearchQuery:
    """The query of a text. Dates are days of UTC, `today` is for 7d, 2w, 3m, 1y."""
    return _Parser(today or datetime.now(UTC).date()).query(text)


@dataclass(slots=True)
class _Parser:
    today: date
    terms: list[Term] = field(default_factory=list)
    without: list[Term] = field(default_factory=list)
    feeds: list[str] = field(default_factory=list)
    without_feeds: list[str] = field(default_factory=list)
    dates: dict[str, date] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    singles: int = 0
    beyond: int = 0
    several: int = 0

    def query(self, text: str) -> SearchQuery:
        if len(text) > MOST_CHARACTERS:
            self.left_out.append(f"Only the first {MOST_CHARACTERS:,} characters are searched for.")
            text = text[:MOST_CHARACTERS]
        text = "".join(" " if unicodedata.category(each) in ("Cc", "Cs") else each for each in text)
        text = normal(text.translate(_QUOTES))
        if text.count('"') % 2:
            # The last one begins a phrase that has no end.
            head, _, tail = text.rpartition('"')
            text = f"{head} {tail}"
        for found in _TERM.finditer(text):
            self._take(found)
        if self.beyond:
            self.left_out.append(f"{self.beyond} words are left out: {MOST_TERMS} are searched for at once.")
        if self.several:
            self.left_out.append(
                f"{self.several} words of one character are left out: {MOST_SINGLES} are searched for."
            )
        return SearchQuery(
            terms=tuple(self.terms),
            without=tuple(self.without),
            feeds=tuple(self.feeds),
            without_feeds=tuple(self.without_feeds),
            after=self.dates.get("after"),
            before=self.dates.get("before"),
            left_out=tuple(self.left_out),
        )

    def _take(self, found: re.Match[str]) -> None:
        is_without = bool(found["minus"])
        text = found["quoted"] if found["word"] is None else found["word"]
        name = (found["field"] or "").lower()
        if name in ("after", "before"):
            day = self._day(text)
            if day is not None and not is_without:
                self.dates[name] = day
                return
            self.left_out.append(
                f"{_shown(found[0])} is no date, such as {name}:2026-02-18: it is read as words."
            )
        elif name == "feed" and text.strip():
            (self.without_feeds if is_without else self.feeds).append(text.strip())
            return
        self._add_words(text, is_author=name == "author", is_without=is_without)

    def _add_words(self, text: str, *, is_author: bool, is_without: bool) -> None:
        words = text.split()
        if len(words) > MOST_WORDS:
            self.left_out.append(
                f"Of the phrase {_shown(text)}, the first {MOST_WORDS} words are searched for."
            )
        text = " ".join(words[:MOST_WORDS])[:200]
        known = phrase(text)
        if known is None:
            if text.strip("-"):
                self.left_out.append(f"{_shown(text)} has no letters or digits, and is left out.")
            return
        term = Term(text=text, is_author=is_author)
        if term in self.terms or term in self.without:
            return
        if len(self.terms) + len(self.without) >= MOST_TERMS:
            self.beyond += 1
        elif known.endswith("*") and self.singles >= MOST_SINGLES:
            self.several += 1
        else:
            self.singles += known.endswith("*")
            (self.without if is_without else self.terms).append(term)

    def _day(self, text: str) -> date | None:
        if (ago := _AGO.fullmatch(text)) is not None:
            return self.today - timedelta(days=min(int(ago[1]) * _DAYS[ago[2].lower()], 36_500))
        words = {"today": 0, "yesterday": 1}
        if text.lower() in words:
            return self.today - timedelta(days=words[text.lower()])
        if (day := _DAY.fullmatch(text)) is None:
            return None
        try:
            return date(int(day[1]), int(day[2] or 1), int(day[3] or 1))
        except ValueError:
            return None


def _shown(text: str) -> str:
    return f"“{text if len(text) <= _SHOWN else f'{text[:_SHOWN]}…'}”"


def months(
    after: date | None, before: date | None, *, first: int, last: int
) -> Iterator[tuple[int, int | None]]:
    """The years, and at the ends the months (year and month), that a time between two days touches, of the
    years from `first` to `last`."""
    begin = after or date(first, 1, 1)
    end = (before - timedelta(days=1)) if before and before > date.min else (before or date(last, 12, 31))
    begin, end = max(begin, date(first, 1, 1)), min(end, date(last, 12, 31))
    year = begin.year
    while year <= end.year and begin <= end:
        low = begin.month if year == begin.year else 1
        high = end.month if year == end.year else 12
        if (low, high) == (1, 12):
            yield year, None
        else:
            yield from ((year, month) for month in range(low, high + 1))
        year += 1
