import { connect as connectTcp, type LookupFunction, type Socket } from "node:net"
import { connect as connectTls, type SecureContext } from "node:tls"
import { Data, Effect } from "effect"
import { Client } from "undici"
import type { Target } from "./TargetGuard.ts"

/** A request got no response. `reason` is a short class that reveals nothing about the internal network. */
export class NoAnswer extends Data.TaggedError("NoAnswer")<{ readonly reason: string }> {}

/** A TLS connection to one receiver, for one request at a time. */
export interface Connection {
  /** The receiver, for reuse: `https://host:port`. */
  readonly origin: string
  /** The receiver's IP address. */
  readonly address: string
  readonly client: Client
  /** Unix milliseconds. */
  readonly openedAt: number
}

/**
 * Milliseconds for one of several addresses before the next is tried: Node gives up an attempt when it starts another.
 */
const attemptMillis = 1_000

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "connection reset",
  // A fault of this machine, not of the endpoint.
  EMFILE: "out of descriptors",
  ENFILE: "out of descriptors",
  EHOSTUNREACH: "unreachable",
  ENETUNREACH: "unreachable",
  ETIMEDOUT: "unreachable"
}

/** The problem of a certificate, by the codes of Node's "TLS (SSL)" documentation, X509 certificate error codes. */
const certificateFaults: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "certificate has expired",
  CERT_NOT_YET_VALID: "certificate is not valid yet",
  CERT_REVOKED: "certificate was revoked",
  ERR_TLS_CERT_ALTNAME_INVALID: "certificate is for another name",
  DEPTH_ZERO_SELF_SIGNED_CERT: "certificate is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "certificate's authority is not trusted",
  UNABLE_TO_GET_ISSUER_CERT: "certificate's authority is not trusted",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "certificate's authority is not trusted",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "intermediate certificate is missing, or its authority is not trusted"
}

/** `tls`, with the certificate's problem where that is the reason. */
const noSecureAnswer = ({ code = "" }: NodeJS.ErrnoException) => {
  const fault = certificateFaults[code]
  return new NoAnswer({ reason: reasons[code] ?? (fault === undefined ? "tls" : `tls: ${fault}`) })
}

const noConnection = ({ code = "" }: NodeJS.ErrnoException) =>
  new NoAnswer({ reason: reasons[code] ?? "connection failed" })

/** A lookup that returns the checked addresses: a second resolution could return others (DNS rebinding). */
const pinnedTo = (addresses: ReadonlyArray<string>): LookupFunction => {
  const found = addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }))
  return (_host, _options, callback) => callback(null, found)
}

const until = <S extends Socket>(
  socket: S,
  event: "connect" | "secureConnect",
  toNoAnswer: (error: NodeJS.ErrnoException) => NoAnswer
) =>
  Effect.async<S, NoAnswer>((resume) => {
    // Stays for the socket's lifetime: an "error" event without a listener would end the process.
    socket.on("error", (error) => resume(Effect.fail(toNoAnswer(error))))
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
      // RFC 6066: no server name (SNI) for an IP address.
      const names = isName ? { host, servername: host } : { host }
      return until(
        // Explicit: NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment would otherwise turn the check off.
        connectTls({ socket: tcp, ...names, secureContext, rejectUnauthorized: true, ALPNProtocols: ["http/1.1"] }),
        "secureConnect",
        noSecureAnswer
      )
    })
    return until(tcp, "connect", noConnection).pipe(
      Effect.zipRight(handshake),
      Effect.onError(() => Effect.sync(() => tcp.destroy()))
    )
  })

/** Opens a connection to one of `addresses`. `at`: now, in Unix milliseconds. Fails with `NoAnswer`. */
export const open = (target: Target, addresses: ReadonlyArray<string>, secureContext: SecureContext, at: number) =>
  Effect.map(openSocket(target, addresses, secureContext), (socket): Connection => {
    let unused = true
    const { origin } = target.url
    const address = socket.remoteAddress ?? ""
    const client = new Client(origin, {
      // One socket per client: connecting again requires resolving and checking again.
      connect: (_options, callback) => {
        const first = unused
        unused = false
        // Deferred: undici sends nothing over a socket that it receives before it waits for one.
        queueMicrotask(() => (first ? callback(null, socket) : callback(new Error("closed"), null)))
      },
      // The caller enforces the deadlines.
      headersTimeout: 0,
      bodyTimeout: 0
    })
    return { origin, address, client, openedAt: at }
  })

/** Closes a connection at once, with any request under way. */
export const close = (connection: Connection): void => connection.client.destroy(() => {})
