/** Requests to the Worker, in the form in which the pipeline sends them. */

import { env } from "cloudflare:workers";

import worker, { type Env } from "../src/index";

export const TOKEN = env.D1_PROXY_TOKEN;

export interface Failure {
  readonly error: { readonly kind: string; readonly message: string; readonly retryable: boolean };
}

export interface Result {
  readonly results: readonly Record<string, unknown>[];
  readonly meta: D1Meta;
}

/** A request with our token; `headers` may take it away. */
export function request(path: string, init: RequestInit = {}): Request {
  const headers = new Headers(init.headers);
  if (!headers.has("Authorization")) {
    headers.set("Authorization", `Bearer ${TOKEN}`);
  }
  return new Request(`https://worker.example${path}`, { method: "POST", ...init, headers });
}

export function fetched(sent: Request, changed: Partial<Env> = {}): Promise<Response> {
  return worker.fetch(sent, { DB: env.DB, D1_PROXY_TOKEN: TOKEN, ...changed });
}

export function post(path: string, body: unknown): Promise<Response> {
  return fetched(request(path, { body: typeof body === "string" ? body : JSON.stringify(body) }));
}

export async function query(sql: string, ...params: unknown[]): Promise<Result> {
  return (await post("/query", { sql, params })).json();
}

/** Status and kind of a refusal. */
export async function refusal(response: Promise<Response>): Promise<readonly [number, string]> {
  const answered = await response;
  return [answered.status, (await answered.json<Failure>()).error.kind];
}
