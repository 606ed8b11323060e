/** What is shown with one payment, in responses and events: its exceptions, what came, and what goes back. Only reads. */
import { Effect } from "effect"
import type { ShownExceptions } from "../Domain/Event.ts"
import type { PaymentId } from "../Domain/Ids.ts"
import type { ShownReceipt } from "../Domain/Receipt.ts"
import { allRows, type Db, oneValue } from "../Sql.ts"
import { firstOfPayment, shownInAnswers } from "./ExceptionsRepo.ts"
import { ofPayment } from "./RefundsRepo.ts"

/** The newest canonical receipts of a payment that are read, in chain order. */
const receiptsOf = (db: Db, payment: PaymentId, limit: number) =>
  Effect.map(
    allRows<ShownReceipt>(
      db,
      `SELECT r.tx_hash AS txHash, r.sender AS "from", r.chain, r.currency, r.amount, r.block_time AS at,
         coalesce(r.kind, 'unattributed') AS kind, s.head_number - r.block_number + 1 AS confirmations
       FROM receipts r LEFT JOIN scans s ON s.chain = r.chain AND s.mode = r.mode
       WHERE r.payment_id = ? AND r.listed IS NOT NULL AND r.canonical = 1
       ORDER BY r.block_number DESC, r.place DESC, r.position DESC LIMIT ?`,
      [payment, limit]
    ),
    (rows) => rows.toReversed()
  )

const none: Required<ShownExceptions> = { exceptions: [], more: false, receipts: [], refunds: [] }

/** Whether anything of a payment may be shown: of most that are read nothing has come, and one look costs less than three. */
const hasAny = (db: Db, payment: PaymentId) =>
  oneValue<number>(
    db,
    `SELECT EXISTS (SELECT 1 FROM receipts WHERE payment_id = ? AND listed IS NOT NULL AND canonical = 1)
       OR EXISTS (SELECT 1 FROM exceptions WHERE payment_id = ?) OR EXISTS (SELECT 1 FROM refunds WHERE payment_id = ?)`,
    [payment, payment, payment]
  )

/** At most `limit` of each, and whether there are more exceptions. */
export const shownMoney = Effect.fnUntraced(function* (db: Db, payment: PaymentId, limit = shownInAnswers) {
  if ((yield* hasAny(db, payment)) !== 1) return none
  const exceptions = yield* firstOfPayment(db, payment, limit)
  const receipts = yield* receiptsOf(db, payment, limit)
  const refunds = yield* ofPayment(db, payment)
  return { ...exceptions, receipts, refunds: refunds.slice(-limit) } satisfies ShownExceptions
})
