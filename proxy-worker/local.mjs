// A local Cloudflare: this Worker in real workerd, with D1, and R2 behind its S3 API, by Miniflare.
//
//   node local.mjs [--port 8787] [--persist FOLDER] [--json]
//
// Without --persist everything is kept in memory. Token, bucket and keys come from the environment
// (D1_PROXY_TOKEN, R2_BUCKET, R2_ACCESS_KEY_ID, R2_SECRET_ACCESS_KEY), else from the values below; D1_PROXY_EXEC=on
// opens /exec. It prints the pipeline's variables; with --json it prints them in one line for a program, and ends when its standard input
// ends. SIGINT and SIGTERM end it as well.

import { once } from "node:events";
import { mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { build, stop } from "esbuild";
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from "miniflare";

const S3_PATH = "/cdn-cgi/local/r2/s3";
const here = dirname(fileURLToPath(import.meta.url));

const { values: options } = parseArgs({
  options: {
    port: { type: "string", default: "0" },
    persist: { type: "string" },
    json: { type: "boolean", default: false },
  },
});
const token = process.env.D1_PROXY_TOKEN ?? "local-token";
const bucket = process.env.R2_BUCKET || "local-bucket";
const topicsBucket = `${bucket}-topics`;
const accessKeyId = process.env.R2_ACCESS_KEY_ID || "local-access-key";
const secretAccessKey = process.env.R2_SECRET_ACCESS_KEY || "local-secret-key";

/** Standard output is for the answer alone. */
class StderrLog extends Log {
  log(message) {
    process.stderr.write(`${message}\n`);
  }
}

/** Ends this process with a sentence if the port cannot be used; Miniflare would print its own stack. */
async function checkPort(port) {
  const probe = createServer();
  try {
    probe.listen({ host: "127.0.0.1", port });
    await once(probe, "listening");
  } catch (error) {
    const reason =
      error.code === "EADDRINUSE"
        ? "is in use: stop the program that uses it, or use"
        : `cannot be used (${error.code}): use`;
    const other = port === "8788" ? 8789 : 8788;
    process.stderr.write(
      `Port ${port} ${reason} another port, such as \`make cloudflare CLOUDFLARE_PORT=${other}\`.\n`,
    );
    process.exit(1);
  }
  probe.close();
  await once(probe, "close");
}

if (options.port !== "0") {
  await checkPort(options.port);
}

const config = JSON.parse(readFileSync(join(here, "wrangler.jsonc"), "utf8").replace(/^\s*\/\/.*$/gm, ""));
const [database] = config.d1_databases;
const persist = options.persist === undefined ? undefined : resolve(options.persist);
if (persist !== undefined) {
  mkdirSync(persist, { recursive: true });
}

// Bundled here, so that the running Worker is never older than the source.
const built = await build({
  entryPoints: [join(here, config.main)],
  bundle: true,
  format: "esm",
  target: "es2024",
  write: false,
});
await stop();

const miniflare = new Miniflare(
  convertV4MiniflareOptions({
    host: "127.0.0.1",
    port: Number(options.port),
    name: config.name,
    modules: [{ type: "ESModule", path: "index.mjs", contents: built.outputFiles[0].text }],
    compatibilityDate: config.compatibility_date,
    bindings: { D1_PROXY_TOKEN: token, D1_PROXY_EXEC: process.env.D1_PROXY_EXEC ?? "" },
    d1Databases: { [database.binding]: database.database_id },
    r2Buckets: {
      BUCKET: { id: bucket, s3Credentials: { accessKeyId, secretAccessKey } },
      TOPICS: { id: topicsBucket, s3Credentials: { accessKeyId, secretAccessKey } },
    },
    ...(persist === undefined ? {} : { resourcePersistencePath: persist }),
    // Neither sends anything to Cloudflare.
    cf: false,
    telemetry: { enabled: false },
    log: new StderrLog(LogLevel.WARN),
    handleStructuredLogs: ({ level, message }) => process.stderr.write(`${level}: ${message}\n`),
  }),
);

let ending = false;

async function end(status) {
  if (!ending) {
    ending = true;
    process.stdin.destroy();
    process.exitCode = status;
    // Not process.exit: the scratch folder is still being removed when this is done.
    await miniflare.dispose();
  }
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  // Miniflare's own handler exits at once, with an error.
  process.removeAllListeners(signal);
  process.on(signal, () => end(0));
}
if (options.json) {
  process.stdin.on("end", () => end(0)).resume();
}

try {
  const url = (await miniflare.ready).origin;
  const s3Endpoint = url + S3_PATH;
  if (options.json) {
    const ready = {
      url,
      token,
      s3_endpoint: s3Endpoint,
      bucket,
      topics_bucket: topicsBucket,
      access_key: accessKeyId,
      secret_key: secretAccessKey,
    };
    process.stdout.write(`${JSON.stringify(ready)}\n`);
  } else {
    process.stdout.write(`\
D1_PROXY_URL=${url}
D1_PROXY_TOKEN=${token}
R2_ENDPOINT_URL=${s3Endpoint}
R2_BUCKET=${bucket}
R2_TOPICS_BUCKET=${topicsBucket}
R2_ACCESS_KEY_ID=${accessKeyId}
R2_SECRET_ACCESS_KEY=${secretAccessKey}
`);
    const where = persist === undefined ? "in memory" : `in ${persist}`;
    process.stderr.write(
      `Put these into .env or the environment. Everything is kept ${where}; Ctrl-C ends it.\n`,
    );
  }
} catch (error) {
  process.stderr.write(`The local Cloudflare did not start: ${error.message}\n`);
  await end(1);
}
