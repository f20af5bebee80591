import { cloudflareTest, readD1Migrations } from "@cloudflare/vitest-pool-workers";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [
    cloudflareTest(async () => ({
      wrangler: { configPath: "./wrangler.jsonc" },
      miniflare: {
        bindings: {
          D1_PROXY_TOKEN: "a-token-for-tests",
          MIGRATIONS: await readD1Migrations("../rss_pipeline/storage/migrations"),
        },
        cf: false,
        telemetry: { enabled: false },
      },
    })),
  ],
});
