import { createHmac, timingSafeEqual } from "node:crypto"
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http"
import { createServer, type Server } from "node:https"
import type { AddressInfo } from "node:net"
import type { Duplex } from "node:stream"
import { FileSystem } from "@effect/platform"
import { Clock, Data, Effect, FiberSet, Queue, Stream } from "effect"
import { type Authority, makeAuthority } from "./Authority.ts"
import { PortInUse } from "./local.ts"

/** A request as it arrived. */
export interface Received {
  /** 1 for the first request of this receiver. */
  readonly n: number
  /** Milliseconds since the epoch, when the whole body was there. */
  readonly at: number
  readonly method: string
  /** Path and query. */
  readonly path: string
  /** Names in lower case. */
  readonly headers: IncomingHttpHeaders
  /** Names and values in turn, in their order and spelling. */
  readonly rawHeaders: ReadonlyArray<string>
  /** The exact bytes. */
  readonly body: Buffer
}

/**
 * The response: a bare status, a whole response, or `"hang up"`: the connection is cut without one. A stream as the
 * body is written as it comes, until it ends or the client leaves.
 */
export type ReceiverReply =
  | number
  | "hang up"
  | {
      readonly status: number
      readonly headers?: Readonly<Record<string, string>>
      readonly body?: string | Uint8Array | Stream.Stream<Uint8Array>
    }

/** Decides the answer to a request. An effect may take its time: wait for a `Deferred`, or never end. */
export type Behaviour = (request: Received, n: number) => ReceiverReply | Effect.Effect<ReceiverReply>

/** A body without an end. */
export const endless: Stream.Stream<Uint8Array> = Stream.forever(Stream.make(new Uint8Array(16_384)))

export interface ReceiverOptions {
  /** Where the authority's certificate is written, for `webhooks.extra_ca_file`. */
  readonly caFile?: string
  /** The issuer of the certificate; absent: a new authority. */
  readonly authority?: Authority
  /** 0 or absent: a free port. */
  readonly port?: number
  /** The address to listen on, default 127.0.0.1. */
  readonly host?: string
  /** Names and addresses of the certificate, default `localhost`, 127.0.0.1 and ::1. */
  readonly certifiedFor?: ReadonlyArray<string>
  /** Default: 204 to everything. */
  readonly behaviour?: Behaviour
}

/** A running HTTPS receiver of webhooks. */
export type Receiver = Effect.Effect.Success<ReturnType<typeof startReceiver>>

/** The receiver could not listen, for another reason than a port in use. */
export class ReceiverNotStarted extends Data.TaggedError("ReceiverNotStarted")<{ readonly reason: string }> {
  override get message() {
    return `The HTTPS receiver did not start: ${this.reason}`
  }
}

/**
 * Whether `X-Service-Signature` is right: the lower-case hex HMAC-SHA256 of the body's bytes, keyed with the UTF-8 bytes
 * of the whole secret, `whsec_` included. Compared in constant time.
 */
export const verifySignature = (request: Pick<Received, "headers" | "body">, secret: string): boolean => {
  const expected = Buffer.from(createHmac("sha256", secret).update(request.body).digest("hex"))
  const given = Buffer.from(String(request.headers["x-service-signature"] ?? ""))
  return given.length === expected.length && timingSafeEqual(given, expected)
}

const readBody = (request: IncomingMessage) =>
  Effect.async<Buffer>((resume) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => resume(Effect.succeed(Buffer.concat(chunks))))
    // A client that disconnects within its body has sent no request.
    request.on("close", () => resume(Effect.interrupt))
  })

const write = (response: ServerResponse, chunk: Uint8Array) =>
  Effect.async<void>((resume) => {
    response.write(chunk, () => resume(Effect.void))
  })

const left = (response: ServerResponse) =>
  Effect.async<void>((resume) => {
    if (response.destroyed) return resume(Effect.void)
    response.once("close", () => resume(Effect.void))
  })

const answer = Effect.fn("Receiver.answer")(function* (response: ServerResponse, reply: ReceiverReply) {
  if (reply === "hang up") return response.destroy()
  const { status, headers = {}, body } = typeof reply === "number" ? { status: reply } : reply
  response.writeHead(status, headers)
  if (body === undefined || typeof body === "string" || body instanceof Uint8Array) return response.end(body)
  response.flushHeaders()
  yield* Effect.raceFirst(
    Stream.runForEach(body, (chunk) => write(response, chunk)),
    left(response)
  )
  return response.end()
})

const listen = (server: Server, host: string, port: number) =>
  Effect.async<number, PortInUse | ReceiverNotStarted>((resume) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      resume(
        Effect.fail(
          error.code === "EADDRINUSE"
            ? new PortInUse({ host, port, wantedBy: "the HTTPS receiver" })
            : new ReceiverNotStarted({ reason: error.message })
        )
      )
    )
    server.listen(port, host, () => resume(Effect.succeed((server.address() as AddressInfo).port)))
  })

/**
 * Starts an HTTPS receiver that runs until the scope closes, with a certificate of an authority of its own.
 * Fails with `PortInUse`, `ReceiverNotStarted`, or a `PlatformError` when `caFile` cannot be written.
 */
export const startReceiver = Effect.fn("Receiver.start")(function* (options: ReceiverOptions = {}) {
  const { host = "127.0.0.1", port = 0, certifiedFor = ["localhost", "127.0.0.1", "::1"] } = options
  const authority = options.authority ?? (yield* makeAuthority)
  if (options.caFile !== undefined) {
    const fs = yield* FileSystem.FileSystem
    yield* fs.writeFileString(options.caFile, authority.certificate)
  }
  const identity = yield* authority.issue(certifiedFor)

  const received: Array<Received> = []
  const arrivals = yield* Queue.unbounded<Received>()
  let behaviour: Behaviour = options.behaviour ?? (() => 204)

  const handle = Effect.fn("Receiver.handle")(function* (request: IncomingMessage, response: ServerResponse) {
    const body = yield* readBody(request)
    const { method = "", url: path = "", headers, rawHeaders } = request
    const n = received.length + 1
    const one: Received = { n, at: yield* Clock.currentTimeMillis, method, path, headers, rawHeaders, body }
    received.push(one)
    yield* Queue.offer(arrivals, one)
    const reply = behaviour(one, n)
    yield* answer(response, Effect.isEffect(reply) ? yield* reply : reply)
  }, Effect.tapDefect(Effect.logError))

  const run = yield* FiberSet.makeRuntime<never>()
  const connections = new Set<Duplex>()
  const server = yield* Effect.acquireRelease(
    Effect.sync(() =>
      createServer({ key: identity.key, cert: identity.certificate }, (request, response) => {
        run(Effect.onError(handle(request, response), () => Effect.sync(() => response.destroy())))
      }).on("connection", (socket) => {
        connections.add(socket)
        socket.once("close", () => connections.delete(socket))
      })
    ),
    (server) =>
      Effect.async<void>((resume) => {
        server.close(() => resume(Effect.void))
        // Node's own closeAllConnections leaves those that have not finished their TLS handshake.
        for (const connection of connections) connection.destroy()
      })
  )
  const bound = yield* listen(server, host, port)
  return {
    /** Without a path. */
    url: `https://${host.includes(":") ? `[${host}]` : host}:${bound}`,
    port: bound,
    authority,
    /** Waits for the oldest request that was not taken yet. */
    take: Queue.take(arrivals),
    /** All requests so far, in the order of their arrival. */
    all: Effect.sync((): ReadonlyArray<Received> => [...received]),
    /** Changes the response to requests from now on. */
    behave: (next: Behaviour) =>
      Effect.sync(() => {
        behaviour = next
      })
  }
})
