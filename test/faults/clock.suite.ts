import { spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { temporaryFolder } from "../lib/store.ts"
import { openShop } from "./shop.ts"

/** The library that `faketime` preloads, with a file that says by how much the clock is wrong. */
const makeClock = Effect.gen(function* () {
  const { stdout } = spawnSync("faketime", ["-m", "-f", "+0", "sh", "-c", "echo $LD_PRELOAD"], { encoding: "utf8" })
  if (!stdout?.includes("libfaketime")) {
    return yield* Effect.dieMessage("the clock is set with faketime (Debian, Ubuntu: apt-get install faketime)")
  }
  const file = join(yield* temporaryFolder, "offset")
  const set = (offset: string) => Effect.sync(() => writeFileSync(file, offset))
  yield* set("+0")
  const env = {
    LD_PRELOAD: stdout.trim(),
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
    DONT_FAKE_MONOTONIC: "1",
    NO_FAKE_STAT: "1",
    TILLD_PAYMENTS__CLOCK_TOLERANCE: "15 minutes"
  }
  return { env, set }
})

describe("a clock that is set", () => {
  it.scopedLive.each([
    ["an hour ahead", "+3600", "forward", "ahead of every chain's"],
    ["an hour back", "-3600", "back", "behind a chain's"]
  ] as const)(
    "%s under the daemon ends no payment at a wrong time, and all goes on when it is right",
    ([, offset, direction, words]) =>
      Effect.gen(function* () {
        const clock = yield* makeClock
        const shop = yield* openShop(() => clock.env)
        const { chain, daemon } = shop
        const [paid, open] = [yield* shop.create, yield* shop.create]
        yield* chain.mine()
        yield* daemon.hasRead(chain)
        yield* clock.set(offset)
        expect(yield* shop.isReported("clock")).toContain(words)
        const { annotations } = yield* daemon.logged(
          `this machine's clock was set ${direction}: see what sets it, such as chrony`
        )
        expect(Math.abs(Math.abs(Number(annotations["bySeconds"])) - 3_600)).toBeLessThan(5)
        const meanwhile = yield* shop.create
        yield* shop.pay(paid)
        yield* shop.pay(meanwhile)

        yield* clock.set("+0")
        yield* shop.isReady("clock")
        yield* shop.isReady("chain")
        yield* chain.mine(3)
        for (const payment of [paid, meanwhile]) yield* shop.arrives(payment)
        expect(yield* daemon.payment(open)).toMatchObject({ status: "pending" })
        expect(yield* daemon.end("SIGTERM")).toMatchObject({ code: 0 })
      })
  )
})
