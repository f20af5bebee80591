"""Document frequencies by language, learned as items come."""

from array import array
from collections.abc import Iterable
from functools import cache
from math import log, sqrt
from pathlib import Path

from rss_pipeline.features.stories.words import PAIRED_LANGUAGES, hashed, stem

MOST_TERMS = 200
MOST_TEXTS = 100_000
"""Texts of a language after which all counts are halved: what is common changes with the years."""
_BUCKETS = 1 << 18
"""Terms that share a bucket by chance stay below `_RAREST` with as many texts as are counted."""
_MOST = 65_535
_MASK = _BUCKETS - 1
_SMOOTHED = 100
"""Texts that every language is taken to have had, because the terms of its first ones are not all rare."""
_COMMON = 8
"""Texts of these that have each of the language's common words: a name is rarer from the first text on."""
_RAREST = 0.003
"""The part of texts below which a term is not rarer: so likenesses stay what they are while texts come in."""
_TIMES = [0.0, *(1.0 + log(times) for times in range(1, 4_096))]
"""The weight of a term that a text has so many times; no text that is read has more words."""
Vector = dict[int, float]
HIGHEST_RARITY = 4.8
"""The rarity of a term that no text has had, nearly."""


def rarity(total: int, seen: int) -> float:
    """The weight of a term that so many of all texts have."""
    return max(0.0, -log(_RAREST + (seen + 0.5) / (total + _SMOOTHED + 1)))


@cache
def common_words(language: str) -> frozenset[str]:
    """Stems of the common words of news in a language, or pairs of characters; of a script, all of its."""
    lines = (Path(__file__).parent / "common.txt").read_text("utf-8").splitlines()
    of_script = {"latin": {"en", "de", "fr", "es", "it", "pt", "nl"}, "cyrillic": {"ru"}}.get(
        language, {language}
    )
    found = set[str]()
    for line in lines:
        name, *words = line.split()
        if name in of_script and name in PAIRED_LANGUAGES:
            found.update(word[at : at + 2] for word in words for at in range(len(word) - 1))
        elif name in of_script:
            found.update(map(stem, words))
    return frozenset(found)


@cache
def latin_words() -> frozenset[str]:
    """Words in Latin letters that texts in other scripts have, and that are no names."""
    lines = (Path(__file__).parent / "common.txt").read_text("utf-8").splitlines()
    return next(frozenset(words) for name, *words in map(str.split, lines) if name == "latin+")


class Frequencies:
    """The number of texts of a language with each term."""

    def __init__(self) -> None:
        self.seen = array("H", bytes(2 * _BUCKETS))
        self.totals: dict[str, int] = {}

    def _begin(self, language: str) -> None:
        self.totals[language] = 0
        salt, seen = hashed(language), self.seen
        for word in common_words(language):
            seen[(hashed(word) ^ salt) & _MASK] += _COMMON

    def add(self, language: str, terms: Iterable[int]) -> None:
        if language not in self.totals:
            self._begin(language)
        total = self.totals[language] = self.totals.get(language, 0) + 1
        salt, seen = hashed(language), self.seen
        for term in terms:
            at = (term ^ salt) & _MASK
            if seen[at] < _MOST:
                seen[at] += 1
        if total >= MOST_TEXTS:
            self.seen = array("H", (count >> 1 for count in seen))
            self.totals = {name: count >> 1 for name, count in self.totals.items()}

    def weights(self, language: str, words: Iterable[str]) -> dict[str, float]:
        """The rarity of each stem."""
        if language not in self.totals:
            self._begin(language)
        salt, seen, total = hashed(language), self.seen, self.totals.get(language, 0)
        counts = {word: seen[(hashed(word) ^ salt) & _MASK] for word in words}
        weights = {count: rarity(total, count) for count in set(counts.values())}
        return {word: weights[count] for word, count in counts.items()}

    def vector(self, language: str, terms: dict[int, int]) -> Vector:
        """The heaviest terms with their weights, heaviest first; of length 1."""
        if language not in self.totals:
            self._begin(language)
        salt, seen = hashed(language), self.seen
        part = 1.0 / (self.totals.get(language, 0) + _SMOOTHED + 1)
        least = _RAREST + 0.5 * part
        weighed = [
            (_TIMES[times] * -log(least + seen[(term ^ salt) & _MASK] * part), term)
            for term, times in terms.items()
        ]
        weighed.sort(reverse=True)
        del weighed[MOST_TERMS:]
        length = sqrt(sum(weight * weight for weight, _ in weighed)) or 1.0
        return {term: weight / length for weight, term in weighed}

    def load(self, seen: bytes, totals: dict[str, int]) -> None:
        self.seen, self.totals = array("H", seen), totals
