"""The rows under guids that an item may have, or that are like it: items and tombstones of this feed."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from rss_pipeline.collector.models.identity import MAX_TITLE_CHARACTERS, Known
from rss_pipeline.collector.models.item import item_id
from rss_pipeline.storage.database import MAX_PARAMETER_BYTES, Database
from rss_pipeline.storage.items.identities import (
    KnownCounts,
    add_aliases,
    alike,
    count_known,
    known_identities,
)
from rss_pipeline_tests.storage.values import NOW, item, register, retire, spec, visit


def test_items_and_tombstones_of_the_feed_are_found(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    dated: dict[str, Any] = {"link": "https://a.example/1", "pub_date": NOW, "pub_date_raw": "noon"}
    long = "t" * (MAX_TITLE_CHARACTERS + 1)
    visit(database, [item("1", **dated), item("2", title=long, pub_date_raw="x"), item("3")])
    visit(database, [item("4")], id="b")
    later = NOW + timedelta(days=1)
    retire(database, item_id("a", "3"), at=later)
    # So many that they need two queries.
    many = ["g" * 1_000 + str(n) for n in range(MAX_PARAMETER_BYTES // 1_000)]
    known = known_identities(database, "a", ["1", *many, "2", "3", "4", "1"])
    key = database.query("SELECT DISTINCT backup_key FROM items WHERE feed_id = 'a'").rows[0]["backup_key"]
    assert known == {
        "1": Known(title="Title 1", backup_key=key, since=NOW, **dated),
        "2": Known(title=long[:-1], pub_date_raw="x", backup_key=key, since=NOW),
        "3": Known(title="Title 3", retired_at=later),
    }
    assert known_identities(database, "a", []) == {}


def test_an_alias_leads_to_its_item_or_tombstone(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    visit(database, [item("1", link="https://a.example/1"), item("2")])
    visit(database, [item("1")], id="b")
    later = NOW + timedelta(days=1)
    retire(database, item_id("a", "2"), at=later)
    add_aliases(database, "a", {"x": "1", "y": "2", "z": "gone"}, fetched_at=later)
    known = known_identities(database, "a", ["x", "y", "z", "1"])
    assert known == {
        "x": replace(known["1"], alias_of="1", since=later),
        "y": Known(title="Title 2", retired_at=later, alias_of="2", since=later),
        "1": known["1"],
    }
    assert known_identities(database, "b", ["x", "1"]).keys() == {"1"}


def test_known_guids_are_counted_for_all_documents_together(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    visit(database, [item("1"), item("2"), item("3")])
    visit(database, [item("1")], id="b")
    later = NOW + timedelta(days=1)
    retire(database, item_id("a", "3"), at=later)
    add_aliases(database, "a", {"x": "1", "y": "1"}, fetched_at=NOW)
    many = ["g" * 1_000 + str(n) for n in range(MAX_PARAMETER_BYTES // 2_000)]
    documents = [("a", ["1", "3", "x", "new"]), ("b", ["1", "2", "x"]), ("c", many), ("d", many), ("e", [])]
    assert count_known(database, documents) == {
        "a": KnownCounts(listed=4, stored=2, aliases=1, respelled=0, has_rewritten=True),
        "b": KnownCounts(listed=3, stored=1, aliases=0, respelled=0, has_rewritten=False),
        "c": KnownCounts(listed=len(many), stored=0, aliases=0, respelled=0, has_rewritten=False),
        "d": KnownCounts(listed=len(many), stored=0, aliases=0, respelled=0, has_rewritten=False),
    }
    assert count_known(database, []) == {}


def test_guids_in_another_spelling_are_counted(database: Database) -> None:
    register(database, spec("a"))
    visit(database, [item("http://www.a.example/1/?p=1"), item("https://a.example/2"), item("urn:3")])
    retire(database, item_id("a", "https://a.example/2"), at=NOW + timedelta(days=1))
    add_aliases(database, "a", {"https://a.example/4": "urn:3"}, fetched_at=NOW)
    guids = ["https://a.example/1?p=1", "http://a.example/2/", "http://a.example/4"]
    others = ["https://a.example/2", "https://a.example/1?p=2", "http://b.example/2", "ftp://a.example/2"]
    counts = count_known(database, [("a", [*guids, *others])])["a"]
    assert (counts.listed, counts.stored, counts.respelled) == (7, 1, 3)


def test_items_and_tombstones_are_found_by_link_and_by_title(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    link, long = "https://a.example/1", "t" * (MAX_TITLE_CHARACTERS + 1)
    visit(
        database,
        [
            item("1", link=link, title="One", pub_date=NOW),
            item("2", link=None, title=long, pub_date=None, pub_date_raw="x"),
            item("3", link=link, title="Three", pub_date=NOW),
            item("4", link="https://a.example/4", title=None),
        ],
    )
    visit(database, [item("5", link=link)], id="b")
    later = NOW + timedelta(days=1)
    retire(database, *(item_id("a", guid) for guid in ("2", "3")), at=later)
    # So many that they need two queries.
    many = [f"https://a.example/{'p' * 1_000}{n}" for n in range(MAX_PARAMETER_BYTES // 1_000)]
    found = alike(database, "a", [link, None, *many], ["nothing", None, long])
    assert found == {
        "1": Known(title="One", link=link, pub_date=NOW),
        "2": Known(title=long[:-1], retired_at=later),
        "3": Known(title="Three", link=link, pub_date=NOW, retired_at=later),
    }
    assert alike(database, "a", [None], [None, ""]) == {}


def test_the_look_goes_through_the_indexes(sqlite: Database) -> None:
    plan = _plan(sqlite)
    assert len([step for step in plan if "feed_id=? AND guid=?" in step]) == 3
    assert not [step for step in plan if step.startswith(("SCAN i", "SCAN e", "SCAN a"))]


def _plan(database: Database) -> list[str]:
    asked: list[str] = []

    class Explaining:
        def query(self, sql: str, params: list[str], *, name: str) -> object:
            asked.extend(row["detail"] for row in database.query(f"EXPLAIN QUERY PLAN {sql}", params).rows)
            return database.query(sql, params, name=name)

    known_identities(Explaining(), "a", ["1"])  # type: ignore[arg-type]
    return asked
