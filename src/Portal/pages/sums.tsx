/**
 * What came in, summed up and shown as cards and charts: the income, by the ledger, of the last 30 days and of as many before,
 * and what became of the payments that were created; by days of the account's time zone. Both are read by their indexes, some
 * at a time, with a turn of the event loop in between, and summed exactly. Of each at most `mostCounted` are read: `since` says
 * how far they go. Charts are SVG made on the server, each with its numbers as a table behind it.
 */

import { DateTime, Effect } from "effect"
import type { ComponentChildren } from "preact"
import { eachIncome } from "../../Books/BooksRepo.ts"
import type { Owner } from "../../Domain/Account.ts"
import type { ChainName } from "../../Domain/Chain.ts"
import type { Fiat, NetworkTokens } from "../../Domain/Currency.ts"
import { addRow, type LedgerSums, noSums, worthText } from "../../Domain/LedgerRow.ts"
import { betweenParts } from "../../Http/parts.ts"
import { quantityText } from "../../lib/quantities.ts"
import { type Outcome, outcomes } from "../../Payments/PaymentListRepo.ts"
import type { Db } from "../../Sql.ts"
import { Chain, type Column, fiatText, Money, Table, Time } from "../components/values.tsx"

/** Days that are shown, today among them. */
export const shownDays = 30
export const mostCounted = 100_000
const atOnce = 1_000

/** Payments by what became of them; `open` ones are pending or detecting, `expired` ones were not cancelled. */
export const fates = ["confirmed", "open", "expired", "cancelled", "failed"] as const
type Fate = (typeof fates)[number]

interface Day {
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

interface Overview {
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

interface OverviewOptions {
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

// About the size on the screen, so that the texts are readable on a phone as well.
const width = 400
const height = 180
const margin = { top: 8, right: 4, bottom: 22, left: 44 }

/** Round values from 0 up to the highest or above it, at most four steps. */
const ticksUpTo = (highest: number): ReadonlyArray<number> => {
  const power = 10 ** Math.floor(Math.log10(highest / 4))
  const step = power * ([1, 2, 5].find((times) => times * power * 4 >= highest) ?? 10)
  return Array.from({ length: Math.ceil(highest / step) + 1 }, (_, i) => i * step)
}

interface BarsProps<Key extends string> {
  readonly title: string
  /** One sentence in place of the chart, for screen readers. */
  readonly summary: string
  /** What the horizontal axis says of the first, the middle and the last day: a text each day. */
  readonly days: ReadonlyArray<string>
  /** What is stacked, from the bottom: each key is the class of its bars too. */
  readonly keys: ReadonlyArray<Key>
  readonly values: ReadonlyArray<Readonly<Record<Key, number>>>
  /** What the legend calls them; there is none without. */
  readonly names?: Readonly<Record<Key, string>>
  /** Empty for a value that has no line. */
  readonly format: (value: number) => string
  /** The same numbers as a table. */
  readonly table: ComponentChildren
}

/** Numbers by day and kind. */
const Bars = <Key extends string>({ days, format, keys, names, summary, table, title, values }: BarsProps<Key>) => {
  /** The top of a day's bar, with so many of the keys. */
  const topOf = (day: Readonly<Record<Key, number>>, count = keys.length) =>
    keys.slice(0, count).reduce((sum, key) => sum + day[key], 0)
  const ticks = ticksUpTo(Math.max(1, ...values.map((day) => topOf(day))))
  const highest = ticks.at(-1) ?? 1
  const y = (value: number) => height - margin.bottom - (value / highest) * (height - margin.bottom - margin.top)
  const band = (width - margin.left - margin.right) / values.length
  const x = (index: number) => margin.left + band * (index + 0.1)
  return (
    <figure class="chart card">
      <figcaption>{title}</figcaption>
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={summary}>
        {ticks
          .filter((value) => format(value) !== "")
          .map((value) => (
            <g key={value}>
              <line class="axis" x1={margin.left} x2={width - margin.right} y1={y(value)} y2={y(value)} />
              <text x={margin.left - 6} y={y(value) + 4} text-anchor="end">
                {format(value)}
              </text>
            </g>
          ))}
        {values.flatMap((day, index) =>
          keys.map((key, place) => {
            const [from, to] = [topOf(day, place), topOf(day, place + 1)]
            return to === from ? null : (
              <rect key={key} class={key} x={x(index)} width={band * 0.8} y={y(to)} height={y(from) - y(to)} />
            )
          })
        )}
        {[0, Math.floor((days.length - 1) / 2), days.length - 1].map((index, place) => (
          <text
            key={index}
            x={x(index) + band * 0.4}
            y={height - 6}
            text-anchor={place === 0 ? "start" : place === 1 ? "middle" : "end"}
          >
            {days[index]}
          </text>
        ))}
      </svg>
      {names === undefined ? null : (
        <ul class="legend">
          {keys.map((key) => (
            <li key={key}>
              <svg viewBox="0 0 10 10" aria-hidden="true">
                <rect class={key} width="10" height="10" />
              </svg>{" "}
              {names[key]}
            </li>
          ))}
        </ul>
      )}
      <details>
        <summary>As a table</summary>
        {table}
      </details>
    </figure>
  )
}

/** For charts: the worth in one currency. */
const numberOf = ({ income }: LedgerSums, currency: Fiat): number => Number(income.get(currency) ?? 0) / 10_000

/** The worth of the income, by the currencies that the account counted in then. */
const worthOf = ({ income, sums }: LedgerSums): string => {
  if (income.size > 0)
    return Array.from(income, ([currency, sum]) => fiatText(worthText(sum, currency), currency)).join(" + ")
  return sums.length === 0 ? "Nothing yet" : "Worth not known"
}

interface OfToken {
  readonly chain: ChainName
  readonly currency: string
  readonly decimals: number | undefined
  readonly amount: bigint
}

/** Amounts by token, in an order that does not change with them. */
export const Tokens = ({ of }: { readonly of: ReadonlyArray<OfToken> }) =>
  of.length === 0 ? (
    <>–</>
  ) : (
    <ul>
      {of
        .toSorted((a, b) => (`${a.currency} ${a.chain}` < `${b.currency} ${b.chain}` ? -1 : 1))
        .map(({ amount, chain, currency, decimals }) => (
          <li key={`${chain} ${currency} ${decimals}`}>
            <Money amount={amount} currency={currency} decimals={decimals} /> <Chain of={chain} />
          </li>
        ))}
    </ul>
  )

const tokensIn = ({ sums }: LedgerSums) => sums.map((sum) => ({ ...sum, amount: sum.income }))

const Unknown = ({ of }: { readonly of: LedgerSums }) =>
  of.unknown === 0 || of.income.size === 0 ? null : (
    <p class="muted">The sum is without {quantityText(of.unknown, "row")} of the ledger whose worth is not known.</p>
  )

/** That only the newest rows were summed, where there were more. */
export const Cut = ({ since }: { readonly since: number | undefined }) =>
  since === undefined ? null : (
    <p class="muted">
      Only the newest are counted here, those since <Time at={since} />.
    </p>
  )

/** The income of rows of the ledger. */
export const IncomeOf = ({ of, since }: { readonly of: LedgerSums; readonly since?: number | undefined }) => (
  <section class="card">
    <p class="big">{worthOf(of)}</p>
    <Unknown of={of} />
    <Tokens of={tokensIn(of)} />
    <Cut since={since} />
  </section>
)

/** What the fates are called. */
const fateTexts: Readonly<Record<(typeof fates)[number], string>> = {
  confirmed: "confirmed",
  open: "in progress",
  expired: "expired",
  cancelled: "cancelled",
  failed: "failed"
}

/** `12 % more than` and what it is compared with, of two worths. */
const comparison = (now: number, before: number, than: string): string => {
  const change = Math.round((now / before - 1) * 100)
  return `${change === 0 ? "As much as" : `${Math.abs(change)} % ${change > 0 ? "more" : "less"} than`} ${than}`
}

interface FigureProps {
  readonly name: string
  readonly value: ComponentChildren
  readonly children?: ComponentChildren
}

/** A number that is read at a glance. */
export const Figure = ({ children, name, value }: FigureProps) => (
  <section class="card" aria-label={name}>
    <h2>{name}</h2>
    <p class="big">{value}</p>
    {children}
  </section>
)

interface IncomeProps {
  readonly name: string
  /** Of the account. */
  readonly currency: Fiat
  readonly of: LedgerSums
  readonly before: LedgerSums
  /** What `before` is. */
  readonly than: string
}

/** The income of a time, beside that of the one before. */
export const IncomeFigure = ({ before, currency, name, of, than }: IncomeProps) => (
  <Figure name={name} value={worthOf(of)}>
    {numberOf(before, currency) > 0 ? (
      <p class="muted">{comparison(numberOf(of, currency), numberOf(before, currency), than)}</p>
    ) : null}
    <Unknown of={of} />
    {of.sums.length === 0 ? null : (
      <details>
        <summary>By token</summary>
        <Tokens of={tokensIn(of)} />
      </details>
    )}
  </Figure>
)

/** For an axis: `1.2K`. */
const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 })

interface ChartsProps {
  readonly overview: Overview
  readonly currency: Fiat
  readonly timezone: string
}

/** Fewer days with payments or income say nothing in a chart. */
const leastDays = 7

export const Charts = ({ currency, overview: { all, days }, timezone }: ChartsProps) => {
  const first = days.findIndex(({ fates: of, income }) => income.sums.length > 0 || fates.some((fate) => of[fate] > 0))
  if (first === -1 || days.length - first < leastDays) return null
  const format = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: timezone })
  const name = ({ at }: Day) => format.format(at)
  const names = days.map(name)
  /** The days as a table behind a chart, newest first. */
  const tableOf = (caption: string, columns: ReadonlyArray<Column<Day>>) => (
    <Table
      caption={caption}
      empty=""
      rows={[...days].reverse()}
      keyOf={({ at }) => String(at)}
      columns={[{ name: "Day", cell: name }, ...columns]}
    />
  )
  return (
    <div class="cards">
      <Bars
        title={`Income, ${currency}`}
        summary={`The income of ${shownDays} days: ${worthOf(all.income)}.`}
        days={names}
        keys={["income"]}
        values={days.map(({ income }) => ({ income: Math.max(0, numberOf(income, currency)) }))}
        format={(value) => short.format(value)}
        table={tableOf("Income by token, and its worth when it came", [
          { name: "By token", numeric: true, cell: ({ income }) => <Tokens of={tokensIn(income)} /> },
          { name: "Worth", numeric: true, cell: ({ income }) => worthOf(income) }
        ])}
      />
      <Bars
        title="Payments by outcome"
        summary={`Payments a day of the last ${shownDays} days: ${fates.map((fate) => `${all.fates[fate]} ${fateTexts[fate]}`).join(", ")} in all.`}
        days={names}
        keys={fates}
        names={fateTexts}
        values={days.map((day) => day.fates)}
        format={(value) => (Number.isInteger(value) ? String(value) : "")}
        table={tableOf(
          "Payments by the day they were created, and what became of them",
          fates.map((fate) => ({ name: fateTexts[fate], numeric: true, cell: (day) => day.fates[fate] }))
        )}
      />
    </div>
  )
}
