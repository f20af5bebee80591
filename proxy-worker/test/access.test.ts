/** Access: requests without the token are refused, and learn and cost nothing. */

import { exports } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";

import { type Failure, fetched, query, refusal, request, TOKEN } from "./requests";

describe("a request without the token", () => {
  it.each([
    ["none", ""],
    ["a wrong one of the same length", `Bearer ${"x".repeat(TOKEN.length)}`],
    ["a prefix of ours", `Bearer ${TOKEN.slice(0, -1)}`],
    ["ours and more", `Bearer ${TOKEN}x`],
    ["an empty one", "Bearer "],
    ["another scheme", `Basic ${TOKEN}`],
    ["no scheme", TOKEN],
  ])("is refused: %s", async (_, authorization) => {
    const answered = await fetched(
      request("/query", { headers: { Authorization: authorization }, body: "{}" }),
    );
    expect(answered.status).toBe(401);
    expect(answered.headers.get("WWW-Authenticate")).toBe("Bearer");
    expect(await answered.text()).not.toContain(TOKEN);
  });

  it("is refused whatever its path and method, and learns neither", async () => {
    for (const [path, method] of [
      ["/query", "GET"],
      ["/exec", "OPTIONS"],
      ["/batch", "OPTIONS"],
      ["/nothing", "PUT"],
      ["/", "GET"],
    ] as const) {
      const sent = request(path, { method, headers: { Authorization: "Bearer no" } });
      expect(await refusal(fetched(sent))).toEqual([401, "unauthorized"]);
    }
  });

  it("is refused before its body is read", async () => {
    const sent = request("/query", { headers: { Authorization: "Bearer no" }, body: "x".repeat(5_000_000) });
    expect(await refusal(fetched(sent))).toEqual([401, "unauthorized"]);
    expect(sent.bodyUsed).toBe(false);
  });

  it("costs no hash without the header, and one with it", async () => {
    await fetched(request("/query", { body: '{"sql": "SELECT 1"}' }));
    const hashed = vi.spyOn(crypto.subtle, "digest");
    await fetched(new Request("https://worker.example/query", { method: "POST", body: "{}" }));
    expect(hashed).toHaveBeenCalledTimes(0);
    await fetched(request("/query", { headers: { Authorization: "Bearer no" }, body: "{}" }));
    expect(hashed).toHaveBeenCalledTimes(1);
    hashed.mockRestore();
  });

  it("is compared in full, whatever its length", async () => {
    const compared = vi.spyOn(crypto.subtle, "timingSafeEqual");
    for (const token of ["", "x", "x".repeat(5_000), TOKEN]) {
      await fetched(request("/query", { headers: { Authorization: `Bearer ${token}` }, body: "{}" }));
    }
    expect(compared.mock.calls.map(([a, b]) => [a.byteLength, b.byteLength])).toEqual(
      Array(4).fill([32, 32]),
    );
    compared.mockRestore();
  });
});

it.each([
  ["unset", {}],
  ["empty", { D1_PROXY_TOKEN: "" }],
  ["blank", { D1_PROXY_TOKEN: " \n" }],
])("a Worker whose secret is %s refuses everyone", async (_, secret) => {
  for (const authorization of ["", "Bearer", "Bearer ", `Bearer ${TOKEN}`, "Bearer undefined"]) {
    const sent = request("/query", { headers: { Authorization: authorization }, body: "{}" });
    const changed = { D1_PROXY_TOKEN: undefined, ...secret } as { D1_PROXY_TOKEN: string };
    expect(await refusal(fetched(sent, changed))).toEqual([401, "unauthorized"]);
  }
});

it("a secret set with a newline at its end is the token without it", async () => {
  const sent = request("/query", { body: '{"sql": "SELECT 1"}' });
  expect((await fetched(sent, { D1_PROXY_TOKEN: `${TOKEN}\n` })).status).toBe(200);
});

it("a token in the query string opens nothing, and is refused beside a good one", async () => {
  const path = `/query?token=${TOKEN}&access_token=${TOKEN}`;
  const sent = request(path, { headers: { Authorization: "" }, body: '{"sql": "SELECT 1"}' });
  expect(await refusal(fetched(sent))).toEqual([401, "unauthorized"]);
  const answered = await fetched(request(path, { body: '{"sql": "SELECT 1"}' }));
  expect(answered.status).toBe(400);
  expect(await answered.text()).not.toContain(TOKEN);
});

describe("with the token", () => {
  it.each(["/", "/query/", "/Query", "/health/", "/queries", "//query"])("there is no %s", async (path) => {
    expect(await refusal(fetched(request(path, { body: "{}" })))).toEqual([404, "not_found"]);
  });

  it.each(["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"])("%s is not allowed", async (method) => {
    for (const path of ["/query", "/batch", "/exec"]) {
      const answered = await fetched(request(path, { method }), { D1_PROXY_EXEC: "on" });
      expect(answered.status).toBe(405);
      expect(answered.headers.get("Allow")).toBe("POST");
    }
  });

  it("nothing is said to browsers of other sites, and nothing is kept", async () => {
    const answered = await fetched(
      request("/query", { headers: { Origin: "https://evil.example" }, body: '{"sql": "SELECT 1"}' }),
    );
    expect(answered.headers.get("Access-Control-Allow-Origin")).toBeNull();
    expect(answered.headers.get("Cache-Control")).toBe("no-store");
  });
});

describe("/health", () => {
  it("is open and says nothing but ok, also where no secret is set", async () => {
    const sent = new Request("https://worker.example/health");
    const answered = await fetched(sent, { D1_PROXY_TOKEN: "" });
    expect([answered.status, await answered.json()]).toEqual([200, { ok: true }]);
    expect((await exports.default.fetch("https://worker.example/health")).status).toBe(200);
  });

  it("takes no other method", async () => {
    const answered = await fetched(request("/health"));
    expect([answered.status, answered.headers.get("Allow")]).toEqual([405, "GET, HEAD"]);
  });
});

describe("a body over the cap", () => {
  it("is refused by its Content-Length before it is read", async () => {
    const sent = request("/query", { headers: { "Content-Length": "4000001" }, body: "SELECT 1" });
    expect(await refusal(fetched(sent))).toEqual([413, "too_large"]);
    expect(sent.bodyUsed).toBe(false);
  });

  it("is refused while it is read, if it has no Content-Length", async () => {
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 100_000;
        controller.enqueue(new Uint8Array(100_000).fill(32));
      },
    });
    expect(await refusal(fetched(request("/query", { body })))).toEqual([413, "too_large"]);
    expect(sent).toBeLessThan(5_000_000);
  });

  it("is refused one byte above, not at the cap", async () => {
    const filled = (size: number) => `{"sql": "SELECT 1"}${" ".repeat(size - 19)}`;
    expect((await fetched(request("/query", { body: filled(4_000_000) }))).status).toBe(200);
    expect(await refusal(fetched(request("/query", { body: filled(4_000_001) })))).toEqual([
      413,
      "too_large",
    ]);
  });
});

it("an error of D1 is answered and logged without SQL and parameters", async () => {
  const logged = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const lost = new Error("D1_ERROR: Network connection lost.");
  const database = { prepare: () => ({ bind: () => ({ all: () => Promise.reject(lost) }) }) };
  const sent = request("/query", { body: '{"sql": "SELECT ? AS secret", "params": ["secret"]}' });
  const answered = await fetched(sent, { DB: database as unknown as D1Database });
  expect([answered.status, await answered.json<Failure>()]).toEqual([
    503,
    { error: { kind: "transient", message: lost.message, retryable: true } },
  ]);
  expect(JSON.stringify(logged.mock.calls)).not.toContain("secret");
  logged.mockRestore();
  expect((await query("SELECT 1 AS one")).results).toEqual([{ one: 1 }]);
});
