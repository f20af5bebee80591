/** Answers to statements, from a real D1 with the project's own migrations. */

import { applyD1Migrations } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";

import { type Failure, fetched, post, query, refusal, request, type Result } from "./requests";

beforeEach(async () => {
  await applyD1Migrations(env.DB, env.MIGRATIONS);
  await env.DB.batch([
    env.DB.prepare("DROP TABLE IF EXISTS pairs"),
    env.DB.prepare("CREATE TABLE pairs (name TEXT PRIMARY KEY, value TEXT NOT NULL CHECK (value <> ''))"),
  ]);
});

const insert = (name: string, value: string | null = "v") => ({
  sql: "INSERT INTO pairs (name, value) VALUES (?, ?)",
  params: [name, value],
});

it("the project's migrations apply unchanged", async () => {
  const tables = (await query("SELECT name FROM sqlite_master WHERE type = 'table'")).results;
  expect(tables.map((row) => row["name"])).toEqual(expect.arrayContaining(["feeds", "items", "image_tasks"]));
});

describe("/query", () => {
  it("answers rows and meta", async () => {
    const { results, meta } = await query(
      "SELECT ? AS text, ? AS number, ? AS blank",
      "日本語 😀",
      1.5,
      null,
    );
    expect(results).toEqual([{ text: "日本語 😀", number: 1.5, blank: null }]);
    expect(meta.rows_written).toBe(0);
  });

  it("counts and returns written rows", async () => {
    const { results, meta } = await query("INSERT INTO pairs VALUES ('a', 'b') RETURNING name");
    expect(results).toEqual([{ name: "a" }]);
    expect([meta.changes, meta.rows_written]).toEqual([1, 2]);
  });

  it("takes a statement without params", async () => {
    expect((await post("/query", { sql: "SELECT 1 AS one" })).status).toBe(200);
  });
});

describe("/batch", () => {
  it("answers a result a statement, in order", async () => {
    const answered = await post("/batch", [
      insert("a"),
      insert("b"),
      { sql: "SELECT count(*) AS n FROM pairs" },
    ]);
    const results = await answered.json<Result[]>();
    expect(results.map((result) => result.meta.changes).slice(0, 2)).toEqual([1, 1]);
    expect(results[2]?.results).toEqual([{ n: 2 }]);
  });

  it("leaves nothing behind when its last statement fails, DDL included", async () => {
    const ddl = { sql: "CREATE TABLE left_behind (x)" };
    expect(await refusal(post("/batch", [ddl, insert("a"), insert("a")]))).toEqual([409, "constraint"]);
    expect((await query("SELECT * FROM pairs")).results).toEqual([]);
    expect((await query("SELECT name FROM sqlite_master WHERE name = 'left_behind'")).results).toEqual([]);
  });
});

describe("/exec", () => {
  const exec = (sql: string) => fetched(request("/exec", { body: sql }), { D1_PROXY_EXEC: "on" });

  it.each([undefined, "", "off", "1", "ON"])(
    "is no path unless the environment says on: %s",
    async (value) => {
      const sent = request("/exec", { body: "CREATE TABLE no (x);" });
      const changed = value === undefined ? {} : { D1_PROXY_EXEC: value };
      expect(await refusal(fetched(sent, changed))).toEqual([404, "not_found"]);
      expect((await query("SELECT name FROM sqlite_master WHERE name = 'no'")).results).toEqual([]);
    },
  );

  it("runs SQL a line at a time", async () => {
    const answered = await exec("CREATE TABLE e (x);\nINSERT INTO e VALUES (1);");
    expect(await answered.json<D1ExecResult>()).toMatchObject({ count: 2 });
    expect((await query("SELECT x FROM e")).results).toEqual([{ x: 1 }]);
  });

  it("says what is wrong with it", async () => {
    expect(await refusal(exec("NONSENSE"))).toEqual([400, "syntax"]);
    expect(await refusal(exec(" \n"))).toEqual([400, "request"]);
  });
});

describe("a body of the wrong form is refused with a message", () => {
  const one = { sql: "SELECT 1" };
  it.each<[string, string, unknown, string]>([
    ["no JSON", "/query", '{"sql": ', "the body is not JSON"],
    ["nothing", "/query", "", "the body is not JSON"],
    ["a list", "/query", [one], "the body must be an object"],
    ["null", "/query", "null", "the body must be an object"],
    ["no sql", "/query", { params: [] }, 'the body: "sql" must be a text'],
    ["blank sql", "/query", { sql: " " }, 'the body: "sql" must be a text'],
    ["sql a number", "/query", { sql: 1 }, 'the body: "sql" must be a text'],
    ["params an object", "/query", { sql: "SELECT 1", params: {} }, '"params" must be a list'],
    [
      "a boolean",
      "/query",
      { sql: "SELECT ?", params: [true] },
      "parameter 1 must be a text, a finite number",
    ],
    ["a list bound", "/query", { sql: "SELECT ?, ?", params: [1, []] }, "parameter 2 must be a text"],
    ["a number without end", "/query", '{"sql": "SELECT ?", "params": [1e999]}', "a finite number"],
    ["an object for a batch", "/batch", one, "the body must be a list"],
    ["an empty batch", "/batch", [], "the body must be a list of statements and not empty"],
    ["a batch with a hole", "/batch", [one, null], "statement 2 must be an object"],
  ])("%s", async (_, path, body, sentence) => {
    const answered = await post(path, body);
    const { error } = await answered.json<Failure>();
    expect([answered.status, error.kind, error.retryable]).toEqual([400, "request", false]);
    expect(error.message).toContain(sentence);
  });

  it("bytes that are not UTF-8", async () => {
    const { fetched, request } = await import("./requests");
    const body = new Uint8Array([0x22, 0xff, 0x22]);
    expect(await refusal(fetched(request("/query", { body })))).toEqual([400, "request"]);
  });
});

describe("a statement that D1 refuses has a kind", () => {
  it.each<[string, number, string, string, readonly unknown[]]>([
    ["UNIQUE", 409, "constraint", "INSERT INTO pairs SELECT 'a', 'b' UNION ALL SELECT 'a', 'c'", []],
    ["NOT NULL", 409, "constraint", "INSERT INTO pairs VALUES (?, ?)", ["a", null]],
    ["CHECK", 409, "constraint", "INSERT INTO pairs VALUES (?, ?)", ["a", ""]],
    ["FOREIGN KEY", 409, "constraint", "INSERT INTO hosts (host) VALUES (NULL)", []],
    ["a type", 409, "constraint", "INSERT INTO schema_numbers VALUES ('x')", []],
    ["syntax", 400, "syntax", "SELEKT 1", []],
    ["incomplete", 400, "syntax", "SELECT (", []],
    ["no table", 400, "syntax", "SELECT * FROM nowhere", []],
    ["no column", 400, "syntax", "SELECT nothing FROM pairs", []],
    ["only a comment", 400, "syntax", "-- nothing", []],
    ["not allowed", 400, "syntax", "ATTACH 'x' AS y", []],
    ["a transaction", 400, "syntax", "BEGIN", []],
    ["too few parameters", 400, "syntax", "SELECT ?, ?", ["a"]],
    ["too many parameters", 400, "syntax", "SELECT ?", ["a", "b"]],
    ["101 parameters", 422, "limit", `SELECT ${Array(101).fill("?").join()}`, Array(101).fill(1)],
    ["101 placeholders", 422, "limit", `SELECT ${Array(101).fill("?").join()}`, Array(100).fill(1)],
    ["100 KB of SQL", 422, "limit", `SELECT '${"x".repeat(100_000)}'`, []],
    ["101 columns", 422, "limit", `SELECT ${Array(101).fill(1).join()}`, []],
    ["a LIKE pattern", 422, "limit", "SELECT 'x' LIKE ?", ["x".repeat(51)]],
    ["six SELECTs", 422, "limit", Array(6).fill("SELECT 1").join(" UNION ALL "), []],
    ["depth", 422, "limit", `SELECT ${"(".repeat(101)}1${" + 1)".repeat(101)}`, []],
    ["2 MB and a byte", 422, "limit", "SELECT length(?)", ["x".repeat(2_000_001)]],
    ["2 MB in UTF-8", 422, "limit", "SELECT length(?)", ["語".repeat(666_667)]],
    ["U+0000", 422, "limit", "SELECT ?", ["a\0b"]],
    ["a lone surrogate", 422, "limit", "SELECT ?", ["a\ud800b"]],
    ["a grown value", 422, "limit", "SELECT hex(zeroblob(2000000000))", []],
  ])("%s: %i %s", async (_, status, kind, sql, params) => {
    await query("CREATE TABLE IF NOT EXISTS schema_numbers (n INTEGER PRIMARY KEY)");
    const answered = await post("/query", { sql, params });
    const { error } = await answered.json<Failure>();
    expect({ status: answered.status, ...error }).toMatchObject({ status, kind, retryable: false });
  });

  it("a value of exactly 2 MB is accepted", async () => {
    for (const text of ["x".repeat(2_000_000), "語".repeat(666_666)]) {
      expect((await post("/query", { sql: "SELECT length(?) AS n", params: [text] })).status).toBe(200);
    }
  });
});
