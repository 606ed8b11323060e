import { createHash } from "node:crypto"
import type { IncomingMessage } from "node:http"
import type { HttpReply } from "./HttpReply.ts"

/** Headers for a text that caches may store but must revalidate each time. The ETag is the text's hash. */
export const revalidated = (text: string): Readonly<Record<string, string>> => ({
  etag: `"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"`,
  "cache-control": "no-cache"
})

// RFC 9110, 8.8.3. A comma may be part of a tag.
const entityTag = /(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g

/** Whether the client has the current version, by weak comparison (RFC 9110, 13.1.2). */
const isKept = (ifNoneMatch: string, etag: string): boolean =>
  ifNoneMatch.trim() === "*" || Array.from(ifNoneMatch.matchAll(entityTag), ([, opaque]) => opaque).includes(etag)

/** The reply, or a 304 when the client has that version already. A reply without an `etag` is always sent. */
export const unlessKept = ({ headers: asked, method }: IncomingMessage, reply: HttpReply): HttpReply => {
  const { etag } = reply.headers
  const ifNoneMatch = asked["if-none-match"]
  if (etag === undefined || ifNoneMatch === undefined || reply.status !== 200) return reply
  if ((method !== "GET" && method !== "HEAD") || !isKept(ifNoneMatch, etag)) return reply
  // A 304 leaves out headers that describe the body (RFC 9110, 15.4.5).
  const { "content-type": _, ...headers } = reply.headers
  return { status: 304, headers, text: "" }
}
