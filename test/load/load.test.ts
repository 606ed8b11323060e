import { execFileSync } from "node:child_process"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { quantile } from "../bench/Figure.ts"
import { freePort } from "../lib/loopback.ts"
import { needs } from "../lib/needs.ts"
import { type Beside, besideNeighbours, flood, payers, rest, strangersOf } from "./abuse.ts"
import { endlessNames, type FloodCounts, manyAddresses } from "./Flood.ts"
import type { Neighbour } from "./hostile.ts"
import { createStranger, type Shop, startBehind, startShop } from "./Shop.ts"

// `npm run test:load` opens thousands of connections and floods for a minute in each way, or in those that FLOODS names:
// FLOODS=idle,trailers. It judges by the slowest requests, too, which a flooding process on a small machine would decide.
const { FLOODS = "", TEST_MODE } = process.env
const isFull = TEST_MODE === "load"

/** Tries that an attack has to stay below: a busy machine has bad moments of its own. */
const tries = 3

/** What an attack does to others, each at most 0 but for what is measured. */
const figuresOf = ({ memory, quiet, rested, sockets, underAttack }: Beside, before = memory.before) => ({
  "refused or failed": quiet.failures.length + underAttack.failures.length,
  "attacks under which nobody was served": underAttack.payments === 0 ? 1 : 0,
  "connections that are left": sockets.after - sockets.before,
  "webhooks that are missing": quiet.missing + underAttack.missing,
  "p50, times that in peace": underAttack.p50 / quiet.p50,
  "p50 on new connections, times that in peace": underAttack.newP50 / quiet.newP50,
  "p99 of POSTs, times that in peace": underAttack.postP99 / quiet.postP99,
  "p99 in ms": underAttack.p99,
  "p99 on new connections in ms": underAttack.newP99,
  "p99 of webhooks in ms": underAttack.deliveryP99,
  "MiB more than before": memory.most - before,
  "memory at most or afterwards, times that before": Math.max(memory.most, Number.isNaN(rested) ? 0 : rested) / before,
  "memory afterwards, times that before": rested / before
})

type Limits = Readonly<Partial<Record<keyof ReturnType<typeof figuresOf>, number>>>

/** However fast the machine is. */
const always: Limits = {
  "refused or failed": 0,
  "attacks under which nobody was served": 0,
  "connections that are left": 0
}

/** While thousands of connections, or neighbours, mean no good. */
const besideMany: Limits = {
  ...always,
  "webhooks that are missing": 0,
  "p99 of POSTs, times that in peace": 3,
  "p99 of webhooks in ms": 1_000,
  "MiB more than before": 256
}

/** The heap grows by what it has room for, and is cleaned later: a minute of rest leaves what is in use. */
const underFlood: Limits = isFull
  ? {
      ...always,
      "webhooks that are missing": 0,
      "p99 in ms": 250,
      // It is accepted after those that the flood opens again: seconds at most.
      "p99 on new connections in ms": 2_000,
      "memory afterwards, times that before": 1.15
    }
  : {
      ...always,
      "p50, times that in peace": 10,
      // It is accepted after those that the flood opens again, up to 160 of them, each for a part of a payment's time.
      "p50 on new connections, times that in peace": 40,
      "memory at most or afterwards, times that before": 1.7
    }

/** What is beyond its limit of a figure. */
const violations = (seen: Beside, limits: Limits, before?: number) => {
  const figures = Object.entries(figuresOf(seen, before))
  if (isFull) process.stdout.write(`${figures.map(([name, figure]) => `${name}: ${figure.toFixed(1)}`).join("; ")}\n`)
  const most = new Map<string, number>(Object.entries(limits))
  return [
    ...figures.flatMap(([name, figure]) => (figure > (most.get(name) ?? figure) ? [`${name}: ${figure}`] : [])),
    ...[...seen.quiet.failures, ...seen.underAttack.failures].slice(0, 5)
  ]
}

/** The violations of an attack; tried again while there are any, as often as there are tries. */
const persistently = <A, E, R>(
  attack: Effect.Effect<A, E, R>,
  judge: (seen: A) => ReadonlyArray<string>,
  left = tries
): Effect.Effect<ReadonlyArray<string>, E, R> =>
  Effect.flatMap(attack, (seen) => {
    const found = judge(seen)
    return found.length > 0 && left > 1 ? persistently(attack, judge, left - 1) : Effect.succeed(found)
  })

/** A daemon whose merchant makes more payments than the default quota has room for. */
const startLoaded = startShop({ accounts: { quota_bytes: 100_000_000_000 } })

/** Node raises its soft limit of open files to the hard one, which a shell may have lowered. */
const fitting = (counts: FloodCounts): FloodCounts => {
  const limit = Number(execFileSync("sh", ["-c", "ulimit -Hn"], { encoding: "utf8" }))
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
  const share = Number.isNaN(limit) ? 1 : Math.min(1, (limit - 256) / total)
  return Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, Math.floor(count * share)]))
}

const some = manyAddresses
  ? { idle: 100, kept: 50, "slow headers": 150, "slow bodies": 150, "big headers": 100, greedy: 300 }
  : { idle: 40, kept: 40, "slow headers": 40, "slow bodies": 40, "big headers": 40, greedy: 0 }
const thousands = {
  idle: 2_000,
  kept: 1_000,
  "slow headers": 1_500,
  "slow bodies": 1_500,
  "big headers": 1_000,
  greedy: 1_000
}

// The times are the daemon's own: the slowest have to be given up after 15 seconds.
it.scopedLive("hundreds of hostile connections keep no other client from being served, and all of them end", () =>
  Effect.gen(function* () {
    const daemon = yield* startLoaded
    const counts = isFull ? fitting(thousands) : some
    const strangers = yield* strangersOf(daemon, 0)
    const pace = isFull ? { breath: "5 millis", quietPayments: 4_000 } : { breath: "20 millis", quietPayments: 50 }
    const judge = ({ answers, ...seen }: Effect.Effect.Success<ReturnType<typeof flood>>) => {
      const { "big headers": { 431: refused = 0, closed = 0 } = {}, greedy = {}, ...others } = answers
      // Repeated refusals are delayed, and connections that wait give way to new ones.
      expect([refused > 0, refused + closed]).toEqual([counts["big headers"] !== 0, counts["big headers"]])
      if (isFull) return violations(seen, besideMany)
      expect(others).toEqual({
        idle: { 408: counts.idle },
        kept: { 200: counts.kept },
        "slow headers": { 408: counts["slow headers"] },
        // Without a key the body is not waited for.
        "slow bodies": { 401: counts["slow bodies"] }
      })
      if (manyAddresses) expect([closed, Object.keys(greedy)]).toEqual([0, ["408"]])
      return violations(seen, { ...always, "MiB more than before": 256 })
    }
    const found = persistently(flood(daemon, strangers, counts, pace), judge, isFull ? tries : 1)
    expect(yield* found).toEqual([])
  })
)

it.scopedLive("many addresses that ask for a payment's page keep no key and no payer waiting", () =>
  Effect.gen(function* () {
    const daemon = yield* startShop()
    const strangers = yield* strangersOf(daemon, 1)
    const pages = yield* payers(daemon)
    const pace = { seconds: 5, breath: "20 millis", quietPayments: 100 }
    const { answers, ...seen } = yield* flood(daemon, strangers, { "checkout pages": 250 }, pace)
    expect(violations(seen, { "refused or failed": 0, "p50, times that in peace": 20 })).toEqual([])
    const served = answers["checkout pages"]?.[200] ?? 0
    expect(served).toBeGreaterThan(50)
    const { statuses, waits } = yield* pages.seen
    expect(statuses.length).toBeGreaterThan(0)
    if (!manyAddresses) return
    // A client that asks once is not refused, and waits for those before it at most.
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(quantile(waits, 0.5)).toBeLessThan((1.5 * 256 * pace.seconds * 1_000) / served)
  })
)

const floodPace = isFull
  ? ({ seconds: 60, rest: "1 minute", firstBreath: "5 millis", breath: "50 millis", quietPayments: 500 } as const)
  : ({ seconds: 2, rest: "500 millis", firstBreath: "1 millis", breath: "20 millis", quietPayments: 24 } as const)

const asked = FLOODS === "" ? endlessNames : endlessNames.filter((name) => FLOODS.split(",").includes(name))
const held = endlessNames.slice(0, 10)

/** Several on one daemon, as one that is attacked again and again. What is beyond a limit, by the name of the flood. */
const floodsOn = (daemon: Shop, names: typeof asked, pace: typeof floodPace | typeof limitedPace) =>
  Effect.gen(function* () {
    const strangers = yield* strangersOf(daemon)
    // What a start and a first load take is not of a flood.
    yield* rest(daemon, isFull ? "1 minute" : "2 seconds", pace.firstBreath)
    let before = yield* rest(daemon, pace.rest, pace.breath)
    const faults: Record<string, ReadonlyArray<string>> = {}
    for (const name of names) {
      let rested = before
      // Judged by the memory before its first try, so that no try hides what one left.
      const found = yield* persistently(flood(daemon, strangers, { [name]: isFull ? 400 : 160 }, pace), (seen) => {
        rested = seen.rested
        return violations(seen, underFlood, before)
      })
      if (found.length > 0) faults[name] = found
      before = rested
    }
    return faults
  })

it.scopedLive.each([
  ["to send", asked.filter((name) => held.includes(name))],
  ["to ask", asked.filter((name) => !held.includes(name))]
] as const)("no endless flood %s takes the daemon's memory, or the time of well-behaved clients", ([, names]) =>
  Effect.gen(function* () {
    expect(yield* floodsOn(yield* startLoaded, names, floodPace)).toEqual({})
  })
)

// nginx has a limit for each address, also for that of the honest merchant.
const limitedPace = { ...floodPace, firstBreath: "200 millis", breath: "200 millis" } as const
const mostTelling: ReadonlyArray<string> = ["slow bodies", "pipelines", "checkout pages"]
const throughProxy = isFull ? asked : asked.filter((name) => mostTelling.includes(name))

// Caddy has no limits by address: as long as without a proxy.
describe.each(isFull ? (["nginx", "caddy"] as const) : (["nginx"] as const))("behind %s, with its file", (program) => {
  needs(program)

  it.scopedLive("no endless flood takes the daemon's memory, or the time of well-behaved clients", () =>
    Effect.gen(function* () {
      expect(yield* floodsOn(yield* startBehind(program), throughProxy, limitedPace)).toEqual({})
    })
  )
})

/** As many as the honest merchant needs to stay within the rate of each, as it is by default. */
const honestKeys = 30

const hostile = Effect.gen(function* () {
  const providerPort = yield* freePort
  const chain = (id: number, ports: ReadonlyArray<number>) => ({
    rpc_urls: ports.map((port, i) => `http://127.0.0.1:${port}/${i}`),
    chain_id: id,
    confirmations: 3,
    poll_interval: "500 millis",
    tokens: { USDC: { address: `0x${"11".repeat(20)}`, decimals: 6 } }
  })
  const others = ["polygon", "arbitrum", "optimism"].map(
    (name, i) => [name, { test: chain(31_338 + i, [providerPort, providerPort]) }] as const
  )
  const chains = { base: { test: chain(31_337, [1]) }, ...Object.fromEntries(others) }
  const shop = yield* startShop({ limits: {}, chains }, honestKeys)
  const neighbours: ReadonlyArray<Neighbour> = ["merchant", "receivers", "provider"]
  for (const who of [...neighbours.map((one) => [one]), neighbours]) {
    const order = { who, key: yield* createStranger(shop), providerPort, seconds: 20 }
    const seen = besideNeighbours(shop, order, { breath: "200 millis", quietPayments: 400 })
    const found = yield* persistently(seen, ({ tried, ...beside }) => {
      expect(tried).not.toEqual({})
      return violations(beside, besideMany)
    })
    expect([who, found]).toEqual([who, []])
  }
})

// Alone of all this takes several minutes.
if (isFull)
  it.scopedLive("hostile merchants, receivers and providers keep their neighbours from nothing", () => hostile)
