import { Effect, Schema } from "effect"
import { ledgerHead, ledgerLines, type OwnedLedgerRow, showLedger } from "../Books/ledgerOperation.ts"
import { decimalText } from "../Domain/Currency.ts"
import { addUp, type LedgerSum, leftOf, worthText } from "../Domain/LedgerRow.ts"
import { quantityText } from "../lib/quantities.ts"
import { otherwise } from "../Operations/inputFields.ts"
import { withFlag } from "../Operations/inputText.ts"
import { print, table } from "./Output.ts"
import { askFor, commandWith, decoded } from "./operationCommand.ts"
import { controlTargetOf } from "./options.ts"

type Row = typeof OwnedLedgerRow.Encoded

const cellsOf = ({ income = "", ...row }: Row): ReadonlyArray<string> => [
  ...[row.at, row.kind, row.what ?? "", row.merchantRef ?? row.account ?? ""],
  ...[row.chain, `${row.quantity ?? row.amount} ${row.currency}`],
  ...[row.worth === undefined ? (row.worthUnknown ?? "") : `${row.worth} ${row.worthCurrency}`, income],
  row.txHash ?? "transaction unknown"
]
const headings = ["TIME", "KIND", "WHAT", "REFERENCE", "CHAIN", "AMOUNT", "WORTH", "INCOME", "TRANSACTION"]

const sumText = (sum: LedgerSum): string => {
  const of = (amount: bigint) => decimalText(`${amount}`, sum.decimals) ?? amount
  return (
    `${sum.chain} ${sum.currency}: ${of(sum.received)} received - ${of(sum.refunded)} refunded - ` +
    `${of(sum.collected)} collected - ${of(sum.gas)} gas = ${of(leftOf(sum))}`
  )
}

/** What the rows come to: by chain and currency what is left at the addresses, and the income. */
const sumsText = (rows: ReadonlyArray<Row>): string => {
  const { income, sums, unknown } = addUp(rows)
  return [
    ...sums.map(sumText),
    ...Array.from(income, ([currency, sum]) => `Income: ${worthText(sum)} ${currency}`),
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
      { about: "Print comma-separated values, all columns of all rows" }
    )
  },
  ({ csv, ...json }, target) =>
    Effect.gen(function* () {
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
      if (rows.length > 0) yield* print(sumsText(rows))
    })
)
