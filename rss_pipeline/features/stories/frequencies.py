"""Document frequencies by language, learned as items come."""

from array import array
from collections.abc import Iterable
from math import log, sqrt
from zlib import compress, decompress

from rss_pipeline.features.stories.words import hashed

MOST_TERMS = 200
MOST_TEXTS = 100_000
"""Texts of a language after which all counts are halved: what is common changes with the years."""
_BUCKETS = 1 << 21
_MOST = 65_535
_MASK = _BUCKETS - 1
_SMOOTHED = 100
"""Texts that every language is taken to have had, because the terms of its first ones are not all rare."""
Vector = dict[int, float]


def rarity(total: int, seen: int) -> float:
    """The weight of a term that so many of all texts have."""
    return log((total + _SMOOTHED + 1) / (seen + 0.5))


class Frequencies:
    """The number of texts of a language with each term."""

    def __init__(self) -> None:
        self._seen = array("H", bytes(2 * _BUCKETS))
        self.totals: dict[str, int] = {}

    def add(self, language: str, terms: Iterable[int]) -> None:
        total = self.totals[language] = self.totals.get(language, 0) + 1
        salt, seen = hashed(language), self._seen
        for term in terms:
            at = (term ^ salt) & _MASK
            if seen[at] < _MOST:
                seen[at] += 1
        if total >= MOST_TEXTS:
            self._seen = array("H", (count >> 1 for count in seen))
            self.totals = {name: count >> 1 for name, count in self.totals.items()}

    def rarity(self, language: str, term: int) -> float:
        return rarity(self.totals.get(language, 0), self._seen[(term ^ hashed(language)) & _MASK])

    def vector(self, language: str, terms: dict[int, int]) -> Vector:
        """The heaviest terms with their weights, heaviest first; of length 1."""
        salt, seen = hashed(language), self._seen
        total = self.totals.get(language, 0) + _SMOOTHED + 1
        weighed = [
            ((1.0 + log(times)) * log(total / (seen[(term ^ salt) & _MASK] + 0.5)), term)
            for term, times in terms.items()
        ]
        weighed.sort(reverse=True)
        del weighed[MOST_TERMS:]
        length = sqrt(sum(weight * weight for weight, _ in weighed)) or 1.0
        return {term: weight / length for weight, term in weighed}

    def dumped(self) -> bytes:
        return compress(self._seen.tobytes(), 1)

    def load(self, seen: bytes, totals: dict[str, int]) -> None:
        self._seen, self.totals = array("H", decompress(seen)), totals
