import { readFileSync } from "node:fs"
import { Effect } from "effect"
import { administer } from "../lib/postgres.ts"
import { type Created, createsOf } from "./create.ts"
import {
  createKey,
  type Engine,
  type Installation,
  install,
  localChain,
  startDaemon,
  temporaryFolder
} from "./daemon.ts"
import { count, type Figure, median, percent, perSecond } from "./Figure.ts"
import { type LoadRequest, type Round, runLoad } from "./runLoad.ts"

const connections = 64
/** By turns, after one that warms up. */
const rounds = 3
const perRound = 8_000
const warmUp = 2_000
const listsPerRound = 1_000

/** What autovacuum does within a minute of new rows: without statistics PostgreSQL reads by an index that fits worse. */
const analyze = ({ config }: Installation) =>
  Effect.suspend(() => {
    const [, port = ""] = /127\.0\.0\.1:(\d+)\/tilld/.exec(readFileSync(config, "utf8")) ?? []
    return administer(Number(port), "tilld", "ANALYZE")
  })

/** Two daemons, one with its data in PostgreSQL and one with a file: a load for each of them by turns. */
const both = Effect.gen(function* () {
  const chain = yield* localChain
  const folder = yield* temporaryFolder
  const place = (engine: Engine) =>
    Effect.gen(function* () {
      const installation = yield* install(chain, {}, "base", engine)
      const { said: port } = yield* startDaemon(installation)
      const apiKey = yield* createKey(installation)
      const send = (requests: ReadonlyArray<LoadRequest>) => runLoad(folder, port, connections, { apiKey, requests })
      return { send, analyze: engine === "postgres" ? analyze(installation) : Effect.void }
    })
  return [yield* place("postgres"), yield* place("sqlite")] as const
})

const beside = (what: string, pairs: ReadonlyArray<readonly [server: Round, file: Round]>): Figure => {
  const middle = (at: 0 | 1) => median(pairs.map((pair) => pair[at].perSecond))
  return {
    what: `${what} in PostgreSQL, ${connections} connections`,
    measured: perSecond(middle(0)),
    beside: `${perSecond(middle(1))} in a file`,
    judged: median(pairs.map(([server, file]) => server.perSecond / file.perSecond)),
    floor: { atLeast: 0.4 },
    written: percent
  }
}

export const createOnPostgres = Effect.gen(function* () {
  const [server, file] = yield* both
  const pairs: Array<readonly [Round, Round]> = []
  for (let round = 0; round <= rounds; round++) {
    const requests = createsOf(String(round), round === 0 ? warmUp : perRound)
    pairs.push([yield* server.send(requests), yield* file.send(requests)])
    if (round === 0) yield* server.analyze
  }
  return [beside("creates", pairs.slice(1))]
}).pipe(Effect.scoped)

const idsOf = ({ answers }: Round) => answers.map((text) => (JSON.parse(text) as Created).id)

/** Gets of payments in an order of chance, and pages of 100 of them. */
export const readsOnPostgres = Effect.gen(function* () {
  const [server, file] = yield* both
  const made = createsOf("reads", perRound)
  const [serverIds, fileIds] = [idsOf(yield* server.send(made)), idsOf(yield* file.send(made))]
  yield* server.analyze
  // Any order that is not that of the rows: a step that shares no divisor with their number.
  const gets = (ids: ReadonlyArray<string>) =>
    ids.map((_, i): LoadRequest => ({ method: "GET", path: `/v1/payments/${ids[(i * 3_001) % ids.length]}` }))
  const lists = Array.from(
    { length: listsPerRound },
    (): LoadRequest => ({ method: "GET", path: "/v1/payments?limit=100" })
  )
  const [got, listed]: [Array<readonly [Round, Round]>, Array<readonly [Round, Round]>] = [[], []]
  for (let round = 0; round <= rounds; round++) {
    got.push([yield* server.send(gets(serverIds)), yield* file.send(gets(fileIds))])
    listed.push([yield* server.send(lists), yield* file.send(lists)])
  }
  return [beside(`gets, random of ${count(perRound)},`, got.slice(1)), beside("lists of 100", listed.slice(1))]
}).pipe(Effect.scoped)
