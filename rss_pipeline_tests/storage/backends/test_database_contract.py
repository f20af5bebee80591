"""The promises of every `Database` (storage/database.py): SQLite's dialect with D1's limits and D1's numbers.

Nothing here knows which implementation it talks to. Some promises are of SQLite and D1 alone: Postgres has
types, and fewer limits, and as all statements run on SQLite, too, none goes beyond those.
"""

import json
import math
from concurrent.futures import ThreadPoolExecutor

import pytest

from rss_pipeline.errors import DatabaseUnavailable, StorageRejected
from rss_pipeline.storage.database import (
    MAX_INTEGER,
    MAX_PARAMETERS,
    MAX_SQL_BYTES,
    MAX_VALUE_BYTES,
    Database,
    Statement,
    Value,
)
from rss_pipeline.storage.sql import FIELD, number

of_sqlite_and_d1 = pytest.mark.parametrize("empty_database", ["sqlite", "d1"], indirect=True)


@pytest.fixture
def notes(empty_database: Database) -> Database:
    """A table of its own: text, a whole number, something that must be there, something unlike the others."""
    empty_database.batch(
        [
            Statement("CREATE TABLE authors (id TEXT PRIMARY KEY)"),
            Statement(
                "CREATE TABLE notes (id TEXT PRIMARY KEY, text TEXT, number INTEGER CHECK (number < 1000),"
                " must TEXT NOT NULL DEFAULT '', alone TEXT UNIQUE, author TEXT REFERENCES authors (id))"
            ),
        ]
    )
    return empty_database


def put(notes: Database, text: Value) -> Value:
    notes.query("INSERT INTO notes (id, text) VALUES ('1', ?)", [text])
    return notes.query("SELECT text FROM notes WHERE id = '1'").rows[0]["text"]


def count(notes: Database) -> int:
    return int(notes.query("SELECT count(*) AS n FROM notes").rows[0]["n"])


@of_sqlite_and_d1
@pytest.mark.parametrize(("bound", "read"), [(1, "1.0"), (-7, "-7.0"), (1.5, "1.5"), (True, "1.0")])
def test_a_number_bound_into_a_text_column_reads_as_a_double(
    notes: Database, bound: Value, read: str
) -> None:
    assert put(notes, bound) == read


def test_a_number_bound_into_an_integer_column_reads_whole(notes: Database) -> None:
    notes.query("INSERT INTO notes (id, number) VALUES ('1', ?)", [7])
    [row] = notes.query("SELECT number FROM notes").rows
    assert (row["number"], type(row["number"])) == (7, int)


def test_a_division_by_a_bound_number_is_no_whole_division(empty_database: Database) -> None:
    assert empty_database.query("SELECT 5 / ? AS half", [2]).rows == [{"half": 2.5}]


@pytest.mark.parametrize(("value", "read"), [(7, 7), (0, 0), (True, 1), (False, 0), (None, None), ("8", 8)])
def test_a_whole_number_out_of_json_is_one_where_the_statement_says_so(
    empty_database: Database, value: object, read: object
) -> None:
    values = f"{number(FIELD.format('n'))} AS n, {number('j.value')} AS m"
    sql = f"SELECT {values} FROM json_each(?) AS v, json_each(?) AS j"
    [row] = empty_database.query(sql, [json.dumps([{"n": value}]), json.dumps([value])]).rows
    assert [(row[name], type(row[name])) for name in "nm"] == [(read, type(read))] * 2


@pytest.mark.parametrize("condition", ["1 = 1", "NULL IS NULL", "'a' IN ('a', 'b')", "EXISTS (SELECT 1)"])
def test_a_condition_is_a_number_for_whoever_reads_it(empty_database: Database, condition: str) -> None:
    [row] = empty_database.query(f"SELECT {condition} AS met, NOT ({condition}) AS missed").rows
    assert row == {"met": 1, "missed": 0}
    assert {type(value) for value in row.values()} == {int}
    added_up = f"SELECT 1 + {number(condition)} + {number(f'NOT ({condition})')} AS n"
    assert empty_database.query(added_up).rows == [{"n": 2}]


def test_sums_of_whole_numbers_are_whole_and_averages_are_not(notes: Database) -> None:
    notes.query("INSERT INTO notes (id, number) VALUES ('1', 3), ('2', 6)")
    [row] = notes.query(
        "SELECT sum(number) AS s, avg(number) AS a, count(*) AS n, max(number) AS m FROM notes"
    ).rows
    assert row == {"s": 9, "a": 4.5, "n": 2, "m": 6}
    assert [type(value) for value in row.values()] == [int, float, int, int]


@of_sqlite_and_d1
def test_values_out_of_json_keep_their_type(empty_database: Database) -> None:
    rows = empty_database.query(
        "SELECT value, typeof(value) AS type FROM json_each(?)", [json.dumps(["007", 7, 7.5, None, "1.0"])]
    ).rows
    assert [(row["value"], row["type"]) for row in rows] == [
        ("007", "text"),
        (7, "integer"),
        (7.5, "real"),
        (None, "null"),
        ("1.0", "text"),
    ]


def test_null_comes_back_as_none(notes: Database) -> None:
    assert put(notes, None) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1",
        "true",
        "null",
        "日本語と中文",
        "👩‍👩‍👧‍👦 é e\u0301 \ufeff\u202e",
        "\"\\' %_?\r\n\t",
        "\x01\x1f\x7f\x85\u2028",
    ],
)
def test_text_comes_back_as_it_went(notes: Database, text: str) -> None:
    assert put(notes, text) == text


def test_a_value_of_exactly_the_limit_is_taken(empty_database: Database) -> None:
    rows = empty_database.query("SELECT length(?) AS n", ["x" * MAX_VALUE_BYTES]).rows
    assert rows == [{"n": MAX_VALUE_BYTES}]


@pytest.mark.parametrize("text", ["x" * (MAX_VALUE_BYTES + 1), "語" * (MAX_VALUE_BYTES // 3 + 1)])
def test_a_byte_more_than_the_limit_is_refused(empty_database: Database, text: str) -> None:
    with pytest.raises(StorageRejected, match=r"parameter 2: 2,000,001 bytes; a value has at most 2,000,000"):
        empty_database.query("SELECT ?, length(?)", ["", text])


@pytest.mark.parametrize(
    ("text", "reason"), [("a\0b", r"U\+0000"), ("\ud83d", "lone surrogate"), ("x\udfffy", "lone surrogate")]
)
def test_text_that_stores_differ_on_is_refused(notes: Database, text: str, reason: str) -> None:
    with pytest.raises(StorageRejected, match=reason):
        put(notes, text)
    assert count(notes) == 0


def test_whole_numbers_that_a_double_cannot_hold_are_refused(empty_database: Database) -> None:
    for edge in (MAX_INTEGER, -MAX_INTEGER):
        assert empty_database.query("SELECT CAST(? AS INTEGER) AS n", [edge]).rows == [{"n": edge}]
    for beyond in (MAX_INTEGER + 1, -MAX_INTEGER - 1, 10**400):
        with pytest.raises(StorageRejected, match="lose digits"):
            empty_database.query("SELECT ?", [beyond])


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_json_has_no_number_for_is_refused(notes: Database, number: float) -> None:
    with pytest.raises(StorageRejected, match=r"parameter 1: .* no number"):
        put(notes, number)


def test_columns_of_one_name_collapse_to_the_last(empty_database: Database) -> None:
    assert empty_database.query("SELECT 1 AS a, 2 AS a").rows == [{"a": 2}]


def test_three_hundred_ids_go_in_as_one_list(notes: Database) -> None:
    wanted = [f"id-{n}" for n in range(300)]
    notes.query(
        "INSERT INTO notes (id) SELECT value FROM json_each(?) WHERE true", [json.dumps([*wanted, "other"])]
    )
    found = notes.query(
        "SELECT id FROM notes WHERE id IN (SELECT value FROM json_each(?))", [json.dumps(wanted)]
    ).rows
    assert {row["id"] for row in found} == set(wanted)


def test_a_hundred_parameters_are_taken_and_one_more_is_refused(empty_database: Database) -> None:
    sql = "SELECT coalesce(" + ") + coalesce(".join(["?, 0"] * MAX_PARAMETERS) + ") AS n"
    few = "SELECT " + ", ".join(f"? AS c{n}" for n in range(MAX_PARAMETERS))
    row = empty_database.query(few, [str(n) for n in range(MAX_PARAMETERS)]).rows[0]
    assert list(row.values()) == [str(n) for n in range(MAX_PARAMETERS)]
    with pytest.raises(StorageRejected, match="101 parameters"):
        empty_database.query(sql, [1] * (MAX_PARAMETERS + 1))


def test_sql_above_a_hundred_kilobytes_is_refused(empty_database: Database) -> None:
    head = "SELECT 1 AS n -- "
    assert empty_database.query(head + "x" * (MAX_SQL_BYTES - len(head))).rows == [{"n": 1}]
    with pytest.raises(StorageRejected, match="100,000 bytes of SQL"):
        empty_database.query(head + "x" * (MAX_SQL_BYTES - len(head) + 1))


@pytest.mark.parametrize("text", ["x" * 1_999_900, '"' * 999_900, "\x01" * 333_300], ids=["x", "2", "6"])
def test_a_batch_is_measured_as_it_is_sent(notes: Database, text: str) -> None:
    """Escapes count: a quotation mark is two bytes on the way, a control character six."""
    size = Statement("SELECT length(?) AS n", [text])
    results = notes.batch([size, size])
    assert [result.rows for result in results] == [[{"n": len(text)}]] * 2
    insert = Statement("INSERT INTO notes (id) VALUES ('1')")
    with pytest.raises(StorageRejected, match="at most 4,000,000 can be sent"):
        notes.batch([insert, size, size, Statement("SELECT ?", ["x" * 1_000])])
    assert count(notes) == 0


@of_sqlite_and_d1
def test_a_row_larger_than_the_limit_is_refused_although_each_value_fits(notes: Database) -> None:
    with pytest.raises(StorageRejected, match="too big"):
        notes.query("INSERT INTO notes (id, text) VALUES (?, ?)", ["x" * 1_100_000, "y" * 1_100_000])
    assert count(notes) == 0


@of_sqlite_and_d1
@pytest.mark.parametrize(
    ("sql", "params"),
    [
        (" UNION ALL ".join(["SELECT 1"] * 6), []),
        ("SELECT " + "+".join(["1"] * 102), []),
        ("SELECT " + ", ".join(f"1 AS c{n}" for n in range(101)), []),
        ("SELECT 'a' LIKE ?", ["x" * 51]),
    ],
    ids=["compound", "depth", "columns", "like"],
)
def test_a_statement_beyond_a_limit_is_refused(
    empty_database: Database, sql: str, params: list[Value]
) -> None:
    with pytest.raises(StorageRejected, match="refused a value"):
        empty_database.query(sql, params)


@pytest.mark.parametrize("sql", ["SELEKT 1", "SELECT json('{')", "SELECT ?", "CREATE TABLE notes (id TEXT)"])
def test_a_statement_that_cannot_be_is_our_error(notes: Database, sql: str) -> None:
    with pytest.raises(DatabaseUnavailable):
        notes.query(sql)


def test_a_statement_refused_before_sending_leaves_the_batch_unsent(notes: Database) -> None:
    with pytest.raises(StorageRejected):
        notes.batch(
            [
                Statement("INSERT INTO notes (id) VALUES (?)", ["1"]),
                Statement("INSERT INTO notes (id) VALUES (?)", ["\0"]),
            ]
        )
    assert count(notes) == 0


def test_an_empty_batch_is_a_mistake_of_the_caller(empty_database: Database) -> None:
    with pytest.raises(ValueError, match="empty batch"):
        empty_database.batch([])


def test_an_empty_result_has_no_rows_and_no_changes(notes: Database) -> None:
    result = notes.query("SELECT * FROM notes")
    assert (result.rows, result.changes) == ([], 0)


def test_results_come_in_the_order_of_their_statements(notes: Database) -> None:
    results = notes.batch(
        [
            Statement("INSERT INTO notes (id) VALUES (?), (?)", ["1", "2"]),
            Statement("SELECT id FROM notes ORDER BY id"),
            Statement("DELETE FROM notes WHERE id = ?", ["1"]),
            Statement("SELECT id FROM notes"),
        ]
    )
    assert [result.rows for result in results] == [[], [{"id": "1"}, {"id": "2"}], [], [{"id": "2"}]]
    assert [result.changes for result in results] == [2, 0, 1, 0]


def test_changes_count_what_was_really_changed(notes: Database) -> None:
    insert = "INSERT INTO notes (id) SELECT value FROM json_each(?) WHERE true ON CONFLICT (id) DO NOTHING"
    assert notes.query(insert, ['["1","2","3"]']).changes == 3
    assert notes.query(insert, ['["3","4"]']).changes == 1
    assert notes.query("UPDATE notes SET text = 'x' WHERE id > ?", ["2"]).changes == 2
    assert notes.query("UPDATE notes SET text = 'x' WHERE id = ?", ["9"]).changes == 0
    assert notes.query("DELETE FROM notes").changes == 4


def test_returning_gives_the_rows_that_went_in_and_no_others(notes: Database) -> None:
    insert = "INSERT INTO notes (id, text) SELECT value, 't' FROM json_each(?) WHERE true"
    notes.query(insert, ['["1"]'])
    result = notes.query(insert + " ON CONFLICT (id) DO NOTHING RETURNING id, text", ['["1","2"]'])
    assert result.rows == [{"id": "2", "text": "t"}]
    assert result.changes == 1
    assert notes.query("UPDATE notes SET text = ? RETURNING id", ["u"]).changes == 2


def test_a_failed_statement_takes_the_whole_batch_with_it(notes: Database) -> None:
    with pytest.raises(StorageRejected):
        notes.batch(
            [
                Statement("INSERT INTO notes (id) VALUES (?)", ["1"]),
                Statement("INSERT INTO notes (id, must) VALUES (?, NULL)", ["2"]),
            ]
        )
    assert count(notes) == 0


def test_new_tables_roll_back_too(notes: Database) -> None:
    with pytest.raises(StorageRejected):
        notes.batch(
            [
                Statement("CREATE TABLE more (id TEXT)"),
                Statement("CREATE INDEX notes_text ON notes (text)"),
                Statement("INSERT INTO notes (id, must) VALUES ('1', NULL)"),
            ]
        )
    names = notes.query("SELECT name FROM sqlite_master WHERE name IN ('more', 'notes_text')")
    assert names.rows == []


def test_after_a_failed_batch_the_next_one_works(notes: Database) -> None:
    with pytest.raises(DatabaseUnavailable):
        notes.batch([Statement("INSERT INTO notes (id) VALUES ('1')"), Statement("SELECT * FROM nothing")])
    notes.query("INSERT INTO notes (id) VALUES ('1')")
    assert count(notes) == 1


def test_a_guard_that_matches_nothing_stops_its_statement_and_no_other(notes: Database) -> None:
    guarded = "INSERT INTO notes (id) SELECT ? WHERE EXISTS (SELECT 1 FROM notes WHERE id = ?) RETURNING id"
    results = notes.batch(
        [
            Statement(guarded, ["1", "absent"]),
            Statement("UPDATE notes SET text = 'x' WHERE id = ? RETURNING id", ["absent"]),
            Statement("INSERT INTO notes (id) VALUES (?)", ["2"]),
        ]
    )
    assert [(result.rows, result.changes) for result in results] == [([], 0), ([], 0), ([], 1)]


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO notes (id, must) VALUES ('2', NULL)",
        "INSERT INTO notes (id) VALUES ('1')",
        "INSERT INTO notes (id, alone) VALUES ('2', 'a')",
        "INSERT INTO notes (id, number) VALUES ('2', 1000)",
        "INSERT INTO notes (id, author) VALUES ('2', 'nobody')",
        "INSERT INTO notes (id, must) VALUES ('2', NULL) ON CONFLICT (id) DO NOTHING",
    ],
    ids=["not null", "primary key", "unique", "check", "foreign key", "not null behind on conflict"],
)
def test_a_constraint_refuses_the_data_and_not_the_database(notes: Database, sql: str) -> None:
    notes.query("INSERT INTO notes (id, alone) VALUES ('1', 'a')")
    with pytest.raises(StorageRejected):
        notes.query(sql)
    assert count(notes) == 1


def test_a_row_that_others_refer_to_cannot_go(notes: Database) -> None:
    notes.query("INSERT INTO authors (id) VALUES ('ada')")
    notes.query("INSERT INTO notes (id, author) VALUES ('1', 'ada')")
    with pytest.raises(StorageRejected):
        notes.query("DELETE FROM authors")


def test_a_statement_that_does_not_fit_the_schema_is_our_error_and_not_the_data_s(
    empty_database: Database,
) -> None:
    with pytest.raises(DatabaseUnavailable):
        empty_database.query("SELECT * FROM nothing")


def test_threads_share_one_database_and_lose_nothing(notes: Database) -> None:
    notes.query("INSERT INTO notes (id, number) VALUES ('sum', 0)")

    def add(n: int) -> int:
        results = notes.batch(
            [
                Statement("INSERT INTO notes (id) VALUES (?)", [f"id-{n}"]),
                Statement("UPDATE notes SET number = number + 1 WHERE id = 'sum' RETURNING number"),
            ]
        )
        return int(results[1].rows[0]["number"])

    with ThreadPoolExecutor(8) as threads:
        numbers = list(threads.map(add, range(200)))
    assert sorted(numbers) == list(range(1, 201))
    assert count(notes) == 201
