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
_RAREST = 0.003
"""The part of texts below which a term is not rarer: so likenesses stay what they are while texts come in."""
_TIMES = [0.0, *(1.0 + log(times) for times in range(1, 4_096))]
"""The weight of a term that a text has so many times; no text that is read has more words."""
Vector = dict[int, float]


def rarity(total: int, seen: int) -> float:
    """The weight of a term that so many of all texts have."""
    return max(0.0, -log(_RAREST + (seen + 0.5) / (total + _SMOOTHED + 1)))


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

    def weights(self, language: str, words: Iterable[str]) -> dict[str, float]:
        """The rarity of each stem."""
        salt, seen, total = hashed(language), self._seen, self.totals.get(language, 0)
        return {word: rarity(total, seen[(hashed(word) ^ salt) & _MASK]) for word in words}

    def vector(self, language: str, terms: dict[int, int]) -> Vector:
        """The heaviest terms with their weights, heaviest first; of length 1."""
        salt, seen = hashed(language), self._seen
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

    def dumped(self) -> bytes:
        return compress(self._seen, 1)

    def load(self, seen: bytes, totals: dict[str, int]) -> None:
        self._seen, self.totals = array("H", decompress(seen)), totals
