import { copyFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { createKey, type Installation, install, localChain, startDaemon, temporaryFolder } from "./daemon.ts"
import { count, type Figure, median, millis, percent, perSecond, times } from "./Figure.ts"
import { startScript } from "./processes.ts"
import { type LoadRequest, type Round, runLoad } from "./runLoad.ts"
import { mixed, randomIds, seed } from "./seed.ts"

/** By turns, one and the other. */
const rounds = 3
const connections = 64
const getsPerRound = 10_000
const listsPerRound = 20

const filters = ["", "pending", "confirmed", "expired", "failed"].flatMap((status) => {
  const byStatus = status === "" ? [] : [`status=${status}`]
  return [byStatus, [...byStatus, "chain=base"]]
})

const get = (path: string): LoadRequest => ({ method: "GET", path })

interface Page {
  readonly data: ReadonlyArray<unknown>
  readonly cursor: string
}

interface Place {
  readonly port: number
  readonly apiKey: string
}

/** The first page of every filter, and the page behind it. */
const listRequests = (folder: string, { apiKey, port }: Place) =>
  Effect.gen(function* () {
    const paths = filters.map((conditions) => `/v1/payments?${[...conditions, "limit=100"].join("&")}`)
    const { answers } = yield* runLoad(folder, port, 1, { apiKey, requests: paths.map(get) })
    const pages = answers.map((text): Page => JSON.parse(text))
    if (pages.some(({ data }) => data.length !== 100)) return yield* Effect.dieMessage("a page of 100 has fewer rows")
    return paths.flatMap((path, i) => [get(path), get(`${path}&cursor=${pages[i]?.cursor}`)])
  })

/** Milliseconds of each request, by turns: the median of one after another over one connection. */
const listTimes = (folder: string, { apiKey, port }: Place, requests: ReadonlyArray<LoadRequest>) =>
  Effect.map(
    runLoad(folder, port, 1, { apiKey, requests: Array.from({ length: listsPerRound }, () => requests).flat() }),
    ({ latencies }) => requests.map((_, i) => median(latencies.filter((_, j) => j % requests.length === i)))
  )

/** A database with so many payments. */
const seeded = (installation: Installation, rows: number) =>
  Effect.gen(function* () {
    const apiKey = yield* Effect.scoped(Effect.zipRight(startDaemon(installation), createKey(installation)))
    yield* Effect.sync(() => seed(installation.database, rows))
    return apiKey
  })

const serving = (installation: Installation, apiKey: string) =>
  Effect.map(startDaemon(installation), ({ said }): Place => ({ apiKey, port: said }))

/** Getting payments by random ids over many rows, and pages of 100 beside the same pages over 1,000 rows. */
export const reads = (rows: number) =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const chain = yield* localChain
    const [few, many] = [yield* install(chain), yield* install(chain)]
    const [fewKey, manyKey] = [yield* seeded(few, mixed), yield* seeded(many, rows)]
    copyFileSync(many.database, join(folder, "reference.db"))
    const ids = randomIds(many.database, getsPerRound)
    const reference = yield* startScript<{ port: number }>("reference.ts", [join(folder, "reference.db")])
    const [small, large] = [yield* serving(few, fewKey), yield* serving(many, manyKey)]

    const gets = ids.map((id) => get(`/v1/payments/${id}`))
    const [ours, theirs]: [Array<Round>, Array<Round>] = [[], []]
    for (let round = 0; round <= rounds; round++) {
      ours.push(yield* runLoad(folder, large.port, connections, { apiKey: large.apiKey, requests: gets }))
      theirs.push(yield* runLoad(folder, reference.said.port, connections, { apiKey: "", requests: gets }))
    }
    const middle = (all: ReadonlyArray<Round>, what: "perSecond" | "p99") =>
      median(all.slice(1).map((round) => round[what]))

    const [smallPages, largePages] = [yield* listRequests(folder, small), yield* listRequests(folder, large)]
    const [smallTimes, largeTimes]: [Array<ReadonlyArray<number>>, Array<ReadonlyArray<number>>] = [[], []]
    for (let round = 0; round <= rounds; round++) {
      smallTimes.push(yield* listTimes(folder, small, smallPages))
      largeTimes.push(yield* listTimes(folder, large, largePages))
    }
    const each = (all: ReadonlyArray<ReadonlyArray<number>>) =>
      smallPages.map((_, i) => median(all.slice(1).map((round) => round[i] ?? Number.NaN)))
    const [before, after] = [each(smallTimes), each(largeTimes)]
    const ratios = after.map((time, i) => time / (before[i] ?? Number.NaN))
    const worst = ratios.indexOf(Math.max(...ratios))

    const figures: ReadonlyArray<Figure> = [
      {
        what: `get, random of ${count(rows)}`,
        measured: `${perSecond(middle(ours, "perSecond"))}, p99 ${millis(middle(ours, "p99"))}`,
        beside: `${perSecond(middle(theirs, "perSecond"))} of the bare server`,
        judged: middle(ours, "perSecond") / middle(theirs, "perSecond"),
        floor: { atLeast: 0.15 },
        goal: { atLeast: 0.45 },
        written: percent
      },
      {
        what: `list of 100, over ${count(rows)}`,
        measured: `the slowest of ${ratios.length} pages by comparison, ${largePages[worst]?.path.replace(/^.*\?|&cursor.*$/g, "")}: ${millis(after[worst] ?? 0)}`,
        beside: `${millis(before[worst] ?? 0)} over ${count(mixed)}`,
        judged: Math.max(...ratios),
        // As fast, and what two measurements of the same differ by.
        floor: { atMost: 1.3 },
        written: times
      }
    ]
    return figures
  }).pipe(Effect.scoped)
