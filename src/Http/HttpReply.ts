import { createHash } from "node:crypto"
import type { IncomingMessage } from "node:http"
import { Predicate, Stream } from "effect"
import { type ApiError, errorObject, statusOf } from "../Domain/ApiError.ts"

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

/** A response, without the headers that every response has. */
export interface HttpReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** JSON, unless `content-type` differs. */
  readonly text: string
  /** `text` in UTF-8, in pieces of which some are sent to many clients. */
  readonly bytes?: ReadonlyArray<Buffer>
  /** A streamed body. */
  readonly rest?: Pieces
}

/** A streamed body. Each piece is pulled when the client has taken the one before. */
export type Pieces = Stream.Stream<string>

export const isPieces = (body: unknown): body is Pieces => Predicate.hasProperty(body, Stream.StreamTypeId)

export const errorReply = (error: ApiError, requestId: string): HttpReply => ({
  status: statusOf[error.code],
  headers: error.headers ?? {},
  text: JSON.stringify(errorObject(error, requestId))
})

const lengthOf = ({ bytes, text }: HttpReply): number =>
  bytes === undefined ? Buffer.byteLength(text) : bytes.reduce((sum, { length }) => sum + length, 0)

/** The headers of a response. No cache may store a response unless the reply allows it. */
export const headersOf = (reply: HttpReply, requestId: string, closing: boolean): Readonly<Record<string, string>> => {
  const { headers, rest, status } = reply
  const all: Record<string, string> = { "cache-control": "no-store", "x-request-id": requestId }
  // A 304 has no body.
  if (status !== 304) all["content-type"] = "application/json"
  if (status !== 304 && rest === undefined) all["content-length"] = String(lengthOf(reply))
  Object.assign(all, headers)
  if (closing) all.connection = "close"
  return all
}
