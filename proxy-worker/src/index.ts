/**
 * The Worker in front of D1: its paths, the token it requires, and the form of an answer.
 *
 * Not here: the form of a body (statements.ts), and the kinds of failures (refusals.ts).
 */

import { isAuthorized } from "./authorization";
import { readBody, readJson } from "./body";
import { Refusal, refusalOf } from "./refusals";
import { prepared, statementOf, statementsOf } from "./statements";

export interface Env {
  readonly DB: D1Database;
  /** Unset, every request but /health is refused. */
  readonly D1_PROXY_TOKEN?: string;
  /** "on" opens /exec, for administration; the pipeline never uses it. */
  readonly D1_PROXY_EXEC?: string;
}

type Answer = (request: Request, database: D1Database) => Promise<unknown>;

const ENDPOINTS: ReadonlyMap<string, Answer> = new Map([
  ["/query", query],
  ["/batch", batch],
]);

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    try {
      return json(await answer(request, env));
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal.status >= 500) {
        // Neither SQL nor parameters: they are the feeds' data, and logs are kept.
        console.error({ kind: refusal.kind, message: refusal.message });
      }
      const { kind, message, retryable } = refusal;
      return json({ error: { kind, message, retryable } }, refusal.status, refusal.headers);
    }
  },
} satisfies ExportedHandler<Env>;

async function answer(request: Request, env: Env): Promise<unknown> {
  const url = new URL(request.url);
  if (url.pathname === "/health") {
    allow(request, "GET", "HEAD");
    return { ok: true };
  }
  // Before anything else: without the token a client learns neither paths nor methods, its body is not read, and
  // the database is not touched.
  if (!(await isAuthorized(request, env.D1_PROXY_TOKEN))) {
    throw new Refusal("unauthorized", "Authorization must be `Bearer` and the Worker's D1_PROXY_TOKEN", {
      "WWW-Authenticate": "Bearer",
    });
  }
  const isExec = url.pathname === "/exec" && env.D1_PROXY_EXEC === "on";
  const endpoint = isExec ? exec : ENDPOINTS.get(url.pathname);
  if (endpoint === undefined) {
    throw new Refusal(
      "not_found",
      `there is no path ${url.pathname.slice(0, 100)}; the paths are /query and /batch`,
    );
  }
  allow(request, "POST");
  if (url.search !== "") {
    throw new Refusal(
      "request",
      "a query string is not allowed: send data in the body and the token in its header",
    );
  }
  return endpoint(request, env.DB);
}

async function query(request: Request, database: D1Database): Promise<unknown> {
  const statement = statementOf(await readJson(request), "the body");
  return slim(await prepared(database, statement).all());
}

async function batch(request: Request, database: D1Database): Promise<unknown> {
  const statements = statementsOf(await readJson(request));
  const results = await database.batch(statements.map((statement) => prepared(database, statement)));
  return results.map(slim);
}

/** Runs several statements, one a line, without a transaction: for administration. */
async function exec(request: Request, database: D1Database): Promise<unknown> {
  const sql = await readBody(request);
  if (sql.trim() === "") {
    throw new Refusal("request", "the body must be SQL");
  }
  return database.exec(sql);
}

function slim({ results, meta }: D1Result): unknown {
  return { results, meta };
}

function allow(request: Request, ...methods: readonly string[]): void {
  if (!methods.includes(request.method)) {
    const allowed = methods.join(", ");
    throw new Refusal("method", `${request.method} is not allowed here; ${allowed} is`, { Allow: allowed });
  }
}

function json(value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
  return Response.json(value, { status, headers: { "Cache-Control": "no-store", ...headers } });
}
