"""Shards: values that are in databases, and what each change of their number moves."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.models.shard import BUCKETS, Shard, bucket_of, shard_of, shards

COUNTS = st.integers(1, 64)


def owners(count: int) -> list[int]:
    return [shard_of(bucket, count) for bucket in range(BUCKETS)]


def test_a_host_keeps_its_bucket_for_ever() -> None:
    hosts = ["example.com", "a.example", "feeds.example.org", "127.0.0.1", "xn--bcher-kva.example", ""]
    assert [bucket_of(host) for host in hosts] == [614, 526, 709, 652, 697, 692]


def test_a_bucket_keeps_its_shard_for_ever() -> None:
    found = {count: [shard_of(bucket, count) for bucket in (0, 1, 341, 614, 1023)] for count in (1, 2, 3, 8)}
    assert found == {1: [1, 1, 1, 1, 1], 2: [1, 1, 1, 2, 2], 3: [1, 1, 3, 3, 2], 8: [1, 1, 4, 6, 2]}


@given(st.text())
def test_every_text_has_a_bucket(host: str) -> None:
    assert 0 <= bucket_of(host) < BUCKETS


def test_hosts_are_spread_evenly_over_the_buckets() -> None:
    found = Counter(bucket_of(f"host-{n}.example") for n in range(100 * BUCKETS))
    assert len(found) == BUCKETS
    assert min(found.values()) > 50
    assert max(found.values()) < 150


@given(COUNTS)
def test_shards_differ_by_one_bucket_at_most_and_have_each_once(count: int) -> None:
    dealt = Counter(owners(count))
    assert sorted(dealt) == list(range(1, count + 1))
    assert max(dealt.values()) - min(dealt.values()) <= 1
    listed = [bucket for shard in shards(count) for bucket in shard.buckets]
    assert sorted(listed) == (list(range(BUCKETS)) if count > 1 else [])


@given(COUNTS, COUNTS)
def test_another_number_of_shards_moves_buckets_to_the_new_ones_only(one: int, other: int) -> None:
    few, many = sorted((one, other))
    moved = [now for before, now in zip(owners(few), owners(many), strict=True) if before != now]
    assert all(now > few for now in moved)
    assert len(moved) <= BUCKETS * (many - few) / many + many


def test_a_shard_of_none_or_beyond_the_last_is_refused() -> None:
    for number, of in ((0, 3), (4, 3), (1, 0), (1, BUCKETS + 1)):
        with pytest.raises(ValueError, match=f"shard {number} of {of}"):
            Shard(number=number, of=of)
    assert str(Shard(number=3, of=8)) == "3 of 8"
    assert shards(1) == []
