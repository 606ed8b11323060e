/**
 * The receipts as settlement reads them: of a payment, or of an address whose payment is lost. Receipts that are listed
 * stand for themselves; those that are dust stand in sums (`DustRepo.ts`). The watchers write the rows
 * (`Chains/ledger/LedgerRepo.ts`); only `setSettled` changes something here.
 */
import { Effect } from "effect"
import type { ChainName, Mode, Network } from "../Domain/Chain.ts"
import { isOfDust, type PaymentException } from "../Domain/Exception.ts"
import type { PaymentId } from "../Domain/Ids.ts"
import type { Payment } from "../Domain/Payment.ts"
import type { DustKind, Receipt } from "../Domain/Receipt.ts"
import { anyRow, type Db, execute, type Param, type StoreUnavailable } from "../Sql.ts"
import * as Dust from "./DustRepo.ts"
import { dustReceipts } from "./dust.ts"
import { dustOf } from "./moneySentBack.ts"

interface ReceiptRow {
  readonly chain: ChainName
  readonly mode: Mode
  readonly block_hash: string
  readonly block_number: number
  readonly block_time: number
  readonly address: string
  readonly position: string
  readonly place: number
  readonly tx_hash: string | null
  readonly currency: string
  readonly amount: string
  readonly sender: string | null
  readonly payment_id: string | null
  readonly canonical: number
  readonly corroborated: number
  readonly denied_by: string | null
  readonly unverifiable: number
  readonly seen_at: number
  readonly since_number: number | null
  readonly since_time: number | null
}

const columns = `chain, mode, block_hash, block_number, block_time, address, position, place, tx_hash, currency,
  amount, sender, payment_id, canonical, corroborated, denied_by, unverifiable, seen_at, since_number, since_time`

const fromRow = (row: ReceiptRow): Receipt => ({
  chain: row.chain,
  mode: row.mode,
  blockHash: row.block_hash,
  blockNumber: row.block_number,
  blockTime: row.block_time,
  address: row.address,
  position: row.position,
  place: row.place,
  txHash: row.tx_hash ?? undefined,
  currency: row.currency,
  amount: BigInt(row.amount),
  sender: row.sender ?? undefined,
  payment: (row.payment_id ?? undefined) as PaymentId | undefined,
  canonical: row.canonical === 1,
  corroborated: row.corroborated === 1,
  deniedBy: row.denied_by ?? undefined,
  unverifiable: row.unverifiable === 1,
  seenAt: row.seen_at,
  since:
    row.since_number === null || row.since_time === null
      ? undefined
      : { number: row.since_number, time: row.since_time }
})

const select = (db: Db, rest: string, params: ReadonlyArray<Param>) =>
  Effect.map(
    db.all<ReceiptRow>(`SELECT ${columns} FROM receipts WHERE ${rest}`, params),
    (rows): ReadonlyArray<Receipt> => rows.map(fromRow)
  )

const inOrder = "ORDER BY block_number, place, position"

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

/** All receipts of a payment, orphaned ones included; the sums of its dust stand for the rows of dust. */
export const ofPayment = (db: Db, payment: PaymentId) =>
  Effect.gen(function* () {
    const listed = yield* select(db, `payment_id = ? AND dust IS NULL ${inOrder}`, [payment])
    return [...inOneBlock(listed), ...dustReceipts(yield* Dust.ofPayment(db, payment))]
  })

/** Whether one of the payments has an uncorroborated receipt above block `number`. */
export const anyAwaited = (db: Db, { chain, mode }: Network, payments: ReadonlyArray<PaymentId>, number: number) =>
  anyRow(
    db,
    `SELECT 1 FROM receipts
       WHERE chain = ? AND mode = ? AND dust IS NULL AND canonical = 1 AND corroborated = 0 AND block_number > ?
         AND payment_id IN (SELECT value FROM json_each(?))
       UNION ALL
       SELECT 1 FROM dust_sums WHERE chain = ? AND mode = ? AND corroborated = 0 AND transfers > 0 AND newest_number > ?
         AND payment_id IN (SELECT value FROM json_each(?)) LIMIT 1`,
    [chain, mode, number, JSON.stringify(payments), chain, mode, number, JSON.stringify(payments)]
  )

/** Another payment that a transaction in that block of the payment's chain paid; undefined where none is known. */
export const payeeOf = (
  db: Db,
  { chain, id, mode }: Pick<Payment, "chain" | "id" | "mode">,
  blockNumber: number,
  txHash: string
) =>
  Effect.map(
    db.get<{ payment_id: PaymentId }>(
      `SELECT payment_id FROM receipts
       WHERE chain = ? AND mode = ? AND block_number = ? AND tx_hash = ? AND canonical = 1 AND payment_id <> ? LIMIT 1`,
      [chain, mode, blockNumber, txHash, id]
    ),
    (row) => row?.payment_id
  )

/** The newest listed receipts of a payment, in chain order. */
export const newest = (db: Db, payment: PaymentId, limit: number) =>
  Effect.map(
    select(db, "payment_id = ? AND dust IS NULL ORDER BY block_number DESC, place DESC, position DESC LIMIT ?", [
      payment,
      limit
    ]),
    (receipts) => [...receipts].reverse()
  )

/** Where the money of a payment came from. */
export interface Origins {
  readonly transactions: ReadonlyArray<string>
  /** Lower case; fewer where providers differ, and for money that moved inside contracts. */
  readonly senders: ReadonlyArray<string>
}

/** The same for each of several payments that have listed, canonical receipts, in one query. */
export const originsOf = (db: Db, payments: ReadonlyArray<PaymentId>) =>
  Effect.map(
    db.all<{ payment_id: PaymentId; transactions: string | null; senders: string | null }>(
      `SELECT payment_id, group_concat(DISTINCT tx_hash) AS transactions, group_concat(DISTINCT sender) AS senders
       FROM json_each(?) AS listed CROSS JOIN receipts INDEXED BY receipts_payment
         ON payment_id = listed.value AND dust IS NULL AND canonical = 1
       GROUP BY payment_id`,
      [JSON.stringify(payments)]
    ),
    (rows): ReadonlyMap<PaymentId, Origins> =>
      new Map(
        rows.map(({ payment_id, senders, transactions }) => [
          payment_id,
          { transactions: transactions?.split(",") ?? [], senders: senders?.split(",") ?? [] }
        ])
      )
  )

/** The number of listed receipts of a payment. */
export const count = (db: Db, payment: PaymentId) =>
  Effect.map(
    db.get<{ count: number }>("SELECT count(*) AS count FROM receipts WHERE payment_id = ? AND dust IS NULL", [
      payment
    ]),
    (row) => row?.count ?? 0
  )

/** The canonical receipts on a chain of an address whose payment is lost, with its dust. */
export const ofLost = (db: Db, { chain, mode }: Network, address: string) =>
  Effect.gen(function* () {
    const listed = yield* select(
      db,
      `payment_id IS NULL AND address = ? AND dust IS NULL AND chain = ? AND mode = ? AND canonical = 1 ${inOrder}`,
      [address, chain, mode]
    )
    const sums = yield* Dust.ofLost(db, address, mode)
    const dust = dustReceipts(sums.filter((sum) => sum.chain === chain))
    return [...listed, ...dust.filter((receipt) => receipt.canonical)]
  })

/** The canonical receipts whose money an exception is; of dust, its sums. */
export const ofException = (
  db: Db,
  exception: PaymentException
): Effect.Effect<ReadonlyArray<Receipt>, StoreUnavailable> => {
  const { address, block, chain, currency, kind, mode, payment, txHash } = exception
  if (isOfDust(exception)) {
    const sums = payment === undefined ? Dust.ofLost(db, address, mode) : Dust.ofPayment(db, payment)
    const isIts = (one: Receipt) =>
      one.canonical && one.chain === chain && one.currency === currency && one.dust === dustOf(kind)
    return Effect.map(sums, (all) => dustReceipts(all).filter(isIts))
  }
  const [owner, param] = ownedBy(payment === undefined ? { payment, address } : { payment })
  const [which, value] =
    txHash === undefined ? ["position = 'unattributed' AND block_number = ?", block ?? -1] : ["tx_hash = ?", txHash]
  // With a plus where another index would read all of a flooded payment's receipts.
  const rest = `${owner} AND ${which} AND chain = ? AND mode = ? AND +currency = ? AND +dust IS NULL AND canonical = 1`
  return select(db, rest, [param, value, chain, mode, currency])
}

const unsettled = "unsettled = 1"

/** Addresses of lost payments that have receipts of the chain which changed since they were settled. */
export const lostAndUnsettled = (db: Db, { chain, mode }: Network) =>
  Effect.map(
    db.all<{ address: string }>(
      `SELECT address FROM receipts WHERE payment_id IS NULL AND ${unsettled} AND chain = ? AND mode = ?
       GROUP BY address ORDER BY min(block_number), address`,
      [chain, mode]
    ),
    (rows) => rows.map(({ address }) => address)
  )

/** The owner of receipts: a payment, or an address whose payment is lost. */
export type ReceiptOwner = { readonly payment: PaymentId } | { readonly payment: undefined; readonly address: string }

const ownedBy = (owner: ReceiptOwner): readonly [where: string, param: string] =>
  owner.payment === undefined
    ? ["payment_id IS NULL AND address = ?", owner.address]
    : ["payment_id = ?", owner.payment]

/** A receipt as it is now, with its last record by settlement. */
export interface Unsettled extends Receipt {
  /** The kind of dust; undefined where it is listed. */
  readonly kind: DustKind | "none" | undefined
  /** The part of the dust sums that is this receipt; undefined where it is in none. */
  readonly summed: (Pick<Receipt, "corroborated" | "currency" | "amount"> & { readonly kind: DustKind }) | undefined
  readonly isNew: boolean
  /** The same transfer was orphaned in another block by a reorg: this receipt keeps its kind. */
  readonly replaces: { readonly kind: DustKind | "none" | undefined } | undefined
}

interface UnsettledRow extends ReceiptRow {
  readonly dust: DustKind | "none" | null
  readonly settled: string | null
  readonly replaced: DustKind | "none" | "listed" | null
}

const replacedDustOf = (dust: UnsettledRow["replaced"]) => (dust === null || dust === "listed" ? undefined : dust)

const unsettledOf = (row: UnsettledRow): Unsettled => {
  const [, corroborated, currency = "", amount = "0"] = /^([01]) (.+) ([0-9]+)$/.exec(row.settled ?? "") ?? []
  const { dust } = row
  const isSummed = corroborated !== undefined && dust !== null && dust !== "none"
  return {
    ...fromRow(row),
    kind: replacedDustOf(dust),
    summed: isSummed ? { kind: dust, corroborated: corroborated === "1", currency, amount: BigInt(amount) } : undefined,
    isNew: row.settled === null,
    replaces: row.replaced === null ? undefined : { kind: replacedDustOf(row.replaced) }
  }
}

/** The receipts of an owner that changed since they were settled, at most `limit`. */
export const unsettledOfOwner = (db: Db, owner: ReceiptOwner, limit: number) =>
  Effect.map(
    db.all<UnsettledRow>(
      `SELECT ${columns}, dust, settled,
         (SELECT coalesce(dust, 'listed') FROM receipts AS gone
          WHERE gone.payment_id = receipts.payment_id AND gone.tx_hash = receipts.tx_hash
            AND gone.currency = receipts.currency AND gone.amount = receipts.amount AND gone.canonical = 0
            AND gone.chain = receipts.chain AND gone.settled IS NOT NULL
            -- Dust is on time by its kind, which one provider alone does not decide for another block.
            AND (gone.corroborated = 1 OR gone.dust IS NULL) LIMIT 1) AS replaced
       FROM receipts WHERE ${ownedBy(owner)[0]} AND ${unsettled} LIMIT ?`,
      [ownedBy(owner)[1], limit]
    ),
    (rows) => rows.map(unsettledOf)
  )

/** The number of listed receipts of a currency that are settled, counted up to `limit`. */
export const countListed = (db: Db, owner: ReceiptOwner, currency: string, limit: number) =>
  Effect.map(
    db.get<{ count: number }>(
      `SELECT count(*) AS count FROM (
         SELECT 1 FROM receipts WHERE ${ownedBy(owner)[0]} AND dust IS NULL AND currency = ? AND settled IS NOT NULL LIMIT ?)`,
      [ownedBy(owner)[1], currency, limit]
    ),
    (row) => row?.count ?? 0
  )

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
         AND (receipts.kind IS NOT now.value ->> 5 OR credited IS NOT now.value ->> 6)`,
    [
      JSON.stringify(
        receipts.map(({ address, blockHash, chain, credited, kind, mode, position }) => [
          ...[chain, mode, blockHash, address, position],
          ...[kind, `${credited}`]
        ])
      )
    ]
  )

/** Records that receipts are settled as they are now, and the dust sums that they are part of. */
export const setSettled = (receipts: ReadonlyArray<Unsettled>) =>
  execute(
    `UPDATE receipts SET dust = seen.value ->> 5,
         settled = iif(canonical = 1, corroborated || ' ' || currency || ' ' || amount, '')
       FROM json_each(?) AS seen
       WHERE chain = seen.value ->> 0 AND mode = seen.value ->> 1 AND block_hash = seen.value ->> 2
         AND address = seen.value ->> 3 AND position = seen.value ->> 4`,
    [
      JSON.stringify(
        receipts.map(({ address, blockHash, chain, kind, mode, position }) => [
          chain,
          mode,
          blockHash,
          address,
          position,
          kind ?? null
        ])
      )
    ]
  )
