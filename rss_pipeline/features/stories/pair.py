"""The likeness of two articles: what fills the same place, names of each title in the other text, facts.

judge.py makes a decision of it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from math import fsum, inf, sqrt

from rss_pipeline.features.stories.article import HEAD, Article
from rss_pipeline.features.stories.common import AS_HEAD, Run, Weights, korean_names, shared
from rss_pipeline.features.stories.facts_compared import (
    common_counts,
    common_days,
    common_numbers,
    conflicts,
    disjoint,
    most_counts,
    most_numbers,
)
from rss_pipeline.features.stories.frequencies import HIGHEST_RARITY
from rss_pipeline.features.stories.vocabulary import FUNCTION_WORDS, SPELLED
from rss_pipeline.features.stories.words import stem

_MOST_SLOT = 5
"""Words between two common runs that are a slot of a template; more are another text."""
_MOST_UNMET = 2.5
"""The worth of unmet names that counts."""
_OTHER_DAY = 2.0
"""The worth of other weekdays in scripts of pairs, whose news seldom names one: that of another score."""


@dataclass(slots=True, kw_only=True)
class Likeness:
    """Two articles compared."""

    cosine: float
    title_names: float
    """The share of each title's names that occur in the other text, mean of both; 0.5 without names."""
    title_words: float
    """The share of each title's words that occur in the other text, mean of both."""
    names: tuple[str, ...]
    """Names of both, as they are written."""
    names_share: float
    """The common part of the names of both, by their rarity: a cosine."""
    numbers: float
    """Numbers of both, each by what it says: one of three digits counts 1, one without a unit less."""
    shown_numbers: tuple[str, ...]
    all_numbers_differ: bool
    units_differ: int
    """The number of units of both whose numbers all differ."""
    template: float
    """The share of words in common runs."""
    name_slots: int
    number_slots: int
    title_name_slots: int
    title_word_slots: int
    hard: int
    soft: float
    characters: int
    """The length of the other article."""
    common: float
    """The common part of the words of both, by their rarity: a cosine."""
    tolls: int
    """Tolls of both."""
    elsewhere: bool
    """True where each has places, and the other text has none of them."""
    unlike: int
    """The number of things that both count, each another number of them."""
    days: float
    """1 for each kind of days (weekdays, dates, years) of which both name one, -1 if they name others."""
    named: float
    """The worth of names of both that stand apart from each other."""
    told: float
    """The worth of rare words of both that are no names, and stand in no common run."""
    titled: float
    """The worth of names of both that stand in a title."""
    happened: float
    """The number of rare things of both that say what happened, beyond to whom and where."""
    happening: Callable[[], float]
    """Counts these."""
    unmet: float
    """The worth of names in each title that the other text lacks, of the title that has less of these: both
    have them in look-alikes, of one event the longer text has them."""
    placed: bool
    """True where a place of one is in the other text."""
    soon: float
    """1 for two items of one hour, falling to 0 for those two days apart."""

    @property
    def is_clean(self) -> bool:
        """True where nothing differs between the common runs."""
        return not (self.name_slots or self.number_slots or self.title_name_slots or self.title_word_slots)


def compare(
    one: Article,
    other: Article,
    cosine: float,
    mine: Weights,
    theirs: Weights,
    weights: Callable[[Iterable[str]], Weights],
    soon: float = 0.0,
) -> Likeness:
    """Return the likeness of two articles in one language; `weights` gives the rarity of any word of it."""
    likeness = compare_words(one, other, cosine, mine, theirs, weights, soon)
    compare_facts(likeness, one, other)
    return likeness


def compare_words(
    one: Article,
    other: Article,
    cosine: float,
    mine: Weights,
    theirs: Weights,
    weights: Callable[[Iterable[str]], Weights],
    soon: float = 0.0,
) -> Likeness:
    """The likeness of two articles, if of their facts all that one has were in the other, none differed, and
    they said what happened: nothing makes them more alike."""
    template, slots, runs = _aligned(one, other)
    common_rare = shared(one, other, runs, weights)
    name_slots = number_slots = title_name_slots = title_word_slots = 0
    for slot in slots:
        numbers, is_name, in_title = slot
        if numbers:
            number_slots += 1
        elif is_name:
            name_slots += 1
        if in_title and not numbers:
            if is_name:
                title_name_slots += 1
            elif template > 0.4:
                title_word_slots += 1
    names = _common_names(one, other)
    shares, unmet = zip(_share(one, other, mine), _share(other, one, theirs), strict=True)
    facts = one.facts
    return Likeness(
        cosine=cosine,
        title_names=sum(shares) / 2,
        title_words=0.0
        if one.is_paired
        else (_word_share(one, other, mine) + _word_share(other, one, theirs)) / 2,
        names=tuple(one.shown.get(name) or other.shown.get(name, name) for name in sorted(names)),
        names_share=0.0 if one.is_paired else _names_share(one, other, weights(names), mine, theirs),
        numbers=(most_counts if one.is_paired else most_numbers)(facts),
        shown_numbers=(),
        all_numbers_differ=False,
        units_differ=0,
        template=template,
        name_slots=name_slots,
        number_slots=number_slots,
        title_name_slots=title_name_slots,
        title_word_slots=title_word_slots,
        hard=0,
        soft=0.0,
        characters=other.characters,
        common=0.0 if one.is_paired else _common(mine, theirs),
        tolls=len(facts.tolls),
        elsewhere=bool(one.located and other.located)
        and one.located.isdisjoint(other.known)
        and other.located.isdisjoint(one.known),
        unlike=sum(
            one.numbered[noun].isdisjoint(other.numbered[noun])
            for noun in one.numbered.keys() & other.numbered.keys()
        ),
        days=common_days(facts, facts),
        named=common_rare.named,
        told=common_rare.told,
        titled=common_rare.titled,
        happened=inf,
        happening=common_rare.happening,
        unmet=min(*unmet, _MOST_UNMET),
        placed=not (one.located.isdisjoint(other.known) and other.located.isdisjoint(one.known)),
        soon=soon,
    )


def compare_facts(likeness: Likeness, one: Article, other: Article) -> None:
    """Put into the likeness of two articles what their facts say, and whether they say what happened."""
    some, others = one.facts, other.facts
    likeness.happened = likeness.happening()
    count = common_counts if one.is_paired else common_numbers
    likeness.numbers, likeness.shown_numbers, comparable, agreeing = count(some, others)
    likeness.all_numbers_differ = comparable > 0 and agreeing == 0
    likeness.units_differ = comparable - agreeing
    likeness.hard, soft = conflicts(some, others, likeness.template, is_paired=one.is_paired)
    if one.is_paired and disjoint(set(some.weekdays), set(others.weekdays)):
        soft += _OTHER_DAY
    likeness.soft = soft
    likeness.tolls = len(some.tolls & others.tolls)
    likeness.days = common_days(some, others)


_SAID, _HEADLINE = 0.75, 3
"""The share of a title's words that the text of a report has, and how many the title has at least."""


def says_its_title(text: Article, subject: frozenset[str]) -> bool:
    """False for a text under a title that stands: many columns have the same, whatever they are about."""
    return len(subject & text.known) >= max(_HEADLINE, _SAID * len(subject))


_SERIES = 0.5
"""The share of common runs from which on two items of one feed are of a series, a column or a live page."""


def is_series(one: Article, other: Article) -> bool:
    """True for two items of one feed that share a template and differ in a name or a number of it.

    Where only words differ, the one is an update of the other.
    """
    template, slots, _ = _aligned(one, other)
    return template >= _SERIES and any(numbers or is_name for numbers, is_name, _ in slots)


_MOST_SHOWN = 6
_LEAST_SHOWN = 4


def common_words(
    one: Article, other: Article, weights: Callable[[Iterable[str]], Weights]
) -> tuple[str, ...]:
    """The rarest words of both that are no names; of scripts without spaces, the longest runs."""
    if one.is_paired:
        runs = SequenceMatcher(None, one.words, other.words, autojunk=False).get_matching_blocks()
        joint = " " if one.language == "ko" else ""
        found = {joint.join(one.words[run.a : run.a + run.size]) for run in runs if run.size > 1}
        if joint:
            found |= korean_names(one, other)
        return tuple(sorted(found, key=lambda each: (-len(each), each))[:_MOST_SHOWN])
    words: dict[str, str] = {}
    names = one.names | other.names
    for word in one.words:
        key = stem(word)
        if len(word) < _LEAST_SHOWN or word[0].isdigit() or word in FUNCTION_WORDS or key in names:
            continue
        if key in other.known:
            words.setdefault(key, word)
    weighed = weights(words)
    rarest = sorted(words, key=lambda key: -weighed[key])
    return tuple(words[key] for key in rarest[:_MOST_SHOWN])


def _common_names(one: Article, other: Article) -> set[str]:
    """Names of one that the other has as well: at the start of a sentence nothing shows one."""
    return {*(one.names & other.known), *(other.names & one.known)}


def _names_share(one: Article, other: Article, common: Weights, mine: Weights, theirs: Weights) -> float:
    if not common:
        return 0.0
    # Sets have another order in each process: a sum that rounds at each step would be another one, too.
    own = fsum([mine[name] ** 2 for name in one.names if name not in common])
    others = fsum([theirs[name] ** 2 for name in other.names if name not in common])
    both = fsum([weight**2 for weight in common.values()])
    return both / (sqrt((own + both) * (others + both)) or 1.0)


_PLAIN = 1.5
"""The rarity up to which words say nothing of an event."""


def _common(mine: Weights, theirs: Weights) -> float:
    own, others = (
        fsum([(weight - _PLAIN) ** 2 for weight in weights.values() if weight > _PLAIN])
        for weights in (mine, theirs)
    )
    both = fsum(
        [(weight - _PLAIN) ** 2 for word, weight in mine.items() if weight > _PLAIN and word in theirs]
    )
    return both / (sqrt(own * others) or 1.0)


def _share(one: Article, other: Article, weights: Weights) -> tuple[float, float]:
    """The share of the title's names that the other text has, and the worth of the others."""
    total = found = 0.0
    for name, part in one.title_names.items():
        each = part * weights[name]
        total += each
        if name in other.known or (len(name) >= 5 and _with_ending(name, other.long_names)):
            found += each
    return (found / total if total else 0.5), (total - found) / HIGHEST_RARITY


def _word_share(one: Article, other: Article, weights: Weights) -> float:
    total = found = 0.0
    for word in one.title_stems:
        each = weights[word]
        total += each
        if word in other.known:
            found += each
        elif len(word) >= HEAD and word[:HEAD] in other.heads:
            found += AS_HEAD * each
    return found / total if total else 0.5


def _with_ending(name: str, others: tuple[str, ...]) -> bool:
    """True for Lindenau beside Lindenauer, and the other way."""
    for each in others:
        if (
            each[0] == name[0]
            and (each.startswith(name) or name.startswith(each))
            and abs(len(each) - len(name)) <= 3
        ):
            return True
    return False


Slot = tuple[bool, bool, bool]
"""Numbers that differ, names on both sides, in both titles."""


def _aligned(one: Article, other: Article) -> tuple[float, list[Slot], list[Run]]:
    """The share of words in common runs of three and more, what differs beside these, and the runs."""
    if not one.words or not other.words:
        return 0.0, [], []
    is_characters = one.is_paired and one.language != "ko"
    least, unit, most = (6, 2, 8) if is_characters else (3, 1, _MOST_SLOT)
    left, right = _words(one, is_characters), _words(other, is_characters)
    runs = _runs(left, right, _places(right, other.places, least), least)
    template = 2 * sum(run[2] for run in runs) / (len(left) + len(right))
    slots: list[Slot] = []
    end_left = end_right = 0
    for start_left, start_right, length in (*runs, (len(left), len(right), 0)):
        if end_left < start_left and end_right < start_right:
            for span in _beside(left, right, (end_left, start_left), (end_right, start_right), unit, most):
                slot = _spanned(span, one, other)
                if slot is not None:
                    slots.append(slot)
        end_left, end_right = start_left + length, start_right + length
    return template, slots, runs


Span = tuple[int, int, int, int]
"""From and to, in both."""


Words = str | tuple[str, ...]


def _words(article: Article, is_characters: bool) -> Words:
    """Characters as a text, parts of which are made and found in less time than those of a tuple."""
    return "".join(article.words) if is_characters else article.words


def _places(words: Words, places: dict[Words, int], length: int) -> dict[Words, int]:
    """The first place of each run of this length."""
    if not places:
        for at in range(len(words) - length, -1, -1):
            places[words[at : at + length]] = at
    return places


def _runs(left: Words, right: Words, places: dict[Words, int], least: int) -> list[Run]:
    """Common runs in the same order in both: those with the most words together."""
    found: list[Run] = []
    at, last = 0, len(left) - least
    while at <= last:
        place = places.get(left[at : at + least])
        if place is None:
            at += 1
            continue
        length = least
        while (
            at + length < len(left)
            and place + length < len(right)
            and left[at + length] == right[place + length]
        ):
            length += 1
        found.append((at, place, length))
        at += length
    if all(one[1] + one[2] <= other[1] for one, other in pairwise(found)):
        return found
    # The best chain that ends with each run.
    best: list[tuple[int, int]] = []
    for number, (_, place, length) in enumerate(found):
        before = max(
            ((best[each][0], each) for each in range(number) if found[each][1] + found[each][2] <= place),
            default=(0, -1),
        )
        best.append((before[0] + length, before[1]))
    chain: list[Run] = []
    number = max(range(len(best)), key=lambda each: best[each][0])
    while number >= 0:
        chain.append(found[number])
        number = best[number][1]
    return chain[::-1]


def _beside(
    left: Words,
    right: Words,
    lefts: tuple[int, int],
    rights: tuple[int, int],
    unit: int,
    most: int,
) -> list[Span]:
    """The words of both between two runs, up to the first and from the last word that is common there."""
    (start_left, end_left), (start_right, end_right) = lefts, rights
    near = _first_common(
        left[start_left : start_left + most + unit], right[start_right : start_right + most + unit], unit
    )
    is_whole = end_left - start_left <= most and end_right - start_right <= most
    if near is None or start_left + near[0] >= end_left or start_right + near[1] >= end_right:
        return [(start_left, end_left, start_right, end_right)] if is_whole else []
    spans = []
    if near[0] and near[1]:
        spans.append((start_left, start_left + near[0], start_right, start_right + near[1]))
    far = _first_common(
        left[max(start_left, end_left - most - unit) : end_left][::-1],
        right[max(start_right, end_right - most - unit) : end_right][::-1],
        unit,
    )
    if far is not None and far[0] and far[1]:
        span = (end_left - far[0], end_left, end_right - far[1], end_right)
        if span not in spans and span[0] >= start_left + near[0] and span[2] >= start_right + near[1]:
            spans.append(span)
    return spans


def _first_common(left: Words, right: Words, unit: int) -> tuple[int, int] | None:
    """The places of the common word (or pair of characters) that is nearest to the start of both."""
    best: tuple[int, int] | None = None
    for one in range(len(left) - unit + 1):
        if best is not None and one >= best[0] + best[1]:
            break
        for other in range(len(right) - unit + 1):
            if left[one : one + unit] == right[other : other + unit]:
                if best is None or one + other < best[0] + best[1]:
                    best = (one, other)
                break
    return best


def _spanned(span: Span, one: Article, other: Article) -> Slot | None:
    start_left, end_left, start_right, end_right = span
    in_title = start_left < one.title_length and start_right < other.title_length
    if in_title and (end_left > one.title_length or end_right > other.title_length):
        # A whole title against the beginning of a text.
        return None
    return _slot(one.words[start_left:end_left], other.words[start_right:end_right], one, other, in_title)


def _slot(
    left: tuple[str, ...], right: tuple[str, ...], one: Article, other: Article, in_title: bool
) -> Slot | None:
    if one.is_paired:
        return _paired_slot("".join(left), "".join(right), one, other, in_title)
    numbers = [{word for word in side if word[0].isdigit()} for side in (left, right)]
    if numbers[0] and numbers[1] and numbers[0].isdisjoint(numbers[1]):
        if _are_tolls(numbers[0], one) and _are_tolls(numbers[1], other):
            return None
        return True, False, in_title
    if _names(left, one, other, in_title) and _names(right, other, one, in_title):
        return False, True, in_title
    if not in_title or not (_says(left) and _says(right)):
        return None
    return False, False, True


def _says(words: tuple[str, ...]) -> bool:
    """True for words that tell two titles apart: not for "the", nor for a spelled number, which may rise."""
    return any(word not in FUNCTION_WORDS for word in words) and SPELLED.keys().isdisjoint(words)


def _are_tolls(numbers: set[str], article: Article) -> bool:
    tolls = article.facts.tolls
    return all(_value(each) in tolls for each in numbers)


def _value(text: str) -> float:
    digits = "".join(each for each in text if each.isdigit())
    return float(digits or 0)


def _names(words: tuple[str, ...], own: Article, other: Article, in_title: bool) -> bool:
    for word in words:
        key = stem(word)
        if in_title and key in own.title_names:
            return True
        if key in own.names and key not in other.known:
            return True
    return False


def _paired_slot(left: str, right: str, one: Article, other: Article, in_title: bool) -> Slot | None:
    digits = ["".join(each for each in side if each.isdigit()) for side in (left, right)]
    if digits[0] and digits[1]:
        if digits[0] == digits[1]:
            return None
        values = [float(each) for each in digits]
        if values[0] in one.facts.tolls and values[1] in other.facts.tolls:
            return None
        return True, False, in_title
    if len(left) < 2 or len(right) < 2:
        return (False, False, True) if in_title else None
    is_name = all(
        not any(side[at : at + 2] in article.known for at in range(len(side) - 1))
        for side, article in ((left, other), (right, one))
    )
    return (False, True, in_title) if is_name else ((False, False, True) if in_title else None)
