/** What came in, as cards and charts. */
import type { ComponentChildren } from "preact"
import type { Fiat } from "../../Domain/Currency.ts"
import { type LedgerSums, noSums, worthText } from "../../Domain/LedgerRow.ts"
import { quantityText } from "../../lib/quantities.ts"
import { Bars } from "../components/chart.tsx"
import { Table } from "../components/Table.tsx"
import { Chain, fiatText, Money, Time } from "../components/values.tsx"
import { pathOf } from "../route.ts"
import type { Viewer } from "../Viewer.ts"
import { type Day, durationText, fates, median, type Overview, shownDays } from "./overview.ts"

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

const Worth = ({ of }: { readonly of: LedgerSums }) => (
  <>
    <p class="big">{worthOf(of)}</p>
    {of.unknown === 0 || of.income.size === 0 ? null : (
      <p class="muted">The sum is without {quantityText(of.unknown, "row")} of the ledger whose worth is not known.</p>
    )}
  </>
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
    <Worth of={of} />
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

interface Deliveries {
  readonly delivered: number
  /** Tried, and not arrived: those that are tried again are among them. */
  readonly failing: number
}

/** `12 % more than yesterday by this time`, of two worths. */
const comparison = (now: number, before: number): string => {
  const change = Math.round((now / before - 1) * 100)
  const words = change === 0 ? "As much as" : `${Math.abs(change)} % ${change > 0 ? "more" : "less"} than`
  return `${words} yesterday by this time`
}

interface Period {
  readonly name: string
  readonly day: Day
  /** What to compare with: what as much of the day before had brought. */
  readonly before?: LedgerSums
  readonly deliveries: Deliveries
}

interface SumsProps {
  readonly viewer: Viewer
  /** Of the account. */
  readonly currency: Fiat
  readonly periods: ReadonlyArray<Period>
}

/** Periods side by side. */
export const Sums = ({ currency, periods, viewer }: SumsProps) => {
  const rows: Readonly<Record<string, (period: Period) => ComponentChildren>> = {
    Income: ({ before = noSums(), day }) => (
      <>
        <Worth of={day.income} />
        {numberOf(before, currency) > 0 ? (
          <p class="muted">{comparison(numberOf(day.income, currency), numberOf(before, currency))}</p>
        ) : null}
      </>
    ),
    "By token": ({ day }) => <Tokens of={day.income} />,
    "Payments created": ({ day }) =>
      fates
        .filter((fate) => day.fates[fate] > 0)
        .map((fate) => `${day.fates[fate]} ${fateTexts[fate]}`)
        .join(", ") || "none",
    "Median time to confirmed": ({ day }) => {
      const middle = median(day.times)
      return middle === undefined ? "–" : durationText(middle)
    },
    Webhooks: ({ deliveries: { delivered, failing } }) => (
      <>
        {delivered} delivered,{" "}
        {failing === 0 ? (
          "none failing"
        ) : (
          <a class="bad" href={pathOf(viewer, "/deliveries?status=failing")}>
            {failing} failing
          </a>
        )}
      </>
    )
  }
  return (
    <table class="card sums">
      <thead>
        <tr>
          <td />
          {periods.map(({ name }) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {Object.entries(rows).map(([title, cell]) => (
          <tr key={title}>
            <th scope="row">{title}</th>
            {periods.map((period) => (
              <td key={period.name}>{cell(period)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

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

export const Charts = ({ currency, overview: { all, days }, timezone }: ChartsProps) => {
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
