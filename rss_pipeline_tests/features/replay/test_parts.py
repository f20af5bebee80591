"""The parts of a replay of all feeds: each feed is in exactly one, whatever runs at the same time."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from rss_pipeline.features.replay.service import ReplayPart, feeds_of, parts
from rss_pipeline.storage.backends.postgres.backend import PostgresBackend
from rss_pipeline_tests.features.replay.replays import collected, poll_over_time, replayed, serve
from rss_pipeline_tests.support.databases import migrated
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import FeedServer
from rss_pipeline_tests.support.services.postgres import Postgres


@pytest.fixture(params=["sqlite", "postgres"])
def two(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Pipeline]]:
    """Two pipelines of one database, each with a connection of its own."""
    postgres = None
    if request.param == "postgres":
        server: Postgres = request.getfixturevalue("running_postgres")
        server.create(tmp_path.name)
        postgres = PostgresBackend(url=server.url(tmp_path.name))
    with ExitStack() as stack:
        yield [stack.enter_context(closing(Pipeline(tmp_path, database_server=postgres))) for _ in range(2)]


@pytest.mark.slow
def test_runs_of_two_parts_at_once_restore_all_items_and_each_feed_is_of_one_of_them(
    two: list[Pipeline], server: FeedServer
) -> None:
    first = two[0]
    for n in range(12):
        serve(first, server, f"feed-{n}", rss(f"{n}-a", f"{n}-b"), rss(f"{n}-b", f"{n}-c"))
    poll_over_time(first, 2)
    before = collected(first)
    assert len(before["items"]) == 36
    first.database.query("DELETE FROM items")

    halves = [ReplayPart(number=number, of=2) for number in (1, 2)]
    with ThreadPoolExecutor(2) as threads:
        done = list(
            threads.map(
                lambda one: replayed(one[0], *feeds_of(one[0].database, one[1])),
                zip(two, halves, strict=True),
            )
        )
    assert all(done), "both have some"
    assert Counter(each.feed.id for some in done for each in some) == Counter(f"feed-{n}" for n in range(12))
    assert sum(each.items_new for some in done for each in some) == 36
    assert collected(first) == before


@pytest.mark.slow
def test_a_feed_that_was_removed_meanwhile_is_left_out(two: list[Pipeline], server: FeedServer) -> None:
    first = two[0]
    serve(first, server, "one", rss("a"))
    first.poll()
    assert [each.feed.id for each in replayed(first, "gone", "one")] == ["one"]


@pytest.mark.parametrize(("shards", "count"), [(1, 16), (4, 64), (64, 1024), (1024, 1024)])
def test_the_parts_of_so_many_shards_have_every_feed_once_and_much_the_same_number(
    shards: int, count: int
) -> None:
    found = parts(shards)
    assert len(found) == count
    assert [ReplayPart.read(str(part)) for part in found] == found
    ids = [f"feed-{n}" for n in range(100 * count if count < 1024 else 20_480)]
    sizes = Counter(str(part) for part in found[:16] for id in ids if part.has(id))
    assert max(sizes.values()) < 2.5 * min(sizes.values())
    if count == 16:
        assert sizes.total() == len(ids)


@pytest.mark.slow
def test_the_feeds_of_a_part_are_found_however_many_there_are(tmp_path: Path) -> None:
    with closing(migrated(tmp_path / "rss.sqlite")) as database:
        database.query(
            """INSERT INTO feeds (id, url, host, next_fetch_at, created_at)
            WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10001)
            SELECT 'feed-' || n, 'https://a.example/' || n, 'a.example', '', '' FROM n"""
        )
        found = [id for part in parts(1) for id in feeds_of(database, part)]
    assert sorted(found) == sorted(f"feed-{n}" for n in range(1, 10_002))


@pytest.mark.parametrize("text", ["", "1", "0 of 16", "17 of 16", "one of 16", "1 of 16 "])
def test_what_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no part; a part is `1 of 16`"):
        ReplayPart.read(text)
