import { randomBytes } from "node:crypto"
import Database from "better-sqlite3"
import { newCheckoutToken, newPaymentId } from "../../src/Domain/Ids.ts"

/** Rows of every status and chain come first, so many; all later ones are confirmed on base. */
export const mixed = 1_000

/** Who paid all of them, and also the mixed. */
export const senders = { all: `0x${"ee".repeat(20)}`, few: `0x${"ad".repeat(20)}` }

const day = 24 * 3600 * 1000

const statuses = ["confirmed", "confirmed", "pending", "expired", "failed"] as const
const chains = ["base", "base", "base", "base", "ethereum", "polygon", "arbitrum", "optimism"] as const

const row = (i: number, wallet: string, first: number) => {
  const status = i < mixed ? (statuses[i % 5] ?? "pending") : "confirmed"
  const createdAt = first + i * 100
  // A payment cannot be open on a chain that is not configured.
  const chain = i < mixed && status !== "pending" ? (chains[Math.floor(i / 5) % chains.length] ?? "base") : "base"
  const ended = status === "pending" ? null : createdAt + 60_000
  return {
    id: newPaymentId(createdAt) as string,
    checkoutToken: newCheckoutToken(createdAt) as string,
    merchantRef: `order-${i}`,
    chain,
    // Customers of a hundred orders each among the mixed, of one each later, and what all orders say.
    metadata: JSON.stringify({ customer: i < mixed ? `c${i % 10}` : `d${i}`, shop: "web" }),
    address: `0x${randomBytes(20).toString("hex")}`,
    wallet,
    index: i,
    status,
    createdAt,
    // What is open stays so while the benchmark runs.
    expiresAt: createdAt + (ended === null ? 200 * day : 3_600_000),
    txHash: `0x${randomBytes(32).toString("hex")}`,
    confirmedAt: status === "confirmed" ? ended : null,
    failure: status === "failed" ? "insufficient_amount" : null,
    ended
  }
}

/**
 * Puts payments of the default account straight into a database that no process has open, until it has `count`. They
 * ended before the window in which late money is looked for.
 */
export const seed = (database: string, count: number): void => {
  const db = new Database(database)
  // What is lost with a crash is only the benchmark's own.
  for (const pragma of ["journal_mode = OFF", "synchronous = OFF", "cache_size = -1000000", "foreign_keys = OFF"])
    db.pragma(pragma)
  const wallet = db.prepare("SELECT fingerprint FROM wallets").pluck().get() as string
  const here = db.prepare("SELECT count(*) FROM payments").pluck().get() as number
  const newest = db.prepare("SELECT max(created_at) FROM accounts").pluck().get() as number
  const insert = db.prepare(
    `INSERT INTO payments (id, checkout_token, account_id, mode, merchant_ref, amount, currency, chain, address, wallet,
       wallet_index, status, created_at, expires_at, metadata, amount_received, tx_hash, confirmed_at, failure_reason, ended_at)
     VALUES (@id, @checkoutToken, 'default', 'test', @merchantRef, '25000000', 'USDC', @chain, @address, @wallet, @index, @status,
       @createdAt, @expiresAt, @metadata, '24000000', @txHash, @confirmedAt, @failure, @ended)`
  )
  db.transaction(() => {
    for (let i = here; i < count; i++) insert.run(row(i, wallet, newest - 100 * day))
    db.prepare("UPDATE wallets SET next_index = ?").run(count)
    // As the worker and the watcher store it.
    db.exec(`
      INSERT OR IGNORE INTO metadata_terms
        SELECT account_id, mode, key, value, created_at, sequence FROM payments, json_each(metadata);
      UPDATE meta SET value = (SELECT max(sequence) FROM payments) WHERE key = 'metadata_indexed';
      INSERT OR IGNORE INTO payment_senders
        SELECT account_id, mode, '${senders.all}', created_at, sequence FROM payments UNION ALL
        SELECT account_id, mode, '${senders.few}', created_at, sequence FROM payments WHERE sequence <= ${mixed}`)
  })()
  db.close()
}

/** So many ids, drawn at random. */
export const randomIds = (database: string, count: number): ReadonlyArray<string> => {
  const db = new Database(database, { readonly: true })
  const last = db.prepare("SELECT max(sequence) FROM payments").pluck().get() as number
  const bySequence = db.prepare("SELECT id FROM payments WHERE sequence = ?").pluck()
  const ids = Array.from({ length: count }, () => {
    const sequence = 1 + (randomBytes(4).readUInt32LE() % last)
    return bySequence.get(sequence) as string
  })
  db.close()
  return ids
}
