"""Statements as they are written, and as Postgres gets them; values of functions.sql beside SQLite's."""

import json
import sqlite3

import pytest

from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
from rss_pipeline.storage.backends.postgres.dialect import translate
from rss_pipeline.storage.database import Statement


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("SELECT a FROM b", "SELECT a FROM b"),
        ("SELECT ?, ?", "SELECT $1, $2"),
        ("SELECT ?2, ?1, ?", "SELECT $2, $1, $3"),
        ("SELECT '?', \"?\" -- ?\n, ? /* ? */", "SELECT '?', \"?\", $1"),
        ("SELECT 'it''s (' || x", "SELECT 'it''s (' || x"),
        ("SELECT 5 / ?", "SELECT 5 / CAST($1 AS double precision)"),
        ("SELECT a IS NULL, b IS NOT NULL", "SELECT a IS NULL, b IS NOT NULL"),
        ("SELECT a IS 'x', b IS NOT ?", "SELECT a IS NOT DISTINCT FROM 'x', b IS DISTINCT FROM $1"),
        ("SELECT a IS (b)", "SELECT a IS NOT DISTINCT FROM (b)"),
        ("SELECT 1 FROM a INDEXED BY a_b WHERE c", "SELECT 1 FROM a WHERE c"),
        ("SELECT 1 FROM a NOT INDEXED", "SELECT 1 FROM a"),
        ("SELECT 1 FROM a CROSS JOIN b AS c ON c.d = a.d", "SELECT 1 FROM a JOIN b AS c ON c.d = a.d"),
        ("SELECT 1 FROM a CROSS JOIN b WHERE c", "SELECT 1 FROM a CROSS JOIN b WHERE c"),
        ("SELECT 1 FROM a CROSS JOIN b CROSS JOIN c ON d", "SELECT 1 FROM a CROSS JOIN b JOIN c ON d"),
        (
            "SELECT i.id FROM a CROSS JOIN items AS i"
            " ON i.rowid IN (SELECT n.rowid FROM items AS n WHERE n.b = a.b)",
            "SELECT i.id FROM a CROSS JOIN LATERAL (SELECT n.* FROM items AS n WHERE n.b = a.b) AS i",
        ),
        (
            "SELECT 1 FROM a CROSS JOIN items ON items.rowid IN (SELECT rowid FROM items AS i LIMIT 5)"
            " WHERE a.id = ?",
            "SELECT 1 FROM a CROSS JOIN LATERAL (SELECT * FROM items AS i LIMIT 5) AS items WHERE a.id = $1",
        ),
        (
            "UPDATE a SET b = 1, c = 2 FROM d, e WHERE f",
            "UPDATE a SET b = 1, c = 2 FROM d CROSS JOIN e WHERE f",
        ),
        ("SELECT a FROM b LIMIT -1 OFFSET ?", "SELECT a FROM b LIMIT ALL OFFSET $1"),
        ("SELECT a FROM b ORDER BY c, d", "SELECT a FROM b ORDER BY c, d"),
        ("SELECT 1 FROM a WHERE +b = +c", "SELECT 1 FROM a WHERE b = c"),
        ("SELECT a + b, (a) + b, 1 + a", "SELECT a + b, (a) + b, 1 + a"),
        ("SELECT CAST(? AS INTEGER)", "SELECT rss_sqlite.whole($1)"),
        ("SELECT cast(a AS REAL)", "SELECT CAST(a AS double precision)"),
        ("SELECT CAST(a AS TEXT)", "SELECT CAST(a AS TEXT)"),
        ("SELECT length(CAST(a AS BLOB))", "SELECT octet_length(CAST(a AS text))"),
        (
            "SELECT max(a), max(a, b), min(a, 2, ?)",
            "SELECT max (a), rss_sqlite.max(a, b), rss_sqlite.min(a, 2, $1)",
        ),
        ("SELECT 1 FROM (SELECT 1)", "SELECT 1 FROM (SELECT 1) AS unnamed_1"),
        (
            "SELECT 1 FROM (SELECT 1) AS a, (SELECT 2) b",
            "SELECT 1 FROM (SELECT 1) AS a CROSS JOIN (SELECT 2) b",
        ),
        ("SELECT 1 FROM a, (SELECT 1) WHERE b", "SELECT 1 FROM a CROSS JOIN (SELECT 1) AS unnamed_1 WHERE b"),
        (
            "SELECT a, (SELECT 1) FROM b WHERE c IN (SELECT 1)",
            "SELECT a, (SELECT 1) FROM b WHERE c IN (SELECT 1)",
        ),
        ("SELECT 1 FROM json_each(?)", "SELECT 1 FROM rss_sqlite.json_each($1)"),
        ("SELECT strftime('%s', 'now')", "SELECT rss_sqlite.strftime('%s', 'now')"),
        ("SELECT instr(a, 'b'), ifnull(a, 1)", "SELECT strpos(a, 'b'), coalesce(a, 1)"),
        ("SELECT json_extract(a, '$.b')", "SELECT (CAST(a AS jsonb) ->> 'b')"),
        ("SELECT json_extract(a, '$[2]')", "SELECT (CAST(a AS jsonb) ->> 2)"),
        ("SELECT json_extract(a, '$.\"22\"[1].c')", "SELECT (CAST(a AS jsonb) #>> ARRAY['22', '1', 'c'])"),
        (
            "SELECT json_extract(a, '$.' || b)",
            "SELECT rss_sqlite.json_extract(CAST(a AS text), CAST('$.' || b AS text))",
        ),
        (
            "SELECT json_extract(j.value, '$.b') FROM json_each(?) AS j",
            "SELECT (j.parsed ->> 'b') FROM rss_sqlite.json_each($1) AS j",
        ),
        (
            "SELECT json_extract(value, '$[0]') FROM json_each(?)",
            "SELECT (parsed ->> 0) FROM rss_sqlite.json_each($1)",
        ),
        (
            "SELECT s.key FROM json_each(?) AS f, json_each(f.value, '$.b') AS s",
            "SELECT s.key FROM rss_sqlite.json_each($1) AS f"
            " CROSS JOIN rss_sqlite.json_each((f.parsed ->> 'b')) AS s",
        ),
        ("SELECT json_array(json(?))", "SELECT array_to_json(ARRAY[CAST($1 AS json)]::json[])"),
        ("SELECT substr(a, 1, ?)", "SELECT substr(a, CAST(1 AS integer), CAST($1 AS integer))"),
        ("SELECT json(?)", "SELECT CAST($1 AS jsonb)"),
        (
            "SELECT json_array(a, ?)",
            "SELECT array_to_json(ARRAY[rss_sqlite.as_json(a), rss_sqlite.as_json($1)]::json[])",
        ),
        (
            "SELECT json_set(a, '$.b', 1)",
            "SELECT rss_sqlite.json_set(CAST(a AS text), CAST('$.b' AS text), rss_sqlite.as_json(1))",
        ),
        (
            "SELECT json_group_array(DISTINCT a) FROM b",
            "SELECT rss_sqlite.json_group_array(DISTINCT a) FROM b",
        ),
        ("SELECT group_concat(a, ' ')", "SELECT string_agg(CAST(a AS text), ' ')"),
        (
            "CREATE TABLE a (text TEXT NOT NULL, b INTEGER CHECK (b IN (0, 1)), c REAL, PRIMARY KEY (text))"
            " WITHOUT ROWID",
            'CREATE TABLE a (text text COLLATE "C" NOT NULL, b bigint CHECK (b IN (0, 1)),'
            " c double precision, PRIMARY KEY (text))",
        ),
        (
            "CREATE TABLE items (id TEXT PRIMARY KEY)",
            'CREATE TABLE items (id text COLLATE "C" PRIMARY KEY,'
            " rowid bigint GENERATED BY DEFAULT AS IDENTITY UNIQUE)",
        ),
        (
            "CREATE TABLE feeds (id TEXT PRIMARY KEY)",
            'CREATE TABLE feeds (id text COLLATE "C" PRIMARY KEY) WITH (fillfactor = 75)',
        ),
        ("ALTER TABLE a ADD COLUMN b INTEGER", "ALTER TABLE a ADD COLUMN b bigint"),
    ],
)
def test_a_statement_of_sqlite_is_one_of_postgres(written: str, read: str) -> None:
    assert translate(written).replace(" (", "(") == read.replace(" (", "(")


@pytest.mark.parametrize("text", ["SELECT (1", "SELECT 1)", "SELECT `a`", "SELECT 'a"])
def test_what_is_no_statement_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"parenthesis|no SQL"):
        translate(text)


DOCUMENT = json.dumps(
    {"b": 1, "a": [2, "ü", None], "c": {"d": True}}, separators=(",", ":"), ensure_ascii=False
)
ROW = json.dumps([{"n": 7, "s": "x", "t": True, "z": None, "o": {"k": [1]}}], separators=(",", ":"))


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT json_set('{DOCUMENT}', '$.a[1]', 'y')",
        f"SELECT json_set('{DOCUMENT}', '$.a[3]', 5)",
        f"SELECT json_set('{DOCUMENT}', '$.e', 1.5)",
        f"SELECT json_set('{DOCUMENT}', '$.c.d', json('[1]'))",
        f"SELECT json_insert('{DOCUMENT}', '$.a[#]', 'new')",
        f"SELECT json_insert('{DOCUMENT}', '$.b', 'old stays')",
        "SELECT json_insert('[]', '$[#]', 'first')",
        "SELECT json_set('{}', '$.\"22\"', json_array('2026-11-22', 1 = 2, 1 = 1))",
        # Also where the text of a member is there twice, or has blanks.
        'SELECT json_set(\'{"o":{"a":1},"a":1}\', \'$.a\', 2)',
        'SELECT json_set(\'{"a":1,"o":{"a":1}}\', \'$.o.a\', 2)',
        'SELECT json_set(\'{"s":"\\"a\\":1","a":1}\', \'$.a\', \'{"a":1}\')',
        "SELECT json_set('[0,1,2,3,4,5,6,7,8,9]', '$[1]', 'x'), json_set('[\"a\"]', '$[0]', NULL)",
        'SELECT json_patch(\'{"a":1,"b":{"c":2,"d":3}}\', \'{"b":{"c":null,"e":4},"a":null,"f":[1]}\')',
        'SELECT json_patch(\'{}\', \'{"a":"x\\"y"}\'), json_patch(\'{}\', \'{"a":null,"b":{"c":null}}\')',
        "SELECT json_patch('{\"a\":1}', NULL)",
        "SELECT json_object('a', 1, 'b', 'x\"y', 'c', NULL)",
        'SELECT json_group_array(value) FROM json_each(\'["b","a"]\')',
        "SELECT json_group_array(value) FROM json_each('[]')",
        "SELECT CAST(json_extract('[1,2]', '$[' || 1 || ']') AS INTEGER)",
        "SELECT CAST(json_extract('{\"a\":true}', '$.' || 'a') AS INTEGER)",
        "SELECT json_extract('{\"a\":null}', '$.a'), json_extract('{\"a\":1}', '$.b')",
        f"SELECT json_extract(value, '$.s'), json_extract(value, '$.z') FROM json_each('{ROW}')",
        f"SELECT CAST(json_extract(value, '$.n') AS INTEGER), CAST(json_extract(value, '$.t') AS INTEGER)"
        f" FROM json_each('{ROW}')",
        f"SELECT value FROM json_each('{ROW}')",
        'SELECT key, value FROM json_each(\'{"x":"1","y":"2"}\')',
        "SELECT max('a', 'b'), min(1, 2, 0), max(1, NULL), max('a', '')",
        "SELECT CAST(2.9 AS INTEGER), CAST(-2.9 AS INTEGER), CAST('7' AS INTEGER), CAST(NULL AS INTEGER)",
        "SELECT strftime('%Y-%m-%dT%H:%M:%SZ', '2026-02-18T08:30:00Z', '+' || 90 || ' seconds')",
        "SELECT strftime('%Y-%m-%dT%H:%M:%SZ', '2026-03-01', '-1 days')",
        "SELECT CAST(strftime('%s', '2026-02-18T08:30:00Z') AS INTEGER)",
        "SELECT strftime('%w %H', '2026-11-22T23:05:00Z')",
        "SELECT strftime('%Y-%m-%dT%H:%M:%SZ', 'no time'), strftime('%s', NULL)",
        "SELECT strftime('%Y-%m-%dT%H:%M:%SZ', '2026-03-01', NULL)",
        "SELECT instr('abc', 'c'), substr('abc', 2, 1), abs(-2), length('ü'), length(CAST('ü' AS BLOB))",
        "SELECT NULL IS NULL, 1 IS 2, NULL IS NOT 1, 'a' || 1 || '/' || (2 + 3)",
        "SELECT 7 / 2, -7 / 2, -7 % 3, 7.0 / 2",
        "SELECT group_concat(v, ' ') FROM (SELECT 'b' AS v UNION ALL SELECT 'a')",
    ],
)
def test_a_value_is_the_same_in_postgres_and_sqlite(empty_postgres: PostgresDatabase, sql: str) -> None:
    connection = sqlite3.connect(":memory:")
    expected = connection.execute(sql).fetchall()
    connection.close()
    found = empty_postgres.query(sql).values
    assert found == expected
    assert [list(map(type, row)) for row in found] == [list(map(type, row)) for row in expected]


def test_the_database_s_clock_is_one_for_a_statement_and_goes_on_in_a_batch(
    empty_postgres: PostgresDatabase,
) -> None:
    clock = Statement("SELECT statement_timestamp() AS at, pg_sleep(0.01)")
    first, second = empty_postgres.batch([clock, clock])
    assert first.rows[0]["at"] < second.rows[0]["at"]
    [row] = empty_postgres.query("SELECT strftime('%s', 'now') AS at, extract(epoch FROM now()) AS now").rows
    assert abs(int(row["at"]) - row["now"]) <= 1
