declare namespace Cloudflare {
  interface Env {
    readonly DB: D1Database;
    readonly D1_PROXY_TOKEN: string;
    readonly MIGRATIONS: import("cloudflare:test").D1Migration[];
  }
  interface GlobalProps {
    readonly mainModule: typeof import("../src/index");
  }
}
