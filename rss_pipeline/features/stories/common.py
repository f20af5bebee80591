"""Common traits of two articles beside a template: names that stand apart, rare words, parts of compounds.

Texts of one event in other words share a few rare things; look-alikes share a template, or one name.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from rss_pipeline.features.stories.article import HEAD, LEAST_COMPOUND, Article
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


def shared(
    one: Article, other: Article, runs: Sequence[Run], weights: Callable[[Iterable[str]], Weights]
) -> tuple[float, float]:
    """Return the worth of names of both that stand apart from each other, and of other rare words of both.

    Words of a common run are those of a template, or of a title that goes with a name: they say one thing.
    """
    in_run = {at for start, _, length in runs for at in range(start, start + length)}
    if one.is_paired and one.language != "ko":
        return _of_pairs(one, other, in_run, weights)
    is_korean = one.language == "ko"
    keys = [word[:_TOKEN] if is_korean else stem(word) for word in one.words]
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
    named = told = best = 0.0
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
        if at - last <= 1 + (at in in_run):
            named += max(0.0, worth - best)
            best = max(best, worth)
        else:
            named += worth
            best = worth
        last = at
    return named, told + (0.0 if is_korean else AS_HEAD * _of_heads(one, other, keys, weights))


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
) -> tuple[float, float]:
    words, known = one.words, other.known
    found = [(at, pair) for at in range(len(words) - 1) if (pair := words[at] + words[at + 1]) in known]
    weighed = weights({pair for _, pair in found})
    seen: set[str] = set()
    named = told = 0.0
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
            else:
                told += worth
            stretch = []
        stretch.append((at, pair))
    return named, told
