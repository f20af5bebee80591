"""Feeds by shard: the bucket that each has, what a shard's poll claims, and what is due of each shard."""

from datetime import timedelta

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.shard import Shard, bucket_of, shard_of, shards
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import due, registered
from rss_pipeline.storage.feeds.claimable import Due, NotVisitedSince
from rss_pipeline.storage.feeds.subscribed import NewFeed, add_feeds
from rss_pipeline_tests.storage.values import (
    HOUR,
    NOW,
    change,
    claim,
    claim_one,
    failed,
    feed_row,
    ids,
    register,
    spec,
    unchanged,
)

FEEDS = tuple(f"{letter}{number}" for letter in "abcdef" for number in range(2))


def bucket(database: Database, id: str = "a") -> int | None:
    found: int | None = feed_row(database, id)["bucket"]
    return found


def by_shard(count: int) -> dict[Shard, list[str]]:
    """The feeds of FEEDS by the shard of their host, which is in their name."""
    return {
        shard: [id for id in FEEDS if shard_of(bucket_of(f"{id[0]}.example"), count) == shard.number]
        for shard in shards(count)
    }


def test_each_way_to_write_a_host_writes_its_bucket(database: Database) -> None:
    register(database, spec("a"))
    database.batch(add_feeds([NewFeed(id="s", url="https://s.example/", host="s.example")], now=NOW))
    assert (bucket(database), bucket(database, "s")) == (bucket_of("a.example"), bucket_of("s.example"))
    register(database, spec("a", host="other.example"))
    assert bucket(database) == bucket_of("other.example")


def test_a_feed_is_of_the_shard_of_the_host_that_its_last_answer_came_from(database: Database) -> None:
    register(database, spec("a"))
    there = "https://shared.example/feed"
    unchanged(database, *claim_one(database), url=there)
    assert bucket(database) == bucket_of("shared.example")
    failed(database, *claim_one(database))
    register(database, spec("a", title="another title"))
    assert bucket(database) == bucket_of("shared.example"), "nothing says that it leads elsewhere now"
    unchanged(database, *claim_one(database))
    assert bucket(database) == bucket_of("a.example")


def test_feeds_of_an_older_version_get_their_bucket_once(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    change(database, "UPDATE feeds SET bucket = NULL WHERE id = 'a'")
    change(database, "UPDATE feeds SET bucket = 7 WHERE id = 'b'")
    assert registered.place(database, registered.registry_rows(database)) == 1
    assert (bucket(database), bucket(database, "b")) == (bucket_of("a.example"), 7)
    assert registered.place(database, registered.registry_rows(database)) == 0


def test_shards_claim_each_feed_once_and_a_host_together(database: Database) -> None:
    register(database, *(spec(id, host=f"{id[0]}.example") for id in FEEDS))
    expected = by_shard(3)
    assert sum(map(bool, expected.values())) > 1, "the hosts above are of several shards"
    for shard, wanted in expected.items():
        assert ids(claim(database, Due(now=NOW, shard=shard))) == wanted
    assert ids(claim(database)) == []


def test_a_feed_without_a_bucket_is_of_one_shard(database: Database) -> None:
    register(database, spec("a"))
    change(database, "UPDATE feeds SET bucket = NULL WHERE id = 'a'")
    found = [ids(claim(database, Due(now=NOW, shard=shard))) for shard in shards(5)]
    assert sorted(map(len, found)) == [0, 0, 0, 0, 1]


def test_a_poll_of_all_feeds_goes_by_shard_too(database: Database) -> None:
    register(database, *(spec(id, host=f"{id[0]}.example") for id in FEEDS), now=NOW + HOUR)
    for shard, wanted in by_shard(2).items():
        every = NotVisitedSince(since=NOW, now=NOW, shard=shard)
        assert due.is_claimable(database, every) == bool(wanted)
        some = NotVisitedSince(since=NOW, now=NOW, shard=shard, ids=FEEDS[:1])
        assert ids(claim(database, some)) == [id for id in wanted if id == FEEDS[0]]
        assert ids(claim(database, every)) == [id for id in wanted if id[0] != FEEDS[0][0]]


def test_what_is_due_is_counted_by_shard_in_one_query(database: Database) -> None:
    register(database, *(spec(id, host=f"{id[0]}.example") for id in FEEDS))
    change(database, "UPDATE feeds SET last_visited_at = ?", instant(NOW - HOUR))
    for minutes, id in enumerate(FEEDS):
        change(
            database,
            "UPDATE feeds SET next_fetch_at = ? WHERE id = ?",
            instant(NOW - timedelta(minutes=minutes)),
            id,
        )
    change(database, "UPDATE feeds SET last_visited_at = NULL WHERE id = ?", FEEDS[0])
    found = due.due_by_shard(database, NOW, count=3)
    assert list(found) == shards(3)
    for shard, wanted in by_shard(3).items():
        counts = found[shard]
        oldest = max(map(FEEDS.index, wanted), default=None)
        assert counts.due == len(wanted)
        assert counts.never_fetched == int(FEEDS[0] in wanted)
        assert counts.oldest_due_at == (None if oldest is None else instant(NOW - timedelta(minutes=oldest)))
    claim(database, run_id="a-run", limit=1)
    assert found[shards(3)[0]].live_run_ids == ()
    assert due.due_by_shard(database, NOW, count=3)[shards(3)[1]].live_run_ids == ("a-run",)
