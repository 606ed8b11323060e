/** The rows of the table `exceptions` as they are read: with the number of the wallet's account, for the paths of addresses. */
import { Effect } from "effect"
import type { ChainName, Mode } from "../Domain/Chain.ts"
import type { ExceptionKind, ExceptionStatus, PaymentException } from "../Domain/Exception.ts"
import type { AccountId, PaymentId } from "../Domain/Ids.ts"
import { isStanding, type RefundedPart } from "../Domain/Refund.ts"
import type { Db, Param } from "../Sql.ts"

interface ExceptionRow {
  readonly sequence: number
  readonly id: string
  readonly address: string
  readonly key: string
  readonly payment_id: string | null
  readonly merchant_ref: string | null
  readonly account_id: string | null
  readonly wallet_index: number | null
  readonly account_number: number | null
  readonly kind: ExceptionKind
  readonly chain: ChainName
  readonly mode: Mode
  readonly tx_hash: string | null
  readonly sender: string | null
  readonly currency: string
  readonly amount: string
  readonly sent_back: string
  readonly refunds: string
  readonly block_number: number | null
  readonly opened_at: number
  readonly closed_at: number | null
  readonly outcome: Exclude<ExceptionStatus, "open"> | null
  readonly decision_tx: string | null
  readonly note: string | null
  readonly revision: number
}

const columns = `sequence, id, address, key, payment_id, account_id, wallet_index, account_number, kind, chain, mode, tx_hash,
  sender, currency, amount, sent_back, block_number, opened_at, closed_at, outcome, decision_tx, note, revision,
  (SELECT json_group_array(json_object('id', r.id, 'amount', p.amount, 'status', r.status, 'txHash', r.tx_hash,
     'note', r.note, 'at', r.created_at) ORDER BY r.sequence)
   FROM refund_parts p JOIN refunds r ON r.id = p.refund_id WHERE p.exception_id = exceptions.id) AS refunds,
  (SELECT merchant_ref FROM payments WHERE payments.id = payment_id) AS merchant_ref`

interface StoredPart extends Omit<RefundedPart, "amount" | "note" | "txHash"> {
  readonly amount: string
  readonly txHash: string | null
  readonly note: string | null
}

const refundsIn = (text: string): ReadonlyArray<RefundedPart> =>
  (JSON.parse(text) as ReadonlyArray<StoredPart>).map(({ amount, note, txHash, ...part }) => ({
    ...part,
    amount: BigInt(amount),
    txHash: txHash ?? undefined,
    note: note ?? undefined
  }))

const withWallet = "LEFT JOIN wallets ON fingerprint = wallet"

const fromRow = (row: ExceptionRow): PaymentException => {
  const refunds = refundsIn(row.refunds)
  const sent = refunds.findLast((one) => isStanding(one) && one.txHash !== undefined)
  return {
    sequence: row.sequence,
    id: row.id,
    address: row.address,
    key: row.key,
    payment: (row.payment_id ?? undefined) as PaymentId | undefined,
    merchantRef: row.merchant_ref ?? undefined,
    account: (row.account_id ?? undefined) as AccountId | undefined,
    index: row.wallet_index ?? undefined,
    walletAccount: row.account_number ?? undefined,
    kind: row.kind,
    chain: row.chain,
    mode: row.mode,
    txHash: row.tx_hash ?? undefined,
    sender: row.sender ?? undefined,
    currency: row.currency,
    amount: BigInt(row.amount),
    sentBack: BigInt(row.sent_back),
    refunds,
    block: row.block_number ?? undefined,
    openedAt: row.opened_at,
    closedAt: row.closed_at ?? undefined,
    status: row.outcome ?? "open",
    decisionTx: row.decision_tx ?? (row.outcome === "accepted" ? undefined : sent?.txHash),
    note: row.note ?? undefined,
    revision: row.revision
  }
}

/** The exceptions that `rest` selects. `from`: the table, as the query names it. */
export const selectExceptions = (db: Db, rest: string, params: ReadonlyArray<Param>, from = "exceptions") =>
  Effect.map(db.all<ExceptionRow>(`SELECT ${columns} FROM ${from} ${withWallet} ${rest}`, params), (rows) =>
    rows.map(fromRow)
  )
