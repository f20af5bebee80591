/** D1's own error messages, which no local D1 produces (Cloudflare D1, "Debug D1"). */

import { expect, it } from "vitest";

import { Refusal, refusalOf } from "../src/refusals";

it.each([
  ["D1_ERROR: Network connection lost.", 503, "transient", true],
  [
    "D1_ERROR: Internal error while starting up D1 DB storage caused object to be reset.",
    503,
    "transient",
    true,
  ],
  ["D1_ERROR: Internal error in D1 DB storage caused object to be reset.", 503, "transient", true],
  ["D1_ERROR: D1 DB reset because its code was updated.", 503, "transient", true],
  ["D1_ERROR: Cannot resolve D1 DB due to transient issue on remote node.", 503, "transient", true],
  ["D1_ERROR: Replica disconnected from primary.", 503, "transient", true],
  ["D1_ERROR: Currently processing a long-running export.", 503, "transient", true],
  ["D1_ERROR: D1 DB is overloaded. Requests queued for too long.", 503, "overloaded", true],
  ["D1_ERROR: D1 DB is overloaded. Too many requests queued.", 503, "overloaded", true],
  [
    "D1_ERROR: D1 DB storage operation exceeded timeout which caused object to be reset.",
    504,
    "timeout",
    false,
  ],
  ["D1_ERROR: D1 DB exceeded its CPU time limit and was reset.", 504, "timeout", false],
  ["D1_ERROR: D1 DB's isolate exceeded its memory limit and was reset.", 504, "timeout", false],
  ["D1_ERROR: Exceeded maximum DB size.", 507, "full", false],
  ["Your account has exceeded D1's maximum account storage limit.", 507, "full", false],
  ["Your account has exceeded D1's free tier daily row write limit.", 429, "quota", false],
  ["D1_ERROR: UNIQUE constraint failed: items.id: SQLITE_CONSTRAINT", 409, "constraint", false],
  ["D1_ERROR: string or blob too big: SQLITE_TOOBIG", 422, "limit", false],
  ["D1_TYPE_ERROR: Type 'undefined' not supported for value 'undefined'", 422, "limit", false],
  ["D1_ERROR: no such table: items: SQLITE_ERROR", 400, "syntax", false],
  ['D1_EXEC_ERROR: Error in line 1: INSERTZ: sql error: near "INSERTZ"', 400, "syntax", false],
  ["internal error; reference = 0123456789abcdef", 500, "internal", false],
  ["Cannot read properties of undefined", 500, "internal", false],
] as const)("%s", (message, status, kind, retryable) => {
  expect(refusalOf(new Error(message))).toMatchObject({ status, kind, retryable, message });
});

it("a refusal of ours stays what it is, and what is no Error has a kind too", () => {
  const ours = new Refusal("request", "is overloaded");
  expect(refusalOf(ours)).toBe(ours);
  expect(refusalOf("Network connection lost.")).toMatchObject({ kind: "transient" });
  expect(refusalOf(new Error("x".repeat(5_000))).message).toHaveLength(1_000);
});
