import { connect as connectTcp, type LookupFunction, type Socket } from "node:net"
import { connect as connectTls, type SecureContext } from "node:tls"
import { Data, Effect } from "effect"
import { Client } from "undici"
import type { Target } from "./TargetGuard.ts"

/** A request got no answer. `reason` is a short class that tells nothing of the network here. */
export class NoAnswer extends Data.TaggedError("NoAnswer")<{ readonly reason: string }> {}

/** One TLS connection to one receiver, for one request at a time. */
export interface Connection {
  /** Where it may be used again: `https://host:port`. */
  readonly origin: string
  /** The IP address of its other end. */
  readonly address: string
  readonly client: Client
  /** Unix milliseconds. */
  readonly openedAt: number
}

/** How long one of several addresses is tried before the next: Node gives up on an attempt when it starts another. */
const attemptMillis = 1_000

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "connection reset",
  EHOSTUNREACH: "unreachable",
  ENETUNREACH: "unreachable",
  ETIMEDOUT: "unreachable"
}

const noAnswer = (error: NodeJS.ErrnoException, otherwise: string) =>
  new NoAnswer({ reason: reasons[error.code ?? ""] ?? otherwise })

/** Answers the lookup with the addresses that were checked: there is no second resolution that could differ. */
const pinnedTo = (addresses: ReadonlyArray<string>): LookupFunction => {
  const found = addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }))
  return (_host, _options, callback) => callback(null, found)
}

const until = <S extends Socket>(socket: S, event: "connect" | "secureConnect", otherwise: string) =>
  Effect.async<S, NoAnswer>((resume) => {
    // To the end of the socket: an error that nobody listens to would end the process.
    socket.on("error", (error) => resume(Effect.fail(noAnswer(error, otherwise))))
    socket.once(event, () => resume(Effect.succeed(socket)))
  })

/** A TLS connection to one of `addresses`, which the target guard has let pass. */
const openSocket = ({ host, url }: Target, addresses: ReadonlyArray<string>, secureContext: SecureContext) =>
  Effect.suspend(() => {
    const isName = !addresses.includes(host)
    const tcp = connectTcp({
      host,
      port: url.port === "" ? 443 : Number(url.port),
      ...(isName ? { lookup: pinnedTo(addresses) } : {}),
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: attemptMillis,
      noDelay: true,
      keepAlive: true
    })
    const handshake = Effect.suspend(() => {
      // RFC 6066 has no server name for an IP address.
      const names = isName ? { host, servername: host } : { host }
      return until(
        // Said, since NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment would turn it off.
        connectTls({ socket: tcp, ...names, secureContext, rejectUnauthorized: true, ALPNProtocols: ["http/1.1"] }),
        "secureConnect",
        "tls"
      )
    })
    return until(tcp, "connect", "connection failed").pipe(
      Effect.zipRight(handshake),
      Effect.onError(() => Effect.sync(() => tcp.destroy()))
    )
  })

/** Opens a connection. `at`: now, in Unix milliseconds. */
export const open = (target: Target, addresses: ReadonlyArray<string>, secureContext: SecureContext, at: number) =>
  Effect.map(openSocket(target, addresses, secureContext), (socket): Connection => {
    let unused = true
    const { origin } = target.url
    const address = socket.remoteAddress ?? ""
    const client = new Client(origin, {
      // One socket, ever: to connect again means to resolve and to check again.
      connect: (_options, callback) => {
        const first = unused
        unused = false
        // Not at once: undici sends nothing over a socket that it is given before it waits for one.
        queueMicrotask(() => (first ? callback(null, socket) : callback(new Error("closed"), null)))
      },
      // Deadlines are the caller's.
      headersTimeout: 0,
      bodyTimeout: 0
    })
    return { origin, address, client, openedAt: at }
  })

/** Ends a connection at once, and whatever it is doing. */
export const close = (connection: Connection): void => connection.client.destroy(() => {})
