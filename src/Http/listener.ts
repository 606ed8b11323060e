/**
 * Every HTTP server of the program: Node's, with its time-outs and connection limits, and an orderly shutdown. Requests go to
 * `requests.ts`; errors of Node's parser and refused connections get a JSON reply from `connectionRefusals.ts`. `Server.ts`
 * and the admin listener call `serveHttp`, the control sockets `makeServer`.
 */
import { createServer, type Server } from "node:http"
import { Server as NetServer, type Socket } from "node:net"
import { Context, Data, Effect, Runtime, type Scope } from "effect"
import { LogLimit } from "../Telemetry/LogLimit.ts"
import { retryPatiently } from "../Telemetry/patience.ts"
import { Workers } from "../Telemetry/Workers.ts"
import { networkOf } from "./clientAddress.ts"
import { noTunnels, tooManyConnections } from "./connectionRefusals.ts"
import { Connection, Connections } from "./connections.ts"
import { makeRequests, type RequestLimits } from "./requests.ts"
import type { Respond } from "./respond.ts"

export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** The address can never be listened on: a privileged port. */
export class ListenFailed extends Data.TaggedError("ListenFailed")<{ readonly message: string }> {}

/** The port is in use, or the host is not (yet) known, or not one of this machine. A later try may succeed. */
export class AddressUnavailable extends Data.TaggedError("AddressUnavailable")<{ readonly message: string }> {}

// Without a reachable name server the system reports EAI_AGAIN even for a name that does not exist.
const unresolved = "the host's name cannot be resolved: give its address, or wait for the name server"

/** A listener that stays open while the daemon takes a changed configuration: requests wait for what answers then. */
export interface KeptListener {
  /** The parts that end have to leave it open. */
  isReloading: boolean
  /** Once it listens: lets another one answer, until the scope ends. */
  open?: (respond: Respond) => Effect.Effect<ListenAddress, never, Scope.Scope>
}

/** That of the API, where the daemon can be reloaded. */
export class ApiListener extends Context.Reference<ApiListener>()("tilld/Http/ApiListener", {
  defaultValue: (): KeptListener | undefined => undefined
}) {}

/** Why an address may be free later, by the system's code. */
const passing: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is taken: end what listens there (ss -ltnp shows it), or choose another",
  EADDRNOTAVAIL: "this machine has no such address (yet): correct the host, or wait for its network",
  EAI_AGAIN: unresolved,
  ENOTFOUND: unresolved
}

/** Limits of the listener. Times in milliseconds. */
export interface Front extends RequestLimits {
  /** Connections that may be open. */
  readonly total: number
  /**
   * From the first byte of a request, or from the start of a connection that sends nothing, to the end of the headers.
   */
  readonly headersTimeout: number
  /** From the same start to the end of the request's body. */
  readonly requestTimeout: number
  /** How often Node looks for connections that have exceeded a time-out. */
  readonly connectionsCheckingInterval: number
  /** How long a shutdown waits for requests in flight. */
  readonly drainTimeout: number
}

const defaults: Front = {
  headersTimeout: 10_000,
  requestTimeout: 15_000,
  answerTimeout: 30_000,
  connectionsCheckingInterval: 1_000,
  drainTimeout: 20_000,
  total: 4_096,
  pipelined: 32,
  // For one client an eighth: dozens of the longest lists, or of the largest bodies.
  unread: 128 * 1024 * 1024,
  bodies: 32 * 1024 * 1024,
  clientOf: ({ socket }) => networkOf(socket.remoteAddress ?? "")
}

// Proxies keep an idle connection for a minute. The server must not be the one that closes first.
const keepAliveTimeout = 65_000

/**
 * Connections beyond the limit that may be open while they get their refusal. Further ones are closed without a reply.
 */
const refusalReserve = 256

/**
 * At a shutdown live connections stay open this long after the requests in flight have ended, so that a client that is
 * just sending another request gets a 503.
 */
const lastRequestsTime = "100 millis"

/**
 * Connections that the system keeps until they are accepted; it takes fewer where `net.core.somaxconn` is lower. Beyond
 * it a client gets no reply, and retries after a second: one turn of the event loop in a flood brings more than Node's
 * 511.
 */
const backlog = 4_096

/** Bytes that are parsed between two checks whether to go on: the length of an ordinary request. */
const slice = 1024

/**
 * Hands what a connection receives to Node's parser little by little, until the connection is refused. The parser cannot be
 * stopped while it is at a read, and one read of 64 KiB may hold thousands of chunks or requests: tens of milliseconds of the
 * event loop for every connection that a flood opens again. Node's parser reads the socket itself, past its "data" events,
 * until somebody else listens for them.
 *
 * @param isWanted gets the bytes that are parsed next, and all that have arrived; false once the connection is refused
 */
const parseInSlices = (socket: Socket, isWanted: (bytes: number, all: number) => boolean): void => {
  const parsers = socket.listeners("data")
  socket.removeAllListeners("data").on("data", (bytes: Buffer) => {
    for (let at = 0; at < bytes.length && !socket.destroyed; at += slice) {
      // Too much is unread: replies by the client, or a body here.
      if (socket.isPaused()) return void socket.unshift(bytes.subarray(at))
      const next = bytes.subarray(at, at + slice)
      if (!isWanted(next.length, bytes.length - at)) return
      for (const parse of parsers) parse.call(socket, next)
    }
  })
}

const listen = (server: Server, { host, port }: ListenAddress) =>
  Effect.async<ListenAddress, ListenFailed | AddressUnavailable>((resume) => {
    const onError = (error: NodeJS.ErrnoException) => {
      // The server is used again, for the next try.
      server.off("listening", onListening)
      const why = passing[error.code ?? ""]
      const message = `Cannot listen on ${host}:${port}: ${why ?? error.message}`
      resume(why === undefined ? new ListenFailed({ message }) : new AddressUnavailable({ message }))
    }
    const onListening = () => {
      server.off("error", onError)
      const address = server.address()
      resume(Effect.succeed({ host, port: typeof address === "object" && address !== null ? address.port : port }))
    }
    server.once("error", onError).once("listening", onListening).listen({ host, port, backlog })
  })

const connectionsOf = (server: Server) =>
  Effect.async<number>((resume) => {
    server.getConnections((_, count) => resume(Effect.succeed(count ?? 0)))
  })

/**
 * Makes a server that does not listen yet. However small the pieces of what its clients send, they are counted and take turns
 * with others. Once its scope ends it accepts no new connections, lets requests in flight finish, replies 503 to new
 * requests on live connections, and closes them.
 */
export const makeServer = Effect.fnUntraced(function* (
  respond: Respond,
  over: Partial<Front> = {},
  kept: KeptListener = { isReloading: false }
) {
  const front = { ...defaults, ...over }
  const connections = new Connections(front.total)
  const runtime = yield* Effect.runtime<never>()
  const requests = makeRequests(respond, runtime, connections, front)
  const { answerTimeout, connectionsCheckingInterval, headersTimeout, requestTimeout } = front
  const times = { headersTimeout, requestTimeout, connectionsCheckingInterval, keepAliveTimeout }
  // `respond` checks the Host header, and replies in JSON.
  const server = createServer({ ...times, requireHostHeader: false }, requests.take)
  server.timeout = answerTimeout
  // Node would omit those beyond a number, and still obey them: a client could hide headers from all checks.
  server.maxHeadersCount = 0
  server.maxConnections = front.total + refusalReserve
  const [serveConnection] = server.listeners("connection")
  server.removeAllListeners("connection").on("connection", (socket) => {
    // The clients of a Unix socket have no addresses, and count as one.
    const client = socket.remoteAddress ?? (typeof server.address() === "string" ? "" : undefined)
    // It was reset before it was accepted. Without a parser for each, a flood of these costs little.
    if (client === undefined) return void socket.destroy()
    serveConnection?.call(server, socket)
    const admitted = connections.admit(socket)
    const connection = admitted ?? new Connection(socket)
    socket.once("close", () => connections.closed(connection))
    parseInSlices(socket, (bytes, all) => requests.isWanted(connection, bytes, all))
    if (admitted === undefined) requests.refuse(tooManyConnections, connection)
  })
  server.on("clientError", (error, socket) => {
    const connection = connections.of(socket)
    if (connection === undefined) socket.destroy()
    else requests.refuseUnread(error, connection)
  })
  const acceptErrors = new LogLimit({ perKey: 1, inAll: 10 })
  const onAcceptError = ({ code = "", message }: NodeJS.ErrnoException) => {
    const line = Effect.annotateLogs(Effect.logError("a connection could not be accepted"), { reason: message })
    Runtime.runFork(runtime)(acceptErrors.write(code, line))
  }
  // Without a listener for it the error, such as EMFILE, would end the process.
  server.once("listening", () => server.on("error", onAcceptError))
  server.on("connect", (_, socket) => {
    // After a CONNECT Node no longer handles the socket's errors.
    socket.on("error", () => socket.destroy())
    const connection = connections.of(socket)
    if (connection !== undefined) requests.refuse(noTunnels, connection)
  })
  // An unknown `Expect` header may be ignored (RFC 9110, 10.1.1). Node would refuse it, without a JSON body.
  server.on("checkExpectation", requests.take)

  const drain = Effect.gen(function* () {
    yield* requests.refuseNew
    // Stops listening and leaves live connections open. `server.close()` would close idle ones at once.
    NetServer.prototype.close.call(server)
    yield* requests.answered
    if ((yield* connectionsOf(server)) === 0) return
    yield* Effect.sleep(lastRequestsTime)
    yield* requests.answered
  }).pipe(
    // A release is uninterruptible, but the timeout has to interrupt this.
    Effect.interruptible,
    Effect.timeoutOption(front.drainTimeout)
  )
  const close = Effect.async<void>((resume) => {
    server.close(() => resume(Effect.void))
    server.closeAllConnections()
  })

  const pause = Effect.timeoutOption(Effect.interruptible(requests.pause), front.drainTimeout)
  // Not within acquireRelease, which could not be interrupted while it waits.
  const closing = Effect.addFinalizer(() =>
    kept.isReloading ? pause : Effect.when(Effect.zipRight(drain, close), () => server.listening)
  )
  yield* closing
  const open = (next: Respond) =>
    Effect.zipRight(
      closing,
      Effect.map(Effect.runtime<never>(), (runtime) => {
        kept.isReloading = false
        requests.resume(next, runtime)
      })
    )
  return { server, open }
})

/**
 * Serves at an address until its scope ends; port 0 is any free port. Returns the address it listens on; an address that is
 * not available is waited for, with a warning.
 */
export const serveHttp = Effect.fnUntraced(function* (
  respond: Respond,
  address: ListenAddress,
  over: Partial<Front> = {},
  kept?: KeptListener
) {
  if (kept?.open !== undefined) return yield* kept.open(respond)
  const { open, server } = yield* makeServer(respond, over, kept)
  let refused: string | undefined = "it does not listen yet"
  ;(yield* Workers).condition("listener", () => refused)
  const listening = yield* Effect.uninterruptible(listen(server, address)).pipe(
    Effect.tapError(({ message }) =>
      Effect.sync(() => {
        refused = message
      })
    ),
    retryPatiently((error) => error._tag === "AddressUnavailable")
  )
  refused = undefined
  if (kept !== undefined) kept.open = (next) => Effect.as(open(next), listening)
  return listening
})
