"""Random histories: what lists show and count is what a plain recount gives, to each user of their feeds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rss_pipeline.storage.database import Database
from rss_pipeline_tests.features.stories.histories import FEEDS, world
from rss_pipeline_tests.support.databases import migrated
from rss_pipeline_tests.support.stored import add_feeds


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = migrated(tmp_path_factory.mktemp("stories") / "rss.sqlite")
    add_feeds(database, *FEEDS)
    yield database
    database.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "seeds", [range(100), pytest.param(range(100, 1_000), marks=pytest.mark.soak)], ids=["100", "1000"]
)
def test_lists_and_counts_are_those_of_a_plain_recount(kept: Database, tmp_path: Path, seeds: range) -> None:
    decided = joined = 0
    for seed in seeds:
        history = world(kept, tmp_path / "stories.window", seed)
        for _ in range(4):
            history.arrive()
        for _ in range(16):
            history.step()
        history.check()
        decided, joined = decided + history.decided, joined + history.joined
    # Among them are enough that the method has decided.
    assert joined > decided / 4 > len(seeds) / 4
