"""The parts of a replay of all feeds: several runs at once, each of which reads the backups of its own feeds.

By the feed's id, and not by its host as the shards of polls: a replay requests nothing, one host may have a
tenth of all feeds, and a feed that moves to another host meanwhile would change its shard.
"""

import re
from dataclasses import dataclass
from typing import Self
from zlib import crc32

from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.feeds import feed_ids

PARTS_A_SHARD = 16
"""With a shard for each 3,000 feeds a part has some 200 of them: a run that is killed loses minutes."""
MOST_PARTS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One of `of` parts of all feeds; the first has number 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number} of {self.of}"

    @classmethod
    def read(cls, text: str) -> Self:
        """The inverse of `str`.

        Raises:
            ValueError: it is no part.
        """
        found = re.fullmatch(r"(\d{1,4}) of (\d{1,4})", text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise ValueError(f"{text!r} is no part; a part is `1 of 16`")
        return cls(number=int(found[1]), of=int(found[2]))

    def has(self, feed_id: str) -> bool:
        """True for the feeds of this part: the same on each machine, and at any time."""
        return crc32(feed_id.encode()) % self.of == self.number - 1


def parts(shards: int) -> list[Part]:
    """The parts of a replay where polls have so many shards."""
    count = min(PARTS_A_SHARD * shards, MOST_PARTS)
    return [Part(number=number, of=count) for number in range(1, count + 1)]


def feeds_of(database: Database, part: Part) -> list[str]:
    """The ids of the feeds of a part, in their order. In memory is no more than those and a page."""
    return list(filter(part.has, feed_ids(database)))
