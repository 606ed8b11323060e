// @effect-diagnostics globalDate:off
import { randomBytes } from "node:crypto"
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { eventId, newCheckoutToken, newPaymentId, type PaymentId } from "../../src/Domain/Ids.ts"
import * as Sql from "../../src/Sql.ts"

// What the same work costs without everything that makes tilld tilld: node:http, JSON.parse, prepared statements, the
// same tables and rows, the same durability, grouped commits. Figures are ratios to this server in the same run.
const [, , path = ""] = process.argv
await Effect.runPromise(Effect.provide(Effect.void, Sql.layer(path)))

const db = new Database(path)
const pragmas = ["journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "temp_store = MEMORY"]
for (const pragma of [...pragmas, "wal_autocheckpoint = 4000"]) db.pragma(pragma)
db.exec("INSERT INTO accounts (id, name, created_at) VALUES ('default', 'default', 0) ON CONFLICT DO NOTHING")
db.exec("INSERT INTO wallets (fingerprint, next_index) VALUES ('reference', 0) ON CONFLICT DO NOTHING")

const nextIndex = db.prepare(
  "UPDATE wallets SET next_index = next_index + 1 WHERE fingerprint = 'reference' RETURNING next_index - 1 AS n"
)
const payment = db.prepare(
  `INSERT INTO payments (id, checkout_token, account_id, mode, merchant_ref, amount, currency, chain, address, wallet,
     wallet_index, status, created_at, expires_at, metadata)
   VALUES (?, ?, 'default', 'test', ?, ?, ?, ?, ?, 'reference', ?, 'pending', ?, ?, ?)`
)
const event = db.prepare(
  `INSERT INTO events (id, account_id, mode, payment_id, kind, body, created_at)
   VALUES (?, 'default', 'test', ?, 'payment.created', ?, ?)`
)
const begin = db.prepare("BEGIN IMMEDIATE")
const commit = db.prepare("COMMIT")

interface Row {
  readonly id: PaymentId
  readonly checkout_token: string
  readonly merchant_ref: string
  readonly amount: string
  readonly currency: string
  readonly chain: string
  readonly address: string
  readonly status: string
  readonly created_at: number
  readonly expires_at: number
  readonly metadata: string
}

const toObject = (row: Row) => ({
  id: row.id,
  merchantRef: row.merchant_ref,
  amount: row.amount,
  currency: row.currency,
  chain: row.chain,
  address: row.address,
  status: row.status,
  createdAt: new Date(row.created_at).toISOString(),
  expiresAt: new Date(row.expires_at).toISOString(),
  metadata: JSON.parse(row.metadata) as unknown,
  checkoutUrl: `http://127.0.0.1/pay/${row.checkout_token}`
})

type Answer = (status: number, body: unknown) => void

let waiting: Array<{ readonly body: string; readonly answer: Answer }> = []

const insert = (body: string) => {
  const asked = JSON.parse(body)
  const now = Date.now()
  const { n } = nextIndex.get() as { n: number }
  const row: Row = {
    id: newPaymentId(now),
    checkout_token: newCheckoutToken(now),
    merchant_ref: asked.merchantRef,
    amount: asked.amount,
    currency: asked.currency,
    chain: asked.chain,
    // As random as an address is, since what an index costs depends on it.
    address: `0x${randomBytes(20).toString("hex")}`,
    status: "pending",
    created_at: now,
    expires_at: now + 3_600_000,
    metadata: JSON.stringify(asked.metadata)
  }
  const { address, amount, chain, checkout_token, created_at, currency, expires_at, id, merchant_ref, metadata } = row
  payment.run(id, checkout_token, merchant_ref, amount, currency, chain, address, n, created_at, expires_at, metadata)
  const object = toObject(row)
  const content = {
    id: eventId(row.id, "payment.created", 0),
    event: "payment.created",
    createdAt: object.createdAt,
    data: object
  }
  event.run(content.id, id, JSON.stringify(content), now)
  return object
}

const commitGroup = () => {
  const group = waiting
  waiting = []
  begin.run()
  const objects = group.map(({ body }) => insert(body))
  commit.run()
  group.forEach(({ answer }, i) => {
    answer(201, objects[i])
  })
}

const create = (request: IncomingMessage, answer: Answer) => {
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    waiting.push({ body: Buffer.concat(chunks).toString("utf8"), answer })
    if (waiting.length === 1) setImmediate(commitGroup)
  })
}

const byId = db.prepare("SELECT * FROM payments WHERE id = ? AND account_id = 'default' AND mode = 'test'")

const read = (id: string, answer: Answer) => {
  const row = byId.get(id)
  if (row === undefined) answer(404, {})
  else answer(200, toObject(row as Row))
}

const server = createServer((request, response) => {
  const answer: Answer = (status, body) => {
    const text = JSON.stringify(body)
    response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) })
    response.end(text)
  }
  if (request.method === "POST") create(request, answer)
  else read((request.url ?? "").slice("/v1/payments/".length), answer)
})
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ port: (server.address() as AddressInfo).port })))
// An orderly end, at which Node writes its profile.
process.on("SIGTERM", () => process.exit())
