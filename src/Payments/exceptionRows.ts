/** The rows of the table `exceptions` as they are read: with the number of the wallet's account, for the paths of addresses. */
import { Effect } from "effect"
import type { ChainName, Mode } from "../Domain/Chain.ts"
import type { ExceptionKind, ExceptionStatus, PaymentException, Refund } from "../Domain/Exception.ts"
import type { AccountId, PaymentId } from "../Domain/Ids.ts"
import type { Db, Param } from "../Sql.ts"

interface ExceptionRow {
  readonly sequence: number
  readonly id: string
  readonly address: string
  readonly key: string
  readonly payment_id: string | null
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
  sender, currency, amount, sent_back, refunds, block_number, opened_at, closed_at, outcome, decision_tx, note, revision`

interface StoredRefund extends Omit<Refund, "amount"> {
  readonly amount: string
}

/** Refunds as the column holds them. */
export const refundsText = (refunds: ReadonlyArray<Refund>): string =>
  JSON.stringify(refunds.map((refund): StoredRefund => ({ ...refund, amount: refund.amount.toString() })))

const withWallet = "LEFT JOIN wallets ON fingerprint = wallet"

const fromRow = (row: ExceptionRow): PaymentException => ({
  sequence: row.sequence,
  id: row.id,
  address: row.address,
  key: row.key,
  payment: (row.payment_id ?? undefined) as PaymentId | undefined,
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
  refunds: (JSON.parse(row.refunds) as ReadonlyArray<StoredRefund>).map((refund) => ({
    amount: BigInt(refund.amount),
    at: refund.at,
    txHash: refund.txHash,
    note: refund.note
  })),
  block: row.block_number ?? undefined,
  openedAt: row.opened_at,
  closedAt: row.closed_at ?? undefined,
  status: row.outcome ?? "open",
  decisionTx: row.decision_tx ?? undefined,
  note: row.note ?? undefined,
  revision: row.revision
})

/** The exceptions that `rest` selects. `from`: the table, as the query names it. */
export const selectExceptions = (db: Db, rest: string, params: ReadonlyArray<Param>, from = "exceptions") =>
  Effect.map(db.all<ExceptionRow>(`SELECT ${columns} FROM ${from} ${withWallet} ${rest}`, params), (rows) =>
    rows.map(fromRow)
  )
