/** The table `pull_payments`: what plugins want sent back of a payment, until its customer has said to which address. */
import { Effect } from "effect"
import type { Owner } from "../Domain/Account.ts"
import { sum } from "../Domain/Amount.ts"
import type { PaymentId, RefundId } from "../Domain/Ids.ts"
import { allValues, changes, type Db, execute, oneRow } from "../Sql.ts"

export interface PullPayment extends Owner {
  readonly id: string
  readonly payment: PaymentId
  readonly name: string
  readonly description: string
  /** As the plugin asked for it: a decimal in its currency. */
  readonly amount: string
  readonly currency: string
  /** Base units of the payment's token. */
  readonly units: bigint
  /** Once the customer has named an address. */
  readonly refund: RefundId | undefined
}

interface Row extends Omit<PullPayment, "units"> {
  readonly units: string
}

export const byId = (db: Db, id: string) =>
  Effect.map(
    oneRow<Row>(
      db,
      `SELECT id, account_id AS account, mode, payment_id AS payment, name, description, amount, currency, units,
         refund_id AS refund FROM pull_payments WHERE id = ?`,
      [id]
    ),
    (row): PullPayment | undefined => row && { ...row, units: BigInt(row.units) }
  )

/** Base units of a payment that are asked for and have no address yet. */
export const unclaimed = (db: Db, payment: PaymentId) =>
  Effect.map(
    allValues<string>(db, "SELECT units FROM pull_payments WHERE payment_id = ? AND refund_id IS NULL", [payment]),
    (units) => sum(units.map(BigInt))
  )

/** @param at Unix milliseconds */
export const insert = (pull: Omit<PullPayment, "refund">, at: number) =>
  execute(
    `INSERT INTO pull_payments (id, account_id, mode, payment_id, name, description, amount, currency, units, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      ...[pull.id, pull.account, pull.mode, pull.payment, pull.name, pull.description, pull.amount, pull.currency],
      ...[`${pull.units}`, at]
    ]
  )

/** Stores the refund in the place of the one before; false where somebody else was faster. */
export const setRefund = ({ id, refund: before }: PullPayment, refund: RefundId) =>
  changes("UPDATE pull_payments SET refund_id = ? WHERE id = ? AND refund_id IS ?", [refund, id, before ?? null])
