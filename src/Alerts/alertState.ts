/** The state machine of the alerts: pure, and tested without a daemon. */
import { Duration, Schema } from "effect"
import { retryDelays } from "../Domain/DeliveryObject.ts"
import { newAlertId } from "../Domain/Ids.ts"
import { iso } from "../lib/moment.ts"
import { afterAttempt } from "../Webhooks/queue/retryPolicy.ts"

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
type HeldCondition = typeof HeldCondition.Type

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

/** A condition is over once it has been gone for this long: one that comes and goes is one fault, not many. */
const calm = 5 * 60_000

/** Maximum number of queued messages. Beyond it the oldest are dropped: the receiver has long been down. */
export const mostUnsent = 200

type AlertType = "alert.opened" | "alert.closed" | "alert.test"

/** A message, due at once. */
export const messageOf = (
  type: AlertType,
  about: Pick<HeldCondition, "key" | "summary" | "remedy" | "openedAt">,
  now: number
) => {
  const id = newAlertId(now)
  const { key, openedAt = now, remedy, summary } = about
  const alert = {
    key,
    summary,
    remedy,
    openedAt: iso(openedAt),
    ...(type === "alert.closed" ? { closedAt: iso(now) } : {})
  }
  const message: AlertMessage = {
    id,
    body: JSON.stringify({ id, type, createdAt: iso(now), alert }),
    attempts: 0,
    nextAt: now
  }
  return message
}

/** The state of a condition that holds. */
const lasts = (
  seen: HeldCondition | undefined,
  { key, patience, remedy, summary }: Condition,
  now: number
): HeldCondition => {
  const since = Math.min(seen?.since ?? now, now)
  const openedAt = seen?.openedAt ?? (now - since >= patience ? now : undefined)
  return { key, summary, remedy, since, ...(openedAt === undefined ? {} : { openedAt }) }
}

/** The state of a condition that does not hold; undefined once it is forgotten. */
const passing = (seen: HeldCondition, now: number): HeldCondition | undefined => {
  const goneSince = Math.min(seen.goneSince ?? now, now)
  return seen.openedAt === undefined || now - goneSince >= calm ? undefined : { ...seen, goneSince }
}

/** A retry that was planned by a clock that was ahead comes no later than the schedule says from now. */
const inTime = (message: AlertMessage, now: number): AlertMessage => {
  const wait = Duration.toMillis(retryDelays[message.attempts - 1] ?? 0)
  return { ...message, nextAt: Math.min(message.nextAt, now + wait) }
}

/** The state after a check at `now`, Unix milliseconds, which found `conditions`. */
export const look = (state: AlertState, conditions: ReadonlyArray<Condition>, now: number): AlertState => {
  const before = new Map(state.seen.map((seen) => [seen.key, seen]))
  const lasting = conditions.map((condition) => lasts(before.get(condition.key), condition, now))
  const keys = new Set(lasting.map(({ key }) => key))
  const gone = state.seen.filter(({ key }) => !keys.has(key))
  const left = gone.flatMap((seen) => passing(seen, now) ?? [])
  const stays = new Set(left.map(({ key }) => key))
  const messages = [
    ...lasting.filter(({ openedAt, key }) => openedAt !== undefined && before.get(key)?.openedAt === undefined)
  ].map((seen) => messageOf("alert.opened", seen, now))
  const closing = gone
    .filter(({ key, openedAt }) => openedAt !== undefined && !stays.has(key))
    .map((seen) => messageOf("alert.closed", seen, now))
  return {
    seen: [...lasting, ...left],
    unsent: [...state.unsent.map((one) => inTime(one, now)), ...messages, ...closing].slice(-mostUnsent)
  }
}

/** The state after an attempt to send a message, which ended at `now` with the receiver's status, if there was one. */
export const attempted = (state: AlertState, id: string, status: number | undefined, now: number): AlertState => ({
  ...state,
  unsent: state.unsent.flatMap((message) => {
    if (message.id !== id) return [message]
    const attempts = message.attempts + 1
    const { nextAttemptAt } = afterAttempt(attempts, status, now)
    return nextAttemptAt === undefined ? [] : [{ ...message, attempts, nextAt: nextAttemptAt }]
  })
})

/** The messages that are due, oldest first; only the oldest of each fault, so that its end is not reported first. */
export const dueOf = ({ unsent }: AlertState, now: number): ReadonlyArray<AlertMessage> => {
  const earlier = new Set<string>()
  return unsent.filter(({ body, nextAt }) => {
    const { key } = JSON.parse(body).alert
    const isOldest = !earlier.has(key)
    earlier.add(key)
    return isOldest && nextAt <= now
  })
}
