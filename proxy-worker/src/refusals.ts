/**
 * Refusals: why a request got no result. A kind, its HTTP status, and whether the request may be sent again.
 *
 * D1's errors differ in their messages only
 * (https://developers.cloudflare.com/d1/observability/debug-d1/).
 */

const STATUS = {
  /** The caller's mistakes. */
  request: 400,
  unauthorized: 401,
  not_found: 404,
  method: 405,
  too_large: 413,
  /** The statement's text, or the schema it was written for. */
  syntax: 400,
  /** The statement's data. */
  constraint: 409,
  limit: 422,
  /** The account: the day's free rows are used up; the database or the account has no room left. */
  quota: 429,
  full: 507,
  /** D1: too much load; try again; the statement took too long (it may or may not have been applied). */
  overloaded: 503,
  transient: 503,
  timeout: 504,
  internal: 500,
} as const;

export type Kind = keyof typeof STATUS;

export class Refusal extends Error {
  readonly status: number;
  /** True: send it again later if its SQL is idempotent, because it may or may not have been applied. */
  readonly retryable: boolean;

  constructor(
    readonly kind: Kind,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.status = STATUS[kind];
    this.retryable = kind === "transient" || kind === "overloaded";
  }
}

/** The first match decides: "exceeded timeout which caused object to be reset" must not be `transient`. */
const D1_MESSAGES: readonly (readonly [RegExp, Kind])[] = [
  [/SQLITE_CONSTRAINT|SQLITE_MISMATCH|constraint failed|datatype mismatch/i, "constraint"],
  [
    /SQLITE_TOOBIG|too big|too long: |too many (?:SQL variables|columns|terms|arguments)|pattern too complex|expression tree is too large|parser stack overflow|D1_TYPE_ERROR/i,
    "limit",
  ],
  [/exceeded (?:timeout|its (?:CPU time|memory) limit)|SQLITE_(?:NOMEM|INTERRUPT)/i, "timeout"],
  [/is overloaded|too many requests queued|queued for too long/i, "overloaded"],
  [/free tier daily|daily row/i, "quota"],
  [/exceeded maximum DB size|maximum account storage|SQLITE_FULL/i, "full"],
  [
    /network connection lost|caused object to be reset|reset because its code was updated|cannot resolve D1 DB|replica disconnected|long-running export/i,
    "transient",
  ],
  [
    /SQLITE_(?:ERROR|AUTH|RANGE)|syntax error|incomplete input|wrong number of parameter bindings|no SQL statements|did not contain a statement|to execute a transaction|D1_EXEC_ERROR|D1_COLUMN_NOTFOUND/i,
    "syntax",
  ],
];

const MAX_MESSAGE_CHARACTERS = 1_000;

/** Returns the refusal for an error of D1 or of anything else. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) {
    return error;
  }
  const message = error instanceof Error ? error.message : String(error);
  const kind = D1_MESSAGES.find(([pattern]) => pattern.test(message))?.[1] ?? "internal";
  return new Refusal(kind, message.slice(0, MAX_MESSAGE_CHARACTERS));
}
