/**
 * The HTTP/1.1 client of every outgoing request: webhooks, RPC, prices, alerts, telemetry, doctor, `tilld listen`. It dials
 * all addresses of a host in parallel, keeps connections, sends the user and password of a URL, takes gzip, skips interim
 * responses, and bounds what a response may cost by the bytes that come off the wire. Redirects are not followed, and
 * proxy variables are ignored. Each caller sets the deadline, of all requests of a client or by an interruption, which closes
 * the connection at once.
 *
 * On Node's own client: undici makes an error with its stack for each header past its limit, reads chunk extensions
 * without a bound, and fails on an interim response that was not asked for.
 */
import { constants, X509Certificate } from "node:crypto"
import { promises as dns } from "node:dns"
import { readFileSync } from "node:fs"
import { request as httpRequest, type IncomingMessage } from "node:http"
import { connect as connectTcp, isIP, type Socket } from "node:net"
import { pipeline, type Readable } from "node:stream"
import * as tls from "node:tls"
import { createGunzip } from "node:zlib"
import { Clock, Data, Duration, Effect, FiberHandle, type Scope } from "effect"
import packageJson from "../../package.json" with { type: "json" }

/** Time between the starts of two addresses (RFC 8305). None is given up before the caller's deadline. */
const stagger = Duration.millis(250)
/** Addresses of a host that are tried. */
const maxAddresses = 16
/** How long a connection is used: then a server that moved to another address is resolved again. */
const maxAge = Duration.toMillis("5 minutes")
/** Of a response's head: frameworks of shops send large ones. */
const maxHeaderSize = 64 * 1024

// No key exchange over a finite field, which blocks the event loop for up to 250 ms, and no second handshake of TLS 1.2.
const handshakes = {
  ciphers: `${tls.DEFAULT_CIPHERS}:!kDHE`,
  ecdhCurve: "X25519:P-256:X448:P-521:P-384",
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION
}
/** Session tickets of a connection: servers send one or two, and their bytes are not counted as a response's. */
const maxTickets = 16

/** No response. `code` as Node has it: `ECONNREFUSED`, `CERT_HAS_EXPIRED`, `HPE_…` for what is no HTTP, or `tooLong`. */
export class RequestFailed extends Data.TaggedError("RequestFailed")<{
  readonly code: string
  readonly message: string
  /** Where it failed. A code of Node does not always tell. */
  readonly stage: "connecting" | "handshake" | "response"
  readonly cause: unknown
}> {}

/** The code of a response that exceeds its bound. */
export const tooLong = "ERR_RESPONSE_TOO_LONG"

/** The code of a request without a response before the client's deadline. */
export const tooLate = "ERR_RESPONSE_TOO_LATE"

const noResponse = () => Object.assign(new Error("no response in time"), { code: tooLate })

const tooManyBytes = (maxBytes: number) => Object.assign(new Error(`more than ${maxBytes} bytes`), { code: tooLong })

export interface OutgoingRequest<E> {
  readonly url: URL
  readonly method: "GET" | "HEAD" | "POST"
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Bytes off the wire, of head and body with their framing, at which the connection is closed. TLS takes its own off before. */
  readonly maxBytes: number
  /** The addresses to connect to, asked for when no connection is kept. Default: those of the system. */
  readonly addresses?: Effect.Effect<ReadonlyArray<string>, E>
  /** Called with the address of the connection that the request goes over. */
  readonly onConnection?: (address: string) => void
}

export interface HttpClient {
  /** Sends a request, and succeeds with the head of its final response. The caller reads or destroys the body. */
  readonly send: <E = never>(request: OutgoingRequest<E>) => Effect.Effect<IncomingMessage, RequestFailed | E>
}

export const userAgent = `tilld/${packageJson.version}`

/** Percent-decoded, each byte as one Latin-1 character. A `%` that begins no escape is itself. */
export const percentDecoded = (text: string): string =>
  text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

/** The header for the user and password of a URL (RFC 7617). Either may be empty: Infura's secret has no user. */
const authorizationOf = ({ password, username }: URL) => {
  if (username + password === "") return {}
  const pair = Buffer.from(percentDecoded(`${username}:${password}`), "latin1")
  return { authorization: `Basic ${pair.toString("base64")}` }
}

/** A host without the brackets of an IPv6 address. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, "")

const systemAddresses = (host: string) =>
  isIP(host) !== 0
    ? Effect.succeed([host])
    : Effect.tryPromise({
        try: () => dns.lookup(host, { all: true }).then((found) => found.map(({ address }) => address)),
        catch: (error) => failure(error as Error, "connecting")
      })

const failure = (cause: NodeJS.ErrnoException, stage: RequestFailed["stage"]) =>
  new RequestFailed({ code: cause.code ?? "", message: cause.message, stage, cause })

/** Dials the addresses, each a little after the one before, and takes the first that connects. */
const dial = (addresses: ReadonlyArray<string>, port: number) =>
  Effect.suspend(() => {
    let first: Socket | undefined
    const connect = (address: string) =>
      Effect.async<Socket, RequestFailed>((resume) => {
        const socket = connectTcp({ host: address, port, noDelay: true, keepAlive: true })
        // Stays for the socket's lifetime: an "error" event without a listener would end the process.
        socket.on("error", (error) => resume(Effect.fail(failure(error, "connecting"))))
        socket.once("connect", () => {
          first ??= socket
          if (first === socket) resume(Effect.succeed(socket))
          else socket.destroy()
        })
        return Effect.sync(() => socket.destroy())
      })
    const tried = addresses
      .slice(0, maxAddresses)
      .map((address, i) => (i === 0 ? connect(address) : Effect.delay(connect(address), Duration.times(stagger, i))))
    const [only, ...others] = tried
    if (only === undefined) return failure(new Error("the name has no address"), "connecting")
    return Effect.onError(others.length === 0 ? only : Effect.raceAll(tried), () => Effect.sync(() => first?.destroy()))
  })

/** A TLS connection over a TCP connection. `host`: whose certificate is accepted. */
const handshake = (socket: Socket, host: string, secureContext: tls.SecureContext) =>
  Effect.async<Socket, RequestFailed>((resume) => {
    // RFC 6066: no server name (SNI) for an IP address.
    const names = isIP(host) === 0 ? { host, servername: host } : { host }
    // Explicit: NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment would otherwise turn the check off.
    const checked = { rejectUnauthorized: true, ALPNProtocols: ["http/1.1"] }
    const secure = tls.connect({ socket, ...names, ...checked, secureContext }, () => resume(Effect.succeed(secure)))
    secure.on("error", (error) => resume(Effect.fail(failure(error, "handshake"))))
    let tickets = 0
    secure.on("session", () => void (++tickets > maxTickets && secure.destroy(new Error("too many session tickets"))))
  }).pipe(Effect.onError(() => Effect.sync(() => socket.destroy())))

interface Connection {
  readonly socket: Socket
  /** Unix milliseconds. */
  readonly openedAt: number
}

/** A client's connections: those that are idle by origin, and all for the end. */
class Connections {
  readonly #byOrigin = new Map<string, Set<Connection>>()
  readonly #all = new Set<Socket>()
  readonly #keepMillis: number

  constructor(keepMillis: number) {
    this.#keepMillis = keepMillis
  }

  /** The connection used last, which is the least likely to be closed by its server just now. */
  take(origin: string, now: number): Connection | undefined {
    const idle = [...(this.#byOrigin.get(origin) ?? [])]
    const tooOld = idle.filter(({ openedAt }) => now - openedAt > maxAge)
    for (const { socket } of tooOld) socket.destroy()
    const connection = idle.filter(({ socket }) => !socket.destroyed).at(-1)
    connection?.socket.emit("taken")
    return connection
  }

  /** Keeps a connection whose response has ended. `hint`: the server's Keep-Alive header. Stray bytes close it. */
  put(origin: string, connection: Connection, hint = ""): void {
    const { socket } = connection
    const idle = this.#byOrigin.get(origin) ?? new Set()
    const said = /^timeout=(\d{1,6})/.exec(hint)?.[1]
    const close = () => socket.destroy()
    const forget = () => {
      socket.off("data", close).off("timeout", close).off("close", forget).off("taken", forget).setTimeout(0)
      idle.delete(connection)
      if (idle.size === 0) this.#byOrigin.delete(origin)
    }
    this.#byOrigin.set(origin, idle.add(connection))
    socket.on("data", close).on("timeout", close).on("close", forget).on("taken", forget)
    // A second less than the server's own time, so that it does not close what is just used.
    socket.setTimeout(
      said === undefined ? this.#keepMillis : Math.min(this.#keepMillis, Math.max(1, Number(said) * 1000 - 1000))
    )
  }

  /** `now` in Unix milliseconds. */
  opened(socket: Socket, now: number): Connection {
    this.#all.add(socket.once("close", () => this.#all.delete(socket)))
    return { socket, openedAt: now }
  }

  /** Also those whose response was not read: each keeps the process from its end. */
  closeAll(): void {
    for (const socket of this.#all) socket.destroy()
  }
}

/**
 * Sends a request over a connection, which is idle again after the response, and closed after any failure.
 *
 * @param onSent gets what ends it where it has no response yet, and gives what to do once it has
 */
const exchange = (
  connections: Connections,
  request: OutgoingRequest<unknown>,
  connection: Connection,
  onSent: (end: () => void) => () => void = () => () => {}
) =>
  Effect.async<IncomingMessage, RequestFailed>((resume) => {
    const { body, headers, maxBytes, method, onConnection, url } = request
    const { socket } = connection
    const fail = (error: NodeJS.ErrnoException) => resume(Effect.fail(failure(error, "response")))
    onConnection?.(socket.remoteAddress ?? "")
    const sent = httpRequest({
      ...{ createConnection: () => socket, method, path: url.pathname + url.search, maxHeaderSize },
      headers: {
        ...{ host: url.host, connection: "keep-alive", "user-agent": userAgent, "accept-encoding": "gzip" },
        ...authorizationOf(url),
        ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }),
        ...headers
      }
    })
    let bytes = 0
    const count = (chunk: Uint8Array) => {
      bytes += chunk.length
      if (bytes > maxBytes) sent.destroy(tooManyBytes(maxBytes))
    }
    const answered = onSent(() => sent.destroy(noResponse()))
    socket.on("data", count)
    sent.once("response", answered).once("close", () => {
      answered()
      socket.off("data", count)
    })
    sent.on("error", fail)
    sent.on("upgrade", () => {
      socket.destroy()
      fail(new Error("it upgrades to another protocol"))
    })
    sent.on("response", (response) => {
      // Emitted by Node where both sides keep the connection and the response has ended.
      socket.once("free", () => connections.put(url.origin, connection, String(response.headers["keep-alive"] ?? "")))
      // A body that breaks off is seen by its reader; without one it is no news.
      resume(Effect.succeed(response.on("error", () => undefined)))
      // A server that answers and does not read: what is still to be written would keep the connection without end.
      response.once("close", () => void ((sent.writableFinished && sent.shouldKeepAlive) || socket.destroy()))
    })
    sent.end(body)
    return Effect.sync(() => sent.destroy())
  }).pipe(Effect.onError(() => Effect.sync(() => connection.socket.destroy())))

/** A server may close an idle connection just when it is used again, or have sent stray bytes after its last response. */
const isStale = ({ code }: RequestFailed) => /^(ECONNRESET|EPIPE|HPE_(INVALID_\w+|CR_EXPECTED))$/.test(code)

/**
 * A client whose connections close with the scope. `keepAlive`: how long an idle one is kept, unless the server says
 * less. `extraCaFile`: a PEM file of authorities to trust beside the known ones, "" for none; throws where it is unusable.
 * `deadline`: the longest from the start of a request, with resolving and connecting, to the head of its response; none where
 * the caller interrupts.
 */
export const makeHttpClient = (
  keepAlive: Duration.DurationInput,
  extraCaFile = "",
  deadline?: Duration.DurationInput
): Effect.Effect<HttpClient, never, Scope.Scope> =>
  Effect.gen(function* () {
    const connections = yield* Effect.acquireRelease(
      Effect.sync(() => new Connections(Duration.toMillis(keepAlive))),
      (connections) => Effect.sync(() => connections.closeAll())
    )
    const trusted = extraCaFile === "" ? {} : { ca: [...tls.rootCertificates, certificatesIn(extraCaFile)] }
    // Made once and when needed, since reading the root certificates takes longer than a handshake.
    let made: tls.SecureContext | undefined
    const secureContext = () => (made ??= tls.createSecureContext({ ...handshakes, ...trusted }))
    const secured = (socket: Socket, host: string) => handshake(socket, host, secureContext())

    const open = (url: URL, host: string, addresses: ReadonlyArray<string>) => {
      const isSecure = url.protocol === "https:"
      const tcp = dial(addresses, Number(url.port || (isSecure ? 443 : 80)))
      return isSecure ? Effect.flatMap(tcp, (socket) => secured(socket, host)) : tcp
    }
    const watch = yield* FiberHandle.makeRuntime<never>()
    /** How what is sent over kept connections is ended, and when, the first one first: nanoseconds of the monotonic clock. */
    const waiting = new Map<() => void, bigint>()
    // One timer does for all, which have the same time: one for each, and a fiber that waits for it, take a seventh of what a
    // sender of thousands a second can do.
    const endLate = Effect.gen(function* () {
      for (const [end, until] of waiting) {
        const left = until - (yield* Clock.currentTimeNanos)
        if (left > 0n) yield* Effect.sleep(Duration.nanos(left))
        if (waiting.delete(end)) end()
      }
    })
    const within = (until: bigint) => (end: () => void) => {
      waiting.set(end, until)
      watch(endLate, { onlyIfMissing: true })
      return () => void waiting.delete(end)
    }
    const overNew = <E>(request: OutgoingRequest<E>, until: bigint | undefined) => {
      const host = hostOf(request.url)
      const found: Effect.Effect<ReadonlyArray<string>, RequestFailed | E> = request.addresses ?? systemAddresses(host)
      const opened = Effect.flatMap(found, (addresses) => open(request.url, host, addresses))
      const sent = Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(Effect.zip(restore(opened), Clock.currentTimeMillis), ([socket, now]) =>
          restore(exchange(connections, request, connections.opened(socket, now)))
        )
      )
      const onTimeout = () => failure(noResponse(), "response")
      return until === undefined
        ? sent
        : Effect.flatMap(Clock.currentTimeNanos, (now) =>
            Effect.timeoutFail(sent, { duration: Duration.nanos(until - now), onTimeout })
          )
    }
    const send: HttpClient["send"] = (request) =>
      Effect.flatMap(Effect.zip(Clock.currentTimeMillis, Clock.currentTimeNanos), ([now, nanos]) => {
        const until = deadline === undefined ? undefined : nanos + Duration.unsafeToNanos(deadline)
        const kept = connections.take(request.url.origin, now)
        const watched = until === undefined ? undefined : within(until)
        return kept === undefined
          ? overNew(request, until)
          : Effect.catchIf(exchange(connections, request, kept, watched), isStale, () => overNew(request, until))
      })
    return { send }
  })

/** The certificates of a PEM file. Throws when there is none: Node would silently accept such a file. */
const certificatesIn = (path: string): string => {
  const pem = readFileSync(path, "utf8")
  new X509Certificate(pem)
  return pem
}

/** The body of a response, unpacked where it is packed by gzip. */
export const bodyOf = (response: IncomingMessage): Readable =>
  /^(x-)?gzip$/i.test(response.headers["content-encoding"] ?? "")
    ? pipeline(response, createGunzip(), () => undefined)
    : response

/** Reads a response's body by `read`, and closes its connection where that fails or is interrupted. */
export const readBody = <A>(response: IncomingMessage, read: (body: Readable) => Promise<A>) => {
  const body = bodyOf(response)
  return Effect.onError(
    Effect.tryPromise({ try: () => read(body), catch: (cause) => failure(cause as Error, "response") }),
    () => Effect.sync(() => response.destroy())
  )
}

/** A body as text. Rejects with `tooLong` as its code where it is longer, unpacked, than `maxBytes`. */
export const bodyText = async (body: AsyncIterable<Buffer>, maxBytes: number): Promise<string> => {
  const parts: Array<Buffer> = []
  let bytes = 0
  for await (const part of body) {
    bytes += part.length
    if (bytes > maxBytes) throw tooManyBytes(maxBytes)
    parts.push(part)
  }
  return Buffer.concat(parts).toString("utf8")
}
