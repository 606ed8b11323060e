import { readFileSync } from "node:fs"
import { Worker } from "node:worker_threads"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { Connections } from "../../src/Http/connections.ts"
import { serveHttp } from "../../src/Http/listener.ts"
import { dial } from "../lib/socket.ts"
import { anyPort, empty, get, saying, statuses, tell } from "./serving.ts"

/** Opens connections, resets them if asked to, and wakes the waiting thread once all are through. */
const dialling = `
  const { connect } = require("node:net")
  const { isReset, port, progress, wanted } = require("node:worker_threads").workerData
  const through = () => {
    if (Atomics.add(progress, 0, 1) === wanted - 1) Atomics.notify(progress, 0)
  }
  for (let i = 0; i < wanted; i++) {
    const socket = connect(port, "127.0.0.1")
    socket.on("error", () => undefined)
    if (isReset) socket.on("connect", () => socket.resetAndDestroy()).on("close", through)
    else socket.on("connect", through)
  }`

/** How many connections come through to a server that accepts none meanwhile: its event loop stands still. */
const throughTo = (port: number, wanted: number, isReset: boolean) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const progress = new Int32Array(new SharedArrayBuffer(4))
      const thread = new Worker(dialling, { eval: true, workerData: { isReset, port, progress, wanted } })
      return { progress, thread }
    }),
    ({ progress }) =>
      Effect.sync(() => {
        for (let through = 0; through < wanted; through = Atomics.load(progress, 0)) {
          // A client that is turned away asks again, and is turned away again.
          if (Atomics.wait(progress, 0, through, 5_000) === "timed-out" && Atomics.load(progress, 0) === through) break
        }
        return Atomics.load(progress, 0)
      }),
    ({ thread }) => Effect.promise(() => thread.terminate())
  )

/** What the system lets wait at most. */
const longest = Number(readFileSync("/proc/sys/net/core/somaxconn", "utf8"))

describe("connections that come while the event loop is busy", () => {
  it.live("wait for their turn, more of them than Node would keep", () =>
    Effect.gen(function* () {
      const { port } = yield* serveHttp(tell, anyPort)
      const wanted = Math.min(2_000, longest)
      expect(yield* throughTo(port, wanted, false)).toBe(wanted)
    }).pipe(Effect.scoped)
  )

  it.live("and are reset before they are accepted occupy no slot and no parser", () =>
    Effect.gen(function* () {
      const admitted = vi.spyOn(Connections.prototype, "admit")
      yield* Effect.addFinalizer(() => Effect.sync(() => admitted.mockRestore()))
      const { port } = yield* serveHttp(tell, anyPort)
      expect(yield* throughTo(port, 100, true)).toBe(100)
      const connection = yield* saying(dial({ host: "127.0.0.1", port }), get("/"))
      expect(statuses(yield* connection.received(empty))).toEqual([200])
      expect(admitted).toHaveBeenCalledTimes(1)
    }).pipe(Effect.scoped)
  )
})
