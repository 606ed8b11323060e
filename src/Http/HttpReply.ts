import { Predicate, Stream } from "effect"
import { type ApiError, errorObject, statusOf } from "../Domain/ApiError.ts"

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
