"""Common traits of two articles beside a template: names that stand apart, rare words, parts of compounds.

Texts of one event in other words share a few rare things; look-alikes share a template, or one name.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache, partial
from itertools import pairwise
from math import fsum
from operator import add
from typing import NamedTuple

from rss_pipeline.features.stories.article import CALENDAR, HEAD, LEAST_COMPOUND, Article
from rss_pipeline.features.stories.frequencies import latin_words
from rss_pipeline.features.stories.vocabulary import FUNCTION_WORDS
from rss_pipeline.features.stories.words import stem

Weights = Mapping[str, float]
"""The rarity of words."""
Run = tuple[int, int, int]
"""A common run of words: its places in both articles, and its length."""

AS_HEAD = 0.6
"""The part of a word's worth that its beginning has: Kammerchor beside Kammermusik."""
_COMMON = 2.5
"""The rarity of a language's common words, which say nothing."""
_RARE = 2.0
"""So much rarer, a word is worth 1."""
_MOST = 1.5
_BESIDE = 0.3
"""The part of the worth of further pairs of characters of one run."""
_TOKEN = 2
"""Characters of a Korean word that are compared: what follows is a particle, mostly."""
_LEAST_NAME = 3
"""Characters of a Korean word without its particle, and of a common beginning, that may be a name."""
_EDGES = re.compile(r"^\W+|\W.*$")
_PARTICLE = re.compile("(?:에서|으로|까지|부터|[은는이가을를의에로와과도만서씨])$")


class Shared(NamedTuple):
    """The common part of two texts, by its rarity."""

    named: float
    """The worth of names that stand apart from each other."""
    told: float
    """The worth of other rare words."""
    titled: float
    """The worth of names that stand in a title, of one or both."""
    happening: Callable[[], float]
    """Counts the rare things that say what happened, and not only to whom and where."""


def shared(
    one: Article, other: Article, runs: Sequence[Run], weights: Callable[[Iterable[str]], Weights]
) -> Shared:
    """Return what two texts have in common.

    Words of a common run are those of a template, or of a title that goes with a name: they say one thing.
    """
    if one.is_paired:
        return _of_paired(one, other, weights)
    in_run = {at for start, _, length in runs for at in range(start, start + length)}
    keys = list(map(stem, one.words))
    found = [
        (at, key)
        for at, key in enumerate(keys)
        if len(key) > 1
        and key in other.known
        and not key[0].isdigit()
        and one.words[at] not in FUNCTION_WORDS
    ]
    weighed = weights({key for _, key in found})
    seen: set[str] = set()
    named = told = titled = best = 0.0
    last = -2
    for at, key in found:
        is_name = key in one.names or key in other.names
        if key in seen:
            last = at if is_name else last
            continue
        seen.add(key)
        worth = _worth(weighed[key])
        if not is_name:
            told += 0.0 if at in in_run else worth
            continue
        is_beside = at - last <= 1 + (at in in_run)
        more = max(0.0, worth - best) if is_beside else worth
        best = max(best, worth) if is_beside else worth
        named += more
        if key in one.title_names or key in other.title_names:
            titled += more
        last = at
    told += AS_HEAD * _of_heads(one, other, keys, weights)
    return Shared(named, told, titled, partial(_happened, one, other, keys, found, weighed, in_run))


_WHO_AND_WHERE = 2
"""Names that two events have in common: that of a firm, or of a person, and that of a place."""
_BEFORE = 2
"""Words before a name that say what it is: the electronics group Velmora."""
_FAR = 0.5
"""The part of a word that stands in no title."""
_COMMON_IN_TITLES = 0.3
"""The least part of one that stands in both: train crash."""


def _happened(
    one: Article,
    other: Article,
    keys: Sequence[str],
    found: Sequence[tuple[int, str]],
    weighed: Weights,
    in_run: AbstractSet[int],
) -> float:
    """The number of rare things of both that say what happened: words of a title, other words that do not
    stand beside a name or in a common run as those of its kind, and names beyond who and where."""
    unit = max(map(_worth, weighed.values()), default=0.0)
    if not unit:
        return 0.0
    names = {key for _, key in found if key in one.names or key in other.names}
    total = sum(sorted(_apart(found, names, weighed), reverse=True)[_WHO_AND_WHERE:]) / unit
    others = list(map(stem, other.words))
    title, other_title = keys[: one.title_length], others[: other.title_length]
    titles = {*title, *other_title}
    before, text_before, text_behind = _beside(keys, names, one.title_length)
    other_before, other_text_before, other_text_behind = _beside(others, names, other.title_length)
    # A word that both have before it says who that is: the minister, the phone maker.
    roles = before & other_before
    beside = text_before | other_text_before | (text_behind & other_text_behind)
    beside.update(keys[at] for at in in_run)
    for key in {key for _, key in found} - names - CALENDAR - roles:
        worth = _worth(weighed[key]) / unit
        if key in titles:
            total += max(worth, _COMMON_IN_TITLES if key in title and key in other_title else 0.0)
        elif key not in beside:
            total += _FAR * worth
    return total


def _apart(found: Sequence[tuple[int, str]], names: AbstractSet[str], weighed: Weights) -> Iterable[float]:
    """The worth of each name, those as one that stand side by side anywhere, or with words of both between
    them: Hale, and Transport Minister Oona Hale."""
    of: dict[str, str] = {}
    last, before = -2, ""
    for at, key in found:
        is_beside = at - last == 1
        last = at
        if key not in names:
            before = before if is_beside else ""
            continue
        of.setdefault(key, key)
        if is_beside and before and of[key] != of[before]:
            mine, theirs = of[key], of[before]
            of = {name: theirs if name_of == mine else name_of for name, name_of in of.items()}
        before = key
    worths: dict[str, float] = {}
    for key, name in of.items():
        worths[name] = max(worths.get(name, 0.0), _worth(weighed[key]))
    return worths.values()


def _beside(keys: Sequence[str], names: AbstractSet[str], start: int) -> tuple[set[str], set[str], set[str]]:
    """The words before one of these names, those of them in the text, and there the words behind one."""
    found: set[str] = set()
    in_text: set[str] = set()
    behind: set[str] = set()
    for at, key in enumerate(keys):
        if key in names:
            found.update(keys[max(0, at - _BEFORE) : at])
            if at >= start:
                in_text.update(keys[max(start, at - _BEFORE) : at])
                behind.update(keys[at + 1 : at + 2])
    return found, in_text, behind


@lru_cache(16_384)
def _korean(word: str) -> str:
    """The word without marks and particle."""
    return _PARTICLE.sub("", _EDGES.sub("", word))


def _beginning(one: str, other: str) -> str:
    count = 0
    while one[: count + 1] == other[: count + 1] and count < len(one):
        count += 1
    return one[:count]


def korean_names(one: Article, other: Article) -> set[str]:
    """Long words of both, as far as they are alike."""
    words = [
        [name for each in article.words if len(name := _korean(each)) >= _LEAST_NAME]
        for article in (one, other)
    ]
    return {
        _beginning(mine, theirs)
        for mine in words[0]
        for theirs in words[1]
        if mine[:_LEAST_NAME] == theirs[:_LEAST_NAME]
    }


def _worth(rarity: float) -> float:
    return min(_MOST, max(0.0, (rarity - _COMMON) / _RARE))


def _of_heads(
    one: Article, other: Article, keys: Sequence[str], weights: Callable[[Iterable[str]], Weights]
) -> float:
    heads = {
        word[:HEAD]: key
        for word, key in zip(one.words, keys, strict=True)
        if len(word) >= LEAST_COMPOUND
        and word[:HEAD] in other.heads
        and key not in other.known
        and word not in FUNCTION_WORDS
    }
    weighed = weights(heads.values()) if heads else {}
    return sum(_worth(weighed[key]) for key in heads.values())


Stretch = tuple[int, list[str]]
"""A common stretch of text: where it begins, and those of its pairs of characters that are new."""


def _of_paired(one: Article, other: Article, weights: Callable[[Iterable[str]], Weights]) -> Shared:
    """Scripts of pairs have no capitals: what both have is of names and of other words alike.

    The best stretch is what two reports of one person, company or town share; what is beyond it counts.
    """
    stretches = _korean_stretches if one.language == "ko" else _stretches
    mine, theirs = stretches(one, other, len(one.words)), stretches(other, one, other.title_length)
    latin = (one.names & other.names).difference(latin_words())
    weighed = weights({*latin, *(pair for _, found in (*mine, *theirs) for pair in found)})
    worths = [(at, _worth_of([weighed[pair] for pair in found])) for at, found in mine]
    others = [(at, _worth_of([weighed[pair] for pair in found])) for at, found in theirs]
    # Words in Latin letters are of one thing: Let's Encrypt.
    named = _worth_of([weighed[name] for name in latin]) if latin else 0.0
    titled = [
        sum(worth for at, worth in each if at < article.title_length)
        + (0.0 if latin.isdisjoint(article.title_names) else named)
        for article, each in ((one, worths), (other, others))
    ]
    total = [named, *(worth for _, worth in worths)]
    unit = max(map(_worth, weighed.values()), default=0.0) or 1.0
    happened = sum(sorted(total, reverse=True)[_WHO_AND_WHERE:]) / unit
    return Shared(sum(total) - max(total), 0.0, max(titled), lambda: happened)


def _worth_of(rarities: Sequence[float]) -> float:
    """The worth of a stretch: of its rarest pair, and a part of the others'."""
    worths = list(map(_worth, rarities))
    most = max(worths)
    return min(_MOST, most + _BESIDE * (fsum(worths) - most))


_NO_THING = re.compile("[\u3041-\u3096]{2}|[周期拜][一二三四五六日天]|星期|礼拜|[月火水木金土日]曜|曜日")
"""Hiragana, and weekdays."""
_KATAKANA = re.compile("[\u30a1-\u30fc]{2}")


def _stretches(one: Article, other: Article, end: int) -> list[Stretch]:
    """The stretches of the first characters of one that the other has, each once.

    Two that stand beside each other in both are one: a name and its quotation mark. Words in Latin letters
    are names of their own, behind a number is a counter, hiragana are endings, and two katakana alone are a
    part of a word.
    """
    words, lead, title_end = one.words, other.lead, one.title_length - 1
    whole = "".join(other.words)
    found: list[list[int]] = []
    last = -3
    pairs_of_all = map(add, words, words[1:end])
    for at, pair in [(at, pair) for at, pair in enumerate(pairs_of_all) if pair in lead]:
        if at == title_end or pair.isascii() or (at and words[at - 1].isdigit()) or _NO_THING.match(pair):
            continue
        if at == last + 1 or (at == last + 2 and "".join(words[last : at + 2]) in whole):
            found[-1].append(at)
        else:
            found.append([at])
        last = at
    stretches: list[Stretch] = []
    seen: set[str] = set()
    for places in found:
        pairs = dict.fromkeys(words[at] + words[at + 1] for at in places)
        if len(places) == 1 and _KATAKANA.match(next(iter(pairs))):
            continue
        fresh = [pair for pair in pairs if pair not in seen]
        # A name with its title or ending is no other thing.
        if 2 * len(fresh) > len(pairs):
            seen.update(fresh)
            stretches.append((places[0], fresh))
    return stretches


def _korean_stretches(one: Article, other: Article, end: int) -> list[Stretch]:
    """The words of one whose beginning the other has, without particles; neighbours in both are one."""
    others = list(map(_korean, other.words))
    beginnings = {word[:length] for word in others for length in (_TOKEN, _LEAST_NAME)}
    beside = {(before[:_TOKEN], word[:_TOKEN]) for before, word in pairwise(others)}
    found: list[Stretch] = []
    seen: set[str] = set()
    before = ""
    for at, word in enumerate(map(_korean, one.words[:end])):
        key = word[:_LEAST_NAME] if word[:_LEAST_NAME] in beginnings else word[:_TOKEN]
        if len(key) < _TOKEN or key[0].isdigit() or key not in beginnings or word.endswith("요일"):
            before = ""
            continue
        if key not in seen:
            seen.add(key)
            if not (found and before and (before, key[:_TOKEN]) in beside):
                found.append((at, []))
            found[-1][1].extend(key[each : each + 2] for each in range(len(key) - 1))
        before = key[:_TOKEN]
    return found
