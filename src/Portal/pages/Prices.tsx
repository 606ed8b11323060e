/** Prices: what a quote would use now, and what each source has reported. Read only, from memory. */
import { BigDecimal, Clock, Effect } from "effect"
import { type PriceStatus, Prices, type SourcePrice, toleranceOf } from "../../Quotes/Prices.ts"
import { showDecimal } from "../../Quotes/sources/rate.ts"
import { framedReply } from "../answers.tsx"
import { Status, Table } from "../components/values.tsx"
import { type PortalRoute, pageRoute } from "../route.ts"

const hundred = BigDecimal.fromBigInt(100n)

const percentText = (part: BigDecimal.BigDecimal): string =>
  `${BigDecimal.unsafeToNumber(BigDecimal.multiply(part, hundred)).toFixed(2)} %`

/** How old something is, Unix milliseconds. A configured price has no age. */
const ageText = (millis: number): string =>
  Number.isFinite(millis) ? `${Math.max(0, Math.round(millis / 1000))} s` : "fixed"

/** With thousands in groups. */
const Price = ({ of }: { readonly of: BigDecimal.BigDecimal }) => (
  <span class="money">{showDecimal(of).replace(/^[0-9]+/, (whole) => BigInt(whole).toLocaleString("en-US"))}</span>
)

const UsedTable = ({ prices }: { readonly prices: ReadonlyArray<PriceStatus> }) => (
  <Table
    caption="What a quote uses now, in USD for one unit"
    rows={prices}
    keyOf={({ symbol }) => symbol}
    empty="No currency is priced."
    columns={[
      { name: "Currency", cell: ({ symbol }) => symbol },
      { name: "Price", numeric: true, cell: ({ price }) => (price === undefined ? "–" : <Price of={price} />) },
      {
        name: "Status",
        cell: ({ price, reason }) =>
          price === undefined ? (
            <>
              <Status of="refused" tone="bad" /> {reason}
            </>
          ) : (
            <Status of="used" tone="good" />
          )
      },
      { name: "From", cell: ({ source }) => source ?? "no source" },
      { name: "Age", numeric: true, cell: ({ age }) => (age === undefined ? "none" : ageText(age)) },
      {
        name: "Sources differ by",
        numeric: true,
        cell: ({ spread, symbol }) =>
          spread === undefined ? "–" : `${percentText(spread)} of at most ${percentText(toleranceOf(symbol))}`
      }
    ]}
  />
)

const SourceTable = ({ now, reported }: { readonly reported: ReadonlyArray<SourcePrice>; readonly now: number }) => (
  <Table
    caption="What each source has reported last"
    rows={reported}
    keyOf={({ source, symbol }) => `${symbol} ${source}`}
    empty="No source has reported a price yet."
    columns={[
      { name: "Currency", cell: ({ symbol }) => symbol },
      { name: "Source", cell: ({ source }) => source },
      { name: "Price", numeric: true, cell: ({ price }) => <Price of={price} /> },
      { name: "Age", numeric: true, cell: ({ observedAt }) => ageText(now - observedAt) },
      {
        name: "Used until",
        numeric: true,
        cell: ({ maxAge }) => (Number.isFinite(maxAge) ? ageText(maxAge) : "always")
      }
    ]}
  />
)

export const priceRoutes: ReadonlyArray<PortalRoute<Prices>> = [
  pageRoute("/quotes", "viewer", (viewer) =>
    Effect.gen(function* () {
      const prices = yield* Prices
      const now = yield* Clock.currentTimeMillis
      const reported = prices.reported().toSorted((a, b) => (a.symbol < b.symbol ? -1 : a.symbol > b.symbol ? 1 : 0))
      return framedReply(
        viewer,
        { section: "/quotes", title: "Prices" },
        <>
          <p>
            A quote is made of fresh prices that agree, and refused where there are none: a stale price is never used.
          </p>
          <UsedTable prices={prices.status()} />
          <h2>Sources</h2>
          <SourceTable reported={reported} now={now} />
        </>
      )
    })
  )
]
