"""Facts of a text that have a type: numbers with units, versions, CVE numbers, dates, parts, scores.

Two texts that differ in such a fact are of two events, however like they are in their words; but for tolls,
which rise.
"""

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from rss_pipeline.features.stories import vocabulary
from rss_pipeline.features.stories.words import stem

Values = dict[str, set[str]]


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of title and text, each kind with its values; `title_*` are the title's alone."""

    numbers: dict[str, set[float]] = field(default_factory=dict)
    """Numbers that are no tolls, by unit; the empty unit for those without."""
    title_numbers: dict[str, set[float]] = field(default_factory=dict)
    tolls: set[float] = field(default_factory=set)
    cves: set[str] = field(default_factory=set)
    versions: set[str] = field(default_factory=set)
    named: dict[str, set[str]] = field(default_factory=dict)
    """Numbers after a name, by its stem: Halo 3."""
    title_named: dict[str, set[str]] = field(default_factory=dict)
    counted: dict[str, set[str]] = field(default_factory=dict)
    """Numbers of parts, days, rounds, by the kind of what is counted."""
    title_counted: dict[str, set[str]] = field(default_factory=dict)
    months: set[int] = field(default_factory=set)
    title_months: set[int] = field(default_factory=set)
    dates: set[tuple[int, int]] = field(default_factory=set)
    title_dates: set[tuple[int, int]] = field(default_factory=set)
    weekdays: list[int] = field(default_factory=list)
    title_weekdays: set[int] = field(default_factory=set)
    years: set[int] = field(default_factory=set)
    title_years: set[int] = field(default_factory=set)
    title_money: dict[str, set[float]] = field(default_factory=dict)
    ages: set[int] = field(default_factory=set)
    scores: set[tuple[int, int]] = field(default_factory=set)
    codes: set[str] = field(default_factory=set)
    """Roads and flights: A38, LH455."""
    is_price_cut: bool = False
    is_rumour: bool = False


_PLAIN = re.compile(r"(\d+(?:[.,:]\d+)*)([^\W\d_]{0,4})")
_THOUSANDS = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_CODE = re.compile(r"([^\W\d_]{1,4})-?(\d{1,4})")


def number(text: str) -> float | None:
    """The value of a number as it is written in any of these languages; None for a time of day or a score."""
    if ":" in text:
        return None
    if _THOUSANDS.fullmatch(text):
        return float(re.sub("[.,]", "", text))
    text = text.replace(",", ".")
    if text.count(".") > 1:
        return None
    return float(text)


Tokens = tuple[list[str], list[str]]
"""Tokens as they are written, and each of them `bare` if it is a word."""

_TOLD = frozenset([*vocabulary.MONTHS, *vocabulary.WEEKDAYS, *vocabulary.ORDINALS, *vocabulary.SPELLED])


def read_facts(head: Tokens, body: Tokens, names: AbstractSet[str]) -> Facts:
    """Return the facts of a title's tokens and a text's."""
    facts = Facts()
    _read(facts, head, names, is_title=True)
    _read(facts, body, names, is_title=False)
    return facts


def _read(facts: Facts, read: Tokens, names: AbstractSet[str], *, is_title: bool) -> None:
    tokens, words = read
    count = len(words)
    if is_title:
        stems = {stem(word) for word in words}
        if not stems.isdisjoint(vocabulary.PRICE_CUTS):
            object.__setattr__(facts, "is_price_cut", True)
        if not vocabulary.PRICE_FALLS.isdisjoint(words) and not vocabulary.CURRENCIES.keys().isdisjoint(
            words
        ):
            object.__setattr__(facts, "is_price_cut", True)
        if not stems.isdisjoint(vocabulary.RUMOURS):
            object.__setattr__(facts, "is_rumour", True)
    for at, word in enumerate(words):
        if word not in _TOLD and not word[-1].isdigit() and not word[0].isdigit() and word[0] != "#":
            continue
        first = word[0]
        if first.isdigit():
            _number(facts, tokens, words, at, count, names, is_title)
        elif first == "#" and len(word) > 1:
            _add(facts.counted, facts.title_counted, "issue", word[1:].lstrip("0"), is_title)
        elif word in vocabulary.MONTHS:
            _month(facts, words, at, count, is_title)
        elif word in vocabulary.WEEKDAYS:
            day = vocabulary.WEEKDAYS[word]
            facts.weekdays.append(day)
            if is_title:
                facts.title_weekdays.add(day)
        elif word in vocabulary.ORDINALS and at + 1 < count:
            kind = vocabulary.COUNTED.get(words[at + 1])
            if kind is None and words[at + 1] in {"-", "–"} and at + 2 < count:
                kind = vocabulary.COUNTED.get(words[at + 2])
            if kind is not None:
                _add(facts.counted, facts.title_counted, kind, str(vocabulary.ORDINALS[word]), is_title)
        elif word in vocabulary.SPELLED and at and words[at - 1] in vocabulary.COUNTED:
            kind = vocabulary.COUNTED[words[at - 1]]
            _add(facts.counted, facts.title_counted, kind, str(vocabulary.SPELLED[word]), is_title)
        elif word in vocabulary.SPELLED:
            _spelled(facts, words, at, count)
        elif word[-1].isdigit():
            after = words[at + 1] if at + 1 < count else ""
            _code(facts, tokens[at], word, after, is_title)


def _add(
    all_of: dict[str, set[str]], of_title: dict[str, set[str]], kind: str, value: str, is_title: bool
) -> None:
    all_of.setdefault(kind, set()).add(value)
    if is_title:
        of_title.setdefault(kind, set()).add(value)


def _code(facts: Facts, token: str, word: str, after: str, is_title: bool) -> None:
    if word.startswith("cve-"):
        facts.cves.add(word)
        return
    found = _CODE.fullmatch(word)
    if found is None:
        return
    letters, digits = found[1], found[2]
    if len(after) > 1 and after in vocabulary.SCALES:
        # R80 million.
        _money(
            facts,
            vocabulary.CURRENCIES.get(letters, letters),
            float(digits) * vocabulary.SCALES[after],
            is_title,
        )
    elif letters == "q" and len(digits) == 1:
        _add(facts.counted, facts.title_counted, "quarter", digits, is_title)
    elif letters in {"s", "e", "ep", "pt"} and len(digits) <= 2:
        kind = "season" if letters == "s" else "episode"
        _add(facts.counted, facts.title_counted, kind, digits.lstrip("0"), is_title)
    elif letters == "v":
        facts.versions.add(digits)
    elif letters == "beta" or letters == "rc":
        _add(facts.counted, facts.title_counted, "beta", digits, is_title)
    elif token[0].isupper() and letters not in {"g", "covi"}:
        facts.codes.add(letters + digits)


def _month(facts: Facts, words: list[str], at: int, count: int, is_title: bool) -> None:
    month = vocabulary.MONTHS[words[at]]
    day = 0
    for near in (at - 1, at + 1):
        if 0 <= near < count:
            value = words[near].rstrip("stndrhe.")
            if (
                value.isdigit()
                and 1 <= int(value) <= 31
                and not (near == at + 1 and _is_decimal(words, near))
            ):
                day = int(value)
                break
    if day == 0 and at >= 2 and words[at - 1] in {".", "de", "of"} and words[at - 2].isdigit():
        day = int(words[at - 2])
    if day and 1 <= day <= 31:
        facts.dates.add((month, day))
        if is_title:
            facts.title_dates.add((month, day))
        return
    if words[at] in vocabulary.DOUBTFUL_MONTHS and not (
        at and (words[at - 1] in vocabulary.BEFORE_MONTHS or words[at - 1] == "early")
    ):
        return
    facts.months.add(month)
    if is_title:
        facts.title_months.add(month)


def _is_decimal(words: list[str], at: int) -> bool:
    return "." in words[at] or "," in words[at]


def _spelled(facts: Facts, words: list[str], at: int, count: int) -> None:
    value = float(vocabulary.SPELLED[words[at]])
    if value < 2:
        return
    for near in range(at + 1, min(count, at + 3)):
        if stem(words[near]) in vocabulary.TOLLS:
            facts.tolls.add(value)
            return
        unit = vocabulary.UNIT_WORDS.get(words[near])
        if unit is not None:
            facts.numbers.setdefault(unit, set()).add(value)
            return


def _number(
    facts: Facts,
    tokens: list[str],
    words: list[str],
    at: int,
    count: int,
    names: AbstractSet[str],
    is_title: bool,
) -> None:
    found = _PLAIN.fullmatch(words[at])
    if found is None:
        return
    digits, suffix = found[1], found[2]
    after = words[at + 1] if at + 1 < count else ""
    next_after = words[at + 2] if at + 2 < count else ""
    before = words[at - 1] if at else ""
    if after in {"-", "–", ":", "/"} and next_after[:1].isdigit() and "." not in digits:
        _score(facts, digits, next_after)
        return
    if before in {"-", "–"} and at >= 2 and words[at - 2][:1].isdigit():
        return
    if ":" in digits:
        left, _, right = digits.partition(":")
        if len(right) == 1 and after not in vocabulary.CLOCKS:
            _score(facts, left, right)
        return
    if suffix in vocabulary.CLOCKS or after in vocabulary.CLOCKS:
        return
    value = number(digits)
    if suffix in {"st", "nd", "rd", "th", "e", "er", "eme", "ere", "a", "o"} or (
        after == "." and next_after in vocabulary.COUNTED
    ):
        kind = vocabulary.COUNTED.get(next_after if after in {".", "-"} else after)
        if kind is not None:
            _add(facts.counted, facts.title_counted, kind, digits, is_title)
        if suffix != "":
            return
    kind = vocabulary.COUNTED.get(before)
    if is_title and before == "(" and after == ")" and len(digits) <= 2:
        kind = "part"
    if kind is None and before in {".", ":"} and at >= 2:
        kind = vocabulary.COUNTED.get(words[at - 2])
    if kind is not None and "," not in digits and len(digits) <= 4:
        _add(facts.counted, facts.title_counted, kind, digits.lstrip("0"), is_title)
        return
    if value is None:
        if digits.count(".") >= 2 and _is_name(tokens, words, at, names):
            facts.versions.add(digits)
        return
    if after in vocabulary.MONTHS or (after in {".", "de"} and next_after in vocabulary.MONTHS):
        return
    if before in vocabulary.MONTHS and value <= 31 and not suffix:
        return
    if (
        1900 <= value <= 2100
        and "," not in digits
        and "." not in digits
        and after not in vocabulary.UNIT_WORDS
    ):
        facts.years.add(int(value))
        if is_title:
            facts.title_years.add(int(value))
        return
    if _is_age(words, at, count, value):
        facts.ages.add(int(value))
        return
    if any(word in vocabulary.MAGNITUDE_WORDS for word in words[max(0, at - 3) : at]):
        _measure(facts, "magnitude", value, is_title)
        return
    money = vocabulary.CURRENCIES.get(before)
    scale, unit_at = 1.0, at + 1
    scaled = vocabulary.SCALES.get(suffix) or (vocabulary.SCALES.get(after) if not suffix else None)
    if after in {"-", "–"} and not suffix and next_after in vocabulary.SCALES:
        scaled = vocabulary.SCALES[next_after]
        at += 1
    if scaled is not None and (suffix not in {"m", "k", "b"} or money):
        scale = scaled
        unit_at = at + (1 if suffix else 2)
    unit_word = suffix if suffix and scale == 1.0 else (words[unit_at] if unit_at < count else "")
    if unit_word in {"-", "–"} and unit_at + 1 < count:
        unit_word = words[unit_at + 1]
    if unit_word == "de" and unit_at + 1 < count:
        unit_word = words[unit_at + 1]
    if money is None:
        money = vocabulary.CURRENCIES.get(unit_word)
    value *= scale
    if money is not None:
        _money(facts, money, value, is_title)
        return
    if "." in digits and scale == 1.0 and not _THOUSANDS.fullmatch(digits):
        is_measure = unit_word in vocabulary.UNIT_WORDS or unit_word in {"%", "magnitude"}
        if not is_measure and _is_name(tokens, words, at, names):
            facts.versions.add(digits)
            return
    elif scale == 1.0 and not suffix and len(digits) <= 3 and unit_word not in vocabulary.UNIT_WORDS:
        name = _name_before(tokens, words, at, names)
        if name is not None:
            _add(facts.named, facts.title_named, name, digits, is_title)
            return
    for near in range(unit_at, min(count, unit_at + 3)):
        if stem(words[near]) in vocabulary.TOLLS:
            facts.tolls.add(value)
            return
        if words[near] in {".", ",", ";"}:
            break
    if any(stem(words[near]) in vocabulary.TOLLS for near in range(max(0, at - 3), at)):
        facts.tolls.add(value)
        return
    unit = vocabulary.UNIT_WORDS.get(unit_word)
    if unit is None:
        unit = (
            stem(unit_word) if unit_word[:1].isalpha() and unit_word not in vocabulary.FUNCTION_WORDS else ""
        )
    _measure(facts, unit, value, is_title)


def _measure(facts: Facts, unit: str, value: float, is_title: bool) -> None:
    facts.numbers.setdefault(unit, set()).add(value)
    if is_title:
        facts.title_numbers.setdefault(unit, set()).add(value)


def _money(facts: Facts, currency: str, value: float, is_title: bool) -> None:
    _measure(facts, currency, value, is_title)
    if is_title:
        facts.title_money.setdefault(currency, set()).add(value)


def _score(facts: Facts, left: str, right: str) -> None:
    right = right.rstrip(".,")
    if left.isdigit() and right.isdigit() and len(left) <= 3 and len(right) <= 3:
        one, other = int(left), int(right)
        facts.scores.add((max(one, other), min(one, other)))


def _is_age(words: list[str], at: int, count: int, value: float) -> bool:
    if value > 115 or value != int(value):
        return False
    after = [word for word in words[at + 1 : at + 5] if word not in {"-", "–"}]
    before = words[at - 1] if at else ""
    if after[:2] in (
        ["year", "old"],
        ["years", "old"],
        ["jahre", "alt"],
        ["jahre", "alte"],
        ["month", "old"],
    ):
        return True
    if after and after[0].startswith(("jahrig", "yearold")):
        return True
    if before in {"aged", "age"} or (
        at >= 2 and words[at - 2 : at] in (["age", "of"], ["alter", "von"], ["age", "de"])
    ):
        return True
    if before == "," and at + 1 < count and words[at + 1] == "," and value >= 5:
        return True
    if before == "(" and at + 1 < count and words[at + 1] == ")" and value >= 5:
        return True
    return bool(after) and after[0] in {"ans", "anos", "anni"} and before in {"de", "a", "of", "di", "con"}


def _name_before(tokens: list[str], words: list[str], at: int, names: AbstractSet[str]) -> str | None:
    if at and tokens[at - 1][0].isupper() and tokens[at - 1][-1].isalpha():
        key = stem(words[at - 1])
        if key in names and words[at - 1] not in vocabulary.COUNTED:
            return key
    return None


def _is_name(tokens: list[str], words: list[str], at: int, names: AbstractSet[str]) -> bool:
    if at == 0:
        return False
    before = words[at - 1]
    if before in vocabulary.VERSION_WORDS:
        return True
    if before in {"magnitude", "starke", "magnitud"}:
        return False
    return tokens[at - 1][0].isupper() and tokens[at - 1][-1].isalpha() and stem(before) in names
