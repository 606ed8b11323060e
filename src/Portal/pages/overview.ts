/**
 * What the home page sums up of the last 30 days, and of the income of as many before: the income, by the ledger, and what became of the payments that were created;
 * by days of the account's time zone. Both are read by their indexes, some at a time, with a turn of the event loop in between,
 * and summed exactly. Of each at most `mostCounted` are read: `since` says how far they go.
 */
import { DateTime, Effect } from "effect"
import { eachIncome } from "../../Books/BooksRepo.ts"
import type { Owner } from "../../Domain/Account.ts"
import type { NetworkTokens } from "../../Domain/Currency.ts"
import { addRow, type LedgerSums, noSums } from "../../Domain/LedgerRow.ts"
import { betweenParts } from "../../Http/parts.ts"
import { type Outcome, outcomes } from "../../Payments/PaymentListRepo.ts"
import type { Db } from "../../Sql.ts"

/** Days that are shown, today among them. */
export const shownDays = 30
export const mostCounted = 100_000
const atOnce = 1_000

/** Payments by what became of them; `open` ones are pending or detecting, `expired` ones were not cancelled. */
export const fates = ["confirmed", "open", "expired", "cancelled", "failed"] as const
type Fate = (typeof fates)[number]

export interface Day {
  /** Its beginning, Unix milliseconds. */
  readonly at: number
  /** Of the payments that were created in it. */
  readonly fates: Record<Fate, number>
  readonly income: LedgerSums
}

const emptyDay = (at: number): Day => ({
  at,
  fates: { confirmed: 0, open: 0, expired: 0, cancelled: 0, failed: 0 },
  income: noSums()
})

/** The beginnings of so many days in a time zone, the one of `now` last. Unix milliseconds. */
export const daysUntil = (now: number, timezone: string, count = shownDays): ReadonlyArray<number> => {
  const today = DateTime.startOf(DateTime.unsafeMakeZoned(now, { timeZone: timezone }), "day")
  return Array.from({ length: count }, (_, index) =>
    DateTime.toEpochMillis(DateTime.subtract(today, { days: count - 1 - index }))
  )
}

const fateOf = ({ failureReason, status }: Outcome): Fate => {
  if (failureReason === "cancelled") return failureReason
  return status === "pending" || status === "detecting" ? "open" : status
}

export interface Overview {
  /** Each of the days, oldest first, today last. */
  readonly days: ReadonlyArray<Day>
  readonly today: Day
  /** The days together. */
  readonly all: Day
  /** What yesterday had brought when it was as old as today is now. */
  readonly yesterdayByNow: LedgerSums
  /** What as many days before these had brought. */
  readonly daysBefore: LedgerSums
  /** Set where there is more than is counted: the time of the oldest that is counted, Unix milliseconds. */
  readonly since: number | undefined
}

export interface OverviewOptions {
  readonly owner: Owner
  readonly networks: ReadonlyArray<NetworkTokens>
  readonly timezone: string
  readonly now: number
  readonly most?: number
}

export const overviewOf = Effect.fn("Portal.overview")(function* (
  db: Db,
  { most = mostCounted, networks, now, owner, timezone }: OverviewOptions
) {
  const starts = daysUntil(now, timezone, 2 * shownDays)
  const days = starts.slice(shownDays).map(emptyDay)
  const [yesterday, today] = [days.at(-2) ?? emptyDay(now), days.at(-1) ?? emptyDay(now)]
  const from = days[0]?.at ?? now
  const all = emptyDay(from)
  // What is of the future, since the clock was set back, counts as today's.
  const dayOf = (time: number) => days.findLast(({ at }) => at <= time) ?? today
  let after: Outcome | undefined
  let left = most
  do {
    const page: ReadonlyArray<Outcome> = yield* outcomes(db, owner, from, after, Math.min(atOnce, left))
    for (const outcome of page) {
      for (const day of [all, dayOf(outcome.createdAt)]) day.fates[fateOf(outcome)] += 1
    }
    after = page.length < atOnce ? undefined : page.at(-1)
    left -= page.length
    yield* betweenParts
  } while (after !== undefined && left > 0)
  const yesterdayByNow = noSums()
  const daysBefore = noSums()
  const sinceIncome = yield* eachIncome(db, networks, { ...owner, from: starts[0] ?? from }, most, (row, at) => {
    if (at < from) return addRow(daysBefore, row)
    const day = dayOf(at)
    for (const { income } of [all, day]) addRow(income, row)
    if (day === yesterday && at - yesterday.at <= now - today.at) addRow(yesterdayByNow, row)
  })
  const since = Math.max(after?.createdAt ?? 0, sinceIncome ?? 0)
  const overview: Overview = { days, today, all, yesterdayByNow, daysBefore, since: since === 0 ? undefined : since }
  return overview
})
