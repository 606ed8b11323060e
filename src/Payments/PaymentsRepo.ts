/**
 * The table `payments`, and the transitions of each payment's status. Reads take any connection; `insert` and `update` run
 * in the transaction of the caller. `PaymentListRepo.ts` lists and searches. Times in Unix milliseconds, amounts in base
 * units.
 */
import { Effect } from "effect"
import type { Owner } from "../Domain/Account.ts"
import type { ChainName, Mode, Network } from "../Domain/Chain.ts"
import type { PaymentCurrency } from "../Domain/Currency.ts"
import type { AccountId, CheckoutToken, PaymentId, QuoteId } from "../Domain/Ids.ts"
import {
  deadlineSql,
  type FailureReason,
  type NewPayment,
  type Payment,
  type PaymentStatus
} from "../Domain/Payment.ts"
import { type Db, type Param, Tx } from "../Sql.ts"
import type { AddressSource } from "./addresses/Addresses.ts"

export interface PaymentRow {
  readonly sequence: number
  readonly id: string
  readonly checkout_token: string
  readonly account_id: string
  readonly mode: Mode
  readonly merchant_ref: string
  readonly amount: string
  readonly currency: PaymentCurrency
  readonly token: number | null
  readonly token_contract: string | null
  readonly token_decimals: number | null
  readonly chain: ChainName
  readonly address: string
  readonly status: PaymentStatus
  readonly created_at: number
  readonly expires_at: number
  readonly due_at: number | null
  readonly settle_grace: number
  readonly tolerance_bps: number
  readonly floor: string
  readonly created_head: number | null
  readonly metadata: string
  readonly webhook_url: string | null
  readonly redirect_url: string | null
  readonly quote_id: string | null
  readonly usd_value: string | null
  readonly amount_received: string | null
  readonly tx_hash: string | null
  readonly confirmed_at: number | null
  readonly failure_reason: FailureReason | null
  readonly ended_at: number | null
  readonly updates: number
  readonly received: string
  readonly refunded: string
}

/** The columns of a `PaymentRow`. */
export const columns = `sequence, id, checkout_token, account_id, mode, merchant_ref, amount, currency, token,
  (SELECT contract FROM tokens WHERE id = token) AS token_contract,
  (SELECT decimals FROM tokens WHERE id = token) AS token_decimals, chain, address, status, created_at, expires_at, due_at,
  settle_grace, tolerance_bps, floor, created_head, metadata, webhook_url, redirect_url, quote_id, usd_value, amount_received, tx_hash, confirmed_at,
  failure_reason, ended_at, updates, received, refunded`

const tokenOf = ({ token, token_contract, token_decimals }: PaymentRow): Payment["token"] =>
  token === null || token_contract === null || token_decimals === null
    ? undefined
    : { id: token, contract: token_contract, decimals: token_decimals }

export const fromRow = (row: PaymentRow): Payment => ({
  sequence: row.sequence,
  id: row.id as PaymentId,
  checkoutToken: row.checkout_token as CheckoutToken,
  account: row.account_id as AccountId,
  mode: row.mode,
  merchantRef: row.merchant_ref,
  amount: BigInt(row.amount),
  currency: row.currency,
  token: tokenOf(row),
  chain: row.chain,
  address: row.address,
  status: row.status,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  dueAt: row.due_at ?? undefined,
  settleGrace: row.settle_grace,
  toleranceBps: row.tolerance_bps,
  floor: BigInt(row.floor),
  createdHead: row.created_head ?? undefined,
  metadata: row.metadata,
  webhookUrl: row.webhook_url ?? undefined,
  redirectUrl: row.redirect_url ?? undefined,
  quoteId: (row.quote_id ?? undefined) as QuoteId | undefined,
  usdValue: row.usd_value ?? undefined,
  amountReceived: row.amount_received === null ? undefined : BigInt(row.amount_received),
  txHash: row.tx_hash ?? undefined,
  confirmedAt: row.confirmed_at ?? undefined,
  failureReason: row.failure_reason ?? undefined,
  endedAt: row.ended_at ?? undefined,
  updates: row.updates,
  received: BigInt(row.received),
  refunded: BigInt(row.refunded)
})

/**
 * Stores a new payment and assigns its `sequence`, `createdHead` and `dueAt`. Undefined where the account already has a
 * payment with that `merchantRef` in that mode.
 *
 * `dueAt` is set where the chain's clock is ahead of this machine's, since receipts are dated by the chain's clock.
 *
 * @param behind milliseconds by which this machine's clock is behind the chain's. Where that is unknown, the time of the
 *   chain's stored head counts: no other provider has corroborated it.
 */
export const insert = (payment: NewPayment, source: AddressSource, behind?: number) =>
  Effect.map(
    Effect.flatMap(Tx, (tx) =>
      tx.get<{ sequence: number; created_head: number | null; due_at: number | null }>(
        `INSERT INTO payments (id, checkout_token, account_id, mode, merchant_ref, amount, currency, token, chain, address,
         wallet, wallet_index, status, created_at, expires_at, settle_grace, tolerance_bps, floor, created_head, due_at,
         metadata, webhook_url, redirect_url, quote_id, usd_value)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT head_number FROM scans WHERE chain = ? AND mode = ?),
         nullif(max(? + ?, (SELECT coalesce(max(head_time), 0) * ? FROM scans WHERE chain = ? AND mode = ?) + ?), ?),
         ?, ?, ?, ?, ?)
       ON CONFLICT (account_id, mode, merchant_ref) DO NOTHING
       RETURNING sequence, created_head, due_at`,
        [
          payment.id,
          payment.checkoutToken,
          payment.account,
          payment.mode,
          payment.merchantRef,
          payment.amount.toString(),
          payment.currency,
          payment.token?.id ?? null,
          payment.chain,
          payment.address,
          source.wallet,
          source.index,
          payment.status,
          payment.createdAt,
          payment.expiresAt,
          payment.settleGrace,
          payment.toleranceBps,
          payment.floor.toString(),
          payment.chain,
          payment.mode,
          payment.expiresAt,
          behind ?? 0,
          behind === undefined ? 1000 : 0,
          payment.chain,
          payment.mode,
          payment.expiresAt - payment.createdAt,
          payment.expiresAt,
          payment.metadata,
          payment.webhookUrl ?? null,
          payment.redirectUrl ?? null,
          payment.quoteId ?? null,
          payment.usdValue ?? null
        ]
      )
    ),
    (row): Payment | undefined =>
      row && {
        sequence: row.sequence,
        createdHead: row.created_head ?? undefined,
        dueAt: row.due_at ?? undefined,
        endedAt: undefined,
        updates: 0,
        received: 0n,
        refunded: 0n,
        // Last: fields after such a large spread take 6 µs.
        ...payment,
        usdValue: payment.usdValue
      }
  )

/** Stores the new state of a payment, and the transition where its status changed; `at` in Unix milliseconds. */
export const update = (before: Payment, after: Payment, at: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    yield* tx.run(
      `UPDATE payments SET status = ?, amount_received = ?, tx_hash = ?, confirmed_at = ?, failure_reason = ?, ended_at = ?,
         updates = ?, received = ?, refunded = ? WHERE id = ?`,
      [
        after.status,
        after.amountReceived?.toString() ?? null,
        after.txHash ?? null,
        after.confirmedAt ?? null,
        after.failureReason ?? null,
        after.endedAt ?? null,
        after.updates,
        `${after.received}`,
        `${after.refunded}`,
        after.id
      ]
    )
    if (before.status === after.status) return
    yield* tx.run(
      `INSERT INTO transitions (payment_id, ordinal, from_status, to_status, at)
       VALUES (?, (SELECT count(*) FROM transitions WHERE payment_id = ?), ?, ?, ?)`,
      [after.id, after.id, before.status, after.status, at]
    )
  })

// Built once: looking up a newly built text among the prepared statements takes longer than reading the row.
const where = (condition: string) => `SELECT ${columns} FROM payments WHERE ${condition}`
const selects = {
  id: where("id = ?"),
  checkoutToken: where("checkout_token = ?"),
  owner: where("id = ? AND account_id = ? AND mode = ?")
}

const first = (db: Db, sql: string, params: ReadonlyArray<Param>) =>
  Effect.map(db.get<PaymentRow>(sql, params), (row) => (row === undefined ? undefined : fromRow(row)))

export const byId = (db: Db, id: string) => first(db, selects.id, [id])

/** The payment of a checkout page; undefined where there is none. */
export const byCheckoutToken = (db: Db, token: string) => first(db, selects.checkoutToken, [token])

/** A payment of this owner; undefined for one of another account or mode. */
export const byOwner = (db: Db, owner: Owner, id: string) => first(db, selects.owner, [id, owner.account, owner.mode])

export const idByMerchantRef = (db: Db, owner: Owner, merchantRef: string) =>
  Effect.map(
    db.get<{ id: string }>("SELECT id FROM payments WHERE account_id = ? AND mode = ? AND merchant_ref = ?", [
      owner.account,
      owner.mode,
      merchantRef
    ]),
    (row) => row?.id as PaymentId | undefined
  )

/** Detecting payments with money in a block up to number `deepest`, which has its confirmations: they may confirm now. */
export const detectingDownTo = (db: Db, { chain, mode }: Network, deepest: number) =>
  Effect.map(
    db.all<PaymentRow>(
      `SELECT ${columns} FROM payments AS payment
       WHERE status = 'detecting' AND chain = ? AND mode = ? AND EXISTS (
         SELECT 1 FROM receipts WHERE payment_id = payment.id AND chain = payment.chain AND listed = 'own' AND canonical = 1 AND block_number <= ?)`,
      [chain, mode, deepest]
    ),
    (rows) => rows.map(fromRow)
  )

/**
 * Open payments of a chain that are due before `before`, Unix milliseconds, in that order, behind the cursor `after`.
 *
 * @param searched only payments for which a second provider has been searched
 */
export const openExpiredBefore = (
  db: Db,
  { chain, mode }: Network,
  before: number,
  after: { readonly deadline: number; readonly sequence: number },
  limit: number,
  searched: boolean
) =>
  Effect.map(
    db.all<PaymentRow>(
      `SELECT ${columns} FROM payments
       WHERE status IN ('pending', 'detecting') AND chain = ? AND mode = ? AND ${deadlineSql} < ?
         ${searched ? "AND EXISTS (SELECT 1 FROM searches WHERE payment_id = payments.id)" : ""}
         AND (${deadlineSql}, sequence) > (?, ?)
       ORDER BY ${deadlineSql}, sequence LIMIT ?`,
      [chain, mode, before, after.deadline, after.sequence, limit]
    ),
    (rows) => rows.map(fromRow)
  )

/** The open payments of a chain that are due first; `currency`: only those in it. */
export const openOn = (db: Db, { chain, mode }: Network, currency: PaymentCurrency | undefined, limit: number) =>
  Effect.map(
    db.all<PaymentRow>(
      `SELECT ${columns} FROM payments WHERE status IN ('pending', 'detecting') AND chain = ? AND mode = ?
         AND currency = coalesce(?, currency) ORDER BY ${deadlineSql}, sequence LIMIT ?`,
      [chain, mode, currency ?? null, limit]
    ),
    (rows) => rows.map(fromRow)
  )

/** Confirmed payments of a chain with orphaned receipts in blocks above `above`, up to `upTo`. */
export const confirmedWithOrphans = (db: Db, { chain, mode }: Network, above: number, upTo: number) =>
  Effect.map(
    db.all<PaymentRow>(
      `SELECT ${columns} FROM payments WHERE status = 'confirmed' AND chain = ? AND id IN (
         SELECT payment_id FROM receipts
         WHERE canonical = 0 AND chain = ? AND mode = ? AND block_number > ? AND block_number <= ?)`,
      [chain, chain, mode, above, upTo]
    ),
    (rows) => rows.map(fromRow)
  )

/** The number of open payments of a chain, counted up to `limit`. */
export const countOpen = (db: Db, { chain, mode }: Network, limit: number) =>
  Effect.map(
    db.get<{ count: number }>(
      `SELECT count(*) AS count FROM (
         SELECT 1 FROM payments WHERE chain = ? AND mode = ? AND status IN ('pending', 'detecting') LIMIT ?)`,
      [chain, mode, limit]
    ),
    (row) => row?.count ?? 0
  )
