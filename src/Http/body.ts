import { isUtf8 } from "node:buffer"
import type { IncomingHttpHeaders, IncomingMessage } from "node:http"
import { Effect, Either } from "effect"
import { ApiError, bodyTooLarge, invalid, mostBodyBytes } from "../Domain/ApiError.ts"
import { parseJson } from "../lib/Json.ts"
import { illFormedIn } from "../lib/text.ts"
import { fieldPathOf, fieldProblemsOf } from "./validationProblems.ts"

/** Initial memory of a body that arrives in several pieces. It doubles as it fills. */
const firstCapacity = 1024

/** A request's body; undefined when it was larger than the limit. */
export type Body = Buffer | undefined

export const noBytes = Buffer.alloc(0)

/** The interface of `receiveBody` to the body's connection. */
export interface Arrival {
  /** Reserves room for bytes that are kept. False: there is none, and the request is refused. */
  readonly reserve: (bytes: number) => boolean
  /** A piece of so many bytes has arrived, whether or not it is kept. */
  readonly onPiece: (bytes: number) => void
}

/** A request's body, as far as it is wanted. */
export interface Receiving {
  /**
   * Receives the body into memory in proportion to its bytes, however it is split. For a body over the limit it completes
   * at once and the rest is dropped: closing the connection would lose the reply. A body without end is cut off by the
   * listener's request time-out. It may run once.
   */
  readonly body: Effect.Effect<Body>
  /** Drops what arrives, unless the body was asked for: a connection is reusable only after the whole body. */
  readonly drop: () => void
}

/** Whether a request announces a body. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0"

/** What is received of a request without a body. */
export const noBody: Receiving = { body: Effect.succeed(noBytes), drop: () => {} }

/** Nothing of the body is read until it is asked for: nothing is kept for a client without a key or permission. */
export const receiveBody = (request: IncomingMessage, { onPiece, reserve }: Arrival): Receiving => {
  let isRead = false
  // Here the parser delivers them. "data" events come later, after thousands of them.
  const push = request.push.bind(request)
  request.push = (piece, encoding) => {
    if (piece !== null) onPiece(piece.length)
    return push(piece, encoding)
  }
  const drop = () => {
    if (isRead) return
    isRead = true
    request.resume()
  }
  const body = Effect.async<Body>((resume) => {
    isRead = true
    const { "content-length": length } = request.headers
    let kept: Buffer = noBytes
    let size = 0
    const stop = () => {
      request.off("data", onData).off("end", onEnd)
      kept = noBytes
    }
    const tooLarge = () => {
      stop()
      request.resume()
      resume(Effect.succeed(undefined))
    }
    const onData = (piece: Buffer) => {
      const before = size
      size += piece.length
      if (size > mostBodyBytes) return tooLarge()
      if (before === 0 && String(size) === length) {
        // The whole body, as most arrive. A piece has memory of its own.
        if (!reserve(size)) return stop()
        kept = piece
        return
      }
      if (size > kept.length) {
        const capacity = Math.min(mostBodyBytes, Math.max(firstCapacity, 2 ** Math.ceil(Math.log2(size))))
        if (!reserve(capacity - kept.length)) return stop()
        const grown = Buffer.allocUnsafeSlow(capacity)
        kept.copy(grown, 0, 0, before)
        kept = grown
      }
      piece.copy(kept, before)
    }
    const onEnd = () => resume(Effect.succeed(kept.subarray(0, size)))
    if (Number(length) > mostBodyBytes) return tooLarge()
    request.on("data", onData).on("end", onEnd)
  })
  return { body, drop }
}

const json = /^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i

const unsupported = (message: string) => Either.left(new ApiError({ code: "UNSUPPORTED_MEDIA_TYPE", message }))

/** A body in UTF-8 has half a surrogate pair, and JSON has U+0000, as an escape only. */
const badEscape = /\\u(?:d[89a-f]|0000)/i

/** The problems of a body with one of them: whoever reads it from here with a strict decoder reads nothing. */
const halves = (value: unknown) => {
  const first = illFormedIn(value).map((path) => ({
    path: fieldPathOf(path),
    message: "must not have half a surrogate pair, such as half an emoji, or U+0000: cut texts between code points"
  }))
  return first.length === 0 ? Either.right(value) : Either.left(invalid(fieldProblemsOf([{ first, more: 0 }])))
}

/** The JSON value of a body; TextDecoder drops a byte order mark. An absent one needs no type, and counts as `{}`. */
export const parseBody = (headers: IncomingHttpHeaders, body: Body): Either.Either<unknown, ApiError> => {
  if (body === undefined) return Either.left(bodyTooLarge)
  if (body.length === 0) return Either.right({})
  if (!json.test(headers["content-type"] ?? "")) {
    return unsupported("The body must be JSON in UTF-8: send Content-Type: application/json.")
  }
  if (headers["content-encoding"] !== undefined) return unsupported("The body must be sent without Content-Encoding.")
  const text = new TextDecoder().decode(body)
  const parsed = isUtf8(body) ? parseJson(text) : Either.left("The body is not valid UTF-8.")
  const value = Either.mapLeft(parsed, (message) => new ApiError({ code: "INVALID_JSON", message }))
  return badEscape.test(text) ? Either.flatMap(value, halves) : value
}
