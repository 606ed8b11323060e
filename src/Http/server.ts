import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http"
import { Server as NetServer, Socket } from "node:net"
import type { Duplex } from "node:stream"
import { Data, Effect, Exit, type Fiber, FiberId, Runtime, RuntimeFlags } from "effect"
import { ApiError, type ErrorCode } from "../Domain/ApiError.ts"
import { receive } from "./body.ts"
import { errorReply, headersOf, newRequestId, type Reply } from "./reply.ts"
import type { Respond } from "./respond.ts"

export interface Address {
  readonly host: string
  readonly port: number
}

/** The port is taken, or the host is not one of this machine. */
export class ListenFailed extends Data.TaggedError("ListenFailed")<{ readonly message: string }> {}

const options = {
  headersTimeout: 10_000,
  requestTimeout: 15_000,
  connectionsCheckingInterval: 1_000,
  // Longer than the minute that proxies keep an idle connection: the one that closes first must not be the server.
  keepAliveTimeout: 65_000,
  // Checked by the listener, whose answer is JSON.
  requireHostHeader: false
}

const maxConnections = 4_096

/** Requests in flight at a shutdown may take this long. */
const drainDeadline = "20 seconds"
/** Then whoever is just about to send another on a live connection is told, and not cut off. */
const lastRequests = "100 millis"

const shuttingDown = new ApiError({
  code: "SHUTTING_DOWN",
  message: "The server is shutting down: try again in a moment.",
  headers: { "retry-after": "5" }
})

const parserErrors: Readonly<Record<string, readonly [code: ErrorCode, message: string]>> = {
  HPE_HEADER_OVERFLOW: ["HEADERS_TOO_LARGE", "The request's headers are too large."],
  ERR_HTTP_REQUEST_TIMEOUT: ["REQUEST_TIMEOUT", "The request did not arrive in time."]
}

/** A client that is refused may read the answer for this long before the connection is closed. */
const partingMillis = 1_000

/** What Node refuses by itself, before there is a request to answer. */
const refuse = (error: NodeJS.ErrnoException, socket: Duplex) => {
  if (!(socket instanceof Socket) || !socket.writable || error.code === "ECONNRESET") {
    socket.destroy()
    return
  }
  const [code, message] = parserErrors[error.code ?? ""] ?? ["BAD_REQUEST", "This is not a well-formed HTTP request."]
  const requestId = newRequestId()
  const reply = errorReply(new ApiError({ code, message }), requestId)
  const headers = Object.entries({ ...headersOf(reply, requestId), connection: "close" })
  const lines = [`HTTP/1.1 ${reply.status} ${STATUS_CODES[reply.status]}`, ...headers.map(([k, v]) => `${k}: ${v}`)]
  socket.setTimeout(partingMillis)
  socket.end(`${lines.join("\r\n")}\r\n\r\n${reply.text}`)
}

const write = (response: ServerResponse, reply: Reply, requestId: string, closing: boolean) => {
  if (response.headersSent || response.destroyed) return
  response.writeHead(reply.status, { ...headersOf(reply, requestId), ...(closing ? { connection: "close" } : {}) })
  response.end(reply.text)
}

/** Runs a fiber for each request, and knows of those that are not answered yet. */
const makeRequests = (respond: Respond, runtime: Runtime.Runtime<never>) => {
  // Without Effect's counts of fibers: nobody reads them, and they cost a request a twentieth of its time.
  const runFork = Runtime.runFork(Runtime.disableRuntimeFlag(runtime, RuntimeFlags.RuntimeMetrics))
  let closing = false
  let unanswered = 0
  let onNone: (() => void) | undefined

  const take = (request: IncomingMessage, response: ServerResponse) => {
    const requestId = newRequestId()
    const send = (reply: Reply) => write(response, reply, requestId, closing)
    let fiber: Fiber.RuntimeFiber<Reply> | undefined
    unanswered += 1
    response.once("close", () => {
      unanswered -= 1
      if (unanswered === 0) onNone?.()
      // The client has gone, and nobody waits for the answer.
      if (!response.writableFinished) fiber?.unsafeInterruptAsFork(FiberId.none)
    })
    if (closing) return send(errorReply(shuttingDown, requestId))
    receive(request, (body) => {
      fiber = runFork(respond(request, body, requestId))
      fiber.addObserver((exit) => send(Exit.isSuccess(exit) ? exit.value : errorReply(shuttingDown, requestId)))
    })
  }

  return {
    take,
    refuseNew: Effect.sync(() => {
      closing = true
    }),
    /** Completes when every request has its answer. */
    answered: Effect.async<void>((resume) => {
      if (unanswered === 0) resume(Effect.void)
      else onNone = () => resume(Effect.void)
    })
  }
}

const listen = (server: Server, { host, port }: Address) =>
  Effect.async<Address, ListenFailed>((resume) => {
    const onError = (error: NodeJS.ErrnoException) => {
      const why =
        error.code === "EADDRINUSE" ? "the port is taken: end what listens there, or choose another" : error.message
      resume(new ListenFailed({ message: `Cannot listen on ${host}:${port}: ${why}` }))
    }
    server.once("error", onError)
    server.listen({ host, port }, () => {
      server.off("error", onError)
      const address = server.address()
      resume(Effect.succeed({ host, port: typeof address === "object" && address !== null ? address.port : port }))
    })
  })

const connectionsOf = (server: Server) =>
  Effect.async<number>((resume) => {
    server.getConnections((_, count) => resume(Effect.succeed(count ?? 0)))
  })

/**
 * Serves at an address until its scope ends, port 0 being any free one. Then it takes no new connections, lets the
 * requests in flight finish, answers 503 to what still comes on live connections, and closes them.
 */
export const serve = Effect.fnUntraced(function* (respond: Respond, address: Address) {
  const requests = makeRequests(respond, yield* Effect.runtime<never>())
  const server = createServer(options, requests.take)
  server.maxConnections = maxConnections
  server.on("clientError", refuse)
  // Expectations that are not met need not be refused (RFC 9110, 10.1.1); Node would, without a JSON body.
  server.on("checkExpectation", requests.take)

  const drain = Effect.gen(function* () {
    yield* requests.refuseNew
    // Only this stops listening and leaves live connections open; `server.close()` ends the idle ones at once.
    NetServer.prototype.close.call(server)
    yield* requests.answered
    if ((yield* connectionsOf(server)) === 0) return
    yield* Effect.sleep(lastRequests)
    yield* requests.answered
  }).pipe(
    // A release cannot be interrupted, and the deadline must.
    Effect.interruptible,
    Effect.timeoutOption(drainDeadline)
  )
  const close = Effect.async<void>((resume) => {
    server.close(() => resume(Effect.void))
    server.closeAllConnections()
  })

  return yield* Effect.acquireRelease(listen(server, address), () => Effect.zipRight(drain, close))
})
