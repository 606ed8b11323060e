import { createServer } from "node:http"
import { expect, it } from "@effect/vitest"
import { Clock, DateTime, Duration, Effect, Redacted } from "effect"
import { makeClient } from "../../src/Chains/rpc/Rpc.ts"
import { examineClock, isOfNow } from "../../src/Doctor/machine.ts"
import { listenHere } from "../lib/loopback.ts"
import { testSettings } from "../lib/settings.ts"

/** A server that sends the time with each response, so many seconds ahead of this machine's. */
const clockAhead = (seconds: number) =>
  Effect.flatMap(Effect.clock, (clock) => {
    const date = () =>
      DateTime.toDateUtc(DateTime.unsafeMake(clock.unsafeCurrentTimeMillis() + seconds * 1000)).toUTCString()
    return listenHere(createServer((_, response) => response.setHeader("date", date()).end()))
  })

it.scopedLive.each([
  [30, 0, "ok", /newest block -\d+ s old/],
  [600, 0, "warn", /newest block is \d+ s ahead of it, and the providers' clocks agree with it$/],
  [1_200, 0, "fail", /more than payments.clock_tolerance, so that the chain is not read/],
  // This machine's clock is wrong, and not the chain's.
  [600, 600, "fail", /newest block is \d+ s ahead of it$/],
  [600, -600, "fail", /newest block is \d+ s ahead of it$/],
  [30, 90, "fail", /^(89|90|91)\.\d s behind the providers' clocks, newest block -\d+ s old$/],
  [30, 30, "warn", /^(29|30|31)\.\d s behind the providers' clocks/]
] as const)("a block %d seconds ahead of the clock, and providers %d: %s", ([seconds, ahead, status, finding]) =>
  Effect.gen(function* () {
    const { url } = yield* clockAhead(ahead)
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
    const found = yield* examineClock(tolerant, [Redacted.make(url)], [{ client, head }])
    expect(found).toMatchObject({ status, name: "clock", finding: expect.stringMatching(finding) })
  })
)
