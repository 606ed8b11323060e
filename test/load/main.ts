import { execFileSync } from "node:child_process"
import { type AddressInfo, createServer } from "node:net"
import { NodeContext, NodeRuntime } from "@effect/platform-node"
import { Effect } from "effect"
import { type Counts, type Sort, sorts } from "./Attack.ts"
import {
  abuse,
  type Beside,
  besideNeighbours,
  type FloodReport,
  flood,
  rest,
  type Strangers,
  strangersOf,
  type Traffic
} from "./abuse.ts"
import { type FloodName, floodNames } from "./Flood.ts"
import { neighbours } from "./Neighbour.ts"
import { createStranger, type Shop, startShop } from "./Shop.ts"

// `npm run test:load`: thousands of hostile connections, a minute of each way to flood a daemon, and hostile
// neighbours, against a daemon that goes on serving. `npm run test:load -- strangers idle "slow bodies"`: these alone.

/** The p99 of a POST under attack, in that of one in peace just before. */
const mostRatio = 3
/** Tries that an attack has to stay below: a busy machine has bad moments of its own. */
const tries = 3
/** Milliseconds in which a webhook arrives, at p99, whatever others do. */
const mostWait = 1_000
/** MiB more than before the attack. */
const mostMemory = 256
/** The p99 of others' requests under a flood, milliseconds, whatever the flood. */
const mostP99 = 250
/** The least memory in the minute after a flood, in that of a minute before it. */
const mostLeft = 1.15
const floodPace = { connections: 400, seconds: 60, rest: "1 minute", breath: "50 millis", quietPayments: 500 } as const

const wanted: Counts = {
  silent: 2_000,
  kept: 1_000,
  slowHeaders: 1_500,
  slowBodies: 1_500,
  oversized: 1_000,
  greedy: 1_000
}

const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** Node raises its soft limit of open files to the hard one, which a shell may have lowered. */
const fitting = (counts: Counts): Counts => {
  const limit = Number(execFileSync("sh", ["-c", "ulimit -Hn"], { encoding: "utf8" }))
  const total = sorts.reduce((sum, sort) => sum + counts[sort], 0)
  const share = Number.isNaN(limit) ? 1 : Math.min(1, (limit - 256) / total)
  if (share < 1) say(`ulimit -n is ${limit}: ${Math.floor(share * 100)} % of the connections`)
  return Object.fromEntries(sorts.map((sort) => [sort, Math.floor(counts[sort] * share)])) as Record<Sort, number>
}

const report = (name: string, { deliveries, deliveryP99, missing, newP99, p50, p99, payments, postP99 }: Traffic) =>
  say(
    `${name}: ${payments} payments made and read, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, of POSTs ${postP99.toFixed(1)} ms, ` +
      `on new connections ${newP99.toFixed(1)} ms; ` +
      `${deliveries} webhooks arrived, p99 ${deliveryP99.toFixed(1)} ms, ${missing} missing`
  )

/** Prints the results under an attack, and returns the violations. */
const judge = ({ memory, quiet, sockets, underAttack }: Beside): ReadonlyArray<string> => {
  report("in peace", quiet)
  report("under attack", underAttack)
  const ratio = underAttack.postP99 / quiet.postP99
  say(`p99 ratio of POSTs ${ratio.toFixed(1)} (at most ${mostRatio})`)
  say(
    `memory ${memory.before.toFixed(0)} MiB before, ${memory.most.toFixed(0)} MiB at most (${mostMemory} more allowed)`
  )
  say(`open sockets ${sockets.before} before, ${sockets.after} after`)
  return [
    ...quiet.failures,
    ...underAttack.failures,
    ...(ratio > mostRatio ? [`the p99 of the others' POSTs is ${ratio.toFixed(1)} times that in peace`] : []),
    ...(memory.most - memory.before > mostMemory ? ["the memory is not bounded"] : []),
    ...(sockets.after > sockets.before ? ["connections are left"] : []),
    ...(quiet.missing + underAttack.missing > 0 ? ["webhooks are missing"] : []),
    ...(underAttack.deliveryP99 > mostWait ? [`webhooks arrive after ${underAttack.deliveryP99.toFixed(0)} ms`] : []),
    ...(underAttack.payments === 0 ? ["nobody was served under attack"] : [])
  ].slice(0, 5)
}

/** The violations of an attack; tried again while there are any, as often as there are tries. */
const persistently = <A extends Beside, E, R>(
  attack: Effect.Effect<A, E, R>,
  also: (seen: A) => ReadonlyArray<string>,
  left = tries
): Effect.Effect<ReadonlyArray<string>, E, R> =>
  Effect.flatMap(attack, (seen) => {
    const failures = [...judge(seen), ...also(seen)]
    return failures.length > 0 && left > 1 ? persistently(attack, also, left - 1) : Effect.succeed(failures)
  })

/** A port of this machine that no one listens on, now. */
const freePort = Effect.async<number>((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address() as AddressInfo
    server.close(() => resume(Effect.succeed(port)))
  })
})

const answered = (answers: Readonly<Record<string, number>>): string =>
  Object.entries(answers)
    .map(([outcome, count]) => `${count} × ${outcome}`)
    .join(", ")

/** The violations after a flood. `before`: the memory in MiB before its first try, so that no try hides what one left. */
const judgeFlood = ({ quiet, rested, sockets, underAttack }: FloodReport, before: number): ReadonlyArray<string> =>
  [
    ...quiet.failures,
    ...underAttack.failures,
    ...(underAttack.p99 > mostP99 ? [`the others' p99 is ${underAttack.p99.toFixed(0)} ms`] : []),
    ...(underAttack.newP99 > mostP99 ? [`on new connections it is ${underAttack.newP99.toFixed(0)} ms`] : []),
    ...(rested > before * mostLeft ? [`${rested.toFixed(0)} MiB are left of ${before.toFixed(0)}`] : []),
    ...(sockets.after > sockets.before ? ["connections are left"] : []),
    ...(quiet.missing + underAttack.missing > 0 ? ["webhooks are missing"] : []),
    ...(underAttack.payments === 0 ? ["nobody was served"] : [])
  ].slice(0, 5)

const columns = ["", "quiet p99", "p50", "p99", "new p99 ms", "before", "most", "after MiB", "answers"]
const row = (cells: ReadonlyArray<string>): string =>
  cells.map((cell, i) => (i === 0 ? cell.padEnd(24) : i === 8 ? ` ${cell}` : cell.padStart(11))).join("")

const floodRow = (name: string, { answers, memory, quiet, rested, underAttack }: FloodReport, before: number) => {
  const figures = [quiet.p99, underAttack.p50, underAttack.p99, underAttack.newP99, before, memory.most, rested]
  return row([name, ...figures.map((figure) => figure.toFixed(0)), answered(answers)])
}

/**
 * A flood, tried again while something is wrong, as often as there are tries; returns the violations of the last, and the
 * memory that it leaves.
 */
const floodOne = Effect.fnUntraced(function* (daemon: Shop, strangers: Strangers, name: FloodName, before: number) {
  for (let left = tries; ; left--) {
    const seen = yield* flood(daemon, strangers, name, floodPace)
    say(floodRow(name, seen, before))
    const failures = judgeFlood(seen, before).map((failure) => `${name}: ${failure}`)
    if (failures.length === 0 || left === 1) return { failures, rested: seen.rested }
  }
})

/** A daemon whose merchant makes more payments than the default quota has room for. */
const startLoaded = startShop({ accounts: { quota_bytes: 100_000_000_000 } })

const flooded = Effect.fnUntraced(function* (names: ReadonlyArray<FloodName>) {
  const daemon = yield* startLoaded
  const strangers = yield* strangersOf(daemon)
  // What a start and a first load take is not of a flood.
  yield* rest(daemon, "1 minute", "5 millis")
  let before = yield* rest(daemon, floodPace.rest, floodPace.breath)
  say(row(columns))
  const found: Array<string> = []
  for (const name of names) {
    const { failures, rested } = yield* floodOne(daemon, strangers, name, before)
    found.push(...failures)
    before = rested
  }
  return found
}, Effect.scoped)

const strangers = Effect.gen(function* () {
  const counts = fitting(wanted)
  const daemon = yield* startLoaded
  say("connections that mean no good")
  const seen = abuse(daemon, counts, { breath: "5 millis", quietPayments: 4_000 })
  const found = yield* persistently(seen, ({ outcomes }) => {
    for (const sort of sorts) say(`${counts[sort]} ${sort}: ${answered(outcomes[sort])}`)
    // Repeated refusals are delayed, and connections that wait give way to new ones.
    const { 431: refused = 0, closed = 0 } = outcomes.oversized
    return refused > 0 && refused + closed === counts.oversized ? [] : ["oversized headers: not all refused"]
  })
  return found
}).pipe(Effect.scoped)

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
  const failures: Array<string> = []
  for (const who of [...neighbours.map((one) => [one]), neighbours]) {
    say(`hostile neighbours: ${who.join(", ")}`)
    const key = yield* createStranger(shop)
    const order = { who, port: shop.port, key, providerPort, seconds: 20 }
    const seen = besideNeighbours(shop, order, { breath: "200 millis", quietPayments: 400 })
    const found = yield* persistently(seen, ({ tried }) => {
      say(answered(tried))
      return Object.keys(tried).length === 0 ? ["they have tried nothing"] : []
    })
    failures.push(...found.map((each) => `${who.join(", ")}: ${each}`))
  }
  return failures
}).pipe(Effect.scoped)

const main = Effect.gen(function* () {
  const words = process.argv.slice(2)
  const isWanted = (name: string) => words.length === 0 || words.includes(name)
  const names = floodNames.filter(isWanted)
  const failures = [
    ...(isWanted("neighbours") ? yield* hostile : []),
    ...(isWanted("strangers") ? yield* strangers : []),
    ...(names.length > 0 ? yield* flooded(names) : [])
  ]
  for (const failure of failures) say(`FAILED: ${failure}`)
  say(failures.length === 0 ? "everybody else was served, and everything has ended" : `${failures.length} failed`)
  process.exitCode = failures.length === 0 ? 0 : 1
})

NodeRuntime.runMain(main.pipe(Effect.provide(NodeContext.layer)))
