"""Shards: which of several polls at once visits a feed, by the host that it is requested from.

A host has one of 1,024 buckets for ever, kept in its feeds' rows; a shard is a set of buckets. Which feeds a
shard's poll may claim is storage.feeds.claimable's, when one starts pipeline.triggers.starts'.
"""

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

BUCKETS = 1024
"""As many shards as there can be."""


def bucket_of(host: str) -> int:
    """The bucket of a host, 0 to 1023: the same on each machine and in each version."""
    digest = blake2b(host.encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % BUCKETS


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Shard:
    """One of `of` shards; the first has number 1."""

    number: int
    of: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.of <= BUCKETS:
            raise ValueError(f"shard {self.number} of {self.of}: there are 1 to {BUCKETS} shards")

    def __str__(self) -> str:
        return f"{self.number} of {self.of}"

    @property
    def buckets(self) -> tuple[int, ...]:
        """Its buckets, in their order."""
        return _dealt(self.of)[self.number - 1]


def shards(count: int) -> list[Shard]:
    """All shards where there are so many; none where there is one, which is no shard but everything."""
    return [Shard(number=number, of=count) for number in range(1, count + 1)] if count > 1 else []


def shard_of(bucket: int, count: int) -> int:
    """The number of the shard that has this bucket where there are so many shards."""
    return _numbers(count)[bucket]


@lru_cache(maxsize=16)
def _numbers(count: int) -> tuple[int, ...]:
    numbers = {bucket: number for number, dealt in enumerate(_dealt(count), 1) for bucket in dealt}
    return tuple(numbers[bucket] for bucket in range(BUCKETS))


@lru_cache(maxsize=16)
def _dealt(count: int) -> tuple[tuple[int, ...], ...]:
    """The buckets of each shard. Each shard that is added takes its share from those that have most.

    So their numbers of buckets differ by one at most, and one shard more moves no bucket between the others.
    Rendezvous hashing moves as few, but its shards differ by a tenth and more.
    """
    held = [list(range(BUCKETS))]
    while len(held) < count:
        share = BUCKETS // (len(held) + 1)
        # Those with most give first, so that none gives twice before each of them has given once.
        most = sorted(held, key=len, reverse=True)
        taken: list[int] = []
        while len(taken) < share:
            for shard in most:
                if len(taken) < share and len(shard) > share:
                    taken.append(shard.pop())
        held.append(taken)
    return tuple(tuple(sorted(shard)) for shard in held)
