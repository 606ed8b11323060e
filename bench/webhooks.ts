import { writeFileSync } from "node:fs"
import { join } from "node:path"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { eventId, newPaymentId } from "../src/Domain/Ids.ts"
import { makeAuthority } from "../src/Sandbox/Authority.ts"
import { post } from "./api.ts"
import { createKey, install, localChain, startDaemon, temporaryFolder } from "./daemon.ts"
import { count, type Figure, percent, perSecond } from "./Figure.ts"
import { startScript } from "./processes.ts"

const endpoints = 8
const latencyMillis = 25
/** The settings' own: attempts at once, in all and to one endpoint. */
const concurrency = 64
const backlog = 10_000

interface Endpoint {
  readonly id: string
  readonly url: string
}

/** Puts deliveries that are due straight into a database that no process has open, in turn for every endpoint. */
const addBacklog = (database: string, targets: ReadonlyArray<Endpoint>): void => {
  const db = new Database(database)
  const now = db.prepare("SELECT max(created_at) FROM endpoints").pluck().get() as number
  const payment = db.prepare("SELECT id FROM payments").pluck().get() as string
  const event = db.prepare(
    `INSERT INTO events (id, account_id, mode, payment_id, kind, body, created_at)
     VALUES (?, 'default', 'test', ?, 'payment.created', ?, ?)`
  )
  const delivery = db.prepare(
    `INSERT INTO deliveries (id, event_id, payment_id, account_id, mode, endpoint_id, own_url, target, url, status, attempts,
       next_attempt_at, created_at) VALUES (?, ?, ?, 'default', 'test', ?, 0, ?, ?, 'pending', 0, ?, ?)`
  )
  db.transaction(() => {
    for (let i = 0; i < backlog; i++) {
      const { id, url } = targets[i % targets.length] ?? { id: "", url: "" }
      const told = eventId(newPaymentId(), "payment.created", 0)
      event.run(told, payment, JSON.stringify({ id: told, event: "payment.created", data: "x".repeat(400) }), now)
      delivery.run(`dlv_${i}`, told, payment, id, id, url, now, now)
    }
  })()
  db.close()
}

interface Conclusion {
  /** Events that arrived, each counted once. */
  readonly different: number
  readonly perSecond: number
}

/** How fast a backlog goes out to receivers that take a moment each, beside what so many at once can do at best. */
export const webhooks = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const [caFile, identityFile] = [join(folder, "ca.pem"), join(folder, "identity.json")]
  const authority = yield* makeAuthority
  writeFileSync(caFile, authority.certificate)
  writeFileSync(identityFile, JSON.stringify(yield* authority.issue(["127.0.0.1"])))
  const receivers = yield* startScript<ReadonlyArray<number>>("receivers.ts", [
    identityFile,
    ...[endpoints, latencyMillis, backlog].map(String)
  ])
  const installation = yield* install(yield* localChain, { extra_ca_file: caFile, concurrency })
  const targets = yield* Effect.gen(function* () {
    const { said: port } = yield* startDaemon(installation)
    const key = yield* createKey(installation)
    yield* post(port, key, "/v1/payments", { merchantRef: "order", amount: "1", currency: "USDC", chain: "base" })
    const create = (receiver: number) =>
      post<Endpoint>(port, key, "/v1/webhooks", {
        url: `https://127.0.0.1:${receiver}`,
        events: ["payment.created"],
        secret: `whsec_${"0".repeat(32)}`
      })
    return yield* Effect.forEach(receivers.said, create, { concurrency: 1 })
  }).pipe(Effect.scoped)
  addBacklog(installation.database, targets)

  yield* startDaemon(installation)
  const last = (yield* receivers.ended).trim().split("\n").at(-1) ?? ""
  const { different, perSecond: rate }: Conclusion = JSON.parse(last)
  const best = (concurrency / latencyMillis) * 1000

  const figures: ReadonlyArray<Figure> = [
    {
      what: `webhook drain, ${endpoints} endpoints`,
      measured: `${perSecond(rate)} of a backlog of ${count(backlog)}, receivers at ${latencyMillis} ms`,
      beside: `${perSecond(best)} by Little's law at ${concurrency} at once`,
      judged: rate / best,
      floor: { atLeast: 0.8 },
      goal: { atLeast: 0.95 },
      written: percent
    },
    {
      what: "deliveries lost",
      measured: `${count(different)} events arrived`,
      judged: backlog - different,
      floor: { atMost: 0 },
      written: count
    }
  ]
  return figures
}).pipe(Effect.scoped)
