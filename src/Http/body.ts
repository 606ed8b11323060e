import { isUtf8 } from "node:buffer"
import type { IncomingHttpHeaders, IncomingMessage } from "node:http"
import { Effect, Either } from "effect"
import { ApiError } from "../Domain/ApiError.ts"
import { parseJson } from "../Domain/Json.ts"

const maxBytes = 64 * 1024

/** A request's body; undefined when it was larger than the limit. */
export type Body = Buffer | undefined

const none = Buffer.alloc(0)

/**
 * Reads a request's body and calls `done` once, or never when the client goes away before the end. For a body over the
 * limit `done` is called at once and the rest is read and dropped: closing the connection would lose the reply. A body
 * without end is cut off by the listener's request time-out.
 */
export const receive = (request: IncomingMessage, done: (body: Body) => void) => {
  const { "content-length": length = "0", "transfer-encoding": encoding } = request.headers
  if (encoding === undefined && length === "0") return done(none)
  if (Number(length) > maxBytes) return done(undefined)
  const chunks: Array<Buffer> = []
  let size = 0
  const onData = (chunk: Buffer) => {
    size += chunk.length
    chunks.push(chunk)
    if (size <= maxBytes) return
    request.off("data", onData).off("end", onEnd).resume()
    done(undefined)
  }
  const onEnd = () => done(Buffer.concat(chunks))
  request.on("data", onData).on("end", onEnd)
}

const json = /^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i

const unsupported = (message: string) => new ApiError({ code: "UNSUPPORTED_MEDIA_TYPE", message })

/** The JSON value of a body. Where there is none, its type need not be declared: it counts as an object without fields. */
export const parseBody = (headers: IncomingHttpHeaders, body: Body): Effect.Effect<unknown, ApiError> => {
  if (body === undefined) {
    return new ApiError({ code: "PAYLOAD_TOO_LARGE", message: `The body is larger than ${maxBytes / 1024} KiB.` })
  }
  if (body.length === 0) return Effect.succeed({})
  if (!json.test(headers["content-type"] ?? "")) {
    return unsupported("The body must be JSON in UTF-8: send Content-Type: application/json.")
  }
  if (headers["content-encoding"] !== undefined) return unsupported("The body must be sent without Content-Encoding.")
  const parsed = isUtf8(body) ? parseJson(body.toString("utf8")) : Either.left("The body is not valid UTF-8.")
  return Either.mapLeft(parsed, (message) => new ApiError({ code: "INVALID_JSON", message }))
}
