import { Schema } from "effect"

/** A fault that is reported to the operator once it has held for `patience`. */
export interface Condition {
  /** Identifies the fault while it lasts, such as `chain base.live`. */
  readonly key: string
  readonly summary: string
  /** What to do about it. */
  readonly remedy: string
  /** Milliseconds that it must hold before it counts. */
  readonly patience: number
}

/** A condition that has been seen. Times in Unix milliseconds. */
const HeldCondition = Schema.Struct({
  key: Schema.String,
  summary: Schema.String,
  remedy: Schema.String,
  since: Schema.Number,
  /** Absent: it has not held for its patience yet. */
  openedAt: Schema.optionalWith(Schema.Number, { exact: true }),
  /** Since when it has been gone; absent while it holds. */
  goneSince: Schema.optionalWith(Schema.Number, { exact: true })
})
export type HeldCondition = typeof HeldCondition.Type

/** An undelivered message. */
const AlertMessage = Schema.Struct({
  id: Schema.String,
  /** The bytes that every attempt sends. */
  body: Schema.String,
  /** Attempts so far; the next is due at `nextAt`, Unix milliseconds. */
  attempts: Schema.Number,
  nextAt: Schema.Number
})
export type AlertMessage = typeof AlertMessage.Type

/** Which faults are open, and which messages have not reached the operator yet. */
export const AlertState = Schema.Struct({ seen: Schema.Array(HeldCondition), unsent: Schema.Array(AlertMessage) })
export type AlertState = typeof AlertState.Type

export const nothingSeen: AlertState = { seen: [], unsent: [] }
