"""Cursors of readers after a copy: they name the same places."""

from typing import Any

from rss_pipeline.features.copy.sql import TABLES, copy_table
from rss_pipeline.progress import NoProgress
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.items import cursor as arrivals
from rss_pipeline.storage.items.cursor import Position
from rss_pipeline_tests.storage.items.test_read import bring, guids, known, read, retire
from rss_pipeline_tests.storage.values import item, visit
from rss_pipeline_tests.support.databases import migrated

__all__ = ["known"]


def test_cursors_hold_after_moving_house(known: Database, tmp_path: Any) -> None:
    visit(known, [item("1"), item("2")])
    cursor = Position.of(read(known)[0].cursor)
    target = migrated(tmp_path / "moved.sqlite")
    for table in TABLES:
        copy_table(known, target, table, NoProgress())
    assert [each.cursor for each in read(target)] == [each.cursor for each in read(known)]
    assert guids(target, since=cursor) == ["2"]
    retire(target, "1", "2")
    end = arrivals.end(target)
    bring(target, item("3"))
    assert guids(target, since=end) == ["3"]
    target.close()
