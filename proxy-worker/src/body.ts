/** A request's body as text or JSON, read up to a limit of bytes. */

import { Refusal } from "./refusals";

/** An isolate has 128 MB, and a JSON text takes several times its size while it is parsed. */
export const MAX_BODY_BYTES = 4_000_000;

export async function readJson(request: Request): Promise<unknown> {
  const text = await readBody(request);
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal("request", "the body is not JSON");
  }
}

/** Content-Length may be missing (chunked), so the limit is checked while reading as well. */
export async function readBody(request: Request): Promise<string> {
  if (Number(request.headers.get("Content-Length") ?? 0) > MAX_BODY_BYTES) {
    throw tooLarge();
  }
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let text = "";
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.byteLength;
    if (size > MAX_BODY_BYTES) {
      throw tooLarge();
    }
    text += decode(decoder, chunk);
  }
  return text + decode(decoder);
}

function decode(decoder: TextDecoder, chunk?: Uint8Array): string {
  try {
    return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true });
  } catch {
    throw new Refusal("request", "the body is not UTF-8");
  }
}

function tooLarge(): Refusal {
  return new Refusal("too_large", `a body may have at most ${MAX_BODY_BYTES} bytes`);
}
