/** Exceptions as a file: a row each, newest first, with where the money came from and what was decided. */
import { Effect } from "effect"
import { decimalText } from "../../Domain/amountDecimals.ts"
import type { PaymentException } from "../../Domain/Exception.ts"
import type { Owner } from "../../Domain/Owner.ts"
import { iso } from "../../Domain/Timestamp.ts"
import { exceptionDetails } from "../../Domain/toExceptionObject.ts"
import { type ListFilter, list, placeOf } from "../../Payments/ExceptionListRepo.ts"
import { references } from "../../Payments/PaymentListRepo.ts"
import type { SettingsShape } from "../../Settings.ts"
import type { Db } from "../../Sql.ts"
import { type CsvColumns, csvPieces } from "../csv.ts"
import { chainIdOf, decimalsOfException } from "./exceptionView.tsx"

interface Row {
  readonly exception: PaymentException
  readonly details: ReturnType<typeof exceptionDetails>
  readonly merchantRef: string | undefined
  readonly chainId: number | undefined
  readonly decimals: number | undefined
}

const columns: CsvColumns<Row> = {
  id: ({ exception }) => exception.id,
  payment: ({ exception }) => exception.payment,
  merchantRef: ({ merchantRef }) => merchantRef,
  kind: ({ exception }) => exception.kind,
  status: ({ exception }) => exception.status,
  chain: ({ exception }) => exception.chain,
  chainId: ({ chainId }) => chainId?.toString(),
  currency: ({ exception }) => exception.currency,
  amount: ({ decimals, exception }) => decimalText(exception.amount.toString(), decimals),
  amountBaseUnits: ({ exception }) => exception.amount.toString(),
  amountRefunded: ({ decimals, exception }) => decimalText(exception.sentBack.toString(), decimals),
  refundTransactions: ({ exception }) => exception.refunds.flatMap(({ txHash }) => txHash ?? []).join(" "),
  from: ({ details }) => details.from,
  address: ({ details }) => details.address,
  path: ({ details }) => details.path,
  txHash: ({ exception }) => exception.txHash,
  detectedAt: ({ exception }) => iso(exception.openedAt),
  resolvedAt: ({ details }) => details.resolvedAt,
  resolutionTxHash: ({ details }) => details.resolutionTxHash,
  note: ({ details }) => details.note
}

export const exceptionsCsv = (
  db: Db,
  owner: Owner,
  filter: Omit<ListFilter, "limit" | "after">,
  chains: SettingsShape["chains"]
) =>
  csvPieces(columns, (after: Row | undefined, limit) =>
    Effect.gen(function* () {
      const exceptions = yield* list(db, owner, { ...filter, limit, after: after && placeOf(after.exception) })
      const refs = yield* references(
        db,
        exceptions.flatMap(({ payment }) => payment ?? [])
      )
      return exceptions.map(
        (exception): Row => ({
          exception,
          details: exceptionDetails(exception),
          merchantRef: exception.payment && refs.get(exception.payment),
          chainId: chainIdOf(chains, exception),
          decimals: decimalsOfException(chains, exception)
        })
      )
    })
  )
