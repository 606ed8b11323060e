import { connect, createServer, type Socket } from "node:net"
import { Effect } from "effect"
import { listenHere } from "./loopback.ts"

interface Ends {
  readonly near: Socket
  readonly far: Socket
  /** Nothing passes any more, not even that one end has closed. */
  muted: boolean
}

/** A line of TCP to a port of this machine, which a test can break in the ways that a network does. */
export const tcpLine = Effect.fnUntraced(function* (to: number) {
  const all = new Set<Ends>()
  let target = to
  let state: "open" | "cut" | "silent" = "open"
  const end = () => {
    for (const { far, near } of all) {
      near.destroy()
      far.destroy()
    }
    all.clear()
  }
  const pass = (ends: Ends, from: Socket, other: Socket) => {
    from
      .on("error", () => {})
      .on("data", (bytes: Buffer) => {
        if (!ends.muted) other.write(bytes)
      })
      .on("close", () => {
        if (ends.muted) return
        other.destroy()
        all.delete(ends)
      })
  }
  const { port } = yield* listenHere(
    createServer((near) => {
      if (state === "cut") return near.on("error", () => {}).resetAndDestroy()
      const ends: Ends = { near, far: connect(target, "127.0.0.1"), muted: state === "silent" }
      all.add(ends)
      pass(ends, near, ends.far)
      pass(ends, ends.far, near)
      return undefined
    })
  )
  yield* Effect.addFinalizer(() => Effect.sync(end))
  return {
    port,
    /** Ends all connections, and refuses others. */
    cut: () => {
      state = "cut"
      end()
    },
    /** Swallows what either end sends, and that it closes: neither learns of the other any more. */
    silence: () => {
      state = "silent"
      for (const ends of all) ends.muted = true
    },
    /** Passes connections on again. Those that were silenced are ended. */
    mend: () => {
      for (const ends of all) if (ends.muted) for (const socket of [ends.near, ends.far]) socket.destroy()
      state = "open"
    },
    /** Connects to another port from now on. */
    turnTo: (next: number) => {
      target = next
      end()
    }
  }
})

export type TcpLine = Effect.Effect.Success<ReturnType<typeof tcpLine>>
