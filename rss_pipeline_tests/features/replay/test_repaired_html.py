"""Kept HTML of items that a repair rewrote: none of an old text is shown."""

from datetime import datetime

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.features.replay import sql as replay
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.items import items
from rss_pipeline_tests.storage.test_kept_html import KEY, database, keep, made, read
from rss_pipeline_tests.storage.values import HOUR, NOW, item

__all__ = ["database"]


def repair(database: Database, guid: str, at: datetime) -> None:
    rows = items.known_rows(items.item_rows("a", [item(guid, title="New")], fetched_at=NOW))
    assert replay.repair(database, rows.values(), feed_id="a", backup_key=KEY, now=at)


def test_an_item_that_went_or_was_repaired_since_its_text_was_read_gets_no_html(database: Database) -> None:
    repair(database, "1", NOW + HOUR)
    keep(database, made("1"), made("gone"), made("2"))
    assert list(read(database, "1", "2")) == ["2"]
    keep(database, made("1", repaired=instant(NOW + HOUR)))
    assert list(read(database, "1")) == ["1"]


def test_a_repair_drops_the_html_of_the_old_text_alone(database: Database) -> None:
    keep(database, *map(made, "123"))
    repair(database, "1", NOW + HOUR)
    assert sorted(read(database, *"123")) == ["2", "3"]
