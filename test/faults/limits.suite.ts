import { spawnSync } from "node:child_process"
import { connect, type Socket } from "node:net"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { liveTest } from "../lib/scopedTest.ts"
import { idsOf, openShop } from "./shop.ts"

liveTest(
  "64 descriptors under 120 connections: nothing is lost, and the daemon serves again when they are gone",
  function* () {
    const { arrives, create, daemon, isReady, isReported, pay, stored } = yield* openShop()
    const before = yield* Effect.replicateEffect(create, 3)
    // Not before: to start, Node opens all files of the program at once.
    spawnSync("prlimit", ["--pid", String(daemon.pid), "--nofile=64:64"])
    yield* isReady("descriptors")
    const port = Number(new URL(daemon.url).port)
    const flood = yield* Effect.acquireRelease(
      Effect.sync(() => Array.from({ length: 120 }, () => connect(port, "127.0.0.1").on("error", () => undefined))),
      (sockets: ReadonlyArray<Socket>) => Effect.sync(() => sockets.map((socket) => socket.destroy()))
    )
    expect(yield* isReported("descriptors")).toContain("of 64 file descriptors are open")
    yield* daemon.line("almost no file descriptor is free")
    yield* Effect.forEach(before, pay, { concurrency: 1 })
    for (const socket of flood) socket.destroy()
    yield* isReady("descriptors")
    yield* daemon.logged("file descriptors are free again")
    yield* isReady("chain")
    const after = yield* Effect.replicateEffect(create, 3)
    yield* Effect.forEach(after, pay, { concurrency: 1 })
    for (const payment of [...before, ...after]) yield* arrives(payment)
    expect(yield* stored).toEqual(idsOf([...before, ...after]))
    expect(yield* daemon.end("SIGTERM")).toMatchObject({ code: 0 })
  }
)

liveTest(
  "a provider that hangs for twelve minutes is named, refuses no payment, and delays all until it answers",
  function* () {
    const { arrives, create, daemon, isNamed, isReady, isReported, pay, provider } = yield* openShop()
    const before = yield* create
    yield* provider.set("hang")
    expect(yield* isNamed("chain")).toMatch(/^a provider has not responded for \d seconds$/)
    yield* pay(before)
    const meanwhile = yield* create
    yield* pay(meanwhile)
    // A slow provider may take 20 seconds; the chain's line in the log is there before.
    yield* isReported("chain", "40 seconds")
    yield* daemon.logged("the chain cannot be read", { chain: "base" })
    yield* Effect.sleep("12 minutes")
    const last = yield* create
    yield* provider.set()
    yield* isReady("chain")
    yield* pay(last)
    for (const payment of [before, meanwhile, last]) yield* arrives(payment)
    expect(yield* daemon.end("SIGTERM")).toMatchObject({ code: 0 })
  }
)
