import { Predicate, Stream } from "effect"
import { type ApiError, statusOf } from "../Domain/ApiError.ts"
import { randomToken } from "../Domain/Ids.ts"

/** A response, all but the headers that every response has. */
export interface HttpReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** JSON, unless its `content-type` says something else. */
  readonly text: string
  /** The same, encoded, where it is sent to many. */
  readonly bytes?: Buffer
  /** What follows it, for as long as that goes on. */
  readonly rest?: Pieces
}

/** A body in pieces, each made when the client has taken those before it. */
export type Pieces = Stream.Stream<string>

export const isPieces = (body: unknown): body is Pieces => Predicate.hasProperty(body, Stream.StreamTypeId)

/** Names one request, in its response and in the logs. */
export const newRequestId = (): string => `req_${randomToken()}`

/** An error as the client sees it. The 401 body is exactly its two fields: its request id is in the header alone. */
export const errorReply = ({ code, details, headers = {}, message }: ApiError, requestId: string): HttpReply => {
  const error = code === "UNAUTHORIZED" ? { code, message } : { code, message, details, requestId }
  return { status: statusOf[code], headers, text: JSON.stringify({ error }) }
}

/** The headers of a response. Nothing that the API says may be kept by a cache, unless the reply allows it. */
export const headersOf = (
  { bytes, headers, rest, status, text }: HttpReply,
  requestId: string,
  closing: boolean
): Readonly<Record<string, string>> => {
  const all: Record<string, string> = { "cache-control": "no-store", "x-request-id": requestId }
  // A 304 has no body.
  if (status !== 304) all["content-type"] = "application/json"
  if (status !== 304 && rest === undefined) all["content-length"] = String(bytes?.length ?? Buffer.byteLength(text))
  Object.assign(all, headers)
  if (closing) all.connection = "close"
  return all
}
