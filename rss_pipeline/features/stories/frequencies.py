"""Document frequencies by language, learned as items come."""

from array import array
from collections.abc import Iterable, Sequence
from functools import cache
from math import log, sqrt
from pathlib import Path

from rss_pipeline.features.stories.words import PAIRED_LANGUAGES, hashed, stem

MOST_TERMS = 200
MOST_TEXTS = 100_000
"""Texts of a language after which all counts are halved: what is common changes with the years."""
_BUCKETS = 1 << 18
"""Terms that share a bucket by chance stay below `_RAREST` with as many texts as are counted."""
_MOST, _MANY = 65_535, 255
_MASK = _BUCKETS - 1
_HALF = bytes(count >> 1 for count in range(_MANY + 1))
_MOST_CHANGES = 8_192
"""Buckets that are counted again at each call, those of some forty items, until all counts are written."""
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
        self.seen = bytearray()
        """By bucket, up to `_MANY`."""
        self.many: dict[int, int] = {}
        """The rest of higher counts, by bucket."""
        self.totals: dict[str, int] = {}
        self.changes: array[int] | None = None
        """The buckets that were counted since the counts were written; None where they have to be."""

    def _begin(self, language: str) -> None:
        self.seen = self.seen or bytearray(_BUCKETS)
        self.totals[language] = 0
        salt = hashed(language)
        self._count([(hashed(word) ^ salt) & _MASK for word in common_words(language)] * _COMMON)

    def _count(self, buckets: Sequence[int]) -> None:
        seen = self.seen
        for at in buckets:
            if seen[at] < _MANY:
                seen[at] += 1
            else:
                self.many[at] = min(self.many.get(at, 0) + 1, _MOST - _MANY)
        if self.changes is not None:
            self.changes.extend(buckets)
            if len(self.changes) > _MOST_CHANGES:
                self.changes = None

    def add(self, language: str, terms: Iterable[int]) -> None:
        if language not in self.totals:
            self._begin(language)
        total = self.totals[language] = self.totals.get(language, 0) + 1
        salt = hashed(language)
        self._count([(term ^ salt) & _MASK for term in terms])
        if total >= MOST_TEXTS:
            self._halve()

    def _halve(self) -> None:
        counts = {at: _MANY + more >> 1 for at, more in self.many.items()}
        self.seen = self.seen.translate(_HALF)
        for at, count in counts.items():
            self.seen[at] = min(count, _MANY)
        self.many = {at: count - _MANY for at, count in counts.items() if count > _MANY}
        self.totals = {name: count >> 1 for name, count in self.totals.items()}
        self.changes = None

    def weights(self, language: str, words: Iterable[str]) -> dict[str, float]:
        """The rarity of each stem."""
        if language not in self.totals:
            self._begin(language)
        salt, seen, many, total = hashed(language), self.seen, self.many, self.totals.get(language, 0)
        counts = {word: seen[at := (hashed(word) ^ salt) & _MASK] + many.get(at, 0) for word in words}
        weights = {count: rarity(total, count) for count in set(counts.values())}
        return {word: weights[count] for word, count in counts.items()}

    def vector(self, language: str, terms: dict[int, int]) -> Vector:
        """The heaviest terms with their weights, heaviest first; of length 1."""
        if language not in self.totals:
            self._begin(language)
        salt, seen, many = hashed(language), self.seen, self.many
        part = 1.0 / (self.totals.get(language, 0) + _SMOOTHED + 1)
        least = _RAREST + 0.5 * part
        weighed = [
            (_TIMES[times] * -log(least + (seen[at := (term ^ salt) & _MASK] + many.get(at, 0)) * part), term)
            for term, times in terms.items()
        ]
        weighed.sort(reverse=True)
        del weighed[MOST_TERMS:]
        length = sqrt(sum(weight * weight for weight, _ in weighed)) or 1.0
        return {term: weight / length for weight, term in weighed}

    def load(
        self, seen: bytearray, many: "array[int]", totals: dict[str, int], changes: "array[int]"
    ) -> None:
        """Take counts that are in a file, and what was counted since then. `many` has the buckets of higher
        counts than `_MANY`, then the rest of each."""
        self.seen, self.totals = seen, totals
        half = len(many) // 2
        self.many = dict(zip(many[:half], many[half:], strict=True))
        self.changes = array("I")
        self._count(changes)
