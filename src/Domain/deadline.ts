import { Duration } from "effect"
import type { Payment } from "./Payment.ts"

/**
 * When a payment's time is over: the one definition for the status machine, settlement and the queries over payments.
 * Money in a block is on time up to the deadline, which is `payments.settle_grace` after the due time. A payment is over
 * at a block whose time is after the deadline. The chain's clock decides, never this machine's.
 */

/** When a payment is due, without the grace; Unix milliseconds. */
export const dueTime = ({ dueAt, expiresAt }: Pick<Payment, "dueAt" | "expiresAt">): number => dueAt ?? expiresAt

/** The same of a row of `payments`, in SQL. The index `payments_open` is on exactly this expression. */
export const dueTimeSql = "coalesce(due_at, expires_at)"

/** The last millisecond, by block time, at which money is on time. */
export const deadline = (payment: Pick<Payment, "dueAt" | "expiresAt">, settleGraceMs: number): number =>
  dueTime(payment) + settleGraceMs

/** How long after its deadline a payment waits for other chains than its own at most, milliseconds. */
export const longestWaitElsewhere = Duration.toMillis("2 minutes")

/** Payments with a due time before this, Unix milliseconds, are over at a block of that time, Unix seconds. */
export const overBefore = (blockTime: number, settleGraceMs: number): number => blockTime * 1000 - settleGraceMs

/**
 * By how much a block may be newer than its time says, as this machine's clock has it; milliseconds. Block times lag by ten
 * minutes at most, and a wrong clock may be a quarter of an hour ahead.
 */
export const blockTimeLag = Duration.toMillis("25 minutes")
