"""Common traits of two articles beside a template: names that stand apart, rare words, parts of compounds.

Texts of one event in other words share a few rare things; look-alikes share a template, or one name.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from rss_pipeline.features.stories.article import HEAD, LEAST_COMPOUND, Article
from rss_pipeline.features.stories.frequencies import plain_words
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
_IN_RUN = 0.5
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


def shared(
    one: Article, other: Article, runs: Sequence[Run], weights: Callable[[Iterable[str]], Weights]
) -> Shared:
    """Return what two texts have in common.

    Words of a common run are those of a template, or of a title that goes with a name: they say one thing.
    """
    in_run = {at for start, _, length in runs for at in range(start, start + length)}
    if one.language == "ko" and one.is_paired:
        return _of_korean(one, other, in_run, weights)
    if one.is_paired:
        return _of_pairs(one, other, in_run, weights)
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
    return Shared(named, told + AS_HEAD * _of_heads(one, other, keys, weights), titled)


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


def _of_korean(
    one: Article, other: Article, in_run: set[int], weights: Callable[[Iterable[str]], Weights]
) -> Shared:
    """Korean has no capitals: a long word is a name, but for a template's."""
    short: dict[str, int] = {}
    long: dict[str, int] = {}
    others = {name[:_LEAST_NAME] for each in other.words if len(name := _korean(each)) >= _LEAST_NAME}
    for at, each in enumerate(one.words):
        word = _korean(each)
        if len(word) < _TOKEN or word[0].isdigit():
            continue
        if len(word) >= _LEAST_NAME and word[:_LEAST_NAME] in others:
            long.setdefault(word[:_LEAST_NAME], at)
        elif word[:_TOKEN] in other.known:
            short.setdefault(word[:_TOKEN], at)
    pairs = {key: [key[at : at + 2] for at in range(len(key) - 1)] for key in (*short, *long)}
    weighed = weights({each for some in pairs.values() for each in some})
    named = told = titled = 0.0
    for key, at in (*short.items(), *long.items()):
        if at in in_run:
            continue
        worth = _worth(sum(weighed[each] for each in pairs[key]) / len(pairs[key]))
        if key in short:
            told += worth
            continue
        named += worth
        if any(all(each in article.title_names for each in pairs[key]) for article in (one, other)):
            titled += worth
    return Shared(named, told, titled)


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


def _of_pairs(
    one: Article, other: Article, in_run: set[int], weights: Callable[[Iterable[str]], Weights]
) -> Shared:
    words, known = one.words, other.known
    found = [(at, pair) for at in range(len(words) - 1) if (pair := words[at] + words[at + 1]) in known]
    latin = (one.names & other.names).difference(plain_words("latin"))
    weighed = weights({*latin, *(pair for _, pair in found)})
    titles = one.title_names.keys() | other.title_names.keys()
    seen: set[str] = set()
    named = told = titled = 0.0
    for name in sorted(latin):
        worth = _worth(weighed[name])
        named += worth
        titled += worth * (name in titles)
    stretch: list[tuple[int, str]] = []
    for at, pair in [*found, (-1, "")]:
        if stretch and at != stretch[-1][0] + 1:
            fresh = [each for each in stretch if each[1] not in seen]
            seen.update(pair for _, pair in fresh)
            worths = [_worth(weighed[pair]) for _, pair in fresh] or [0.0]
            most = max(worths)
            worth = min(_MOST, most + _BESIDE * (sum(worths) - most))
            # The pairs of a run begin before its last character.
            if fresh and all(place in in_run and place + 1 in in_run for place, _ in fresh):
                named += _IN_RUN * worth
            elif sum(each > _IN_RUN for each in worths) > 1:
                named += worth
                titled += worth * all(pair in titles for _, pair in fresh)
            else:
                told += worth
            stretch = []
        stretch.append((at, pair))
    return Shared(named, told, titled)
