import { writeFileSync } from "node:fs"
import { join } from "node:path"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { eventId, newPaymentId } from "../../src/Domain/Ids.ts"
import { makeAuthority } from "../../src/Sandbox/Authority.ts"
import { post } from "./api.ts"
import { createKey, install, localChain, startDaemon, temporaryFolder } from "./daemon.ts"

/** The settings' own: attempts at once, in all. */
export const concurrency = 64

/** The certificate of a receiver on this machine, and a client that trusts it. Gone with the scope. */
export const identity = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const [caFile, identityFile] = [join(folder, "ca.pem"), join(folder, "identity.json")]
  const authority = yield* makeAuthority
  writeFileSync(caFile, authority.certificate)
  writeFileSync(identityFile, JSON.stringify(yield* authority.issue(["127.0.0.1"])))
  return { caFile, identityFile }
})

export interface Endpoint {
  readonly id: string
  readonly url: string
}

/** An installation with an endpoint for each of these receivers, and one payment; no process has its database open. */
export const installWithEndpoints = (ports: ReadonlyArray<number>, caFile: string) =>
  Effect.gen(function* () {
    const installation = yield* install(yield* localChain, { extra_ca_file: caFile, concurrency })
    const endpoints = yield* Effect.gen(function* () {
      const { said: port } = yield* startDaemon(installation)
      const key = yield* createKey(installation)
      yield* post(port, key, "/v1/payments", { merchantRef: "order", amount: "1", currency: "USDC", chain: "base" })
      const create = (receiver: number) =>
        post<Endpoint>(port, key, "/v1/webhooks", {
          url: `https://127.0.0.1:${receiver}`,
          events: ["payment.created"],
          secret: `whsec_${"0".repeat(32)}`
        })
      return yield* Effect.forEach(ports, create, { concurrency: 1 })
    }).pipe(Effect.scoped)
    return { installation, endpoints }
  })

/** The bytes of an event, about as many as a payment's has. */
export const eventBytes = 520

/** Puts so many deliveries that are due straight into a database that no process has open, for every endpoint in turn. */
export const addBacklog = (database: string, endpoints: ReadonlyArray<Endpoint>, size: number): void => {
  const db = new Database(database)
  // What is lost with a crash is only the benchmark's own.
  for (const pragma of ["journal_mode = OFF", "synchronous = OFF", "cache_size = -500000"]) db.pragma(pragma)
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
    for (let i = 0; i < size; i++) {
      const { id, url } = endpoints[i % endpoints.length] ?? { id: "", url: "" }
      const created = eventId(newPaymentId(now), "payment.created", 0)
      const body = JSON.stringify({ id: created, event: "payment.created", data: "" })
      event.run(created, payment, body.replace('""', `"${"x".repeat(eventBytes - body.length)}"`), now)
      delivery.run(`dlv_${i}`, created, payment, id, id, url, now, now)
    }
  })()
  db.close()
}
