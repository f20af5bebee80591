import { readFileSync } from "node:fs";

import { cloudflareTest } from "@cloudflare/vitest-pool-workers";
import { defineConfig } from "vitest/config";
import { unstable_splitSqlQuery } from "wrangler";

const schema = readFileSync("../rss_pipeline/storage/schema.sql", "utf-8");

export default defineConfig({
  plugins: [
    cloudflareTest(() => ({
      wrangler: { configPath: "./wrangler.jsonc" },
      miniflare: {
        bindings: {
          D1_PROXY_TOKEN: "a-token-for-tests",
          MIGRATIONS: [{ name: "schema.sql", queries: unstable_splitSqlQuery(schema) }],
        },
        cf: false,
        telemetry: { enabled: false },
      },
    })),
  ],
});
