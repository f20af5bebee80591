"""Results that readers keep, after a clean: they are those of a reader that keeps nothing."""

from rss_pipeline.collector.models.item import item_id
from rss_pipeline.features.retention.sql import retire, retire_where_full
from rss_pipeline_tests.api.test_kept_results import World, see_at_once, world

__all__ = ["world"]


def test_items_that_retention_removed_are_gone_at_once(world: World) -> None:
    see_at_once(
        world,
        {
            "a removal": lambda world: retire(world.database, [item_id("b", "2")], []),
            "a removal where the store is full": lambda world: retire_where_full(
                world.database, [item_id("b", "3")], [], with_tombstones=True
            ),
        },
    )
