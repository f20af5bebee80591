-- What SQLite has and Postgres lacks, as far as our statements use it: dialect.py writes the calls. `migrate` makes
-- these in the schema rss_sqlite, again whenever this file has changed. Names of Postgres's own functions are written
-- with pg_catalog where ours have the same.
--
-- STABLE or IMMUTABLE, in SQL and not STRICT wherever possible: the planner writes such a function into the statement.

-- Elements of a JSON list, or members of an object: key, value as text, and the value parsed. OFFSET 0 keeps the planner
-- from writing the parser into each place where a field of the row is read.
CREATE OR REPLACE FUNCTION rss_sqlite.json_each(document text)
RETURNS TABLE (key text, value text, parsed jsonb) LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 50 AS $$
  SELECT e.key,
    CASE e.value::text WHEN 'true' THEN '1' WHEN 'false' THEN '0' ELSE e.value #>> '{}' END,
    e.value::jsonb
  FROM (
    SELECT (a.place - 1)::text AS key, a.element AS value
      FROM pg_catalog.json_array_elements(CASE WHEN left(ltrim(document), 1) <> '{' THEN document::json END)
        WITH ORDINALITY AS a (element, place)
    UNION ALL SELECT o.key, o.value
      FROM pg_catalog.json_each(CASE WHEN left(ltrim(document), 1) = '{' THEN document::json END) AS o
  ) AS e OFFSET 0
$$;

-- The steps of a path: `$.name`, `$."name"[0]`. No name of ours has a dot or a bracket.
CREATE OR REPLACE FUNCTION rss_sqlite.steps(path text) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT (string_to_array(translate(path, '["]', '.'), '.'))[2:]
$$;

-- A field by a path that is not known before, as text.
CREATE OR REPLACE FUNCTION rss_sqlite.json_extract(document text, path text)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT document::jsonb #>> rss_sqlite.steps(path)
$$;

CREATE OR REPLACE FUNCTION rss_sqlite.json_array_length(document text)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN left(ltrim(document), 1) = '[' THEN pg_catalog.json_array_length(document::json) ELSE 0 END::bigint
$$;

-- A value as JSON, for what is put into JSON: SQLite has no truth values.
CREATE OR REPLACE FUNCTION rss_sqlite.as_json(value anycompatible)
RETURNS json LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce(to_json(value), 'null'::json)
$$;
CREATE OR REPLACE FUNCTION rss_sqlite.as_json(value text)
RETURNS json LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce(to_json(value), 'null'::json)
$$;
CREATE OR REPLACE FUNCTION rss_sqlite.as_json(value boolean)
RETURNS json LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN value THEN '1' WHEN NOT value THEN '0' ELSE 'null' END::json
$$;

-- An object of names and values in turn. Without blanks, as SQLite writes it.
CREATE OR REPLACE FUNCTION rss_sqlite.json_object(parts json[])
RETURNS json LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT ('{' || coalesce(string_agg(parts[n]::text || ':' || parts[n + 1]::text, ',' ORDER BY n), '') || '}')::json
  FROM generate_series(1, cardinality(parts), 2) AS n
$$;

CREATE OR REPLACE FUNCTION rss_sqlite.list_to_json(list anycompatiblearray)
RETURNS json LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce(array_to_json(list), '[]'::json)
$$;
DO $$ BEGIN
  IF to_regprocedure('rss_sqlite.json_group_array(anycompatible)') IS NULL THEN
    CREATE AGGREGATE rss_sqlite.json_group_array(anycompatible) (
      SFUNC = array_append, STYPE = anycompatiblearray, FINALFUNC = rss_sqlite.list_to_json
    );
  END IF;
END $$;

-- A document with another value at a place: members keep their order, and one that is new is the last. `[#]` is the
-- place behind a list's last element.
--
-- Three times a visit. Nearly always it is enough to change the text: to put something in at its end, or in the place
-- of the member as it is written, where that is found once. Without a query, an expression takes microseconds.
CREATE OR REPLACE FUNCTION rss_sqlite.with_value(document json, steps text[], value json, is_insert boolean)
RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  step text := steps[1];
  is_list boolean := json_typeof(document) = 'array';
  place text := step;
  found json;
  changed text;
  whole text := document::text;
  member text;
  at integer;
  written text;
BEGIN
  IF step IS NULL THEN
    RETURN CASE WHEN is_insert AND document IS NOT NULL THEN whole ELSE value::text END;
  END IF;
  IF is_list AND step = '#' THEN
    place := pg_catalog.json_array_length(document)::text;
  END IF;
  found := CASE WHEN is_list THEN document -> place::int ELSE document -> place END;
  IF found IS NULL AND cardinality(steps) > 1 THEN
    RETURN whole;
  END IF;
  IF cardinality(steps) > 1 THEN
    changed := rss_sqlite.with_value(found, steps[2:], value, is_insert);
  ELSIF is_insert AND found IS NOT NULL THEN
    RETURN whole;
  ELSE
    changed := value::text;
  END IF;
  IF found IS NULL THEN
    written := CASE WHEN is_list THEN changed ELSE to_json(place)::text || ':' || changed END;
    at := length(whole);
    IF substr(whole, at) IN (']', '}') THEN
      RETURN left(whole, -1) || CASE WHEN length(whole) = 2 THEN '' ELSE ',' END || written || right(whole, 1);
    END IF;
  ELSIF NOT is_list THEN
    member := to_json(place)::text || ':';
    at := strpos(whole, member || found::text);
    IF at > 0 AND strpos(substr(whole, at + 1), member || found::text) = 0 THEN
      written := overlay(whole PLACING member || changed FROM at FOR length(member || found::text));
      -- It may have been the member of another object in it.
      IF (written::json -> place)::text = changed THEN
        RETURN written;
      END IF;
    END IF;
  ELSIF pg_catalog.json_array_length(document) <= 8 THEN
    written := '';
    FOR n IN 0 .. pg_catalog.json_array_length(document) - 1 LOOP
      written := written || ',' || CASE WHEN n = place::int THEN changed ELSE (document -> n)::text END;
    END LOOP;
    RETURN '[' || substr(written, 2) || ']';
  END IF;
  IF is_list THEN
    RETURN (SELECT '[' || string_agg(e.element, ',' ORDER BY e.n) || ']' FROM (
      SELECT CASE WHEN a.n - 1 = place::int THEN changed ELSE a.element::text END AS element, a.n
        FROM json_array_elements(document) WITH ORDINALITY AS a (element, n)
      UNION ALL SELECT changed, place::int + 1 WHERE found IS NULL) AS e);
  END IF;
  RETURN (SELECT '{' || string_agg(to_json(m.key)::text || ':' || m.element, ',' ORDER BY m.n) || '}' FROM (
    SELECT o.key, CASE WHEN o.key = place THEN changed ELSE o.element::text END AS element, o.n
      FROM pg_catalog.json_each(document) WITH ORDINALITY AS o (key, element, n)
    UNION ALL SELECT place, changed, 2147483647 WHERE found IS NULL) AS m);
END $$;

CREATE OR REPLACE FUNCTION rss_sqlite.json_set(document text, path text, value json)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT rss_sqlite.with_value(document::json, rss_sqlite.steps(path), value, false)
$$;

CREATE OR REPLACE FUNCTION rss_sqlite.json_insert(document text, path text, value json)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT rss_sqlite.with_value(document::json, rss_sqlite.steps(path), value, true)
$$;

-- A merge patch (RFC 7396).
CREATE OR REPLACE FUNCTION rss_sqlite.json_patch(document text, patch text)
RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  IF document IS NULL OR patch IS NULL THEN
    RETURN NULL;
  ELSIF json_typeof(patch::json) <> 'object' OR (document = '{}' AND strpos(patch, 'null') = 0) THEN
    RETURN patch;
  ELSIF json_typeof(document::json) <> 'object' THEN
    document := '{}';
  END IF;
  RETURN (SELECT '{' || coalesce(string_agg(to_json(m.key)::text || ':' || m.element, ',' ORDER BY m.n, m.new), '')
    || '}' FROM (
    SELECT coalesce(d.key, p.key) AS key, coalesce(d.n, 2147483647) AS n, p.n AS new,
      CASE WHEN p.key IS NULL THEN d.element::text
        WHEN json_typeof(p.element) = 'object' THEN
          rss_sqlite.json_patch(coalesce(d.element::text, '{}'), p.element::text)
        ELSE p.element::text END AS element
    FROM pg_catalog.json_each(document::json) WITH ORDINALITY AS d (key, element, n)
      FULL JOIN pg_catalog.json_each(patch::json) WITH ORDINALITY AS p (key, element, n) ON p.key = d.key
    WHERE p.key IS NULL OR json_typeof(p.element) <> 'null') AS m);
END $$;

-- CAST(x AS INTEGER): cut off and not rounded, and 1 for true, also for that of JSON.
CREATE OR REPLACE FUNCTION rss_sqlite.whole(value bigint) RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT value $$;
CREATE OR REPLACE FUNCTION rss_sqlite.whole(value integer) RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT value::bigint $$;
CREATE OR REPLACE FUNCTION rss_sqlite.whole(value numeric) RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT trunc(value)::bigint $$;
CREATE OR REPLACE FUNCTION rss_sqlite.whole(value double precision) RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT trunc(value)::bigint $$;
CREATE OR REPLACE FUNCTION rss_sqlite.whole(value text) RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE value WHEN 'true' THEN 1 WHEN 'false' THEN 0 ELSE value::bigint END $$;
CREATE OR REPLACE FUNCTION rss_sqlite.whole(value boolean) RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT value::integer::bigint $$;

-- max and min of several values of one row: NULL where one is.
CREATE OR REPLACE FUNCTION rss_sqlite.max(a anycompatible, b anycompatible) RETURNS anycompatible
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT CASE WHEN a >= b THEN a WHEN a < b THEN b END $$;
CREATE OR REPLACE FUNCTION rss_sqlite.min(a anycompatible, b anycompatible) RETURNS anycompatible
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT CASE WHEN a <= b THEN a WHEN a > b THEN b END $$;
CREATE OR REPLACE FUNCTION rss_sqlite.max(a anycompatible, b anycompatible, c anycompatible) RETURNS anycompatible
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT rss_sqlite.max(rss_sqlite.max(a, b), c) $$;
CREATE OR REPLACE FUNCTION rss_sqlite.min(a anycompatible, b anycompatible, c anycompatible) RETURNS anycompatible
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT rss_sqlite.min(rss_sqlite.min(a, b), c) $$;
CREATE OR REPLACE FUNCTION rss_sqlite.max(a anycompatible, b anycompatible, c anycompatible, d anycompatible)
  RETURNS anycompatible LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT rss_sqlite.max(rss_sqlite.max(a, b), rss_sqlite.max(c, d)) $$;

-- The columns of a table, without that of rows that SQLite has unseen.
CREATE OR REPLACE FUNCTION rss_sqlite.pragma_table_info(of_table text) RETURNS TABLE (cid integer, name text, type text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT a.attnum::integer, a.attname::text, CASE a.atttypid WHEN 'bigint'::regtype THEN 'INTEGER' ELSE 'TEXT' END
  FROM pg_catalog.pg_attribute AS a
  WHERE a.attrelid = to_regclass(quote_ident(of_table)) AND a.attnum > 0 AND NOT a.attisdropped AND a.attname <> 'rowid'
$$;

-- Up to 16 bytes that nobody can guess, and bytes as text.
CREATE OR REPLACE FUNCTION rss_sqlite.randomblob(bytes integer) RETURNS bytea LANGUAGE sql VOLATILE AS $$
  SELECT substring(decode(replace(gen_random_uuid()::text, '-', ''), 'hex') FOR bytes)
$$;
CREATE OR REPLACE FUNCTION rss_sqlite.hex(value bytea) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT upper(encode(value, 'hex'))
$$;

-- An instant of ours, `2026-02-18T08:30:00Z` or a day, as UTC. 'now' is the time at which the statement began, as in
-- SQLite: one for all rows, and another one for the next statement of a batch.
CREATE OR REPLACE FUNCTION rss_sqlite.instant(moment text) RETURNS timestamp LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN moment = 'now' THEN statement_timestamp() AT TIME ZONE 'UTC'
    WHEN moment ~ '^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?)?$' THEN rtrim(moment, 'Z')::timestamp END
$$;

CREATE OR REPLACE FUNCTION rss_sqlite.strftime(format text, moment text DEFAULT 'now', change text DEFAULT '0 s')
RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE format
    WHEN '%Y-%m-%dT%H:%M:%SZ' THEN
      to_char(rss_sqlite.instant(moment) + change::interval, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
    WHEN '%s' THEN floor(extract(epoch FROM rss_sqlite.instant(moment) + change::interval))::bigint::text
    WHEN '%w %H' THEN extract(dow FROM rss_sqlite.instant(moment) + change::interval)::text
      || to_char(rss_sqlite.instant(moment) + change::interval, ' HH24') END
$$;

CREATE OR REPLACE FUNCTION rss_sqlite.date(moment text DEFAULT 'now', change text DEFAULT '0 s')
RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT to_char(rss_sqlite.instant(moment) + change::interval, 'YYYY-MM-DD')
$$;

-- Days since a noon of long ago; only differences count.
CREATE OR REPLACE FUNCTION rss_sqlite.julianday(moment text)
RETURNS double precision LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT extract(epoch FROM rss_sqlite.instant(moment))::double precision / 86400 + 2440587.5
$$;
