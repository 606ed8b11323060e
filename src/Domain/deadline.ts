import { Duration } from "effect"
import type { Payment } from "./Payment.ts"

/**
 * When a payment's time is over: the one definition for the status machine, settlement and the queries over payments.
 * Money in a block is on time up to the deadline, which is the payment's settle grace after its due time. A payment is over
 * at a block whose time is after the deadline. The chain's clock decides, never this machine's.
 */

/** The last millisecond, by block time, at which money is on time; Unix time. */
export const deadline = ({ dueAt, expiresAt, settleGrace }: Pick<Payment, "dueAt" | "expiresAt" | "settleGrace">) =>
  (dueAt ?? expiresAt) + settleGrace

/** The same of a row of `payments`, in SQL. The index `payments_open` is on exactly this expression. */
export const deadlineSql = "coalesce(due_at, expires_at) + settle_grace"

/** How long after its deadline a payment waits for other chains than its own at most, milliseconds. */
export const longestWaitElsewhere = Duration.toMillis("2 minutes")

/**
 * By how much a block may be newer than its time says, as this machine's clock has it; milliseconds. Block times lag by ten
 * minutes at most, and a wrong clock may be a quarter of an hour ahead.
 */
export const blockTimeLag = Duration.toMillis("25 minutes")
