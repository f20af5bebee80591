/** The check that a request carries the Worker's token. */

const encoder = new TextEncoder();
/** The isolate's own token and its hash: a request costs one hash, its own. */
let known: { readonly token: string; readonly hash: ArrayBuffer } | undefined;

/**
 * Compares hashes, which all have one length, in constant time: the duration shows neither how much of a guess
 * is right nor how long the token is. A request without the header, and any while the Worker has no token, is
 * refused without a hash.
 */
export async function isAuthorized(request: Request, token: string | undefined): Promise<boolean> {
  const expected = (token ?? "").trim();
  const header = request.headers.get("Authorization");
  if (header === null || expected === "") {
    return false;
  }
  if (known?.token !== expected) {
    known = { token: expected, hash: await sha256(expected) };
  }
  const presented = /^Bearer +(\S+)$/i.exec(header)?.[1] ?? "";
  return crypto.subtle.timingSafeEqual(known.hash, await sha256(presented));
}

function sha256(text: string): Promise<ArrayBuffer> {
  return crypto.subtle.digest("SHA-256", encoder.encode(text));
}
