/** What came in, as cards and charts. */
import { BigDecimal } from "effect"
import type { ComponentChildren } from "preact"
import type { Fiat } from "../../Domain/Currency.ts"
import { Bars } from "../components/chart.tsx"
import { Table } from "../components/Table.tsx"
import { fiatText, Money } from "../components/values.tsx"
import { pathOf } from "../route.ts"
import type { Viewer } from "../Viewer.ts"
import { type Day, durationText, fates, median, shownDays, together } from "./overview.ts"

/** A worth in the account's currency, of millionths of a USD. */
export interface Worth {
  readonly of: (millionths: bigint) => number
  readonly text: (millionths: bigint) => string
  readonly currency: Fiat
  /** Where it is not in USD: how it was converted. */
  readonly note: string
}

/** In USD where the price of the currency, in USD, is not known. */
export const worthIn = (currency: Fiat, price: BigDecimal.BigDecimal | undefined): Worth => {
  const shown = price === undefined ? "USD" : currency
  const decimal = (millionths: bigint) =>
    BigDecimal.unsafeDivide(BigDecimal.make(millionths, 6), price ?? BigDecimal.fromBigInt(1n))
  return {
    of: (millionths) => BigDecimal.unsafeToNumber(decimal(millionths)),
    text: (millionths) => fiatText(BigDecimal.format(BigDecimal.scale(decimal(millionths), 6)), shown),
    currency: shown,
    note: shown === "USD" ? "" : ", at the rate of now"
  }
}

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

/** The volumes of a day in an order that does not change with the payments. */
const sorted = ({ volumes }: Day) => [...volumes].sort(([a], [b]) => (a < b ? -1 : 1))

const plural = (count: number, one: string): string => `${count} ${one}${count === 1 ? "" : "s"}`

/** `12 % more than yesterday by this time`, of two worths. */
const comparison = (now: bigint, before: bigint): string => {
  const change = Math.round((Number(now) / Number(before) - 1) * 100)
  const words = change === 0 ? "As much as" : `${Math.abs(change)} % ${change > 0 ? "more" : "less"} than`
  return `${words} yesterday by this time`
}

/** The worth of what came in, or the number of payments where no price was known. */
const sumOf = ({ times, worth: millionths }: Day, worth: Worth): string => {
  if (millionths > 0n) return worth.text(millionths)
  return times.length === 0 ? "Nothing yet" : plural(times.length, "payment")
}

interface Period {
  readonly name: string
  readonly day: Day
  /** What to compare with: the worth, millionths of a USD, of as much of the day before. */
  readonly before?: bigint
  readonly deliveries: Deliveries
}

interface SumsProps {
  readonly viewer: Viewer
  readonly worth: Worth
  readonly periods: ReadonlyArray<Period>
}

/** Periods side by side. */
export const Sums = ({ periods, viewer, worth }: SumsProps) => {
  const rows: Readonly<Record<string, (period: Period) => ComponentChildren>> = {
    Income: ({ before, day }) => (
      <>
        <p class="big">{sumOf(day, worth)}</p>
        {before ? <p class="muted">{comparison(day.worth, before)}</p> : null}
        {day.unpriced === 0 || day.worth === 0n ? null : (
          <p class="muted">The sum is without {plural(day.unpriced, "payment")} whose price was not known.</p>
        )}
      </>
    ),
    "By currency": ({ day }) =>
      day.volumes.size === 0 ? (
        "–"
      ) : (
        <ul>
          {sorted(day).map(([key, { amount, currency, decimals, payments }]) => (
            <li key={key}>
              <Money amount={amount} currency={currency} decimals={decimals} />{" "}
              <span class="muted">in {plural(payments, "payment")}</span>
            </li>
          ))}
        </ul>
      ),
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
  readonly days: ReadonlyArray<Day>
  readonly worth: Worth
  readonly timezone: string
}

export const Charts = ({ days, timezone, worth }: ChartsProps) => {
  const format = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: timezone })
  const name = ({ at }: Day) => format.format(at)
  const names = days.map(name)
  const all = together(days)
  const hasWorth = all.worth > 0n
  return (
    <div class="cards">
      <Bars
        title={hasWorth ? `Income, ${worth.currency}` : "Payments that came in"}
        summary={`${sumOf(all, worth)} came in within ${shownDays} days.`}
        days={names}
        keys={["income"]}
        values={days.map((day) => ({ income: hasWorth ? worth.of(day.worth) : day.times.length }))}
        format={(value) => (hasWorth || Number.isInteger(value) ? short.format(value) : "")}
        table={
          <DayTable
            caption={`What came in, by currency${hasWorth ? `; worth by the prices when the payments were created${worth.note}` : ""}`}
            days={days}
            name={name}
            columns={[
              {
                name: "Received",
                numeric: true,
                cell: (day) =>
                  sorted(day).map(([key, { amount, currency, decimals }]) => (
                    <div key={key}>
                      <Money amount={amount} currency={currency} decimals={decimals} />
                    </div>
                  ))
              },
              ...(hasWorth ? [{ name: "Worth", numeric: true, cell: (day: Day) => worth.text(day.worth) }] : [])
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
