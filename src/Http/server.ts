import { createServer, type Server } from "node:http"
import { Server as NetServer } from "node:net"
import type { Duplex } from "node:stream"
import { Data, Effect } from "effect"
import { type ConnectionLimits, Connections } from "./connections.ts"
import { noTunnels, tooManyConnections } from "./refusals.ts"
import { makeRequests } from "./requests.ts"
import type { Respond } from "./respond.ts"

export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** The port is taken, or the host is not one of this machine. */
export class ListenFailed extends Data.TaggedError("ListenFailed")<{ readonly message: string }> {}

/** What the front lets clients do. Times are in milliseconds. */
export interface Front extends ConnectionLimits {
  /** From the first byte of a request, or from the start of a connection that says nothing, to the end of its headers. */
  readonly headersTimeout: number
  /** To the end of its body. */
  readonly requestTimeout: number
  /** In which nothing comes or goes while a request waits for its answer, or the answer for its reader. */
  readonly answerTimeout: number
  /** How often Node looks for those that are late. */
  readonly connectionsCheckingInterval: number
  /** For requests in flight at a shutdown. */
  readonly drainTimeout: number
}

const defaults: Front = {
  headersTimeout: 10_000,
  requestTimeout: 15_000,
  answerTimeout: 30_000,
  connectionsCheckingInterval: 1_000,
  drainTimeout: 20_000,
  total: 4_096,
  // More requests at a time than any key may make in a minute.
  perClient: 256,
  // Dozens of the longest lists.
  unreadPerClient: 16 * 1024 * 1024,
  isProxy: () => false
}

// Longer than the minute that proxies keep an idle connection: the one that closes first must not be the server.
const keepAliveTimeout = 65_000

/** Connections beyond the limit that are just being told so; whoever comes then is cut off. */
const leaving = 256

/**
 * At a shutdown, when the requests in flight have ended: whoever is just about to send another on a live connection is
 * told, and not cut off.
 */
const lastRequests = "100 millis"

const listen = (server: Server, { host, port }: ListenAddress) =>
  Effect.async<ListenAddress, ListenFailed>((resume) => {
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
export const serveHttp = Effect.fnUntraced(function* (
  respond: Respond,
  address: ListenAddress,
  over: Partial<Front> = {}
) {
  const front = { ...defaults, ...over }
  const connections = new Connections<Duplex>(front)
  const requests = makeRequests(respond, yield* Effect.runtime<never>(), connections, front.answerTimeout)
  const { answerTimeout, connectionsCheckingInterval, headersTimeout, requestTimeout } = front
  const times = { headersTimeout, requestTimeout, connectionsCheckingInterval, keepAliveTimeout }
  // The Host header is checked by the listener, whose answer is JSON.
  const server = createServer({ ...times, requireHostHeader: false }, requests.take)
  server.timeout = answerTimeout
  server.maxConnections = front.total + leaving
  server.on("connection", (socket) => {
    const admission = connections.admit(socket, socket.remoteAddress ?? "")
    if (!admission.admitted) return requests.refuse(tooManyConnections, socket)
    admission.evicted?.destroy()
    socket.once("close", () => connections.closed(socket))
  })
  server.on("clientError", requests.refuseUnread)
  server.on("connect", (_, socket) => {
    // Node has let go of it.
    socket.on("error", () => socket.destroy())
    requests.refuse(noTunnels, socket)
  })
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
    Effect.timeoutOption(front.drainTimeout)
  )
  const close = Effect.async<void>((resume) => {
    server.close(() => resume(Effect.void))
    server.closeAllConnections()
  })

  return yield* Effect.acquireRelease(listen(server, address), () => Effect.zipRight(drain, close))
})
