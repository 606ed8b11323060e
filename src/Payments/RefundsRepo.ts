/**
 * The tables `refunds` and `refund_parts`: money that goes back, with an identity of its own. A refund is recorded before anything
 * is sent for it, and never deleted. Which exceptions follow from it, the fold says (`standing.ts`). Times in Unix milliseconds.
 */
import { Effect } from "effect"
import { getAddress, type Hex } from "viem"
import type { Owner } from "../Domain/Account.ts"
import type { Network } from "../Domain/Chain.ts"
import type { PaymentId, RefundId } from "../Domain/Ids.ts"
import type { PlannedTransfer, Refund, RefundPart, RefundStatus } from "../Domain/Refund.ts"
import type { PricedMoment } from "../Quotes/frozenRates.ts"
import { allOf, allRows, type Db, execute, oneValue, type Param, Tx, when, withoutNulls } from "../Sql.ts"
import { accountRate } from "./addresses/CollectedRepo.ts"

interface RefundRow extends Omit<Refund, "amount" | "parts" | "plan"> {
  readonly amount: string
  readonly digest: string | undefined
  readonly place: number | undefined
  readonly way: PlannedTransfer["way"] | undefined
  /** JSON. */
  readonly parts: string
}

interface StoredPart extends Omit<RefundPart, "amount" | "ofConfirmed" | "ofTwo"> {
  readonly amount: string
  readonly ofTwo: 0 | 1
  readonly ofConfirmed: 0 | 1
}

const columns = `sequence, id, payment_id AS payment, account_id AS account, mode, address, chain, currency, amount,
  receiver AS "to", status, tx_hash AS txHash, sender AS "from", note, problem, plan_digest AS digest, plan_place AS place,
  plan_way AS way, created_at AS createdAt, changed_at AS changedAt,
  (SELECT json_group_array(json_object('exception', exception_id, 'openedAt', e.opened_at, 'txHash', p.tx_hash,
     'block', p.block_number, 'amount', p.amount, 'ofConfirmed', of_confirmed,
     'ofTwo', iif(e.kind IS NOT DISTINCT FROM 'unattributed' AND p.tx_hash IS NOT NULL, 0, 1)) ORDER BY p.place)
   FROM refund_parts p LEFT JOIN exceptions e ON e.id = p.exception_id WHERE p.refund_id = refunds.id) AS parts`

const toPart = ({ amount, ofConfirmed, ofTwo, ...part }: StoredPart): RefundPart => ({
  ...withoutNulls(part),
  amount: BigInt(amount),
  ofTwo: ofTwo === 1,
  ofConfirmed: ofConfirmed === 1
})

const toRefund = ({ amount, digest, parts, place, way, ...row }: RefundRow): Refund => ({
  ...row,
  amount: BigInt(amount),
  plan: digest === undefined || place === undefined || way === undefined ? undefined : { digest, place, way },
  parts: (JSON.parse(parts) as ReadonlyArray<StoredPart>).map(toPart)
})

const select = (db: Db, rest: string, params: ReadonlyArray<Param>) =>
  Effect.map(allRows<RefundRow>(db, `SELECT ${columns} FROM refunds ${rest}`, params), (rows) => rows.map(toRefund))

const oldestFirst = "ORDER BY sequence"

export const byId = (db: Db, id: string) => Effect.map(select(db, "WHERE id = ?", [id]), ([found]) => found)

export const ofPayment = (db: Db, payment: PaymentId) => select(db, `WHERE payment_id = ? ${oldestFirst}`, [payment])

/** Those on a chain of an address (lower case) whose payment is lost. */
export const ofLost = (db: Db, { chain, mode }: Network, address: string) =>
  select(db, `WHERE address = ? AND payment_id IS NULL AND chain = ? AND mode = ? ${oldestFirst}`, [
    address,
    chain,
    mode
  ])

/** The refunds of an owner, newest first. */
export const list = (
  db: Db,
  { account, mode }: Owner,
  filter: {
    readonly limit: number
    readonly payment?: string | undefined
    readonly status?: RefundStatus | undefined
    readonly after?: { readonly createdAt: number; readonly sequence: number } | undefined
  }
) => {
  const { params, where } = allOf([
    ["account_id = ? AND mode = ?", account, mode],
    ...when("payment_id = ?", filter.payment),
    ...when("status = ?", filter.status),
    ...when("(created_at, sequence) < (?, ?)", filter.after?.createdAt, filter.after?.sequence)
  ])
  return select(db, `WHERE ${where} ORDER BY created_at DESC, sequence DESC LIMIT ?`, [...params, filter.limit])
}

/** The refunds of an exception that signed plans have sent, or are sending. */
export const plannedOf = (db: Db, exception: string) =>
  select(
    db,
    `WHERE id IN (SELECT refund_id FROM refund_parts WHERE exception_id = ?) AND plan_digest IS NOT NULL AND status <> 'failed'`,
    [exception]
  )

/** Those that were noted for a receiver and have no transaction yet: a plan pays them. */
export const payable = (db: Db, limit: number) =>
  select(db, `WHERE status = 'noted' AND tx_hash IS NULL AND receiver IS NOT NULL ${oldestFirst} LIMIT ?`, [limit])

/** The index of a receiving address (lower case) in its wallet. */
export const walletIndexOf = (db: Db, address: string) =>
  oneValue<number>(
    db,
    `SELECT wallet_index FROM payments WHERE address = ?
     UNION ALL SELECT wallet_index FROM gap_addresses WHERE address = ?`,
    [getAddress(address as Hex), getAddress(address as Hex)]
  )

/**
 * Stores a refund, with its worth at that moment, or the same one again: a broadcast that was given up may be planned once more,
 * and the worth stays.
 */
export const put = (refund: Omit<Refund, "sequence">, prices: PricedMoment["prices"]) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const { account, changedAt: now, currency, plan } = refund
    const at = Math.floor(now / 1000)
    yield* tx.run(
      `INSERT INTO refunds (id, payment_id, account_id, mode, address, chain, currency, amount, receiver, status, tx_hash, note,
         plan_digest, plan_place, plan_way, created_at, changed_at, block_time, rate, rate_currency, rate_source)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET amount = excluded.amount, receiver = excluded.receiver, status = excluded.status,
         tx_hash = excluded.tx_hash, sender = NULL, position = NULL, problem = NULL, plan_digest = excluded.plan_digest,
         plan_place = excluded.plan_place, plan_way = excluded.plan_way, changed_at = excluded.changed_at`,
      [
        refund.id,
        refund.payment ?? null,
        refund.account ?? null,
        refund.mode,
        refund.address,
        refund.chain,
        refund.currency,
        `${refund.amount}`,
        refund.to ?? null,
        refund.status,
        refund.txHash ?? null,
        refund.note ?? null,
        plan?.digest ?? null,
        plan?.place ?? null,
        plan?.way ?? null,
        refund.createdAt,
        now,
        at,
        ...(yield* accountRate(tx, { now, prices }, account, currency, at))
      ]
    )
    yield* tx.run("DELETE FROM refund_parts WHERE refund_id = ?", [refund.id])
    for (const [place, part] of refund.parts.entries()) {
      yield* tx.run(
        `INSERT INTO refund_parts (refund_id, place, exception_id, tx_hash, block_number, amount, of_confirmed)
         VALUES (?, ?, ?, ?, ?, ?, ?)`,
        [
          refund.id,
          place,
          part.exception ?? null,
          part.txHash ?? null,
          part.block ?? null,
          `${part.amount}`,
          part.ofConfirmed ? 1 : 0
        ]
      )
    }
  })

/** What becomes of a refund. */
export interface RefundChange extends Pick<Refund, "status"> {
  readonly txHash?: string | undefined
  /** Who sent it, and who got it, as the chain shows it. */
  readonly from?: string | undefined
  readonly to?: string | undefined
  /** Which transfer of the transaction it is: no other refund is it. */
  readonly position?: string | undefined
  /** Unix seconds. */
  readonly blockTime?: number | undefined
  readonly problem?: string | undefined
}

/** Stores a refund's new status, or transaction; what is not given stays, but for the problem and the position. */
export const change = (
  id: RefundId,
  { blockTime, from, position, problem, status, to, txHash }: RefundChange,
  at: number
) =>
  execute(
    `UPDATE refunds SET changed_at = iif(status = ? AND tx_hash IS NOT DISTINCT FROM coalesce(?, tx_hash), changed_at, ?), status = ?,
       tx_hash = coalesce(?, tx_hash), sender = coalesce(?, sender), receiver = coalesce(?, receiver), position = ?,
       block_time = coalesce(?, block_time), problem = ? WHERE id = ?`,
    [
      ...[status, txHash ?? null, at, status, txHash ?? null],
      ...[from ?? null, to ?? null, position ?? null, blockTime ?? null, problem ?? null, id]
    ]
  )

/** A refund whose transaction the chain is asked about. */
export interface Awaited {
  readonly id: RefundId
  readonly sequence: number
  readonly txHash: string
  readonly problem: string | null
}

/** Those of a chain with a transaction that is not final; without those that have had their status and a problem since `since`. */
export const awaited = (db: Db, { chain, mode }: Network, since: number) =>
  db.all<Awaited>(
    `SELECT id, sequence, tx_hash AS txHash, problem FROM refunds
     WHERE chain = ? AND mode = ? AND status NOT IN ('final', 'failed') AND status <> 'begun' AND tx_hash IS NOT NULL
       AND (problem IS NULL OR changed_at > ?)`,
    [chain, mode, since]
  )

/** The refunds that name a transaction, and which transfers of it they are. */
export const ofTransaction = (db: Db, { chain, mode }: Network, txHash: string) =>
  db.all<{
    readonly id: string
    readonly receiver: string | null
    readonly amount: string
    readonly position: string | null
  }>(
    `SELECT id, receiver, amount, position FROM refunds
     WHERE chain = ? AND mode = ? AND tx_hash = ? AND tx_hash IS NOT NULL AND status <> 'failed'`,
    [chain, mode, txHash]
  )
