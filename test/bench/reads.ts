import { copyFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { chainNames } from "../../src/Domain/Chain.ts"
import { PaymentStatus } from "../../src/Domain/Payment.ts"
import { createKey, type Installation, install, localChain, startDaemon, temporaryFolder } from "./daemon.ts"
import { count, type Figure, median, millis, percent, perSecond, quantile, times } from "./Figure.ts"
import { startScript } from "./processes.ts"
import { type LoadRequest, type Round, runLoad } from "./runLoad.ts"
import { mixed, randomIds, seed, senders } from "./seed.ts"

/** By turns, one and the other. */
const rounds = 3
const connections = 64
const getsPerRound = 10_000
const listsPerRound = 20

/** Every combination: also those that few payments have, and no recent one. Then whom and what a search names: few, or all. */
const filters = [
  ...["", ...PaymentStatus.literals].flatMap((status) =>
    ["", ...chainNames].map((chain) => [
      ...(status === "" ? [] : [`status=${status}`]),
      ...(chain === "" ? [] : [`chain=${chain}`])
    ])
  ),
  ...Object.values(senders).flatMap((sender) => [[`from=${sender}`], [`search=${sender}`]]),
  ...["customer]=c7", "shop]=web", "shop]=web&metadata[customer]=C7"].map((terms) => [`metadata[${terms}`]),
  ...["c7", "web"].map((value) => [`search=${value}`]),
  [`from=${senders.all}`, "metadata[customer]=c7"]
]

const get = (path: string): LoadRequest => ({ method: "GET", path })

interface Page {
  readonly data: ReadonlyArray<unknown>
  readonly cursor: string | null
}

interface Place {
  readonly port: number
  readonly apiKey: string
}

/** Milliseconds, of each request of each page. */
type PageTimes = ReadonlyArray<ReadonlyArray<number>>

/** A request for a page, and how many payments it has. */
interface Listed {
  /** Its filters, and which page of theirs it is. */
  readonly name: string
  readonly request: LoadRequest
  readonly rows: number
}

/** The first page of every filter, and the page behind it where there is one. */
const listed = (folder: string, { apiKey, port }: Place) =>
  Effect.gen(function* () {
    const ask = (wanted: ReadonlyArray<Omit<Listed, "rows">>) =>
      Effect.map(runLoad(folder, port, 1, { apiKey, requests: wanted.map(({ request }) => request) }), ({ answers }) =>
        wanted.map((one, i) => ({ ...one, page: JSON.parse(answers[i] ?? "") as Page }))
      )
    const first = yield* ask(
      filters.map((conditions) => ({
        name: `${conditions.join("&") || "no filter"}, page 1`,
        request: get(`/v1/payments?${[...conditions, "limit=100"].join("&")}`)
      }))
    )
    const second = yield* ask(
      first.flatMap(({ name, page, request }) =>
        page.cursor === null
          ? []
          : [{ name: name.replace("page 1", "page 2"), request: get(`${request.path}&cursor=${page.cursor}`) }]
      )
    )
    return [...first, ...second].map(({ page, ...one }): Listed => ({ ...one, rows: page.data.length }))
  })

/** The pages that both have with as many payments: every first one, and those behind it that the few have too. */
const pagesOfBoth = (few: ReadonlyArray<Listed>, many: ReadonlyArray<Listed>) => {
  const pairs = few.flatMap((small) => {
    const large = many.find(({ name }) => name === small.name)
    return large === undefined || large.rows !== small.rows ? [] : [{ name: small.name, small, large }]
  })
  const firsts = pairs.filter(({ name }) => name.endsWith("page 1")).length
  return firsts === filters.length
    ? Effect.succeed(pairs)
    : Effect.dieMessage(`${filters.length - firsts} filters have pages that cannot be compared`)
}

/** Milliseconds of each request, by turns, one after another over one connection. */
const listTimes = (folder: string, { apiKey, port }: Place, requests: ReadonlyArray<LoadRequest>) =>
  Effect.map(
    runLoad(folder, port, 1, { apiKey, requests: Array.from({ length: listsPerRound }, () => requests).flat() }),
    ({ latencies }) => requests.map((_, i) => latencies.filter((_, j) => j % requests.length === i))
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

    const pages = yield* pagesOfBoth(yield* listed(folder, small), yield* listed(folder, large))
    const smallPages = pages.map((page) => page.small.request)
    const largePages = pages.map((page) => page.large.request)
    const [smallTimes, largeTimes]: [Array<PageTimes>, Array<PageTimes>] = [[], []]
    for (let round = 0; round <= rounds; round++) {
      smallTimes.push(yield* listTimes(folder, small, smallPages))
      largeTimes.push(yield* listTimes(folder, large, largePages))
    }
    // What the machine does meanwhile makes a request slower, never faster; of 50 pages the slowest would show that.
    const each = (all: ReadonlyArray<PageTimes>) =>
      pages.map((_, i) =>
        quantile(
          all.slice(1).flatMap((round) => round[i] ?? []),
          0.25
        )
      )
    const [before, after] = [each(smallTimes), each(largeTimes)]
    const ratios = after.map((time, i) => time / (before[i] ?? Number.NaN))
    const worst = ratios.indexOf(Math.max(...ratios))

    const figures: ReadonlyArray<Figure> = [
      {
        what: `get, random of ${count(rows)}`,
        measured: `${perSecond(middle(ours, "perSecond"))}, p99 ${millis(middle(ours, "p99"))}`,
        beside: `${perSecond(middle(theirs, "perSecond"))} of the bare server`,
        judged: middle(ours, "perSecond") / middle(theirs, "perSecond"),
        floor: { atLeast: 0.38 },
        goal: { atLeast: 0.45 },
        written: percent
      },
      {
        what: `list of 100, over ${count(rows)}`,
        measured: `the slowest of ${ratios.length} pages by comparison, ${pages[worst]?.name}: ${millis(after[worst] ?? 0)}`,
        beside: `${millis(before[worst] ?? 0)} over ${count(mixed)}`,
        judged: Math.max(...ratios),
        // As fast, and what two measurements of the same differ by.
        floor: { atMost: 1.3 },
        written: times
      }
    ]
    return figures
  }).pipe(Effect.scoped)
