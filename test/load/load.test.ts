import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { quantile } from "../bench/Figure.ts"
import { type Counts, manyAddresses } from "./Attack.ts"
import { abuse, flood } from "./abuse.ts"
import { floods } from "./Flood.ts"
import { payer } from "./payer.ts"
import { startShop } from "./Shop.ts"

const counts: Counts = manyAddresses
  ? { silent: 100, kept: 50, slowHeaders: 150, slowBodies: 150, oversized: 100, greedy: 300 }
  : { silent: 40, kept: 40, slowHeaders: 40, slowBodies: 40, oversized: 40, greedy: 0 }

// The times are the daemon's own: the slowest have to be given up after 15 seconds.
it.scopedLive("hundreds of connections that mean no good keep nobody else from being served, and all of them end", () =>
  Effect.gen(function* () {
    const daemon = yield* startShop()
    const report = yield* abuse(daemon, counts, { breath: "20 millis", quietPayments: 50 })
    expect([...report.quiet.failures, ...report.underAttack.failures]).toEqual([])
    expect(report.underAttack.payments).toBeGreaterThan(50)
    const { greedy, ...others } = report.outcomes
    expect(others).toEqual({
      silent: { 408: counts.silent },
      kept: { 200: counts.kept },
      slowHeaders: { 408: counts.slowHeaders },
      // Without a key the body is not waited for.
      slowBodies: { 401: counts.slowBodies },
      oversized: { 431: counts.oversized }
    })
    if (!manyAddresses) return
    // 256 are allowed: the first ones gave way.
    expect(Object.keys(greedy)).toEqual(["408", "closed"])
    expect(report.memory.most - report.memory.before).toBeLessThan(256)
    // Each connection that stayed open would be one more.
    expect(report.sockets.after).toBeLessThanOrEqual(report.sockets.before)
  })
)

it.scopedLive("fifty addresses that ask for a payment's page keep no key and no payer waiting", () =>
  Effect.gen(function* () {
    const daemon = yield* startShop()
    const pace = { breath: "20 millis", quietPayments: 100 }
    const { "checkout pages": wanted } = floods
    if (wanted === undefined) return yield* Effect.dieMessage("no such flood")
    const pages = yield* payer(daemon)
    const seconds = 5
    const report = yield* flood(daemon, { ...wanted, seconds }, pace)
    expect([...report.quiet.failures, ...report.underAttack.failures]).toEqual([])
    const { 200: served = 0 } = report.answers
    expect(served).toBeGreaterThan(50)
    expect(report.underAttack.p50).toBeLessThan(20 * report.quiet.p50)
    const { statuses, waits } = yield* pages
    expect(new Set(statuses)).toEqual(new Set([200]))
    // Whoever asks once does not wait as long as those who ask all the time.
    expect(quantile(waits, 0.5)).toBeLessThan((wanted.connections * seconds * 1_000) / served / 2)
  })
)
