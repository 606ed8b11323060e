import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { Effect, Fiber, Queue, TestClock } from "effect"
import { NameNotResolved, Resolver } from "../../../src/Webhooks/transport/Resolver.ts"
import { type Records, startNameServer } from "../../lib/nameServer.ts"
import { clockTest, liveTest } from "../../lib/scopedTest.ts"
import { temporaryFolder } from "../../lib/store.ts"

const serverFailure = 2
const noSuchName = 3
const four = [93, 184, 216, 34]
const six = [0x26, 0x06, 0x28, 0, 2, 0x20, 0, 1, 2, 0x48, 0x18, 0x93, 0x25, 0xc8, 0x19, 0x46]

const records: Records = (name, type) => {
  if (name.startsWith("dead")) return undefined
  if (name === "none.example") return noSuchName
  if (name === "empty.example") return []
  if (name === "half.example" && type === "AAAA") return serverFailure
  return type === "A" ? [four, [93, 184, 216, 35]] : [six]
}

/** Names of a file and of a name server that never answers for dead ones. */
const resolving = Effect.gen(function* () {
  const hostsFile = join(yield* temporaryFolder, "hosts")
  writeFileSync(
    hostsFile,
    "127.0.0.1\tlocalhost\n# 10.0.0.1 half.example\n10.0.0.7  Inside.Example inside # x\n::7 inside\n"
  )
  const { asked, server } = yield* startNameServer(records)
  // The test's clock ends what waits, however slow this machine is.
  const { resolve } = yield* Effect.provide(Resolver, Resolver.from({ hostsFile, servers: [server], timeout: 60_000 }))
  return { asked, resolve }
})

liveTest("asks the hosts file first, and name servers for both families", function* () {
  const { asked, resolve } = yield* resolving
  expect(yield* resolve("inside.example")).toEqual(["10.0.0.7"])
  expect(yield* resolve("inside")).toEqual(["10.0.0.7", "::7"])
  expect(yield* Queue.size(asked)).toBe(0)
  const addresses = ["93.184.216.34", "93.184.216.35"]
  expect(yield* resolve("shop.example")).toEqual([...addresses, "2606:2800:220:1:248:1893:25c8:1946"])
  expect(yield* resolve("half.example")).toEqual(addresses)
  expect(yield* Effect.flip(resolve("none.example"))).toEqual(new NameNotResolved({ reason: "ENOTFOUND" }))
  expect(yield* Effect.flip(resolve("empty.example"))).toEqual(new NameNotResolved({ reason: "ENODATA" }))
})

liveTest("asks the system's name servers, without a hosts file too", function* () {
  const { resolve } = yield* Effect.provide(Resolver, Resolver.layer)
  expect(yield* resolve("localhost")).toContain("127.0.0.1")
  const { server } = yield* startNameServer(records)
  const unfiled = Resolver.from({ hostsFile: "/nowhere/hosts", servers: [server] })
  const { resolve: resolveUnfiled } = yield* Effect.provide(Resolver, unfiled)
  expect(yield* resolveUnfiled("localhost")).toContain("93.184.216.34")
})

clockTest(
  "however many names have dead servers, another is resolved at once, and no one waits over 5 seconds",
  function* () {
    const { asked, resolve } = yield* resolving
    // Two questions each: more would not fit into the socket of the name server.
    const names = Array.from({ length: 100 }, (_, i) => `dead${i}.example`)
    const dead = yield* Effect.fork(
      Effect.forEach(names, (name) => Effect.flip(resolve(name)), { concurrency: "unbounded" })
    )
    const waiting = new Set<string>()
    while (waiting.size < names.length) waiting.add(yield* Queue.take(asked))
    // No time passes here.
    expect(yield* resolve("shop.example")).toContain("93.184.216.34")
    yield* TestClock.adjust("4999 millis")
    expect(yield* Fiber.poll(dead)).toMatchObject({ _tag: "None" })
    yield* TestClock.adjust("1 millis")
    expect(new Set((yield* Fiber.join(dead)).map(({ reason }) => reason))).toEqual(new Set(["no answer in time"]))
  }
)
