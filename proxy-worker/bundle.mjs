// Builds the bundle that would be deployed, offline, and fails if it is larger than 10 KiB.

import { spawnSync } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const MOST_BYTES = 10 * 1024;
const here = dirname(fileURLToPath(import.meta.url));
const wrangler = join(here, "node_modules", "wrangler", "bin", "wrangler.js");
const quiet = {
  WRANGLER_SEND_METRICS: "false",
  WRANGLER_SEND_ERROR_REPORTS: "false",
  WRANGLER_HIDE_BANNER: "true",
  CLOUDFLARE_CF_FETCH_ENABLED: "false",
};

const { status } = spawnSync(process.execPath, [wrangler, "deploy", "--dry-run", "--outdir", "dist"], {
  cwd: here,
  env: { ...process.env, ...quiet },
  stdio: "inherit",
});
if (status !== 0) {
  process.exit(status ?? 1);
}
const scripts = readdirSync(join(here, "dist")).filter((name) => name.endsWith(".js"));
const bytes = scripts.reduce((sum, name) => sum + statSync(join(here, "dist", name)).size, 0);
if (scripts.length === 0 || bytes > MOST_BYTES) {
  console.error(`The bundle (${scripts.join(", ") || "nothing"}) has ${bytes} bytes; at most ${MOST_BYTES}.`);
  process.exit(1);
}
console.log(`The bundle has ${bytes} bytes; at most ${MOST_BYTES}.`);
