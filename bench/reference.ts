import { mkdtempSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import Database from "better-sqlite3"
import { Effect } from "effect"
import * as Sql from "../src/Sql.ts"

// What a create costs without everything that makes tilld tilld: node:http, JSON.parse, the same tables and rows, the
// same durability, grouped commits. Figures are ratios to this server in the same run.
const path = join(mkdtempSync(join(tmpdir(), "tilld-reference-")), "reference.db")
await Effect.runPromise(Effect.provide(Effect.void, Sql.layer(path)))

const db = new Database(path)
for (const pragma of ["journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "temp_store = MEMORY"])
  db.pragma(pragma)
db.exec("INSERT INTO accounts VALUES ('default', 'default', 0); INSERT INTO wallets VALUES ('w', 0)")

const nextIndex = db.prepare(
  "UPDATE wallets SET next_index = next_index + 1 WHERE fingerprint = 'w' RETURNING next_index - 1 AS n"
)
const payment = db.prepare(
  `INSERT INTO payments (id, account_id, mode, merchant_ref, amount, currency, chain, address, wallet, wallet_index,
     status, created_at, expires_at, metadata) VALUES (?, 'default', 'test', ?, ?, ?, ?, ?, 'w', ?, 'pending', ?, ?, ?)`
)
const event = db.prepare("INSERT INTO events VALUES (?, 'default', 'test', ?, 'payment.created', ?, ?)")
const begin = db.prepare("BEGIN IMMEDIATE")
const commit = db.prepare("COMMIT")

interface Waiting {
  readonly body: Record<string, unknown>
  readonly answer: (json: string) => void
}

let waiting: Array<Waiting> = []
let sequence = 0

const group = () => {
  const taken = waiting
  waiting = []
  const answers: Array<() => void> = []
  begin.run()
  for (const { answer, body } of taken) {
    const now = Date.now()
    const id = `pay_${sequence++}_0123456789012345`
    const { n } = nextIndex.get() as { n: number }
    const address = `0x${n.toString(16).padStart(40, "0")}`
    const object = {
      id,
      merchantRef: body["merchantRef"],
      amount: body["amount"],
      currency: body["currency"],
      chain: body["chain"],
      address,
      status: "pending",
      createdAt: new Date(now).toISOString(),
      expiresAt: new Date(now + 3_600_000).toISOString(),
      metadata: body["metadata"] ?? {}
    }
    payment.run(
      id,
      body["merchantRef"],
      body["amount"],
      body["currency"],
      body["chain"],
      address,
      n,
      now,
      now + 3_600_000,
      JSON.stringify(object.metadata)
    )
    event.run(
      `evt_${id}`,
      id,
      JSON.stringify({ id: `evt_${id}`, event: "payment.created", createdAt: object.createdAt, data: object }),
      now
    )
    answers.push(() => answer(JSON.stringify(object)))
  }
  commit.run()
  for (const answer of answers) answer()
}

const server = createServer((request, response) => {
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    waiting.push({
      body: JSON.parse(Buffer.concat(chunks).toString("utf8")),
      answer: (json) => {
        response.writeHead(201, { "content-type": "application/json", "content-length": Buffer.byteLength(json) })
        response.end(json)
      }
    })
    if (waiting.length === 1) setImmediate(group)
  })
})
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ port: (server.address() as AddressInfo).port })))
