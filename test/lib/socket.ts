import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { connect, type Socket } from "node:net"
import { Effect } from "effect"

/** A TCP connection that sends exactly the bytes of a test. */
export interface Connection {
  readonly write: (data: string | Uint8Array) => void
  /** Reads no more, and again. */
  readonly pause: () => void
  readonly resume: () => void
  readonly destroy: () => void
  /** Sends nothing more, and goes on reading. */
  readonly end: () => void
  /** Everything received so far, once it matches. Dies if the connection ends before. */
  readonly received: (pattern: RegExp) => Effect.Effect<string>
  /** Everything received, once the other side has closed. */
  readonly closed: Effect.Effect<string>
}

/** Opens a connection, closed with the scope. Fails when no one listens. */
export const dial = ({ host, port }: { readonly host: string; readonly port: number }) =>
  Effect.acquireRelease(
    Effect.async<Connection, Error>((resume) => {
      const socket = connect(port, host)
      let text = ""
      socket.setEncoding("latin1").on("data", (chunk: string) => {
        text += chunk
      })
      const closed = Effect.async<string>((done) => {
        if (socket.closed) done(Effect.succeed(text))
        else socket.once("close", () => done(Effect.succeed(text)))
      })
      const received = (pattern: RegExp) =>
        Effect.async<string>((done) => {
          const look = () => {
            if (!pattern.test(text)) return false
            // Megabytes may follow, which no one searches again.
            socket.off("data", look).off("close", end)
            done(Effect.succeed(text))
            return true
          }
          const end = () => done(Effect.dieMessage(`closed before ${pattern}, after: ${text}`))
          if (!look()) socket.on("data", look).once("close", end)
        })
      socket.on("error", (error) => resume(Effect.fail(error)))
      socket.once("connect", () =>
        resume(
          Effect.succeed({
            write: (data) => void socket.write(data),
            pause: () => void socket.pause(),
            resume: () => void socket.resume(),
            destroy: () => void socket.destroy(),
            end: () => void socket.end(),
            received,
            closed
          })
        )
      )
    }),
    (connection) => Effect.sync(connection.destroy)
  )

/** The server's ends of all connections from now on. */
export const acceptedSockets = Effect.acquireRelease(
  Effect.sync(() => {
    const sockets: Array<Socket> = []
    const note = (message: unknown) => void sockets.push((message as { readonly socket: Socket }).socket)
    subscribe("net.server.socket", note)
    return { sockets, note }
  }),
  ({ note }) => Effect.sync(() => unsubscribe("net.server.socket", note))
).pipe(Effect.map(({ sockets }) => sockets))
