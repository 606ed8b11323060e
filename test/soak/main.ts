import { parseArgs } from "node:util"
import { NodeRuntime } from "@effect/platform-node"
import { Array, Effect } from "effect"
import { rows } from "../lib/daemon.ts"
import { endsOf } from "./reconcile.ts"
import { paths, soak } from "./soak.ts"
import type { Sample } from "./world.ts"

// `npm run soak -- --minutes N`: payments of all kinds on five local chains that reorganise, receivers that are slow or
// fail, restarts, kills and backups; then chain, ledger, payments, events and receivers are compared.

const { values } = parseArgs({ options: { minutes: { type: "string" }, rate: { type: "string" } } })
const minutes = Number(values.minutes ?? 10)
const rate = Number(values.rate ?? 1)
if (!(minutes >= 5 && rate > 0)) throw new Error("--minutes takes 5 or more, --rate orders a second")

const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** The p-th part of what was measured, 0 to 1. */
const quantile = (values: ReadonlyArray<number>, p: number): number =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * p))] ?? Number.NaN

/** The least-squares slope of the values, by hour. */
const slope = (samples: ReadonlyArray<Sample>): number => {
  const mean = (of: (sample: Sample) => number) => samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length
  const [at, value] = [mean((sample) => sample.at), mean((sample) => sample.value)]
  const covariance = mean((sample) => (sample.at - at) * (sample.value - value))
  return (covariance / mean((sample) => (sample.at - at) ** 2)) * 3_600_000
}

const quarters = (began: number, samples: ReadonlyArray<Sample>): string =>
  [0, 1, 2, 3]
    .map((quarter) => {
      const from = began + (quarter * minutes * 60_000) / 4
      const inside = samples.filter(({ at }) => at >= from && at < from + (minutes * 60_000) / 4)
      const times = inside.map(({ value }) => value)
      return `${quantile(times, 0.5).toFixed(0)}/${quantile(times, 0.99).toFixed(0)}`
    })
    .join(", ")

/** Problems that are the same but for names and numbers. */
const kinds = (problems: ReadonlyArray<string>) =>
  Object.entries(Array.groupBy(problems, (problem) => problem.replace(/_\w{16,}/g, "_N").replace(/\d+/g, "N")))

const main = Effect.gen(function* () {
  const { arrivals, began, book, home, loaded, problems } = yield* soak({ minutes, rate }, say)
  const { backups, kills, reorgs, restarts, tries } = book.counts
  say(`${book.orders.length} orders: ${endsOf(book.orders)}`)
  say(`${reorgs} reorgs, ${restarts} restarts, ${kills} kills, ${backups} backups; ${tries} requests`)

  const inLongest = <S extends { readonly life: number }>(all: ReadonlyArray<S>) =>
    all.filter(({ life }) => life === loaded)
  // The first third of a life fills caches, and compiles.
  const warmOf = <S>(all: ReadonlyArray<S>) => all.slice(Math.floor(all.length / 3))
  const last = inLongest(book.memory)
  const warm = warmOf(last)
  say(
    `memory of the longest life: ${quantile(
      last.map(({ value }) => value),
      1
    ).toFixed(0)} MiB at most, ` +
      `${slope(warm).toFixed(1)} MiB an hour in its last two thirds (${warm.length} samples)`
  )
  const heaps = warmOf(inLongest(book.heaps))
  const perOrder = slope(heaps) / (rate * 3_600)
  say(
    `its live heap: ${((heaps.at(-1)?.value ?? Number.NaN) / 1024).toFixed(1)} MiB at its end, ` +
      `${perOrder.toFixed(2)} kB an order in its last two thirds (${heaps.length} samples)`
  )
  const [size] = book.bytes
  const grown = (book.bytes.at(-1)?.value ?? 0) - (size?.value ?? 0)
  say(`the file grew by ${(grown / 1e6).toFixed(1)} MB, ${(grown / book.orders.length / 1000).toFixed(1)} kB an order`)

  const created = yield* rows<{ id: string; created_at: number }>(home, "SELECT id, created_at FROM events")
  const times = new Map(created.map(({ created_at, id }) => [id, created_at]))
  const seen = new Set<string>()
  const waits = arrivals.flatMap(({ at, headers, path }): ReadonlyArray<Sample> => {
    const id = String(headers["webhook-id"])
    const since = times.get(id)
    if (path !== paths.prompt || since === undefined || seen.has(id)) return []
    seen.add(id)
    return [{ at, value: at - since }]
  })
  say(`POST, p50/p99 in ms by quarter: ${quarters(began, book.posts)}`)
  say(`event to prompt receiver, p50/p99 in ms by quarter: ${quarters(began, waits)}`)
  say(`${arrivals.length} webhooks arrived; ${book.errors.length} lines of the logs are errors`)
  for (const line of book.errors.slice(0, 5)) say(`  ${line.slice(0, 300)}`)
  for (const [kind, [first, ...more]] of kinds(problems)) {
    say(`FAILED ${more.length + 1} times: ${kind}`)
    for (const problem of [first, ...more.slice(0, 4)]) say(`  ${problem}`)
  }
  say(`${minutes} minutes, ${book.orders.length} orders, ${problems.length} problems`)
  process.exitCode = problems.length === 0 ? 0 : 1
}).pipe(Effect.scoped)

NodeRuntime.runMain(main)
