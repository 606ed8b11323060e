import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { quantile } from "../bench/Figure.ts"
import { type Counts, manyAddresses } from "./Attack.ts"
import { abuse, checkoutOf, type FloodReport, flood, rest, strangersOf } from "./abuse.ts"
import { floodNames } from "./Flood.ts"
import { payers } from "./payer.ts"
import { startShop } from "./Shop.ts"

const counts: Counts = manyAddresses
  ? { silent: 100, kept: 50, slowHeaders: 150, slowBodies: 150, oversized: 100, greedy: 300 }
  : { silent: 40, kept: 40, slowHeaders: 40, slowBodies: 40, oversized: 40, greedy: 0 }

// The times are the daemon's own: the slowest have to be given up after 15 seconds.
it.scopedLive("hundreds of hostile connections keep no other client from being served, and all of them end", () =>
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

it.scopedLive("many addresses that ask for a payment's page keep no key and no payer waiting", () =>
  Effect.gen(function* () {
    const daemon = yield* startShop()
    const strangers = { key: daemon.key, pages: [yield* checkoutOf(daemon)] }
    const pages = yield* payers(daemon)
    const pace = { connections: 250, seconds: 5, rest: "0 seconds", breath: "20 millis", quietPayments: 100 } as const
    const report = yield* flood(daemon, strangers, "checkout pages", pace)
    expect([...report.quiet.failures, ...report.underAttack.failures]).toEqual([])
    const { 200: served = 0 } = report.answers
    expect(served).toBeGreaterThan(50)
    expect(report.underAttack.p50).toBeLessThan(20 * report.quiet.p50)
    const { statuses, waits } = yield* pages.seen
    expect(statuses.length).toBeGreaterThan(0)
    if (!manyAddresses) return
    // A client that asks once is not refused, and does not wait as long as those that ask all the time.
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(quantile(waits, 0.5)).toBeLessThan((pace.connections * pace.seconds * 1_000) / served / 2)
  })
)

const floodPace = { connections: 160, seconds: 2, rest: "500 millis", breath: "20 millis", quietPayments: 24 } as const
/** Tries that a flood has to stay below: a busy machine has bad moments of its own. */
const tries = 3
/**
 * The time that half of the others' requests take, in that of peace just before. The flooding process takes its share of the
 * machine, too; what is judged by the slowest is measured by `npm run test:load`.
 */
const mostRatio = 10
/** The memory at most and behind a flood, in that before it. The heap grows by what it has room for, and is cleaned later. */
const mostMemory = 1.7

/** Violations, however fast the machine is. */
const faultsOf = ({ memory, quiet, rested, sockets, underAttack }: FloodReport, before: number) => [
  ...quiet.failures,
  ...underAttack.failures,
  ...(underAttack.payments === 0 ? ["nobody else was served"] : []),
  ...(underAttack.p50 > mostRatio * quiet.p50 ? [`p50 ${quiet.p50} ms in peace, ${underAttack.p50} ms under it`] : []),
  ...(underAttack.newP50 > mostRatio * quiet.newP50
    ? [`on new connections ${quiet.newP50} ms in peace, ${underAttack.newP50} ms under it`]
    : []),
  ...(Math.max(memory.most, rested) > mostMemory * before
    ? [`${before} MiB before, ${memory.most} at most, ${rested} after`]
    : []),
  ...(sockets.after > sockets.before ? ["connections are left"] : [])
]

const held = [
  ...["idle", "slow headers", "slow bodies", "tiny chunks", "tiny chunks with a key"],
  ...["endless bodies", "blank lines", "trailers", "big headers", "streams"]
]

// Several on one daemon, as one that is attacked again and again.
it.scopedLive.each([
  ["to send", floodNames.filter((name) => held.includes(name))],
  ["to ask", floodNames.filter((name) => !held.includes(name))]
] as const)("no endless flood %s takes the daemon's memory, or the time of well-behaved clients", ([, names]) =>
  Effect.gen(function* () {
    const daemon = yield* startShop()
    const strangers = yield* strangersOf(daemon)
    yield* rest(daemon, "2 seconds", "1 millis")
    const faults: Record<string, ReadonlyArray<string>> = {}
    for (const name of names) {
      let before = Number.NaN
      for (let left = tries; left > 0; left--) {
        const seen = yield* flood(daemon, strangers, name, floodPace)
        if (Number.isNaN(before)) before = seen.memory.before
        const found = faultsOf(seen, before)
        if (found.length === 0) delete faults[name]
        else faults[name] = found
        if (found.length === 0) break
      }
    }
    expect(faults).toEqual({})
  })
)
