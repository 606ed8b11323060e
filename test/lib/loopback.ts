import { type AddressInfo, createServer, type Server, type Socket } from "node:net"
import { Effect } from "effect"
import { Agent } from "undici"

/**
 * Has a server listen on 127.0.0.1, at any free port unless one is given, until the scope closes or it is closed before:
 * its connections end with it.
 */
export const listenHere = Effect.fnUntraced(function* (server: Server, wanted = 0) {
  const sockets = new Set<Socket>()
  server.on("connection", (socket: Socket) => {
    sockets.add(socket)
    socket.once("close", () => sockets.delete(socket))
  })
  const close = Effect.async<void>((resume) => {
    server.close(() => resume(Effect.void))
    for (const socket of sockets) socket.destroy()
  })
  const listening = Effect.async<void>((resume) => void server.listen(wanted, "127.0.0.1", () => resume(Effect.void)))
  yield* Effect.acquireRelease(listening, () => close)
  const { port } = server.address() as AddressInfo
  return { close, port, url: `http://127.0.0.1:${port}` }
})

/** A port of this machine that no one listens on, now. */
export const freePort = Effect.suspend(() => Effect.scoped(Effect.map(listenHere(createServer()), ({ port }) => port)))

/** Connections of a client, until the scope closes. */
export const httpAgent = Effect.acquireRelease(
  Effect.sync(() => new Agent()),
  (agent) => Effect.promise(() => agent.destroy())
)
