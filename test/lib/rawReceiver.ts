import { writeFileSync } from "node:fs"
import type { Socket } from "node:net"
import { join } from "node:path"
import { createServer, type TLSSocket, type TlsOptions } from "node:tls"
import { Effect, Queue } from "effect"
import { type Identity, makeAuthority } from "../../src/Sandbox/Authority.ts"
import { clientWith } from "./deliveryClient.ts"
import { listenHere } from "./loopback.ts"
import { temporaryFolder } from "./store.ts"

/** A request that arrived at a raw receiver, for the test to answer byte by byte. */
export interface RawRequest {
  readonly socket: TLSSocket
  /** 1 for the first connection. */
  readonly connection: number
  /** Ends the connection by a TCP reset. */
  readonly reset: () => void
}

/** How a receiver answers a request. */
export type Answer = (request: RawRequest) => void

/**
 * A TLS server on 127.0.0.1 that speaks no HTTP by itself: it calls `answer` for each request whose body is `{}`, and for
 * each connection that fails tells no one.
 */
export const startRawReceiver = (identity: Identity, answer: Answer, options: TlsOptions = {}) =>
  Effect.gen(function* () {
    /** The TCP connections that TLS runs over, by the client's port. */
    const beneath = new Map<number, Socket>()
    const arrived = yield* Queue.unbounded<RawRequest>()
    let connections = 0
    const server = createServer({ key: identity.key, cert: identity.certificate, ...options }, (socket) => {
      const connection = ++connections
      let received = ""
      const { remotePort: port = 0 } = socket
      socket.on("error", () => undefined)
      socket.on("data", (chunk: Buffer) => {
        received += chunk.toString("latin1")
        if (!received.endsWith("\r\n\r\n{}")) return
        received = ""
        const request = { socket, connection, reset: () => void beneath.get(port)?.resetAndDestroy() }
        Queue.unsafeOffer(arrived, request)
        answer(request)
      })
    })
    server.on("tlsClientError", () => undefined)
    server.on("connection", (tcp: Socket) => {
      if (tcp.remotePort !== undefined) beneath.set(tcp.remotePort, tcp)
    })
    const { port } = yield* listenHere(server)
    return { port, take: Queue.take(arrived), connections: () => connections }
  })

// One for all: making it takes longer than most of the tests.
export const authority = await Effect.runPromise(makeAuthority)
export const identity = await Effect.runPromise(authority.issue(["127.0.0.1"]))

/** A receiver that answers by hand, and a client that trusts it. */
export const against = (answer: Answer, options: TlsOptions = {}) =>
  Effect.gen(function* () {
    const receiver = yield* startRawReceiver(identity, answer, options)
    const caFile = join(yield* temporaryFolder, "ca.pem")
    writeFileSync(caFile, authority.certificate)
    const client = yield* clientWith(caFile)
    const url = `https://127.0.0.1:${receiver.port}/`
    return { ...receiver, caFile, post: client.post({ url, headers: {}, body: Buffer.from("{}") }) }
  })

export const head = (status: number, ...headers: ReadonlyArray<string>) =>
  [`HTTP/1.1 ${status} Said`, ...headers, "", ""].join("\r\n")

/** Writes these bytes. */
export const says =
  (...parts: ReadonlyArray<string | Uint8Array>): Answer =>
  ({ socket }) => {
    for (const part of parts) socket.write(part)
  }

export const thenEnds =
  (bytes: string): Answer =>
  ({ socket }) =>
    socket.end(bytes)

export const thenResets =
  (bytes: string): Answer =>
  ({ reset, socket }) =>
    socket.write(bytes, reset)

/** Writes these bytes over and over, as fast as they are read, for as long as the peer reads them. */
export const pours =
  (start: string, more: string) =>
  ({ socket }: Pick<RawRequest, "socket">): void => {
    const chunk = Buffer.from(more.repeat(Math.ceil(16_384 / more.length)))
    const pour = () => {
      while (!socket.destroyed && socket.write(chunk));
    }
    socket.write(start)
    socket.on("drain", pour)
    pour()
  }
