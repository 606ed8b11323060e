/**
 * Refusals outside a request's handler: connections beyond the limit, malformed or late requests, CONNECT. Each gets a
 * JSON reply, after the replies that its connection still waits for, and then the connection is closed. `listener.ts` and
 * `requests.ts` call it.
 */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http"
import { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { Effect, type Fiber, FiberId } from "effect"
import { ApiError, type ErrorCode } from "../Domain/ApiError.ts"
import type { Connections } from "./connections.ts"
import { errorReply, headersOf, newRequestId } from "./HttpReply.ts"

const parserErrors: Readonly<Record<string, readonly [code: ErrorCode, message: string]>> = {
  HPE_HEADER_OVERFLOW: ["HEADERS_TOO_LARGE", "The request's headers are too large."],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ["PAYLOAD_TOO_LARGE", "The extensions of the body's chunks are too large."],
  ERR_HTTP_REQUEST_TIMEOUT: ["REQUEST_TIMEOUT", "The request did not arrive in time."]
}

/** The error that replaces Node's own 400, 408, 413 or 431. */
export const refusalOf = ({ code = "" }: NodeJS.ErrnoException): ApiError => {
  const [known, message] = parserErrors[code] ?? ["BAD_REQUEST", "This is not a well-formed HTTP request."]
  return new ApiError({ code: known, message })
}

export const tooManyConnections = new ApiError({
  code: "TOO_MANY_CONNECTIONS",
  message: "Too many connections are open, each with a request that is worked on: try again in a moment.",
  headers: { "retry-after": "1" }
})

export const tooManyAtOnce = new ApiError({
  code: "BAD_REQUEST",
  message: "Too many requests came on this connection without waiting for an answer: the rest was not looked at."
})

/** Most headers of a request. Each costs time before it is known whose request it is; browsers and proxies send a third. */
export const maxHeaders = 100

export const tooManyHeaders = new ApiError({
  code: "HEADERS_TOO_LARGE",
  message: `The request has more than ${maxHeaders} headers.`
})

export const tooManyPieces = new ApiError({
  code: "BAD_REQUEST",
  message: "The body came in thousands of small pieces: send it in larger chunks."
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

const drop = () => {}

/** From now on reads and drops what the client sends: with unread data the connection would be reset. */
export const stopListening = (socket: Duplex): void => {
  socket.removeAllListeners("data").on("data", drop).resume()
}

/**
 * Replies without a request, and ends the connection. False when the socket is no longer writable: the caller closes the
 * connection at once then, and otherwise after the client has had time to read.
 */
export const dismiss = (socket: Duplex, error: ApiError): boolean => {
  if (!(socket instanceof Socket) || !socket.writable) return false
  const requestId = newRequestId()
  const reply = errorReply(error, requestId)
  const headers = Object.entries(headersOf(reply, requestId, true))
  const lines = [`HTTP/1.1 ${reply.status} ${STATUS_CODES[reply.status]}`, ...headers.map(([k, v]) => `${k}: ${v}`)]
  socket.end(`${lines.join("\r\n")}\r\n\r\n${reply.text}`)
  return true
}

type Exchange = Readonly<{ request: IncomingMessage; response: ServerResponse }>

/** Refuses connections with a reply, after the replies that they still wait for. */
export const makeRefusals = (
  runFork: (effect: Effect.Effect<void>) => Fiber.RuntimeFiber<void>,
  connections: Connections<Duplex>
) => {
  const latest = new WeakMap<Duplex, Exchange>()
  /** The error to reply with; undefined once it is sent. */
  const refused = new WeakMap<Duplex, ApiError | undefined>()

  const goOn = (socket: Duplex) => {
    const error = refused.get(socket)
    if (error === undefined || connections.working(socket) > 0) return
    refused.set(socket, undefined)
    if (!dismiss(socket, error)) return void socket.destroy()
    const fiber = runFork(
      Effect.delay(
        Effect.sync(() => socket.destroy()),
        readTime
      )
    )
    socket.once("close", () => fiber.unsafeInterruptAsFork(FiberId.none))
  }

  const refuse = (error: ApiError, socket: Duplex) => {
    refused.set(socket, error)
    stopListening(socket)
    goOn(socket)
  }

  /** Refuses what is left of a request: unless it has its reply already, which the client would take for that of its next. */
  const refuseRest = (error: ApiError, socket: Duplex) => {
    // A refused connection stays open until its earlier requests have their replies, whatever else it sends.
    if (refused.has(socket) && connections.working(socket) > 0) return
    const { request, response } = latest.get(socket) ?? {}
    const isAnswered = request?.complete === false && response?.headersSent
    if (refused.has(socket) || isAnswered) return void socket.destroy()
    refuse(error, socket)
  }

  return {
    goOn,
    refuse,
    isRefused: (socket: Duplex) => refused.has(socket),
    note: (request: IncomingMessage, response: ServerResponse) => latest.set(request.socket, { request, response }),
    refuseRest,
    /** For Node's "clientError": a request that could not be read, before its headers or within its body. */
    refuseUnread: (error: NodeJS.ErrnoException, socket: Duplex) => {
      if (error.code === "ECONNRESET") socket.destroy()
      else refuseRest(refusalOf(error), socket)
    }
  }
}
