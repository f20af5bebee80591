"""Results that readers keep, after a repair: they are those of a reader that keeps nothing."""

from rss_pipeline.features.replay import sql as replay
from rss_pipeline.storage.items import items
from rss_pipeline_tests.api.test_kept_results import ONE, SHOWN, World, see_at_once, world
from rss_pipeline_tests.storage.values import NOW, item

__all__ = ["world"]


def repair(world: World) -> None:
    [row] = world.database.query("SELECT backup_key FROM items WHERE id = ?", [ONE]).rows
    rows = items.known_rows(
        items.item_rows("a", [item("1", title="Repaired", content_html=SHOWN)], fetched_at=NOW)
    )
    assert replay.repair(world.database, rows.values(), feed_id="a", backup_key=row["backup_key"], now=NOW)


def test_a_repair_is_seen_at_once(world: World) -> None:
    see_at_once(world, {"a repair": repair})
