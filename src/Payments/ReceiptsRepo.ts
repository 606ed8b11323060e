/**
 * The receipts as settlement reads them: of a payment, or of an address whose payment is lost. The watchers write the rows
 * (`Chains/ledger/LedgerRepo.ts`); here are what they count as, and their worth when they are first stored.
 *
 * Anybody can send a hundred thousand transfers to an address for a few cents. So the payment's own that are below its floor
 * are read only where one of them may complete it, and of all others so many: what is left out is in a total alone.
 */
import { Effect } from "effect"
import { isReceipt, paramsOf } from "../Chains/ledger/LedgerRepo.ts"
import type { ChainName, Mode, Network } from "../Domain/Chain.ts"
import type { Fiat } from "../Domain/Currency.ts"
import type { PaymentException } from "../Domain/Exception.ts"
import type { PaymentId } from "../Domain/Ids.ts"
import type { Payment } from "../Domain/Payment.ts"
import type { Receipt } from "../Domain/Receipt.ts"
import { bySize } from "../migrations/0001_start/ledger.ts"
import { type FrozenRate, type PricedMoment, rateNow, rateOfQuote } from "../Quotes/frozenRates.ts"
import { allRows, anyRow, countRows, type Db, execute, oneValue, type Param, Tx } from "../Sql.ts"

/** Receipts of a payment's own currency that are read. */
const mostOwn = 1_000
/** The same of all other currencies, and of an address whose payment is lost on a chain: their worth is unknown. */
const mostStray = 100

interface ReceiptRow
  extends Omit<Receipt, "amount" | "canonical" | "corroborated" | "since" | "small" | "unverifiable"> {
  readonly amount: string
  readonly canonical: 0 | 1
  readonly corroborated: 0 | 1
  readonly unverifiable: 0 | 1
  readonly sinceNumber: number | undefined
  readonly sinceTime: number | undefined
}

const columns = `chain, mode, block_hash AS blockHash, block_number AS blockNumber, block_time AS blockTime, address, position,
  place, tx_hash AS txHash, currency, amount, sender, payment_id AS payment, canonical, corroborated, denied_by AS deniedBy,
  unverifiable, seen_at AS seenAt, since_number AS sinceNumber, since_time AS sinceTime`

const toReceipt = (row: ReceiptRow): Receipt => {
  const { amount, canonical, corroborated, sinceNumber: number, sinceTime: time, unverifiable, ...as } = row
  return {
    amount: BigInt(amount),
    canonical: canonical === 1,
    corroborated: corroborated === 1,
    unverifiable: unverifiable === 1,
    since: number === undefined || time === undefined ? undefined : { number, time },
    ...as
  }
}

const receiptsBy = (db: Db, sql: string, params: ReadonlyArray<Param>) =>
  Effect.map(allRows<ReceiptRow>(db, sql, params), (rows): ReadonlyArray<Receipt> => rows.map(toReceipt))

const select = (db: Db, rest: string, params: ReadonlyArray<Param>) =>
  receiptsBy(db, `SELECT ${columns} FROM receipts WHERE ${rest}`, params)

/** The order of `receipts_payment`: one provider alone cannot crowd out what two report. */
const byWeight = "ORDER BY canonical DESC, corroborated DESC, block_number, place, position"
const inOrder = "ORDER BY block_number, place, position"

const readOf = (listed: "own" | "stray", of: string, limit: string) =>
  `SELECT * FROM (SELECT ${of} FROM receipts WHERE payment_id = ? AND listed = '${listed}' ${byWeight} LIMIT ${limit})`

/** SQL: all that is read of a payment, whose id is the parameter, twice. */
const read = `${readOf("own", columns, `${mostOwn}`)} UNION ALL ${readOf("stray", columns, `${mostStray}`)}`

/**
 * A transaction is in one block. Beside its corroborated receipts, those of another block that only one provider
 * reports do not count: refunded money would count again, and present money twice.
 */
const inOneBlock = (receipts: ReadonlyArray<Receipt>): ReadonlyArray<Receipt> => {
  const blocks = new Map<string, string>()
  for (const { blockHash, canonical, chain, corroborated, txHash } of receipts) {
    if (canonical && corroborated && txHash !== undefined) blocks.set(`${chain} ${txHash}`, blockHash)
  }
  return receipts.filter(
    ({ blockHash, canonical, chain, corroborated, txHash }) =>
      !canonical || corroborated || (blocks.get(`${chain} ${txHash}`) ?? blockHash) === blockHash
  )
}

const isSmall = ({ chain, currency, floor }: Payment, receipt: Receipt): boolean =>
  receipt.chain === chain && receipt.currency === currency && receipt.amount < floor

/** The receipts of a payment that are read, orphaned ones included. */
export const ofPayment = (db: Db, payment: Payment) =>
  Effect.map(
    receiptsBy(db, `SELECT * FROM (${read}) ORDER BY blockNumber, place, position`, [payment.id, payment.id]),
    (receipts) => inOneBlock(receipts).map((receipt) => ({ ...receipt, small: isSmall(payment, receipt) }))
  )

/**
 * The first receipts of a payment in chain order of those that are too small to be read, and of at least that amount: of those
 * that two providers report, and of others.
 */
export const unlisted = (db: Db, payment: Payment, least: bigint) => {
  const size = `${least}`.length.toString().padStart(2, "0")
  const first = (corroborated: 0 | 1) =>
    select(
      db,
      `payment_id = ? AND listed IS NULL AND canonical = 1 AND corroborated = ? AND ${bySize} >= ? ${inOrder} LIMIT ?`,
      [payment.id, corroborated, `${size}${least}`, mostOwn]
    )
  return Effect.zipWith(first(1), first(0), (...both) =>
    inOneBlock(both.flat()).map((one) => ({ ...one, small: true }))
  )
}

/** Has receipts that were too small read from now on. */
export const list = (receipts: ReadonlyArray<Receipt>) =>
  Effect.flatMap(Tx, (tx) =>
    tx.runEach(
      `UPDATE receipts SET listed = 'own' WHERE ${isReceipt}`,
      receipts.map((receipt) => paramsOf(receipt, receipt))
    )
  )

/** Transfers of a currency on a chain that are not read one by one. */
export interface Unread {
  readonly chain: ChainName
  readonly currency: string
  readonly transfers: number
  /** Base units. */
  readonly amount: bigint
}

/** What came to a payment's address and is not read, with each currency of each chain as one total. */
export const unreadOf = (db: Db, payment: PaymentId) =>
  Effect.map(
    db.all<{ chain: ChainName; currency: string; amount: string; transfers: number }>(
      `SELECT chain, currency, amount, count(*) AS transfers FROM (
         SELECT chain, currency, amount, canonical FROM receipts WHERE payment_id = ? AND listed IS NULL
         UNION ALL ${readOf("own", "chain, currency, amount, canonical", `-1 OFFSET ${mostOwn}`)}
         UNION ALL ${readOf("stray", "chain, currency, amount, canonical", `-1 OFFSET ${mostStray}`)})
       WHERE canonical = 1 GROUP BY chain, currency, amount`,
      [payment, payment, payment]
    ),
    (rows): ReadonlyArray<Unread> => {
      const totals = new Map<string, Unread>()
      for (const { amount, chain, currency, transfers } of rows) {
        const before = totals.get(`${chain} ${currency}`) ?? { chain, currency, transfers: 0, amount: 0n }
        totals.set(`${chain} ${currency}`, {
          ...before,
          transfers: before.transfers + transfers,
          amount: before.amount + BigInt(amount) * BigInt(transfers)
        })
      }
      return [...totals.values()]
    }
  )

/** Whether one of the payments has an uncorroborated receipt above block `number`. */
export const anyAwaited = (db: Db, { chain, mode }: Network, payments: ReadonlyArray<PaymentId>, number: number) =>
  anyRow(
    db,
    `SELECT 1 FROM receipts
       WHERE chain = ? AND mode = ? AND listed = 'own' AND canonical = 1 AND corroborated = 0 AND block_number > ?
         AND payment_id IN (SELECT value FROM json_each(?)) LIMIT 1`,
    [chain, mode, number, JSON.stringify(payments)]
  )

/** Another payment that a transaction in that block of the payment's chain paid; undefined where none is known. */
export const payeeOf = (
  db: Db,
  { chain, id, mode }: Pick<Payment, "chain" | "id" | "mode">,
  blockNumber: number,
  txHash: string
) =>
  oneValue<PaymentId>(
    db,
    `SELECT payment_id FROM receipts
     WHERE chain = ? AND mode = ? AND block_number = ? AND tx_hash = ? AND canonical = 1 AND payment_id <> ? LIMIT 1`,
    [chain, mode, blockNumber, txHash, id]
  )

/** The newest receipts of a payment that are read, in chain order. */
export const newest = (db: Db, payment: PaymentId, limit: number) =>
  Effect.map(
    receiptsBy(db, `SELECT * FROM (${read}) ORDER BY blockNumber DESC, place DESC, position DESC LIMIT ?`, [
      payment,
      payment,
      limit
    ]),
    (receipts) => receipts.toReversed()
  )

/** The number of receipts of a payment that are read. */
export const count = (db: Db, payment: PaymentId) => countRows(db, `${read}`, [payment, payment])

/** The canonical receipts on a chain of an address whose payment is lost that are read. */
export const ofLost = (db: Db, { chain, mode }: Network, address: string) =>
  select(
    db,
    `payment_id IS NULL AND address = ? AND chain = ? AND mode = ? AND canonical = 1
     ORDER BY corroborated DESC, block_number, place, position LIMIT ?`,
    [address, chain, mode, mostStray]
  )

/** The canonical receipts whose money an exception is. */
export const ofException = (db: Db, { address, block, chain, currency, mode, payment, txHash }: PaymentException) => {
  const [owner, id] =
    payment === undefined ? ["payment_id IS NULL AND address = ?", address] : ["payment_id = ?", payment]
  const [which, value] =
    txHash === undefined ? ["position = 'unattributed' AND block_number = ?", block ?? -1] : ["tx_hash = ?", txHash]
  // With a plus where another index would read all of a flooded payment's receipts.
  const rest = `${owner} AND ${which} AND chain = ? AND mode = ? AND +currency = ? AND canonical = 1
    ORDER BY corroborated DESC, block_number, place, position`
  return select(db, rest, [id ?? null, value ?? null, chain, mode, currency])
}

/** What settlement takes a receipt for, and how many of its base units pay for the payment. */
export interface ClassifiedReceipt extends Pick<Receipt, "address" | "blockHash" | "chain" | "mode" | "position"> {
  readonly kind: string
  readonly credited: bigint
}

/** Stores what receipts are; writes only those of which that has changed. */
export const setKinds = (receipts: ReadonlyArray<ClassifiedReceipt>) =>
  execute(
    `UPDATE receipts SET kind = now.value ->> 5, credited = now.value ->> 6
       FROM json_each(?) AS now
       WHERE chain = now.value ->> 0 AND mode = now.value ->> 1 AND block_hash = now.value ->> 2
         AND address = now.value ->> 3 AND position = now.value ->> 4
         AND (receipts.kind IS DISTINCT FROM now.value ->> 5 OR credited IS DISTINCT FROM now.value ->> 6)`,
    [
      JSON.stringify(
        receipts.map(({ address, blockHash, chain, credited, kind, mode, position }) => [
          ...[chain, mode, blockHash, address, position],
          ...[kind, `${credited}`]
        ])
      )
    ]
  )

interface UnratedRow {
  readonly chain: ChainName
  readonly mode: Mode
  readonly block_hash: string
  readonly address: string
  readonly position: string
  readonly block_time: number
  readonly currency: string
  /** Of the account. */
  readonly fiat: Fiat | null
  /** The quote of the payment, where the money is in its currency. */
  readonly quote: string | null
  /** JSON: the rate that the same transfer had in another block. */
  readonly kept: string | null
}

/**
 * Freezes the worth of receipts that have none yet: those of this commit. What is too small to be credited gets none, so that a
 * hundred thousand such transfers cost nothing more. A transfer that a reorg has moved to another block
 * keeps its first rate.
 */
export const freezeReceipts = Effect.fnUntraced(function* ({ now, prices }: PricedMoment) {
  const tx = yield* Tx
  const rows = yield* tx.all<UnratedRow>(
    `SELECT r.chain, r.mode, r.block_hash, r.address, r.position, r.block_time, r.currency, s.currency AS fiat, q.body AS quote,
       (SELECT json_array(rate, rate_currency, rate_source) FROM receipts AS gone INDEXED BY receipts_replaced
        WHERE gone.payment_id = r.payment_id AND gone.tx_hash = r.tx_hash AND gone.currency = r.currency
          AND gone.amount = r.amount AND gone.canonical = 0 AND gone.chain = r.chain AND rate_currency IS NOT NULL
        ORDER BY seen_at LIMIT 1) AS kept
     FROM receipts AS r INDEXED BY receipts_unrated LEFT JOIN payments AS p ON p.id = r.payment_id
       LEFT JOIN shops AS s ON s.account_id = r.account_id
       LEFT JOIN quotes AS q ON q.id = p.quote_id AND p.currency = r.currency
     WHERE r.rate_currency IS NULL AND r.canonical = 1 AND r.listed IS NOT NULL`
  )
  yield* tx.runEach(
    `UPDATE receipts SET rate = ?, rate_currency = ?, rate_source = ?
     WHERE chain = ? AND mode = ? AND block_hash = ? AND address = ? AND position = ?`,
    rows.map(({ block_hash, block_time, chain, currency, fiat, kept, mode, quote, address, position }) => {
      const own = fiat ?? "USD"
      const quoted = quote === null ? undefined : rateOfQuote(JSON.parse(quote), currency, own)
      const rate: FrozenRate =
        kept === null ? (quoted ?? rateNow(prices, currency, own, block_time, now)) : JSON.parse(kept)
      return [...rate, chain, mode, block_hash, address, position]
    })
  )
})
