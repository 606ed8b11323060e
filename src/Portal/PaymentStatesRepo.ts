/** Payments by what their row in the portal's list says of them: how many, and which where no filter of the API says it. */
import { Effect } from "effect"
import type { Owner } from "../Domain/Account.ts"
import type { PaymentId } from "../Domain/Ids.ts"
import type { ListFilter } from "../Payments/PaymentListRepo.ts"
import { allRows, countRows, type Db } from "../Sql.ts"

/** Counted up to so many of each; a list of a state that is named by ids has no more. */
export const mostOfState = 1_000

const of = "account_id = ? AND mode = ?"
const byStatus = (status: string) =>
  `payments INDEXED BY payments_list_status_chain WHERE ${of} AND status = '${status}'`
const isPart = "(length(coalesce(amount_received, '0')), coalesce(amount_received, '0')) < (length(amount), amount)"

/** What the chips are called, and the rows of each. */
export const paymentStates = {
  "": { text: "All", from: `payments INDEXED BY payments_list WHERE ${of}` },
  action: {
    text: "Needs action",
    from: `(SELECT DISTINCT payment_id AS id FROM exceptions INDEXED BY exceptions_list_status
      WHERE ${of} AND is_open = 1 AND payment_id IS NOT NULL)`
  },
  part: { text: "Part paid", from: `${byStatus("detecting")} AND ${isPart}` },
  pending: { text: "Pending", from: byStatus("pending") },
  detecting: { text: "Confirming", from: `${byStatus("detecting")} AND NOT ${isPart}` },
  confirmed: { text: "Confirmed", from: byStatus("confirmed") },
  expired: { text: "Expired", from: `${byStatus("expired")} AND failure_reason IS DISTINCT FROM 'cancelled'` },
  cancelled: {
    text: "Cancelled",
    from: `payments INDEXED BY payments_list_cancelled WHERE ${of} AND failure_reason = 'cancelled'`
  },
  failed: { text: "Failed", from: byStatus("failed") }
} as const
type PaymentState = keyof typeof paymentStates

/** Whether a text names a state. */
export const isState = (text: string): text is PaymentState => text !== "" && Object.hasOwn(paymentStates, text)

/** How many payments of an owner are in each state. */
export const countStates = (db: Db, { account, mode }: Owner) =>
  Effect.forEach(
    Object.entries(paymentStates),
    ([state, { from }]) =>
      Effect.map(
        countRows(db, `SELECT 1 FROM ${from} LIMIT ${mostOfState}`, [account, mode]),
        (count) => [state, count] as const
      ),
    { concurrency: 1 }
  )

/** The filter of a state's list; of those that the API has no status for, by their ids. */
export const filterOfState = Effect.fnUntraced(function* (db: Db, { account, mode }: Owner, state: PaymentState) {
  const filter: Pick<ListFilter, "cancelled" | "ids" | "status"> = {}
  if (state === "") return filter
  if (state === "cancelled") return { cancelled: true }
  if (state === "expired") return { status: state, cancelled: false }
  if (state === "pending" || state === "confirmed" || state === "failed") return { status: state }
  const { from } = paymentStates[state]
  const rows = yield* allRows<{ readonly id: PaymentId }>(db, `SELECT id FROM ${from} LIMIT ${mostOfState}`, [
    account,
    mode
  ])
  return { ids: rows.map(({ id }) => id) }
})
