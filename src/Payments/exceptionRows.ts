/** The rows of the table `exceptions` as they are read: with the number of the wallet's account, for the paths of addresses. */
import { Effect } from "effect"
import type { PaymentException } from "../Domain/Exception.ts"
import { isStanding, type RefundedPart } from "../Domain/Refund.ts"
import { allRows, type Db, type Param, withoutNulls } from "../Sql.ts"

interface ExceptionRow extends Omit<PaymentException, "amount" | "refunds" | "sentBack"> {
  readonly amount: string
  readonly sentBack: string
  /** JSON. */
  readonly refunds: string
}

const columns = `sequence, id, address, key, payment_id AS payment, account_id AS account, wallet_index AS "index",
  account_number AS walletAccount, kind, chain, mode, tx_hash AS txHash, sender, currency, amount, sent_back AS sentBack,
  block_number AS block, opened_at AS openedAt, closed_at AS closedAt, coalesce(outcome, 'open') AS status,
  decision_tx AS decisionTx, note, revision,
  (SELECT json_group_array(json_object('id', r.id, 'amount', p.amount, 'status', r.status, 'txHash', r.tx_hash,
     'note', r.note, 'at', r.created_at) ORDER BY r.sequence)
   FROM refund_parts p JOIN refunds r ON r.id = p.refund_id WHERE p.exception_id = exceptions.id) AS refunds,
  (SELECT merchant_ref FROM payments WHERE payments.id = payment_id) AS merchantRef`

interface StoredPart extends Omit<RefundedPart, "amount"> {
  readonly amount: string
}

const withWallet = "LEFT JOIN wallets ON fingerprint = wallet"

const toException = ({ amount, decisionTx, refunds: stored, sentBack, ...row }: ExceptionRow): PaymentException => {
  const refunds = (JSON.parse(stored) as ReadonlyArray<StoredPart>).map(
    (part): RefundedPart => ({ ...withoutNulls(part), amount: BigInt(part.amount) })
  )
  const sent = refunds.findLast((one) => isStanding(one) && one.txHash !== undefined)
  return {
    ...row,
    amount: BigInt(amount),
    sentBack: BigInt(sentBack),
    refunds,
    decisionTx: decisionTx ?? (row.status === "accepted" ? undefined : sent?.txHash)
  }
}

/** The exceptions that `rest` selects. `from`: the table, as the query names it. */
export const selectExceptions = (db: Db, rest: string, params: ReadonlyArray<Param>, from = "exceptions") =>
  Effect.map(allRows<ExceptionRow>(db, `SELECT ${columns} FROM ${from} ${withWallet} ${rest}`, params), (rows) =>
    rows.map(toException)
  )
