/**
 * What the home page sums up: an owner's payments of the last 30 days. They are read by their index, some at a time, with
 * a turn of the event loop in between, and summed exactly. At most `mostCounted` are read: `since` says how far they go.
 */
import { Effect } from "effect"
import { sum } from "../../Domain/Amount.ts"
import { decimalsOn, type NetworkTokens } from "../../Domain/amountDecimals.ts"
import type { Mode } from "../../Domain/Chain.ts"
import type { Owner } from "../../Domain/Owner.ts"
import { iso } from "../../Domain/Timestamp.ts"
import { type Cursor, type Result, results } from "../../Payments/PaymentListRepo.ts"
import { eventLoopTurn } from "../../Sql/eventLoopTurn.ts"
import type { Db } from "../../Sql.ts"

export const dayMillis = 86_400_000
/** Days that are shown, today among them. */
export const shownDays = 30
const mostCounted = 100_000
const atOnce = 1_000

/** Payments by what became of them; `open` ones are pending or detecting, `expired` ones were not cancelled. */
export interface Outcomes {
  confirmed: number
  open: number
  expired: number
  cancelled: number
  failed: number
}
export type Outcome = keyof Outcomes
export const outcomes: ReadonlyArray<Outcome> = ["confirmed", "open", "expired", "cancelled", "failed"]

/** What was confirmed in one currency. */
export interface Volume {
  readonly currency: string
  readonly decimals: number | undefined
  /** Base units. */
  amount: bigint
  payments: number
}

export interface Day {
  /** Its beginning in UTC, Unix milliseconds. */
  readonly at: number
  readonly outcomes: Outcomes
  /** By currency and decimals, which a local chain may have of its own. */
  readonly volumes: Map<string, Volume>
  /** The worth of what was confirmed, as far as prices were known when it was created. */
  usd: number
  /** From creation to confirmation, milliseconds, of each confirmed payment. */
  readonly times: Array<number>
}

const emptyDay = (at: number): Day => ({
  at,
  outcomes: { confirmed: 0, open: 0, expired: 0, cancelled: 0, failed: 0 },
  volumes: new Map(),
  usd: 0,
  times: []
})

/** Midnight UTC before `now`. */
export const dayOf = (now: number): number => now - (now % dayMillis)

const outcomeOf = ({ failureReason, status }: Result): Outcome => {
  if (failureReason === "cancelled") return failureReason
  return status === "pending" || status === "detecting" ? "open" : status
}

/**
 * What a confirmed payment has brought, base units: what it asked for, as far as it came, and what came on top and was
 * accepted. Money that is not decided on, or was sent back, is not the shop's.
 */
const earned = ({ amount, received, surplus }: Result): bigint => {
  const asked = BigInt(amount)
  const own = received === null || BigInt(received) > asked ? asked : BigInt(received)
  return own + sum((surplus ?? "").split(",").map(BigInt))
}

const addVolume = (volumes: Map<string, Volume>, { amount, currency, decimals, payments }: Volume): void => {
  const key = `${currency} ${decimals}`
  const volume = volumes.get(key) ?? { currency, decimals, amount: 0n, payments: 0 }
  volume.amount += amount
  volume.payments += payments
  volumes.set(key, volume)
}

const addResult = (day: Day, result: Result, decimals: number | undefined): void => {
  day.outcomes[outcomeOf(result)] += 1
  if (result.status !== "confirmed") return
  addVolume(day.volumes, { currency: result.currency, decimals, amount: earned(result), payments: 1 })
  day.usd += Number(result.usdValue ?? 0)
  if (result.confirmedAt !== null) day.times.push(result.confirmedAt - result.createdAt)
}

/** Several days as one. */
export const together = (days: ReadonlyArray<Day>): Day => {
  const all = emptyDay(days[0]?.at ?? 0)
  for (const day of days) {
    for (const outcome of outcomes) all.outcomes[outcome] += day.outcomes[outcome]
    for (const volume of day.volumes.values()) addVolume(all.volumes, volume)
    all.usd += day.usd
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

/** A day as `2026-01-31`. */
export const dayText = (at: number): string => iso(at).slice(0, 10)

export interface Overview {
  /** Each of the days, oldest first, today last. */
  readonly days: ReadonlyArray<Day>
  /** Set where there were more payments than are counted: the oldest one counted, Unix milliseconds. */
  readonly since: number | undefined
}

const decimalsBy = (networks: ReadonlyArray<NetworkTokens>, mode: Mode) => {
  const known = new Map<string, number | undefined>()
  return ({ chain, currency }: Result) => {
    const key = `${chain} ${currency}`
    if (!known.has(key)) known.set(key, decimalsOn(networks, { chain, mode }, currency))
    return known.get(key)
  }
}

export const overviewOf = Effect.fn("Portal.overview")(function* (
  db: Db,
  owner: Owner,
  networks: ReadonlyArray<NetworkTokens>,
  now: number,
  most = mostCounted
) {
  const first = dayOf(now) - (shownDays - 1) * dayMillis
  const days = Array.from({ length: shownDays }, (_, index) => emptyDay(first + index * dayMillis))
  const decimalsOf = decimalsBy(networks, owner.mode)
  let after: Cursor | undefined
  let counted = 0
  while (counted < most) {
    const page = yield* results(db, owner, first, after, Math.min(atOnce, most - counted))
    for (const result of page) {
      // A payment of the future, since the clock was set back, counts as today's.
      const day = days[Math.min(shownDays - 1, Math.floor((result.createdAt - first) / dayMillis))]
      if (day !== undefined) addResult(day, result, decimalsOf(result))
    }
    counted += page.length
    after = page.at(-1) ?? after
    if (page.length < atOnce) break
    yield* eventLoopTurn
  }
  const overview: Overview = { days, since: counted >= most ? after?.createdAt : undefined }
  return overview
})
