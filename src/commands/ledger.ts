import { Effect, Schema } from "effect"
import { ledgerHead, ledgerLines, type OwnedLedgerRow, showLedger } from "../Books/ledgerOperation.ts"
import { decimalText } from "../Domain/Currency.ts"
import { addUp, type LedgerSum, leftOf, worthText } from "../Domain/LedgerRow.ts"
import { quantityText } from "../lib/quantities.ts"
import { otherwise } from "../Operations/inputFields.ts"
import { withFlag } from "../Operations/operation.ts"
import { print, table } from "./Output.ts"
import { askFor, commandWith, decoded } from "./operationCommand.ts"
import { controlTargetOf } from "./options.ts"

type Row = typeof OwnedLedgerRow.Encoded

const cellsOf = ({ income = "", ...row }: Row): ReadonlyArray<string> => [
  ...[row.at, [row.kind, row.status].filter(Boolean).join(", "), row.what ?? "", row.merchantRef ?? ""],
  ...[row.chain, `${row.quantity ?? row.amount} ${row.currency}`],
  ...[row.worth === undefined ? (row.worthUnknown ?? "") : `${row.worth} ${row.worthCurrency}`, income],
  row.txHash ?? "transaction unknown"
]
const headings = ["TIME", "KIND", "WHAT", "REFERENCE", "CHAIN", "AMOUNT", "WORTH", "INCOME", "TRANSACTION"]

/** Of all rows of a currency, what is left at the addresses; of some, what moved there. */
const sumText = (sum: LedgerSum, areAll: boolean): string => {
  const of = (amount: bigint) => decimalText(`${amount}`, sum.decimals) ?? amount
  const { collected, gas, received, refunded } = sum
  const parts = Object.entries({ received, refunded, collected, gas }).map(([name, amount]) => `${of(amount)} ${name}`)
  return `${sum.chain} ${sum.currency}: ${areAll ? `${parts.join(" - ")} = ${of(leftOf(sum))}` : parts.join(", ")}`
}

/** What the rows come to: by chain and currency what moved at the addresses, and the income. */
const sumsText = (rows: ReadonlyArray<Row>, areAll: boolean): string => {
  const { income, sums, unknown } = addUp(rows)
  return [
    ...sums.map((sum) => sumText(sum, areAll)),
    ...Array.from(income, ([currency, sum]) => `Income: ${worthText(sum, currency)} ${currency}`),
    ...(unknown === 0 ? [] : [`Without the income of ${quantityText(unknown, "row")} whose worth is not known`])
  ].join("\n")
}

const { after: _, limit: __, ...selected } = showLedger.fields

/** `tilld ledger`: every row that is selected, and what they come to. */
export const ledgerCommand = commandWith(
  showLedger.name,
  showLedger.summary,
  {
    ...selected,
    csv: withFlag(
      otherwise(Schema.Boolean, () => false),
      { about: "Print comma-separated values, all columns of all rows, unless --json is given" }
    )
  },
  ({ csv: isCsv, ...json }, target) =>
    Effect.gen(function* () {
      const csv = isCsv && !target.json
      const input = yield* decoded(showLedger, json)
      const place = yield* controlTargetOf(target)
      const rows: Array<Row> = []
      if (csv) yield* print(ledgerHead.trimEnd())
      let after: string | undefined
      do {
        const page = yield* askFor(place, showLedger, { ...input, ...(after === undefined ? {} : { after }) })
        after = page.next
        if (!csv) rows.push(...page.rows)
        // Ends of lines as a file has them would be spelled out.
        else if (page.rows.length > 0) yield* print(ledgerLines(page.rows).trimEnd().replaceAll("\r\n", "\n"))
      } while (after !== undefined)
      if (csv) return
      if (target.json) return yield* print(JSON.stringify({ rows }))
      yield* print(table(headings, rows.map(cellsOf)))
      const { from, kind, mode, month, payment, until } = input
      const areAll = [from, kind, month, payment, until].every((one) => one === undefined)
      yield* print(rows.length === 0 ? `There is no such row in ${mode} mode` : sumsText(rows, areAll))
    })
)
