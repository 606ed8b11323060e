/** Payments as a file for spreadsheets (RFC 4180): a row per payment, newest first, read and sent a page at a time. */
import { Effect, Option, Stream } from "effect"
import { decimalsOn, formatAmount, type NetworkTokens } from "../../Domain/amountDecimals.ts"
import type { Owner } from "../../Domain/Owner.ts"
import type { Payment } from "../../Domain/Payment.ts"
import { iso } from "../../Domain/Timestamp.ts"
import type { Pieces } from "../../Http/HttpReply.ts"
import { type Cursor, list } from "../../Payments/PaymentListRepo.ts"
import type { Db } from "../../Sql.ts"
import { csvLine } from "../csv.ts"
import type { Filter } from "./paymentSearch.ts"

/** Payments read at once. */
const pageSize = 500

const when = (at: number | undefined): string => (at === undefined ? "" : iso(at))

type Columns = Readonly<Record<string, (payment: Payment, decimals: number | undefined) => string>>

/** An amount alone: its currency has a column of its own. Empty where its decimals are not known any more. */
const units = ({ currency }: Payment, amount: bigint | undefined, decimals: number | undefined): string =>
  amount === undefined || decimals === undefined
    ? ""
    : formatAmount(amount.toString(), currency, decimals).slice(0, -currency.length - 1)

const columns: Columns = {
  id: ({ id }) => id,
  merchantRef: ({ merchantRef }) => merchantRef,
  status: ({ status }) => status,
  failureReason: ({ failureReason }) => failureReason ?? "",
  chain: ({ chain }) => chain,
  currency: ({ currency }) => currency,
  amount: (payment, decimals) => units(payment, payment.amount, decimals),
  amountReceived: (payment, decimals) => units(payment, payment.amountReceived, decimals),
  amountBaseUnits: ({ amount }) => amount.toString(),
  usdValue: ({ usdValue }) => usdValue ?? "",
  address: ({ address }) => address,
  txHash: ({ txHash }) => txHash ?? "",
  createdAt: ({ createdAt }) => iso(createdAt),
  expiresAt: ({ expiresAt }) => iso(expiresAt),
  confirmedAt: ({ confirmedAt }) => when(confirmedAt),
  metadata: ({ metadata }) => metadata
}

/** Ends with the store's failure, which cuts the file off: nobody takes a part of it for all. */
export const paymentsCsv = (db: Db, owner: Owner, filter: Filter, networks: ReadonlyArray<NetworkTokens>): Pieces => {
  const row = (payment: Payment) => {
    const decimals = decimalsOn(networks, payment, payment.currency)
    return csvLine(Object.values(columns).map((cell) => cell(payment, decimals)))
  }
  const pages = Stream.paginateEffect(Option.none<Cursor>(), (after) =>
    Effect.map(
      Effect.orDie(list(db, owner, { ...filter, limit: pageSize, after: Option.getOrUndefined(after) })),
      (payments) => [payments.map(row).join(""), nextOf(payments)] as const
    )
  )
  return Stream.concat(Stream.make(csvLine(Object.keys(columns))), pages)
}

/** The place behind a page, and none after the last one. */
const nextOf = (payments: ReadonlyArray<Payment>): Option.Option<Option.Option<Cursor>> => {
  const last = payments.at(-1)
  return payments.length < pageSize || last === undefined ? Option.none() : Option.some(Option.some(last))
}
