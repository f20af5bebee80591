"""Sentences that a feed repeats below its items, learned as they come: they say nothing of an event."""

import re

from rss_pipeline.features.stories.words import hashed

_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？\n]*")
_REPEATED = 3
"""So many earlier items with a sentence make it boilerplate."""
_LEAST = 12
_BUCKETS = 1 << 20
_MOST_SENTENCES = 200_000
"""Sentences after which all counts are halved, so that the table never fills with those of other texts."""
_HALF = bytes(count >> 1 for count in range(256))


class Boilerplate:
    """The number of a feed's items with each sentence."""

    def __init__(self) -> None:
        self.seen = bytearray(_BUCKETS)
        self.added = 0

    def repeated(self, feed: str, text: str) -> tuple[int, ...]:
        """Return the places, among the sentences of the text, of those that the feed repeats; learn them."""
        found = []
        keys = set()
        seen = self.seen
        for at, sentence in enumerate(_SENTENCE.findall(text)):
            if len(sentence) < _LEAST:
                continue
            key = hashed(f"{feed}\0{sentence.strip()}") % _BUCKETS
            keys.add(key)
            if seen[key] >= _REPEATED:
                found.append(at)
        for key in keys:
            if seen[key] < 255:
                seen[key] += 1
        self.added += len(keys)
        if self.added >= _MOST_SENTENCES:
            self.seen = seen.translate(_HALF)
            self.added //= 2
        return tuple(found)

    def load(self, seen: bytes, added: int) -> None:
        self.seen, self.added = bytearray(seen), added


def without(text: str, places: tuple[int, ...]) -> str:
    """Return the text without the sentences at these places."""
    if not places:
        return text
    return "".join(each for at, each in enumerate(_SENTENCE.findall(text)) if at not in places)
