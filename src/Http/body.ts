import { isUtf8 } from "node:buffer"
import type { IncomingMessage } from "node:http"
import { Effect, Either } from "effect"
import { ApiError } from "../Domain/ApiError.ts"
import { parseJson } from "../Domain/Json.ts"

const maxBytes = 64 * 1024

const tooLarge = () =>
  new ApiError({ code: "PAYLOAD_TOO_LARGE", message: `The body is larger than ${maxBytes / 1024} KiB.` })

const isJson = /^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i

/** What the headers alone tell against the body. */
const refusalOf = ({ headers }: IncomingMessage): ApiError | undefined => {
  if (Number(headers["content-length"] ?? 0) > maxBytes) return tooLarge()
  if (!isJson.test(headers["content-type"] ?? "")) {
    return new ApiError({
      code: "UNSUPPORTED_MEDIA_TYPE",
      message: "The body must be JSON in UTF-8: send Content-Type: application/json."
    })
  }
  return headers["content-encoding"] === undefined
    ? undefined
    : new ApiError({
        code: "UNSUPPORTED_MEDIA_TYPE",
        message: "The body must be sent as it is, without Content-Encoding."
      })
}

// What goes over the limit is read on and dropped, for to close the connection would take the answer away with it. The
// server's request time-out ends whoever never stops.
const collect = (request: IncomingMessage) =>
  Effect.async<Buffer, ApiError>((resume) => {
    const chunks: Array<Buffer> = []
    let size = 0
    const onData = (chunk: Buffer) => {
      size += chunk.length
      if (size <= maxBytes) {
        chunks.push(chunk)
        return
      }
      request.off("data", onData).off("end", onEnd).resume()
      resume(tooLarge())
    }
    const onEnd = () => resume(Effect.succeed(Buffer.concat(chunks)))
    request.on("data", onData).on("end", onEnd)
  })

const parse = (bytes: Buffer): Effect.Effect<unknown, ApiError> => {
  const parsed = isUtf8(bytes) ? parseJson(bytes.toString("utf8")) : Either.left("The body is not valid UTF-8.")
  return Either.isRight(parsed)
    ? Effect.succeed(parsed.right)
    : new ApiError({ code: "INVALID_JSON", message: parsed.left })
}

/** The JSON value that a request carries. */
export const readJson = (request: IncomingMessage): Effect.Effect<unknown, ApiError> => {
  const refusal = refusalOf(request)
  return refusal ?? Effect.flatMap(collect(request), parse)
}
