/**
 * A row of the ledger, described once: money that came, went back, was collected, or paid for gas, with its worth when tilld
 * first stored it. The API, the command, the portal and its file show these fields; every sum is a sum over them.
 */
import { Schema } from "effect"
import { count, idPattern, maybe, text, timestamp } from "../lib/annotations.ts"
import { ChainName, type Mode } from "./Chain.ts"
import { decimalsOf, decimalText, Fiat } from "./Currency.ts"
import { RefundStatus } from "./Refund.ts"

const units = { pattern: "^(0|[1-9][0-9]*)$" }
const address = { pattern: "^0x[0-9a-fA-F]{40}$" }
const maybeText = (...given: Parameters<typeof text>) => maybe(text(...given))

/** Why a rate is not known: the token has no price, no source had a fresh one, or the money was seen a day after its block. */
export const UnknownRate = Schema.Literal("unknown_token", "no_fresh_price", "seen_late", "too_small")
export type UnknownRate = typeof UnknownRate.Type

export const LedgerKind = Schema.Literal("receipt", "refund", "collection", "gas")
export type LedgerKind = typeof LedgerKind.Type

export const LedgerRow = Schema.Struct({
  id: text(
    "Identifier of the row. A reorg that mines the same transfer again changes nothing of it.",
    idPattern("led")
  ),
  at: timestamp("The time of its block"),
  kind: LedgerKind.annotations({
    description:
      "`receipt`: money that came. `refund`: money that was sent back. `collection`: money that `tilld sweep` moved to the operator's own address. `gas`: what a transaction of `tilld sweep` paid."
  }),
  refund: maybeText("The refund; absent where it is none.", idPattern("ref")),
  status: maybe(
    RefundStatus.annotations({
      description: "Of a refund: while it is `noted`, the chain has not shown it, and `at` is the time of its record."
    })
  ),
  payment: maybeText("The payment; absent where there are several, as of a batch's gas.", idPattern("pay")),
  merchantRef: maybeText("The payment's reference."),
  chain: ChainName.annotations({ description: "The chain that the money moved on." }),
  currency: text("What moved: a token's symbol, a wrong token's name, or its contract."),
  amount: text("How much, in the smallest unit.", units),
  decimals: maybe(count("Decimals of the currency; absent where they are not known.")),
  quantity: maybeText("The amount in whole tokens, a decimal."),
  from: maybeText("Who sent it, in EIP-55 form; absent where that is not known.", address),
  to: maybeText(
    "Who received it, in EIP-55 form; of gas, what the transaction called. Absent for a refund whose receiver is not known.",
    address
  ),
  txHash: maybeText("The transaction; absent where no node can tell it.", { pattern: "^0x[0-9a-fA-F]{64}$" }),
  what: maybeText(
    "Of a receipt what the money is, as for the payment. Of a refund and of gas who paid: a receiving `address`, the `sponsor`, or `elsewhere`."
  ),
  decision: Schema.Literal("accepted", "refunded", "open", "none").annotations({
    description: "What was decided on the money of a receipt that did not fit; `none` where nothing had to be."
  }),
  credited: maybeText("How much of a receipt is income, in the smallest unit; of a refund, how much of it was.", units),
  worth: maybeText(
    "The amount in the account's currency when tilld first stored it, a decimal with at most four digits behind the point. It never changes. Absent where no rate was known."
  ),
  income: maybeText(
    "What the row adds to the income, in the account's currency: the worth of `credited`, below zero for a refund."
  ),
  worthCurrency: maybe(Fiat.annotations({ description: "The account's currency of then." })),
  rate: maybeText("Units of that currency for one whole token."),
  rateSource: maybeText("Where the rate is from: `quote`, or the names of price sources."),
  worthUnknown: maybe(
    UnknownRate.annotations({
      description:
        "Why there is no worth. `unknown_token`: it has no price. `no_fresh_price`: no source had one. `seen_late`: the money was seen more than a day after its block. `too_small`: it is not credited."
    })
  )
}).annotations({ identifier: "LedgerRow", description: "Money that moved, and its worth at that moment." })
export type LedgerRow = typeof LedgerRow.Type

/** A row with whose it is, as operators see it; of several accounts, or of a lost payment, it is no one's. */
export interface OwnedRow extends LedgerRow {
  readonly account?: string
  readonly mode: Mode
}

/** Digits behind the point of worths, which are counted in hundredths of a cent. */
const scale = 4

/** A decimal with the digits of the currency behind the point, and up to four: `110.00`, in JPY `110`; null: USD. */
export const worthText = (worth: bigint, currency: Fiat | null, digits = scale): string =>
  digits > decimalsOf[currency ?? "USD"] && worth % 10n === 0n
    ? worthText(worth / 10n, currency, digits - 1)
    : (decimalText(`${worth}`, digits) ?? "")

const worthIn = (text: string): bigint => {
  const [whole = "", fraction = ""] = text.split(".")
  return BigInt(whole + fraction.padEnd(scale, "0"))
}

/** What base units are worth at a rate, to a hundredth of a cent: a half is rounded away from zero. */
export const worthAt = (amount: bigint, decimals: number, rate: string): bigint => {
  const [whole = "", fraction = ""] = rate.split(".")
  const halves =
    (amount * BigInt(whole + fraction) * 2n * 10n ** BigInt(scale)) / 10n ** BigInt(decimals + fraction.length)
  return (halves + (halves < 0n ? -1n : 1n)) / 2n
}

/** What moved of a currency on a chain; base units. */
export interface LedgerSum {
  readonly chain: ChainName
  readonly currency: string
  readonly decimals: number | undefined
  received: bigint
  /** From receiving addresses alone, as of gas. */
  refunded: bigint
  collected: bigint
  gas: bigint
  /** Income less what was refunded of it. */
  income: bigint
}

/** Sums of rows: by chain and currency, and the worth of the income. */
export interface LedgerSums {
  readonly sums: Array<LedgerSum>
  /** By the currencies that the account counted in, in hundredths of a cent. */
  readonly income: Map<Fiat, bigint>
  /** Rows of income whose worth is not known. */
  unknown: number
}

export const noSums = (): LedgerSums => ({ sums: [], income: new Map(), unknown: 0 })

/** What sums need of a row. */
export type SummedRow = Pick<
  LedgerRow,
  "kind" | "what" | "chain" | "currency" | "amount" | "decimals" | "credited" | "income" | "worthCurrency"
>

export const addRow = (all: LedgerSums, row: SummedRow): void => {
  const { chain, credited = "0", currency, decimals, kind, what, worthCurrency } = row
  const isIts = (one: LedgerSum) => one.chain === chain && one.currency === currency && one.decimals === decimals
  const known = all.sums.find(isIts)
  const sum = known ?? { chain, currency, decimals, received: 0n, refunded: 0n, collected: 0n, gas: 0n, income: 0n }
  if (known === undefined) all.sums.push(sum)
  const amount = BigInt(row.amount)
  if (kind === "receipt") sum.received += amount
  if (kind === "refund" && what === "address") sum.refunded += amount
  if (kind === "collection") sum.collected += amount
  if (kind === "gas" && what === "address") sum.gas += amount
  sum.income += kind === "refund" ? -BigInt(credited) : BigInt(credited)
  if (row.income === undefined && BigInt(credited) > 0n) all.unknown += 1
  if (row.income === undefined || worthCurrency === undefined) return
  all.income.set(worthCurrency, (all.income.get(worthCurrency) ?? 0n) + worthIn(row.income))
}

export const addUp = (rows: Iterable<LedgerRow>): LedgerSums => {
  const all = noSums()
  for (const row of rows) addRow(all, row)
  return all
}

/** What the rows say is at the receiving addresses. */
export const leftOf = ({ collected, gas, received, refunded }: LedgerSum): bigint =>
  received - refunded - collected - gas
