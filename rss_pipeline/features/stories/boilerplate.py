"""Sentences that a feed repeats below its items, learned as they come: they say nothing of an event."""

import re
from array import array

from rss_pipeline.features.stories.words import hashed

_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？\n]*")
_REPEATED = 3
"""So many earlier items with a sentence make it boilerplate."""
_LEAST = 12
_READ = 1_600
_BUCKETS = 1 << 20


class Boilerplate:
    """The number of a feed's items with each sentence."""

    def __init__(self) -> None:
        self._seen = array("B", bytes(_BUCKETS))

    def add(self, feed: str, text: str) -> None:
        for key in {self._key(feed, sentence) for sentence in _sentences(text)}:
            if self._seen[key] < 255:
                self._seen[key] += 1

    def without(self, feed: str, text: str) -> str:
        """Return the text without sentences that the feed repeats."""
        sentences = _sentences(text)
        kept = [each for each in sentences if self._seen[self._key(feed, each)] < _REPEATED]
        return text if len(kept) == len(sentences) else "".join(kept)

    def _key(self, feed: str, sentence: str) -> int:
        return hashed(f"{feed}\0{sentence.strip()}") % _BUCKETS


def _sentences(text: str) -> list[str]:
    return [each for each in _SENTENCE.findall(text[:_READ]) if len(each) >= _LEAST]
