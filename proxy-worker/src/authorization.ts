/** The check that a request carries the Worker's token. */

const encoder = new TextEncoder();

/**
 * Compares hashes, which all have one length, in constant time: the duration shows neither how much of a guess
 * is right nor how long the token is. While the Worker has no token, no request is authorized.
 */
export async function isAuthorized(request: Request, token: string | undefined): Promise<boolean> {
  const expected = (token ?? "").trim();
  const presented = /^Bearer +(\S+)$/i.exec(request.headers.get("Authorization") ?? "")?.[1] ?? "";
  const [ours, theirs] = await Promise.all([sha256(expected), sha256(presented)]);
  return crypto.subtle.timingSafeEqual(ours, theirs) && expected !== "";
}

function sha256(text: string): Promise<ArrayBuffer> {
  return crypto.subtle.digest("SHA-256", encoder.encode(text));
}
