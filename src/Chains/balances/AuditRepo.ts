/**
 * The SQL of the audit of balances: which addresses are next, what the rows say should be there, and what was found to be in no
 * row (`unaccounted`). Only the watcher of a network writes here.
 */
import { Effect } from "effect"
import { chainTraits, type Mode, type Network } from "../../Domain/Chain.ts"
import { nativeToken } from "../../Domain/Currency.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { type Db, oneRow, oneValue, Tx } from "../../Sql.ts"

/** Findings that are read. */
const mostFound = 5_000

/** How far the audit has come, and how many payments there are; undefined before the chain's first head. */
export const progress = (db: Db, { chain, mode }: Network) =>
  oneRow<{ readonly after: string; readonly at: number; readonly verified: number; readonly payments?: number }>(
    db,
    `SELECT audited AS after, audited_at AS at, verified_number AS verified,
       (SELECT max(sequence) FROM payments) AS payments FROM scans WHERE chain = ? AND mode = ?`,
    [chain, mode]
  )

/** When it last looked at the one of the networks that has waited longest, Unix milliseconds; 0: at one it has not yet. */
export const lastLook = (db: Db, networks: ReadonlyArray<Network>) =>
  oneValue<number>(
    db,
    `SELECT min(coalesce(audited_at, 0)) FROM json_each(?)
       LEFT JOIN scans ON chain = value ->> 'chain' AND mode = value ->> 'mode'`,
    [JSON.stringify(networks.map(({ chain, mode }) => ({ chain, mode })))]
  )

/** Receipts that are read at once, which takes some 10 ms for 1,000: anybody can send many to an address. */
export const mostReceipts = 5_000

/**
 * The next `limit` addresses behind `after` that were given out in any mode, or may have been by a lost copy of the database, with
 * their receipts, as far as they are counted.
 */
export const page = (db: Db, after: string, limit: number) =>
  db.all<{ readonly address: string; readonly mode: Mode; readonly receipts: number }>(
    `SELECT address, mode, (SELECT count(*) FROM (
         SELECT 1 FROM receipts INDEXED BY receipts_payment WHERE payment_id = id
         UNION ALL SELECT 1 FROM receipts AS r INDEXED BY receipts_lost WHERE r.address = lower(given.address) AND payment_id IS NULL
         LIMIT ${mostReceipts + 1})) AS receipts
     FROM (SELECT address, mode, id FROM payments WHERE address > ?
       UNION ALL SELECT address, mode, NULL FROM gap_addresses WHERE address > ? ORDER BY address LIMIT ?) AS given
     ORDER BY address`,
    [after, after, limit]
  )

interface AmountRow {
  /** EIP-55 form. */
  readonly address: string
  readonly currency: string
  readonly amount: string
}

/** Money that is in no row: a row of `unaccounted`. */
export interface Finding extends Omit<AmountRow, "amount"> {
  /** Base units, above 0. */
  readonly amount: bigint
  readonly number: number
  readonly told: boolean
}

/** What was found, of all networks. */
export const found = (db: Db) =>
  Effect.map(
    db.all<Network & AmountRow & { readonly number: number; readonly told: 0 | 1 }>(
      `SELECT * FROM unaccounted ORDER BY chain, mode, address, currency LIMIT ${mostFound}`
    ),
    (rows) => rows.map((row): Network & Finding => ({ ...row, amount: BigInt(row.amount), told: row.told === 1 }))
  )

/** What is told of. */
export const told = (db: Db) => Effect.map(found(db), (all) => all.filter((one) => one.told))

/** More than any address has, in place of the coin of an open payment: its rounds look for that. */
const anything = `1${"0".repeat(60)}`

/**
 * What should be at addresses (EIP-55) after a block by the rows, base units by `keyOf`: what has come, less what broadcasts have
 * collected and final refunds have sent back by then. What came without a transaction counts from the first block in which it may
 * have. As `allowed`, the coin that may be there in no row: dust of a payment in it; elsewhere gas to collect with, of each time.
 */
export const recorded = (
  db: Db,
  { chain, mode }: Network,
  addresses: ReadonlyArray<string>,
  { number, time }: BlockRef,
  keyOf: (currency: string, address: string) => string
) => {
  const [coin, gas] = [nativeToken(chain), `${chainTraits[chain].mostGas}`]
  return Effect.map(
    db.all<AmountRow>(
      `WITH asked AS MATERIALIZED (
         SELECT value AS given, lower(value) AS low, payments.id, iif(status IN ('pending', 'detecting'), ?,
           iif(payments.chain = ? AND currency = ?, floor, ?)) AS allowed
         FROM json_each(?) LEFT JOIN payments ON address = value)
       SELECT given AS address, 'allowed' AS currency, allowed AS amount FROM asked
       UNION ALL SELECT given, currency, amount FROM asked CROSS JOIN receipts r INDEXED BY receipts_payment ON payment_id = id
         WHERE chain = ? AND mode = ? AND canonical = 1 AND coalesce(since_number, block_number) <= ?
       UNION ALL SELECT given, currency, amount FROM asked CROSS JOIN receipts r INDEXED BY receipts_lost
         ON r.address = low AND chain = ? AND mode = ? AND payment_id IS NULL
         WHERE canonical = 1 AND coalesce(since_number, block_number) <= ?
       UNION ALL SELECT given, currency, '-' || amount FROM asked CROSS JOIN collected INDEXED BY collected_address
         ON address = given WHERE chain = ? AND mode = ? AND block_time <= ?
       UNION ALL SELECT given, currency, '-' || amount FROM asked CROSS JOIN refunds INDEXED BY refunds_payment
         ON payment_id = asked.id WHERE chain = ? AND mode = ? AND status = 'final' AND plan_digest IS NULL
           AND lower(sender) = low AND block_time <= ?
       UNION ALL SELECT given, 'allowed', ? FROM asked CROSS JOIN gas INDEXED BY gas_payment ON payment_id = id
         WHERE chain = ? AND mode = ? AND receiver = given`,
      [
        ...[anything, chain, coin, gas, JSON.stringify(addresses)],
        ...[chain, mode, number, chain, mode, number, chain, mode, time, chain, mode, time, gas, chain, mode]
      ]
    ),
    (rows): ReadonlyMap<string, bigint> => {
      const sums = new Map<string, bigint>()
      for (const { address, amount, currency } of rows) {
        const key = keyOf(currency, address)
        sums.set(key, (sums.get(key) ?? 0n) + BigInt(amount))
      }
      return sums
    }
  )
}

/** Stores what was found at the addresses, in place of what was found there before, and how far the audit has come. */
export const keep = Effect.fnUntraced(function* (
  { chain, mode }: Network,
  addresses: Iterable<string>,
  findings: ReadonlyArray<Finding>,
  after: string,
  now: number
) {
  const tx = yield* Tx
  const those = "chain = ? AND mode = ? AND address IN (SELECT value FROM json_each(?))"
  yield* tx.run(`DELETE FROM unaccounted WHERE ${those}`, [chain, mode, JSON.stringify([...addresses])])
  yield* tx.runEach(
    "INSERT INTO unaccounted (chain, mode, address, currency, amount, number, told) VALUES (?, ?, ?, ?, ?, ?, ?)",
    findings.map((one) => [chain, mode, one.address, one.currency, `${one.amount}`, one.number, Number(one.told)])
  )
  yield* tx.run("UPDATE scans SET audited = ?, audited_at = ? WHERE chain = ? AND mode = ?", [after, now, chain, mode])
})
