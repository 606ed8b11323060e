import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http"
import { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { Effect, type Fiber, FiberId } from "effect"
import { ApiError, type ErrorCode } from "../Domain/ApiError.ts"
import type { Connections } from "./connections.ts"
import { errorReply, headersOf, newRequestId } from "./reply.ts"

const parserErrors: Readonly<Record<string, readonly [code: ErrorCode, message: string]>> = {
  HPE_HEADER_OVERFLOW: ["HEADERS_TOO_LARGE", "The request's headers are too large."],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ["PAYLOAD_TOO_LARGE", "The extensions of the body's chunks are too large."],
  ERR_HTTP_REQUEST_TIMEOUT: ["REQUEST_TIMEOUT", "The request did not arrive in time."]
}

/** What a client is told in place of Node's own 400, 408, 413 and 431. */
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

export const noTunnels = new ApiError({
  code: "BAD_REQUEST",
  message: "This server is not a proxy: it takes no CONNECT."
})

/** A client that is refused may read the answer for this long before the connection is closed. */
const parting = "1 second"

const drop = () => {}

/** From here on what the client sends is read, so that the connection can end in order, and means nothing. */
export const stopListening = (socket: Duplex): void => {
  socket.removeAllListeners("data").on("data", drop).resume()
}

/**
 * Answers where there is no request to answer, and ends the connection. False where nobody can hear it: the caller closes
 * the connection, at once then and otherwise once the client has had its time to read.
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

/** Ends connections with a word, behind the answers that they still wait for. */
export const makeRefusals = (
  runFork: (effect: Effect.Effect<void>) => Fiber.RuntimeFiber<void>,
  connections: Connections<Duplex>
) => {
  const latest = new WeakMap<Duplex, Exchange>()
  /** Why; undefined once it has been said. */
  const refused = new WeakMap<Duplex, ApiError | undefined>()

  const goOn = (socket: Duplex) => {
    const error = refused.get(socket)
    if (error === undefined || connections.working(socket) > 0) return
    refused.set(socket, undefined)
    if (!dismiss(socket, error)) return void socket.destroy()
    const fiber = runFork(
      Effect.delay(
        Effect.sync(() => socket.destroy()),
        parting
      )
    )
    socket.once("close", () => fiber.unsafeInterruptAsFork(FiberId.none))
  }

  const refuse = (error: ApiError, socket: Duplex) => {
    refused.set(socket, error)
    stopListening(socket)
    goOn(socket)
  }

  return {
    goOn,
    refuse,
    isRefused: (socket: Duplex) => refused.has(socket),
    note: (request: IncomingMessage, response: ServerResponse) => latest.set(request.socket, { request, response }),
    /** What Node itself refuses, before there is a request to answer or in the middle of one. */
    refuseUnread: (error: NodeJS.ErrnoException, socket: Duplex) => {
      // Whoever is on the way out already may say what he likes, until he has had his answers.
      if (refused.has(socket) && connections.working(socket) > 0) return
      const { request, response } = latest.get(socket) ?? {}
      const isAnswered = request?.complete === false && response?.headersSent
      // A second answer to one request would be taken for that to the next.
      if (refused.has(socket) || isAnswered || error.code === "ECONNRESET") return void socket.destroy()
      refuse(refusalOf(error), socket)
    }
  }
}
