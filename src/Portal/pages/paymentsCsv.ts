/** Payments as a file: a row per payment, newest first, with its transactions and what became of money that did not fit. */
import { Effect } from "effect"
import { sum } from "../../Domain/Amount.ts"
import { decimalText } from "../../Domain/amountDecimals.ts"
import type { PaymentException } from "../../Domain/Exception.ts"
import type { Owner } from "../../Domain/Owner.ts"
import { decimalsOfPayment, type Payment } from "../../Domain/Payment.ts"
import { iso } from "../../Domain/Timestamp.ts"
import { firstOfPayments, shownInAnswers } from "../../Payments/ExceptionListRepo.ts"
import { list } from "../../Payments/PaymentListRepo.ts"
import { type Origins, originsOf } from "../../Payments/ReceiptsRepo.ts"
import type { SettingsShape } from "../../Settings.ts"
import type { Db } from "../../Sql.ts"
import { type CsvColumns, csvPieces } from "../csv.ts"
import { chainIdOf } from "./exceptionView.tsx"
import type { Filter } from "./paymentSearch.ts"

interface Row {
  readonly payment: Payment
  readonly decimals: number | undefined
  readonly chainId: number | undefined
  readonly origins: Origins | undefined
  readonly exceptions: ReadonlyArray<PaymentException>
}

/** An amount alone: its currency has a column of its own. Empty where its decimals are not known any more. */
const units = (amount: bigint | undefined, { decimals }: Row) =>
  amount === undefined ? undefined : decimalText(amount.toString(), decimals)

const when = (at: number | undefined) => (at === undefined ? undefined : iso(at))

/** What was sent back of the payment's own currency on its chain. */
const refunded = ({ exceptions, payment: { chain, currency } }: Row) =>
  sum(exceptions.flatMap((one) => (one.chain === chain && one.currency === currency ? [one.sentBack] : [])))

const columns: CsvColumns<Row> = {
  id: ({ payment }) => payment.id,
  merchantRef: ({ payment }) => payment.merchantRef,
  status: ({ payment }) => payment.status,
  failureReason: ({ payment }) => payment.failureReason,
  chain: ({ payment }) => payment.chain,
  currency: ({ payment }) => payment.currency,
  amount: (row) => units(row.payment.amount, row),
  amountReceived: (row) => units(row.payment.amountReceived, row),
  amountBaseUnits: ({ payment }) => payment.amount.toString(),
  usdValue: ({ payment }) => payment.usdValue,
  address: ({ payment }) => payment.address,
  txHash: ({ payment }) => payment.txHash,
  createdAt: ({ payment }) => iso(payment.createdAt),
  expiresAt: ({ payment }) => iso(payment.expiresAt),
  confirmedAt: ({ payment }) => when(payment.confirmedAt),
  metadata: ({ payment }) => payment.metadata,
  chainId: ({ chainId }) => chainId?.toString(),
  transactions: ({ origins }) => origins?.transactions.join(" "),
  senders: ({ origins }) => origins?.senders.join(" "),
  amountRefunded: (row) => units(refunded(row), row),
  openExceptions: ({ exceptions }) => `${exceptions.filter(({ status }) => status === "open").length}`,
  exceptions: ({ exceptions }) => exceptions.map(({ id, kind, status }) => `${kind} ${status} ${id}`).join("; ")
}

export const paymentsCsv = (db: Db, owner: Owner, filter: Filter, chains: SettingsShape["chains"]) =>
  csvPieces(columns, (after: Row | undefined, limit) =>
    Effect.gen(function* () {
      const payments = yield* list(db, owner, { ...filter, limit, after: after?.payment })
      const ids = payments.map(({ id }) => id)
      const origins = yield* originsOf(db, ids)
      const exceptions = yield* firstOfPayments(db, ids, shownInAnswers)
      return payments.map(
        (payment): Row => ({
          payment,
          decimals: decimalsOfPayment(payment),
          chainId: chainIdOf(chains, payment),
          origins: origins.get(payment.id),
          exceptions: exceptions(payment.id).exceptions
        })
      )
    })
  )
