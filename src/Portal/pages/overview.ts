/**
 * What the home page sums up: what an owner's payments of the last 30 days brought, by the day they were paid, and what
 * became of those that were created, by the day of that; in the account's time zone and currency. They are read by their
 * indexes, some at a time, with a turn of the event loop in between, and summed exactly. Of each at most `mostCounted` are
 * read: `since` says how far they go.
 */
import { BigDecimal, DateTime, Effect } from "effect"
import type { Owner } from "../../Domain/Account.ts"
import { sum } from "../../Domain/Amount.ts"
import type { Mode } from "../../Domain/Chain.ts"
import { decimalsOn, type NetworkTokens } from "../../Domain/Currency.ts"
import { betweenParts } from "../../Http/parts.ts"
import { type Cursor, type Income, incomes, type Outcome, outcomes } from "../../Payments/PaymentListRepo.ts"
import type { Db, StoreUnavailable } from "../../Sql.ts"

/** Days that are shown, today among them. */
export const shownDays = 30
const mostCounted = 100_000
const atOnce = 1_000

/** Payments by what became of them; `open` ones are pending or detecting, `expired` ones were not cancelled. */
export const fates = ["confirmed", "open", "expired", "cancelled", "failed"] as const
type Fate = (typeof fates)[number]

/** What was confirmed in one currency. */
export interface Volume {
  readonly currency: string
  readonly decimals: number | undefined
  /** Base units. */
  amount: bigint
  payments: number
}

export interface Day {
  /** Its beginning, Unix milliseconds. */
  readonly at: number
  /** Of the payments that were created in it. */
  readonly fates: Record<Fate, number>
  /** What was confirmed in it, by currency and decimals, which a local chain may have of its own. */
  readonly volumes: Map<string, Volume>
  /** The worth of that by the prices when the payments were created, millionths of a USD. */
  worth: bigint
  /** Confirmed payments of which no price was known: `worth` is without them. */
  unpriced: number
  /** From creation to confirmation, milliseconds, of each confirmed payment. */
  readonly times: Array<number>
}

const emptyDay = (at: number): Day => ({
  at,
  fates: { confirmed: 0, open: 0, expired: 0, cancelled: 0, failed: 0 },
  volumes: new Map(),
  worth: 0n,
  unpriced: 0,
  times: []
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

/**
 * What a confirmed payment has brought, base units: what it asked for, as far as it came, and what came on top and was
 * accepted. Money that is not decided on, or was sent back, is not the shop's.
 */
const earned = ({ amount, received, surplus }: Income): bigint => {
  const asked = BigInt(amount)
  const own = received === null || BigInt(received) > asked ? asked : BigInt(received)
  return own + sum((surplus ?? "").split(",").map(BigInt))
}

const millionths = (decimal: string): bigint => BigDecimal.scale(BigDecimal.unsafeFromString(decimal), 6).value

const addVolume = (volumes: Map<string, Volume>, { amount, currency, decimals, payments }: Volume): void => {
  const key = `${currency} ${decimals}`
  const volume = volumes.get(key) ?? { currency, decimals, amount: 0n, payments: 0 }
  volume.amount += amount
  volume.payments += payments
  volumes.set(key, volume)
}

/** Adds what a payment brought. Returns its worth. */
const addIncome = (day: Day, income: Income, decimals: number | undefined): bigint => {
  const amount = earned(income)
  addVolume(day.volumes, { currency: income.currency, decimals, amount, payments: 1 })
  day.times.push(income.confirmedAt - income.createdAt)
  if (income.usdValue === null) day.unpriced += 1
  const worth = (millionths(income.usdValue ?? "0") * amount) / BigInt(income.amount)
  day.worth += worth
  return worth
}

/** Several days as one. */
export const together = (days: ReadonlyArray<Day>): Day => {
  const all = emptyDay(days[0]?.at ?? 0)
  for (const day of days) {
    for (const fate of fates) all.fates[fate] += day.fates[fate]
    for (const volume of day.volumes.values()) addVolume(all.volumes, volume)
    all.worth += day.worth
    all.unpriced += day.unpriced
    for (const time of day.times) all.times.push(time)
  }
  return all
}

/** The middle one; the lower of two. Undefined of none. */
export const median = (values: ReadonlyArray<number>): number | undefined =>
  [...values].sort((a, b) => a - b)[Math.ceil(values.length / 2) - 1]

/** `45 s`, `2 min 5 s`, `3 h 10 min`, `2 d 1 h`. */
export const durationText = (millis: number): string => {
  const seconds = Math.round(millis / 1000)
  const units = [
    [86_400, "d"],
    [3_600, "h"],
    [60, "min"],
    [1, "s"]
  ] as const
  const first = units.findIndex(([size]) => seconds >= size)
  if (first === -1) return "0 s"
  let left = seconds
  return units
    .slice(first, first + 2)
    .flatMap(([size, name]) => {
      const count = Math.floor(left / size)
      left -= count * size
      return count === 0 ? [] : [`${count} ${name}`]
    })
    .join(" ")
}

export interface Overview {
  /** Each of the days, oldest first, today last. */
  readonly days: ReadonlyArray<Day>
  /** What yesterday had brought when it was as old as today is now, millionths of a USD. */
  readonly yesterdayByNow: bigint
  /** Set where there were more payments than are counted: the time of the oldest one counted, Unix milliseconds. */
  readonly since: number | undefined
}

const decimalsBy = (networks: ReadonlyArray<NetworkTokens>, mode: Mode) => {
  const known = new Map<string, number | undefined>()
  return ({ chain, currency }: Income) => {
    const key = `${chain} ${currency}`
    if (!known.has(key)) known.set(key, decimalsOn(networks, { chain, mode }, currency))
    return known.get(key)
  }
}

/** Reads a list to its end, but at most so many rows. Returns the last one where there may be more. */
const readAll = Effect.fnUntraced(function* <Row extends Cursor>(
  most: number,
  pageOf: (after: Row | undefined, limit: number) => Effect.Effect<ReadonlyArray<Row>, StoreUnavailable>,
  each: (row: Row) => void
) {
  let after: Row | undefined
  let left = most
  while (left > 0) {
    const limit = Math.min(atOnce, left)
    const page = yield* pageOf(after, limit)
    for (const row of page) each(row)
    if (page.length < limit) return
    after = page.at(-1)
    left -= limit
    yield* betweenParts
  }
  return after
})

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
  const days = daysUntil(now, timezone).map(emptyDay)
  const [first = now] = days.map(({ at }) => at)
  const [yesterday = first, today = first] = days.slice(-2).map(({ at }) => at)
  // A payment of the future, since the clock was set back, counts as today's.
  const dayOf = (time: number) => days.findLast(({ at }) => at <= time)
  const decimalsOf = decimalsBy(networks, owner.mode)
  let yesterdayByNow = 0n
  const oldestOutcome = yield* readAll(
    most,
    (after: Outcome | undefined, limit) => outcomes(db, owner, first, after, limit),
    (outcome) => {
      const day = dayOf(outcome.createdAt)
      if (day !== undefined) day.fates[fateOf(outcome)] += 1
    }
  )
  const oldestIncome = yield* readAll(
    most,
    (after: Income | undefined, limit) => incomes(db, owner, first, after, limit),
    (income) => {
      const day = dayOf(income.confirmedAt)
      if (day === undefined) return
      const worth = addIncome(day, income, decimalsOf(income))
      if (day.at === yesterday && income.confirmedAt - yesterday <= now - today) yesterdayByNow += worth
    }
  )
  const since = Math.max(oldestOutcome?.createdAt ?? 0, oldestIncome?.confirmedAt ?? 0)
  const overview: Overview = { days, yesterdayByNow, since: since === 0 ? undefined : since }
  return overview
})
