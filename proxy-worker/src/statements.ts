/**
 * SQL statements of a request, checked before they reach D1.
 *
 * The limits are D1's. They are repeated here because D1 enforces them late, with a vague message, or not at all
 * in local workerd.
 */

import { Refusal } from "./refusals";

type Value = string | number | null;

export interface Statement {
  readonly sql: string;
  readonly params: readonly Value[];
}

const MAX_SQL_BYTES = 100_000;
const MAX_PARAMETERS = 100;
const MAX_VALUE_BYTES = 2_000_000;

const encoder = new TextEncoder();

/** Returns a checked statement; messages call the value `where`. */
export function statementOf(value: unknown, where: string): Statement {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Refusal("request", `${where} must be an object {"sql": text, "params": [...]}`);
  }
  const { sql, params = [] } = value as { sql?: unknown; params?: unknown };
  if (typeof sql !== "string" || sql.trim() === "") {
    throw new Refusal("request", `${where}: "sql" must be a text and not empty`);
  }
  if (!Array.isArray(params)) {
    throw new Refusal("request", `${where}: "params" must be a list`);
  }
  if (longerThan(MAX_SQL_BYTES, sql)) {
    throw new Refusal("limit", `${where}: SQL may have at most ${MAX_SQL_BYTES} bytes`);
  }
  if (params.length > MAX_PARAMETERS) {
    throw new Refusal(
      "limit",
      `${where}: ${params.length} parameters; at most ${MAX_PARAMETERS} may be bound`,
    );
  }
  return { sql, params: params.map((param, index) => valueOf(param, `${where}, parameter ${index + 1}`)) };
}

export function statementsOf(value: unknown): readonly Statement[] {
  if (!Array.isArray(value) || value.length === 0) {
    throw new Refusal("request", "the body must be a list of statements and not empty");
  }
  return value.map((item, index) => statementOf(item, `statement ${index + 1}`));
}

export function prepared(database: D1Database, { sql, params }: Statement): D1PreparedStatement {
  return database.prepare(sql).bind(...params);
}

function valueOf(value: unknown, where: string): Value {
  if (value === null || (typeof value === "number" && Number.isFinite(value))) {
    return value;
  }
  if (typeof value !== "string") {
    throw new Refusal("request", `${where} must be a text, a finite number or null`);
  }
  // SQLite and D1 store these differently.
  if (value.includes("\0") || !value.isWellFormed()) {
    throw new Refusal("limit", `${where}: U+0000 and lone surrogates cannot be stored`);
  }
  if (longerThan(MAX_VALUE_BYTES, value)) {
    throw new Refusal("limit", `${where}: a value may have at most ${MAX_VALUE_BYTES} bytes`);
  }
  return value;
}

/** UTF-8 needs one to three bytes for a UTF-16 unit, so most texts need no encoding to be compared. */
function longerThan(limit: number, text: string): boolean {
  return text.length > limit || (text.length * 3 > limit && encoder.encode(text).byteLength > limit);
}
