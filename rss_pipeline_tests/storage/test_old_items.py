"""Items from before there were arrival numbers get one of their own, whatever else happens meanwhile."""

import json
from collections.abc import Sequence

import pytest

from rss_pipeline.storage import schema
from rss_pipeline.storage.backends.sqlite import SqliteDatabase
from rss_pipeline.storage.database import Database, Result, Statement, Value
from rss_pipeline.storage.items.cursor import ARRIVAL, Position
from rss_pipeline.storage.items.read import pages
from rss_pipeline.storage.schema import migrate, number_old_items
from rss_pipeline_tests.storage.values import change, item, register, spec, visit


@pytest.fixture
def old(database: Database) -> Database:
    """Two feeds with seven items; none has a number, and all came within two seconds."""
    register(database, spec("a"), spec("b"))
    visit(database, [item(str(n)) for n in range(5)], id="a")
    visit(database, [item(str(n)) for n in range(2)], id="b")
    change(database, "UPDATE items SET arrived = NULL")
    change(database, "UPDATE items SET created_at = '2026-02-18T08:30:01Z' WHERE guid = '4'")
    change(database, "UPDATE sequences SET value = 1771403401000000")
    return database


def numbers(database: Database) -> list[int]:
    return [int(row["arrived"]) for row in database.query("SELECT arrived FROM items ORDER BY arrived").rows]


def test_each_item_gets_a_number_of_its_own_in_the_second_of_its_fetch(old: Database) -> None:
    before = {row["id"]: row["n"] for row in old.query(f"SELECT id, {ARRIVAL} AS n FROM items").rows}
    migrate(old)
    found = {row["id"]: int(row["arrived"]) for row in old.query("SELECT id, arrived FROM items").rows}
    assert len(set(found.values())) == 7
    assert all(0 <= found[id] - before[id] < 7 for id in found)
    assert migrate(old) == []
    assert number_old_items(old) == 0, "nothing is left to be numbered"


def test_the_next_items_come_behind_them(old: Database) -> None:
    number_old_items(old)
    highest = numbers(old)[-1]
    assert old.query("SELECT value FROM sequences").rows[0]["value"] == highest
    old.query("UPDATE sequences SET value = 9e15")
    change(old, "UPDATE items SET arrived = NULL WHERE guid = '4'")
    number_old_items(old)
    assert old.query("SELECT value FROM sequences").rows[0]["value"] == 9e15, "the sequence never goes back"


def test_a_number_that_another_item_has_is_not_given(old: Database) -> None:
    change(old, "UPDATE items SET arrived = 1771403400000003 WHERE feed_id = 'b' AND guid = '0'")
    number_old_items(old)
    assert len(set(numbers(old))) == 7


def test_who_has_read_up_to_an_old_place_misses_nothing_behind_it(old: Database) -> None:
    def rows(since: Position) -> list[tuple[str, str]]:
        return [(row["feed_id"], row["guid"]) for page in pages(old, None, since=since) for row in page]

    places = [
        (Position(int(row["n"]), row["id"]), rows(Position(int(row["n"]), row["id"])))
        for row in old.query(f"SELECT id, {ARRIVAL} AS n FROM items").rows
    ]
    number_old_items(old)
    for place, behind in places:
        assert set(behind) <= set(rows(place))


class Overtaken:
    """A database in which another process numbers the same items between our look and our write."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.writes = 0

    def query(self, sql: str, params: Sequence[Value] = (), *, name: str = "") -> Result:
        return self.database.query(sql, params, name=name)

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        self.writes += 1
        if self.writes == 1:
            (wanted,) = (json.loads(str(s.params[0])) for s in statements if s.name == "number old items")
            (_, number), (other, _) = list(wanted.items())[:2]
            self.database.query("UPDATE items SET arrived = ? WHERE id = ?", [number, other])
        return self.database.batch(statements)

    def close(self) -> None: ...


def test_numbers_that_are_taken_between_look_and_write_are_not_given_twice(old: Database) -> None:
    database = Overtaken(old)
    assert number_old_items(database) == 6
    assert len(set(numbers(old))) == 7
    assert database.writes > 1


def test_it_goes_on_where_a_killed_process_stopped(old: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "_CHUNK_ITEMS", 3)
    monkeypatch.setattr(schema, "_FIND", schema._FIND.replace("LIMIT 1000", "LIMIT 3"))

    class Killed(Overtaken):
        def batch(self, statements: Sequence[Statement]) -> list[Result]:
            self.writes += 1
            if self.writes == 2:
                raise KeyboardInterrupt
            return self.database.batch(statements)

    with pytest.raises(KeyboardInterrupt):
        number_old_items(Killed(old))
    assert number_old_items(old) == 4
    assert len(set(numbers(old))) == 7


def test_items_are_found_and_numbered_by_their_indexes(sqlite: SqliteDatabase) -> None:
    for sql, params in (
        (schema._FIND, []),
        (schema._TAKEN, ["[1]"]),
        (schema._NUMBER, ['{"a": 1}']),
    ):
        plan = [row["detail"] for row in sqlite.query(f"EXPLAIN QUERY PLAN {sql}", params).rows]
        assert not [step for step in plan if step.startswith("SCAN items")], plan
