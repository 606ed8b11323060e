/** What came in, as cards and charts. */
import type { ComponentChildren } from "preact"
import type { Fiat } from "../../Domain/Currency.ts"
import { type LedgerSums, worthText } from "../../Domain/LedgerRow.ts"
import { quantityText } from "../../lib/quantities.ts"
import { Bars } from "../components/chart.tsx"
import { Table } from "../components/Table.tsx"
import { Chain, fiatText, Money, Time } from "../components/values.tsx"
import { type Day, fates, type Overview, shownDays } from "./overview.ts"

/** For charts: the worth in one currency. */
const numberOf = ({ income }: LedgerSums, currency: Fiat): number => Number(income.get(currency) ?? 0) / 10_000

/** The worth of the income, by the currencies that the account counted in then. */
const worthOf = ({ income, sums }: LedgerSums): string => {
  if (income.size > 0)
    return Array.from(income, ([currency, sum]) => fiatText(worthText(sum, currency), currency)).join(" + ")
  return sums.length === 0 ? "Nothing yet" : "Worth not known"
}

const Tokens = ({ of: { sums } }: { readonly of: LedgerSums }) =>
  sums.length === 0 ? (
    <>–</>
  ) : (
    <ul>
      {/* In an order that does not change with the rows. */}
      {[...sums]
        .sort((a, b) => (`${a.currency} ${a.chain}` < `${b.currency} ${b.chain}` ? -1 : 1))
        .map(({ chain, currency, decimals, income }) => (
          <li key={`${chain} ${currency} ${decimals}`}>
            <Money amount={income} currency={currency} decimals={decimals} /> <Chain of={chain} />
          </li>
        ))}
    </ul>
  )

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
    <Tokens of={of} />
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
        <Tokens of={of} />
      </details>
    )}
  </Figure>
)

/** For an axis: `1.2K`. */
const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 })

interface DayColumn {
  readonly name: string
  readonly numeric?: boolean
  readonly cell: (day: Day) => ComponentChildren
}

/** The days as a table behind a chart, newest first. */
const DayTable = ({
  caption,
  columns,
  days,
  name
}: {
  readonly caption: string
  readonly days: ReadonlyArray<Day>
  readonly name: (day: Day) => string
  readonly columns: ReadonlyArray<DayColumn>
}) => (
  <Table
    caption={caption}
    empty=""
    rows={[...days].reverse()}
    keyOf={({ at }) => String(at)}
    columns={[{ name: "Day", cell: name }, ...columns]}
  />
)

export interface ChartsProps {
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
  return (
    <div class="cards">
      <Bars
        title={`Income, ${currency}`}
        summary={`The income of ${shownDays} days: ${worthOf(all.income)}.`}
        days={names}
        keys={["income"]}
        values={days.map(({ income }) => ({ income: Math.max(0, numberOf(income, currency)) }))}
        format={(value) => short.format(value)}
        table={
          <DayTable
            caption="Income by token, and its worth when it came"
            days={days}
            name={name}
            columns={[
              { name: "By token", numeric: true, cell: ({ income }) => <Tokens of={income} /> },
              { name: "Worth", numeric: true, cell: ({ income }) => worthOf(income) }
            ]}
          />
        }
      />
      <Bars
        title="Payments by outcome"
        summary={`Payments a day of the last ${shownDays} days: ${fates.map((fate) => `${all.fates[fate]} ${fateTexts[fate]}`).join(", ")} in all.`}
        days={names}
        keys={fates}
        names={fateTexts}
        values={days.map((day) => day.fates)}
        format={(value) => (Number.isInteger(value) ? String(value) : "")}
        table={
          <DayTable
            caption="Payments by the day they were created, and what became of them"
            days={days}
            name={name}
            columns={fates.map((fate) => ({ name: fateTexts[fate], numeric: true, cell: (day) => day.fates[fate] }))}
          />
        }
      />
    </div>
  )
}
