import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { expect, it } from "@effect/vitest"
import { Clock, Duration, Effect, Redacted } from "effect"
import { makeClient } from "../../src/Chains/rpc/Rpc.ts"
import { examineClock, isOfNow } from "../../src/Doctor/machine.ts"
import { testSettings } from "../lib/settings.ts"

/** A server with a right clock, which it sends with each response. */
const rightClock = Effect.acquireRelease(
  Effect.async<ReturnType<typeof createServer>>((resume) => {
    const server = createServer((_, response) => response.end())
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  }),
  (server) => Effect.async<void>((resume) => void server.close(() => resume(Effect.void)))
)

it.scopedLive.each([
  [30, "ok", /newest block -\d+ s old/],
  [600, "warn", /newest block is \d+ s ahead of it, and the providers' clocks agree with it$/],
  [1_200, "fail", /more than payments.clock_tolerance, so that the chain is not read/]
] as const)("a block %d seconds ahead of a right clock: %s", ([seconds, status, finding]) =>
  Effect.gen(function* () {
    const { port } = (yield* rightClock).address() as AddressInfo
    const settings = testSettings("")
    const tolerant = { ...settings, payments: { ...settings.payments, clockTolerance: Duration.minutes(15) } }
    const client = makeClient({
      host: "ahead",
      sendEach: () => Effect.die("nothing is asked"),
      counters: { calls: 0, batches: 0, sent: 0, received: 0 }
    })
    const time = Math.round((yield* Clock.currentTimeMillis) / 1000) + seconds
    const head = { number: 1, hash: "0x1", parentHash: "0x0", time, logsBloom: undefined }
    expect(isOfNow(time * 1000, [{ client, head }])).toBe(true)
    expect(isOfNow((time - 61) * 1000, [{ client, head }])).toBe(false)
    expect(isOfNow((time + 601) * 1000, [{ client, head }])).toBe(false)
    const found = yield* examineClock(tolerant, [Redacted.make(`http://127.0.0.1:${port}`)], [{ client, head }])
    expect(found).toMatchObject({ status, name: "clock", finding: expect.stringMatching(finding) })
  })
)
