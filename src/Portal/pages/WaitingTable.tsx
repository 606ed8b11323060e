/** What waits to be collected, by chain and currency. */
import { BigDecimal } from "effect"
import { decimalsOn } from "../../Domain/amountDecimals.ts"
import { type UncollectedAmount, worthOfWaiting } from "../../Payments/addresses/Uncollected.ts"
import type { Prices } from "../../Quotes/Prices.ts"
import type { SettingsShape } from "../../Settings.ts"
import { Table } from "../components/Table.tsx"
import { Chain, fiatText, Money } from "../components/values.tsx"

interface WaitingTableProps {
  readonly of: ReadonlyArray<UncollectedAmount>
  readonly networks: SettingsShape["chains"]
  readonly price: Prices["Type"]["usd"]
}

export const WaitingTable = ({ networks, of, price }: WaitingTableProps) =>
  of.length === 0 ? null : (
    <>
      <h2>Waiting to be collected</h2>
      <Table
        caption="What was received, and not collected yet"
        empty=""
        rows={[...of].sort((a, b) => (a.chain + a.currency < b.chain + b.currency ? -1 : 1))}
        keyOf={({ chain, currency }) => `${chain} ${currency}`}
        columns={[
          { name: "Chain", cell: ({ chain }) => <Chain of={chain} /> },
          {
            name: "Amount",
            numeric: true,
            cell: (row) => (
              <Money amount={row.amount} currency={row.currency} decimals={decimalsOn(networks, row, row.currency)} />
            )
          },
          {
            name: "Worth",
            numeric: true,
            cell: (row) => {
              const worth = worthOfWaiting(networks, price, row)
              return worth === undefined ? "–" : fiatText(BigDecimal.format(BigDecimal.scale(worth, 2)))
            }
          }
        ]}
      />
      <p class="hint">
        Counted once an hour, from what tilld has seen. <a href="/guide/collect">How to collect it</a>
      </p>
    </>
  )
