import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Counts, manyAddresses } from "./Attack.ts"
import { abuse } from "./abuse.ts"
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
