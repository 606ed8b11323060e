import { join } from "node:path"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { createKey, install, localChain, startDaemon, temporaryFolder } from "./daemon.ts"
import { count, type Figure, median, millis, percent, perSecond, times } from "./Figure.ts"
import { startScript } from "./processes.ts"
import { type LoadRequest, type Round, runLoad } from "./runLoad.ts"

const connections = 64
/** By turns, tilld and the reference. */
const rounds = 3
/** Above 20,000 in all: the pool of addresses is used up and refilled many times. */
const perRound = 8_000
const warmUp = 2_000

/** Creates with references of their own. */
export const createsOf = (round: string, size: number): ReadonlyArray<LoadRequest> =>
  Array.from({ length: size }, (_, i) => ({
    method: "POST",
    path: "/v1/payments",
    body: JSON.stringify({
      merchantRef: `order-${round}-${i}`,
      amount: "25000000",
      currency: "USDC",
      chain: "base",
      metadata: { order: i, customer: "c-1029384756" }
    })
  }))

export interface Created {
  readonly id: string
  readonly merchantRef: string
  readonly address: string
}

interface Stored extends Created {
  readonly wallet_index: number
}

/** Acknowledged payments that the database does not hold as they were answered, with an address and index of their own. */
const lostIn = (database: string, created: ReadonlyArray<Created>): number => {
  const db = new Database(database, { readonly: true })
  const rows = db.prepare("SELECT id, merchant_ref AS merchantRef, address, wallet_index FROM payments").all()
  db.close()
  const stored = new Map((rows as ReadonlyArray<Stored>).map((row) => [row.id, row]))
  const kept = created.filter(({ address, id, merchantRef }) => {
    const row = stored.get(id)
    return row !== undefined && row.address === address && row.merchantRef === merchantRef
  })
  const own = [
    new Set(created.map(({ id }) => id)),
    new Set(created.map(({ address }) => address.toLowerCase())),
    new Set(created.map(({ id }) => stored.get(id)?.wallet_index))
  ]
  return created.length - Math.min(kept.length, stored.size, ...own.map((set) => set.size))
}

/** Creates a second over 64 connections, beside the reference in the same run, and whether any of them was lost. */
export const create = Effect.gen(function* () {
  const chain = yield* localChain
  const installation = yield* install(chain)
  const tilld = yield* startDaemon(installation)
  const apiKey = yield* createKey(installation)
  const folder = yield* temporaryFolder
  const reference = yield* startScript<{ port: number }>("reference.ts", [join(folder, "reference.db")])

  const ours: Array<Round> = []
  const theirs: Array<Round> = []
  for (let round = 0; round <= rounds; round++) {
    const load = { apiKey, requests: createsOf(String(round), round === 0 ? warmUp : perRound) }
    ours.push(yield* runLoad(folder, tilld.said, connections, load))
    theirs.push(yield* runLoad(folder, reference.said.port, connections, load))
  }
  const created = ours.flatMap(({ answers }) => answers.map((text): Created => JSON.parse(text)))
  const middle = (all: ReadonlyArray<Round>, what: "perSecond" | "p50" | "p99") =>
    median(all.slice(1).map((round) => round[what]))
  const [rate, referenceRate] = [middle(ours, "perSecond"), middle(theirs, "perSecond")]
  /** Milliseconds that the bare server takes for a request on average: how fast the machine is now. */
  const usualTime = (1000 * connections) / referenceRate

  const figures: ReadonlyArray<Figure> = [
    {
      what: `creates, ${connections} connections`,
      measured: `${perSecond(rate)} over ${rounds} × ${count(perRound)}`,
      beside: `${perSecond(referenceRate)} of the bare server`,
      judged: rate / referenceRate,
      floor: { atLeast: 0.23 },
      goal: { atLeast: 0.55 },
      written: percent
    },
    {
      what: "create, p99",
      measured: `p50 ${millis(middle(ours, "p50"))}, p99 ${millis(middle(ours, "p99"))}`,
      beside: `p50 ${millis(middle(theirs, "p50"))}, p99 ${millis(middle(theirs, "p99"))} of the bare server`,
      judged: middle(ours, "p99") / usualTime,
      // 100 ms, and 30, where the bare server answers 9,000 a second.
      floor: { atMost: 14 },
      goal: { atMost: 4.2 },
      written: times
    },
    {
      what: "creates lost, doubled or changed",
      measured: `${count(created.length)} acknowledged, each with an address and an index of its own`,
      judged: lostIn(installation.database, created),
      floor: { atMost: 0 },
      written: count
    }
  ]
  return figures
}).pipe(Effect.scoped)
