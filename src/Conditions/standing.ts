/** Which conditions stand, and since when: pure, and tested without a daemon. */
import { Context, Duration, type Effect, Schema } from "effect"
import { Severity } from "../Domain/Condition.ts"
import { iso } from "../lib/moment.ts"
import { ConditionKind, kinds } from "./kinds.ts"

/** Something that is wrong at a look. */
export interface Condition {
  readonly kind: ConditionKind
  /** Which one of its kind, such as `base.live` or an endpoint's id; empty where there is one only. */
  readonly subject: string
  /** That of its kind, or a lesser one: no one is woken for a test chain. */
  readonly severity: Severity
  readonly summary: string
  /** What to do about it. */
  readonly remedy: string
}

export const conditionOf = (
  kind: ConditionKind,
  subject: string,
  summary: string,
  remedy: string,
  severity = kinds[kind].severity
): Condition => ({ kind, subject, severity, summary, remedy })

/** The condition, if it holds. */
export const conditionIf = (holds: boolean, ...of: Parameters<typeof conditionOf>): ReadonlyArray<Condition> =>
  holds ? [conditionOf(...of)] : []

/** Identifies a condition while it lasts: `chain_not_read base.live`. */
export const keyOf = ({ kind, subject }: { readonly kind: string; readonly subject: string }): string =>
  subject === "" ? kind : `${kind} ${subject}`

/** A condition that has been seen. Times in Unix milliseconds. */
export const HeldCondition = Schema.Struct({
  kind: ConditionKind,
  subject: Schema.String,
  severity: Severity,
  summary: Schema.String,
  remedy: Schema.String,
  since: Schema.Number,
  /** Absent: it has not held for its patience yet. */
  openedAt: Schema.optionalWith(Schema.Number, { exact: true }),
  /** Since when it has been gone; absent while it holds. */
  goneSince: Schema.optionalWith(Schema.Number, { exact: true })
})
export type HeldCondition = typeof HeldCondition.Type

/** A condition is over once it has been gone for this long: one that comes and goes is one condition, not many. */
const calm = 5 * 60_000

const lasts = (seen: HeldCondition | undefined, condition: Condition, now: number): HeldCondition => {
  const since = Math.min(seen?.since ?? now, now)
  const isPatient = now - since < Duration.toMillis(kinds[condition.kind].patience)
  const openedAt = seen?.openedAt ?? (isPatient ? undefined : now)
  return { ...condition, since, ...(openedAt === undefined ? {} : { openedAt }) }
}

/** The state of a condition that does not hold; undefined once it is forgotten. */
const passing = (seen: HeldCondition, now: number): HeldCondition | undefined => {
  const goneSince = Math.min(seen.goneSince ?? now, now)
  return seen.openedAt === undefined || now - goneSince >= calm ? undefined : { ...seen, goneSince }
}

/** What a look found, and what it changed. */
export interface Look {
  readonly seen: ReadonlyArray<HeldCondition>
  /** Those that now have held for their patience. */
  readonly began: ReadonlyArray<HeldCondition>
  readonly ended: ReadonlyArray<HeldCondition>
}

/** The state after a look at `now`, Unix milliseconds, which found `conditions`. */
export const look = (before: ReadonlyArray<HeldCondition>, conditions: ReadonlyArray<Condition>, now: number): Look => {
  const known = new Map(before.map((seen) => [keyOf(seen), seen]))
  const lasting = conditions.map((condition) => lasts(known.get(keyOf(condition)), condition, now))
  const holding = new Set(lasting.map(keyOf))
  const gone = before.filter((seen) => !holding.has(keyOf(seen))).map((seen) => [seen, passing(seen, now)] as const)
  return {
    seen: [...lasting, ...gone.flatMap(([, left]) => left ?? [])],
    began: lasting.filter((one) => one.openedAt !== undefined && known.get(keyOf(one))?.openedAt === undefined),
    ended: gone.flatMap(([seen, left]) => (left === undefined && seen.openedAt !== undefined ? [seen] : []))
  }
}

const ranks: Readonly<Record<Severity, number>> = { page: 0, ticket: 1, note: 2 }

/** Worst first, then the oldest. */
export const byRank = (one: HeldCondition, next: HeldCondition): number =>
  ranks[one.severity] - ranks[next.severity] || one.since - next.since

/** As it is told. */
export const shownCondition = ({ kind, remedy, severity, since, subject, summary }: HeldCondition) => ({
  ...{ key: kind, subject, severity, summary, remedy, since: iso(since) }
})

/** What is wrong now. Apart from its layer, so that a command does not load all that the daemon judges by. */
export class Conditions extends Context.Tag("tilld/Conditions")<
  Conditions,
  {
    /** What is wrong at this moment, worst first; `openedAt` is absent until it has held for its patience. */
    readonly now: Effect.Effect<ReadonlyArray<HeldCondition>>
    /** The worker. */
    readonly run: Effect.Effect<never>
  }
>() {}
