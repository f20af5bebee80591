"""Repetitions of a feed, learned as they come: sentences below its items, titles of items without a text.

They say nothing of an event.
"""

import re
from array import array
from bisect import bisect_left

from rss_pipeline.features.stories.words import hashed

_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？\n]*")
_DIGITS = re.compile(r"\d+")
_REPEATED = 3
"""So many earlier items with a sentence make it boilerplate."""
_LEAST = 12
_BUCKETS = 1 << 20
_MOST_SENTENCES = 200_000
"""Sentences after which all counts are halved, so that the table never fills with those of other texts."""
_FEWEST_NEW = 1_024
"""Sentences that are new, until there are more, and more than a sixteenth of those that are known."""
_MOST = 255


class Boilerplate:
    """The number of a feed's items with each sentence."""

    def __init__(self) -> None:
        self.known = array("I")
        """Sentences, rising, each as a hash with its count in the lowest byte."""
        self.new: dict[int, int] = {}
        """The counts of those that came, or came again, since then."""
        self.added = 0
        self.is_written = False
        """The known ones are in a file."""

    def repeated(self, feed: str, text: str) -> tuple[int, ...]:
        """Return the places, among the sentences of the text, of those that the feed repeats; learn them."""
        found = []
        counts: dict[int, int] = {}
        for at, sentence in enumerate(_SENTENCE.findall(text)):
            if len(sentence) < _LEAST:
                continue
            key = hashed(f"{feed}\0{sentence.strip()}") % _BUCKETS
            counts[key] = self._count(key)
            if counts[key] >= _REPEATED:
                found.append(at)
        for key, count in counts.items():
            self.new[key] = min(count + 1, _MOST)
        self.added += len(counts)
        is_full = self.added >= _MOST_SENTENCES
        if is_full or len(self.new) > max(_FEWEST_NEW, len(self.known) // 16):
            self.known, self.new, self.is_written = self._together(), {}, False
        if is_full:
            self.known = array("I", [each - ((each & _MOST) + 1) // 2 for each in self.known if each & 254])
            self.added //= 2
        return tuple(found)

    def _count(self, key: int) -> int:
        count = self.new.get(key)
        if count is None:
            at = bisect_left(self.known, key << 8)
            known = self.known[at] if at < len(self.known) else 0
            count = known & _MOST if known >> 8 == key else 0
        return count

    def _together(self) -> "array[int]":
        new = self.new
        return array("I", sorted([*(each for each in self.known if each >> 8 not in new), *self.changes]))

    @property
    def changes(self) -> "array[int]":
        """The new sentences, in the form of the known ones."""
        return array("I", [key << 8 | count for key, count in self.new.items()])

    def load(self, known: "array[int]", changes: "array[int]", added: int) -> None:
        self.known, self.new, self.added = known, {each >> 8: each & _MOST for each in changes}, added
        self.is_written = True


def without(text: str, places: tuple[int, ...]) -> str:
    """Return the text without the sentences at these places."""
    if not places:
        return text
    return "".join(each for at, each in enumerate(_SENTENCE.findall(text)) if at not in places)


class Titles:
    """The last two days on which a feed had a title, of items that have no text."""

    DAYS = 30
    """Days after which a title is new again."""

    def __init__(self) -> None:
        self.last: dict[int, int] = {}
        self.before: dict[int, int] = {}
        """By a hash of the feed and the title; days since 1970, of those titles alone that came twice."""

    def had(self, feed: str, title: str, day: int) -> int:
        """The times that the feed had the title in the days before: 0, 1, or 2 for twice and more."""
        key = _of_title(feed, title)
        return sum(day - days.get(key, -self.DAYS) < self.DAYS for days in (self.last, self.before))

    def add(self, feed: str, title: str, day: int) -> None:
        key = _of_title(feed, title)
        if key in self.last:
            self.before[key] = self.last[key]
        self.last[key] = day

    def forget(self, day: int) -> None:
        """Drop what came more than so many days before this one."""
        self.last = {key: each for key, each in self.last.items() if day - each < self.DAYS}
        self.before = {key: each for key, each in self.before.items() if day - each < self.DAYS}


def _of_title(feed: str, title: str) -> int:
    return hashed(f"{feed}\0{_DIGITS.sub('', title)}")
