"""What is stored under guids that an item may have: items and tombstones, of this feed alone."""

from datetime import timedelta
from typing import Any

from rss_pipeline.collector.models.identity import MAX_TITLE_CHARACTERS, Known
from rss_pipeline.collector.models.item import item_id
from rss_pipeline.storage.database import MAX_PARAMETER_BYTES, Database
from rss_pipeline.storage.items import retention
from rss_pipeline.storage.items.identities import known_identities
from rss_pipeline_tests.storage.values import NOW, item, register, spec, visit


def test_items_and_tombstones_of_the_feed_are_found(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    dated: dict[str, Any] = {"link": "https://a.example/1", "pub_date": NOW, "pub_date_raw": "noon"}
    long = "t" * (MAX_TITLE_CHARACTERS + 1)
    visit(database, [item("1", **dated), item("2", title=long, pub_date_raw="x"), item("3")])
    visit(database, [item("4")], id="b")
    later = NOW + timedelta(days=1)
    assert retention.retire(database, [item_id("a", "3")], [], db_now=later)
    # So many that they need two queries.
    many = ["g" * 1_000 + str(n) for n in range(MAX_PARAMETER_BYTES // 1_000)]
    known = known_identities(database, "a", ["1", *many, "2", "3", "4", "1"])
    key = database.query("SELECT DISTINCT backup_key FROM items WHERE feed_id = 'a'").rows[0]["backup_key"]
    assert known == {
        "1": Known(title="Title 1", backup_key=key, **dated),
        "2": Known(title=long[:-1], pub_date_raw="x", backup_key=key),
        "3": Known(retired_at=later),
    }
    assert known_identities(database, "a", []) == {}


def test_the_look_goes_through_the_indexes(sqlite: Database) -> None:
    plan = _plan(sqlite)
    assert len([step for step in plan if "feed_id=? AND guid=?" in step]) == 2
    assert not [step for step in plan if step.startswith(("SCAN i", "SCAN e"))]


def _plan(database: Database) -> list[str]:
    asked: list[str] = []

    class Explaining:
        def query(self, sql: str, params: list[str], *, name: str) -> object:
            asked.extend(row["detail"] for row in database.query(f"EXPLAIN QUERY PLAN {sql}", params).rows)
            return database.query(sql, params, name=name)

    known_identities(Explaining(), "a", ["1"])  # type: ignore[arg-type]
    return asked
