/**
 * Refusals outside a request's handler: connections beyond the limit, malformed or late requests, CONNECT. Each gets a
 * JSON reply, after the replies that its connection still waits for, and then the connection is closed. `listener.ts` and
 * `requests.ts` call it.
 */
import { STATUS_CODES } from "node:http"
import { Effect, type Fiber, FiberId } from "effect"
import { ApiError } from "../Domain/ApiError.ts"
import { newRequestId } from "../Domain/Ids.ts"
import type { Connection } from "./connections.ts"
import { errorReply, headersOf } from "./HttpReply.ts"

const tooLate = new ApiError({ code: "REQUEST_TIMEOUT", message: "The request did not arrive in time." })

const malformed = new ApiError({ code: "BAD_REQUEST", message: "This is not a well-formed HTTP request." })

const parserErrors: Readonly<Record<string, ApiError>> = {
  HPE_HEADER_OVERFLOW: new ApiError({ code: "HEADERS_TOO_LARGE", message: "The request's headers are too large." }),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: new ApiError({
    code: "PAYLOAD_TOO_LARGE",
    message: "The extensions of the body's chunks are too large."
  }),
  ERR_HTTP_REQUEST_TIMEOUT: tooLate
}

/** The error that replaces Node's own 400, 408, 413 or 431. */
const refusalOf = ({ code = "" }: NodeJS.ErrnoException): ApiError => parserErrors[code] ?? malformed

export const tooManyConnections = new ApiError({
  code: "TOO_MANY_CONNECTIONS",
  message: "Too many connections are open, each with a request that is worked on: try again in a moment.",
  headers: { "retry-after": "1" }
})

export const tooManyAtOnce = new ApiError({
  code: "BAD_REQUEST",
  message: "Too many requests came on this connection without waiting for an answer: the rest was not looked at."
})

/** Maximum headers of a request. Each costs time before its owner is known; browsers and proxies send a third. */
export const maxHeaders = 100

export const tooManyHeaders = new ApiError({
  code: "HEADERS_TOO_LARGE",
  message: `The request has more than ${maxHeaders} headers.`
})

export const tooManyPieces = new ApiError({
  code: "BAD_REQUEST",
  message: "The body came in hundreds of small pieces: send it in larger chunks."
})

/** Endless input, such as blank lines, gets the error of the part that may be long at its place. */
export const tooMuchFiller = new ApiError({
  code: "HEADERS_TOO_LARGE",
  message: "The headers or trailers of the request are too large."
})

export const tooManyBodies = new ApiError({
  code: "TOO_MANY_CONNECTIONS",
  message: "Too many large bodies are under way from this client: try again in a moment.",
  headers: { "retry-after": "1" }
})

export const unknownVersion = new ApiError({
  code: "BAD_REQUEST",
  message: "This server speaks versions 1.1 and 1.0 of HTTP."
})

export const noTunnels = new ApiError({
  code: "BAD_REQUEST",
  message: "This server is not a proxy: it takes no CONNECT."
})

/** How long a refused client has to read the reply before the connection is closed. */
const readTime = "1 second"

/**
 * Bytes of a refused client that are read and dropped: twice the largest body, which it may be sending before it reads. A
 * connection that is closed with unread data is reset, and the client might lose its reply (RFC 9112, 9.6).
 */
const mostDropped = 128 * 1024

/**
 * Replies without a request, and ends the connection. False when the socket is no longer writable: the caller closes the
 * connection at once then, and otherwise after the client has had time to read.
 */
const dismiss = ({ socket }: Connection, error: ApiError | undefined): boolean => {
  if (!socket.writable) return false
  if (error === undefined) {
    socket.end()
    return true
  }
  const requestId = newRequestId()
  const reply = errorReply(error, requestId)
  const headers = Object.entries(headersOf(reply, requestId, true))
  const lines = [`HTTP/1.1 ${reply.status} ${STATUS_CODES[reply.status]}`, ...headers.map(([k, v]) => `${k}: ${v}`)]
  socket.end(`${lines.join("\r\n")}\r\n\r\n${reply.text}`)
  return true
}

/** Refuses connections with a reply, after the replies that they still wait for. */
export const makeRefusals = (runFork: (effect: Effect.Effect<void>) => Fiber.RuntimeFiber<void>) => {
  const goOn = (connection: Connection) => {
    const { refusal, socket, working } = connection
    if (refusal === undefined || refusal.isUnderWay || working > 0) return
    refusal.isUnderWay = true
    const end = Effect.suspend(() => (dismiss(connection, refusal.error) ? Effect.sleep(readTime) : Effect.void)).pipe(
      Effect.zipRight(Effect.sync(() => socket.destroy()))
    )
    const fiber = runFork(end)
    socket.once("close", () => fiber.unsafeInterruptAsFork(FiberId.none))
  }

  const refuse = (error: ApiError | undefined, connection: Connection) => {
    // The first one holds: a refused connection gets no second reply.
    connection.refusal ??= { error, isUnderWay: false, dropped: 0 }
    // It may be paused, since its body was not wanted.
    connection.socket.resume()
    goOn(connection)
  }

  /** Refuses the rest of a request, unless it has its reply: the client would take a second one for the next. */
  const refuseRest = (error: ApiError, connection: Connection) => {
    const { latest, refusal, socket, working } = connection
    // A refused connection stays open until its earlier requests have their replies, whatever else it sends.
    if (refusal !== undefined && working > 0) return
    const { request, response } = latest ?? {}
    const isAnswered = request?.complete === false && response?.headersSent
    if (refusal !== undefined || (isAnswered && !response.writableEnded)) return void socket.destroy()
    refuse(isAnswered ? undefined : error, connection)
  }

  return {
    goOn,
    refuse,
    refuseRest,
    /** Bytes of a refused connection have arrived. From some on no more are read: that costs time too. */
    drop: ({ refusal, socket }: Connection, bytes: number) => {
      if (refusal === undefined) return
      refusal.dropped += bytes
      if (refusal.dropped > mostDropped) socket.pause()
    },
    /** For Node's "clientError": a request that could not be read, before its headers or within its body. */
    refuseUnread: (error: NodeJS.ErrnoException, connection: Connection) => {
      if (error.code === "ECONNRESET") connection.socket.destroy()
      else refuseRest(refusalOf(error), connection)
    }
  }
}
