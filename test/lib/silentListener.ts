import { createServer as createTcpServer, type Socket } from "node:net"
import { createServer as createTlsServer } from "node:tls"
import { Effect, Queue } from "effect"
import type { Identity } from "../../src/Sandbox/Authority.ts"
import { listenHere } from "./loopback.ts"

/**
 * Accepts connections on 127.0.0.1, reads what comes and never says a word, until it is closed: with an identity after the
 * TLS handshake, without one before it.
 */
export const silentListener = (identity?: Identity) =>
  Effect.gen(function* () {
    const heard = yield* Queue.unbounded<void>()
    const counts = { heard: 0, ended: 0 }
    const hold = (socket: Socket) => {
      socket.on("error", () => undefined).resume()
      socket.once("data", () => {
        counts.heard++
        heard.unsafeOffer(undefined)
      })
      socket.once("close", () => counts.ended++)
    }
    const server =
      identity === undefined
        ? createTcpServer(hold)
        : createTlsServer({ key: identity.key, cert: identity.certificate }, hold)
    const { close, port } = yield* listenHere(server)
    return {
      port,
      /** Waits until so many more connections have sent something: a request or, without an identity, a handshake. */
      hears: (connections: number) => Effect.asVoid(Queue.takeN(heard, connections)),
      /** How many connections have sent something so far, and how many are over. */
      counts: () => ({ ...counts }),
      close
    }
  })
